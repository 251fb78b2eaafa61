use super::*;

#[test]
fn a_share_is_a_decimal_above_0_and_at_most_1() {
    for (text, wanted) in [
        ("0.5", Some(5_000)),
        ("0.95", Some(9_500)),
        ("0.9999", Some(9_999)),
        ("0.80000", Some(8_000)),
        ("1", Some(10_000)),
        ("1.0", Some(10_000)),
        ("0", None),
        ("0.0", None),
        ("0.00001", None),
        ("1.1", None),
        ("-0.5", None),
        ("5e-1", None),
        ("nan", None),
        ("inf", None),
        ("80", None),
        ("", None),
    ] {
        let share = Share::parse(text).map(Share::ten_thousandths);
        assert_eq!(share, wanted, "{text}");
    }
}

#[test]
fn a_share_is_shown_as_it_is_written() {
    for (text, percent) in [
        ("0.5", "50"),
        ("0.995", "99.5"),
        ("1", "100"),
        ("0.0001", "0.01"),
    ] {
        let share = Share::parse(text).expect("a share");
        assert_eq!(share.to_string(), text);
        assert_eq!(share.percent(), percent);
    }
}

#[test]
fn a_share_is_reached_to_the_micro_dollar_and_never_of_nothing() {
    let share = Share::parse("0.8").expect("a share");
    for (counted, limit, wanted) in [
        (7_999_999, 10_000_000, false),
        (8_000_000, 10_000_000, true),
        (2, 3, false),
        (3, 3, true),
        (0, 0, false),
        (5, 0, false),
        (u128::MAX, u64::MAX, true),
    ] {
        assert_eq!(
            share.is_reached(counted, limit),
            wanted,
            "{counted} of {limit}"
        );
    }
}

#[test]
fn an_address_is_https_or_this_machine_and_no_text_shows_its_path() {
    for (text, shown, target) in [
        (
            "https://hooks.example.com/T0/B1?k=secret",
            "https://hooks.example.com/…",
            "/T0/B1?k=secret",
        ),
        (
            "https://HOOKS.example.com:8443",
            "https://hooks.example.com:8443",
            "/",
        ),
        (
            "https://a.example?k=secret",
            "https://a.example/…",
            "/?k=secret",
        ),
        (
            "http://127.0.0.1:9/secret",
            "http://127.0.0.1:9/…",
            "/secret",
        ),
        ("http://[::1]:9/secret", "http://[::1]:9/…", "/secret"),
        ("http://localhost/secret", "http://localhost/…", "/secret"),
    ] {
        let url = NotifyUrl::parse(text).unwrap_or_else(|why| panic!("{text} {why}"));
        assert_eq!(url.to_string(), shown);
        assert_eq!(format!("{url:?}"), shown);
        assert_eq!(url.target(), target);
    }
    for text in [
        "hooks.example.com/secret",
        "http://hooks.example.com/secret",
        "http://127.0.0.1.example.com/secret",
        "ftp://hooks.example.com/secret",
        "https://secret@hooks.example.com/",
        "https:///secret",
        "https://hooks.example.com/a b?secret",
        "https://hooks.example.com/secret#x",
        "https://hooks.example.com:0/secret",
    ] {
        let why = NotifyUrl::parse(text).expect_err(text);
        assert!(!why.contains("secret"), "{text}: {why}");
    }
}

#[test]
fn a_command_is_a_path_or_a_name_and_words_for_it() {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        check_command(&words(&["/usr/local/bin/tell", "-q"])),
        Ok(())
    );
    assert_eq!(check_command(&words(&["logger"])), Ok(()));
    for wrong in [
        &[][..],
        &[""],
        &["bin/tell"],
        &["./tell"],
        &["tell", "a\0b"],
    ] {
        assert!(check_command(&words(wrong)).is_err(), "{wrong:?}");
    }
}
