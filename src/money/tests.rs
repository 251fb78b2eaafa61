//! Amount grammar, display and checked sums.

use super::MicroUsd;

#[test]
fn only_one_to_fifteen_digits_are_an_amount() {
    let cases: &[(&[u8], Option<u64>)] = &[
        (b"0", Some(0)),
        (b"007", Some(7)),
        (b"999999999999999", Some(999_999_999_999_999)),
        (b"1000000000000000", None),
        (b"", None),
        (b"-1", None),
        (b"+1", None),
        (b" 1", None),
        (b"1 ", None),
        (b"1.0", None),
        (b"1e3", None),
        (b"0x10", None),
        ("１".as_bytes(), None),
    ];
    for (text, expected) in cases {
        let parsed = MicroUsd::parse(text).map(MicroUsd::get);
        assert_eq!(parsed, *expected, "{}", text.escape_ascii());
    }
}

#[test]
fn display_is_exact_to_the_micro_dollar() {
    assert_eq!(MicroUsd::new(1_234).to_string(), "$0.001234");
    assert_eq!(MicroUsd::new(12_000_001).to_string(), "$12.000001");
    assert_eq!(format!("{:>12}", MicroUsd::new(1)), "   $0.000001");
}

#[test]
fn a_sum_that_does_not_fit_is_refused() {
    assert_eq!(MicroUsd::new(u64::MAX).checked_add(MicroUsd::new(1)), None);
    assert_eq!(MicroUsd::new(1).checked_sub(MicroUsd::new(2)), None);
}

#[test]
fn dollars_are_parsed_exactly_or_not_at_all() {
    for (text, micro_usd) in [
        ("0", 0),
        ("$12", 12_000_000),
        ("0.1", 100_000),
        ("123.456789", 123_456_789),
        // An f64 cannot hold it.
        ("9007199254.740993", 9_007_199_254_740_993),
        ("18446744073709.551615", u64::MAX),
    ] {
        assert_eq!(
            MicroUsd::parse_usd(text),
            Some(MicroUsd::new(micro_usd)),
            "{text}"
        );
    }
    for text in [
        "",
        "$",
        ".5",
        "5.",
        "-1",
        "+1",
        "1e3",
        "1,000",
        " 1",
        "1.2345678",
        "1.2.3",
        "18446744073709.551616",
        "inf",
    ] {
        assert_eq!(MicroUsd::parse_usd(text), None, "{text}");
    }
}
