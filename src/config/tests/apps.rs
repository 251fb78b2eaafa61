//! `[[app]]` and `[caps]`: what is read, and what is said of mistakes.

use super::*;
use crate::money::MicroUsd;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A file with a token, for its owner alone.
fn token(place: &Fixture, name: &str, text: &str) {
    fs::write(place.path(name), text).unwrap();
    fs::set_permissions(place.path(name), fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn an_app_is_what_its_table_says() {
    let place = Fixture::new();
    token(&place, "token", TOKEN);
    let config = place
        .load(
            r#"
            [listen]
            anonymous = true
            allow_remote = true
            [caps]
            time_zone = "Europe/Berlin"
            hour_micro_usd = 1
            day_micro_usd = 1
            month_micro_usd = 999_999_999_999_999
            request_floor_micro_usd = 0
            [[app]]
            name = "nightly"
            token_file = "token"
            uids = [0, 4294967294]
            cap_hour_micro_usd = 0
            cap_day_micro_usd = 10
            cap_month_micro_usd = 20
            request_floor_micro_usd = 30
            on_disconnect = "cancel"
            agent_receipts = "exact"
            translated = "live"
            on_clarification = "error"
            [[app]]
            name = "other.team"
            "#,
        )
        .unwrap();

    assert_eq!(config.listen.anonymous, Some(true));
    assert!(config.listen.allow_remote);
    assert_eq!(config.caps.time_zone.iana_name(), Some("Europe/Berlin"));
    let most = MicroUsd::new(999_999_999_999_999);
    assert_eq!(
        config.caps.all,
        Limits {
            hour: Some(MicroUsd::new(1)),
            day: Some(MicroUsd::new(1)),
            month: Some(most),
        }
    );
    assert_eq!(config.caps.request_floor, MicroUsd::ZERO);
    let nightly = App {
        token_file: Some(place.path("token")),
        token: Some(TokenHash::of(TOKEN.as_bytes())),
        uids: vec![0, u32::MAX - 1],
        limits: Limits {
            hour: Some(MicroUsd::ZERO),
            day: Some(MicroUsd::new(10)),
            month: Some(MicroUsd::new(20)),
        },
        request_floor: Some(MicroUsd::new(30)),
        on_disconnect: Some(OnDisconnect::Cancel),
        agent_receipts: Some(AgentReceipts::Exact),
        translated: Some(TranslatedStreams::Live),
        on_clarification: OnClarification::Error,
        ..App::new("nightly")
    };
    assert_eq!(config.apps, [nightly, App::new("other.team")]);
    let file = place.path("config.toml").display().to_string();
    assert_eq!(
        config.app_places,
        [format!("{file}:14"), format!("{file}:26")]
    );

    // A command that only reads needs no right to the token.
    fs::remove_file(place.path("token")).unwrap();
    let flags = place.flags(
        "[upstream]\n[ledger]\nstate_dir = \"/s\"\n[[app]]\nname = \"a\"\ntoken_file = \"token\"\n",
    );
    let found = Whereabouts::find(&flags, &env(&[])).unwrap();
    assert_eq!(found.apps[0].token, None);
    assert_eq!(found.app_places, [format!("{file}:4")]);
}

#[test]
fn a_token_file_is_judged_as_the_keys_is() {
    let place = Fixture::new();
    token(&place, "good", &format!("{TOKEN}\n"));
    token(&place, "twin", TOKEN);
    token(&place, "short", &TOKEN[1..]);
    token(&place, "slip", &format!("bursar_{TOKEN}"));
    token(&place, "open", TOKEN);
    fs::set_permissions(place.path("open"), fs::Permissions::from_mode(0o604)).unwrap();
    let table = [
        ("none", "not a token: the file none does not exist"),
        ("open", "run: chmod o-rwx"),
        (
            "short",
            "is shorter than 32 characters and could be guessed",
        ),
        ("slip", "is mistyped: its checksum does not match"),
        ("twin", "the app \"a\" has the same token"),
    ];
    for (name, part) in table {
        let lines = place
            .load(&format!(
                "[[app]]\nname = \"a\"\ntoken_file = \"good\"\n[[app]]\nname = \"b\"\ntoken_file = \"{name}\"\n"
            ))
            .unwrap_err();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].starts_with("config.toml:9: [[app]] token_file: "),
            "{lines:?}"
        );
        assert!(lines[0].contains(part), "{name}: {lines:?}");
        assert!(!lines[0].contains(TOKEN), "{lines:?}");
    }
}

#[test]
fn other_machines_are_let_in_only_when_asked_for_and_never_anonymously() {
    let place = Fixture::new();
    let load = |more: &str| {
        place.load(&format!(
            "[listen]\nproxy = [\"0.0.0.0:1\", \"127.0.0.1:2\"]\n{more}"
        ))
    };

    let config = load("allow_remote = true\nallowed_hosts = [\"box\"]\n").unwrap();
    assert!(config.listen.is_remote());
    assert_eq!(config.warnings, [] as [&str; 0]);
    let config = load("allow_remote = true\n").unwrap();
    assert!(
        config.warnings[0].contains("allowed_hosts"),
        "{:?}",
        config.warnings
    );
    assert!(
        !place
            .load("[listen]\nallow_remote = true\n")
            .unwrap()
            .listen
            .is_remote()
    );

    for (more, line) in [
        (
            "",
            "config.toml:5: [listen] proxy: \"0.0.0.0:1\" is not a loopback address; [listen] allow_remote = true lets other machines call, for apps with tokens",
        ),
        (
            "allow_remote = true\nanonymous = true\nallowed_hosts = [\"box\"]\n",
            "config.toml:7: [listen] anonymous: cannot be true with an address beyond loopback (allow_remote): every machine that reaches it could spend",
        ),
        (
            "allow_remote = true\nadmin = [\"10.0.0.1:1\"]\n",
            "config.toml:7: [listen] admin: \"10.0.0.1:1\" is not a loopback address; the admin listener is for this machine alone; reach it through a tunnel",
        ),
    ] {
        assert_eq!(load(more).unwrap_err(), [line]);
    }
}

#[test]
fn without_a_word_there_is_no_app_and_no_cap() {
    let config = Fixture::new().load("").unwrap();

    assert_eq!(config.apps, []);
    assert_eq!(config.listen.anonymous, None);
    assert!(!config.listen.allow_remote);
    assert!(config.caps.all.is_empty());
    assert_eq!(config.caps.request_floor, MicroUsd::new(10_000));
}

#[test]
fn each_mistake_of_an_app_is_one_clear_line() {
    // What stands behind the upstream table, from line 4; every line of the answer.
    let table: [(&str, &[&str]); 14] = [
        (
            "[[app]]\nuids = [1]\n",
            &["config.toml:4: [[app]] has no name"],
        ),
        (
            "[[app]]\nname = 5\n",
            &["config.toml:5: [[app]] name: takes a string, not a whole number"],
        ),
        (
            "[[app]]\nname = \"A b\"\n",
            &[
                "config.toml:5: [[app]] name: \"A b\": the name of an app is 1 to 32 characters a-z, 0-9, dot, underscore or hyphen, the first a letter or digit",
            ],
        ),
        (
            "[[app]]\nname = \"other\"\n",
            &[
                "config.toml:5: [[app]] name: \"other\": \"other\" is what metrics call apps that they do not name; take another name",
            ],
        ),
        (
            "[[app]]\nname = \"a\"\n[[app]]\nname = \"a\"\n",
            &["config.toml:7: [[app]] name: there is an app \"a\" already"],
        ),
        (
            "[[app]]\nname = \"a\"\nuids = [1]\n[[app]]\nname = \"b\"\nuids = [2, 1, 2, -1]\n",
            &[
                "config.toml:9: [[app]] uids: the user 1 is the app \"a\" already",
                "config.toml:9: [[app]] uids: the user 2 stands twice",
                "config.toml:9: [[app]] uids: -1 is no user id",
            ],
        ),
        (
            "[[app]]\nname = \"a\"\nuids = [4294967295, \"x\"]\n",
            &[
                "config.toml:6: [[app]] uids: takes a list of whole numbers, such as [1000]; this element is a string",
                "config.toml:6: [[app]] uids: 4294967295 is no user id",
            ],
        ),
        (
            "[[app]]\nname = \"default\"\nuids = [1]\n",
            &[
                "config.toml:4: \"default\" is the app of callers that show no token; it takes neither token_file nor uids",
            ],
        ),
        (
            "[app]\nname = \"a\"\n",
            &["config.toml:4: [[app]] is a list of tables; here it is a table"],
        ),
        (
            "[[app]]\nname = \"a\"\ntoken = \"x\"\ncap_day_usd = 5\n",
            &[
                "config.toml:6: [[app]] token is unknown; did you mean token_file?",
                "config.toml:7: [[app]] cap_day_usd is unknown; did you mean cap_day_micro_usd?",
            ],
        ),
        (
            "[[app]]\nname = \"a\"\ncap_hour_micro_usd = 3\ncap_day_micro_usd = 2\ncap_month_micro_usd = 1\n",
            &[
                "config.toml:6: [[app]] cap_hour_micro_usd: the cap of the hour, $0.000003, is above that of the day, $0.000002: it would never be reached; see cap_day_micro_usd",
                "config.toml:7: [[app]] cap_day_micro_usd: the cap of the day, $0.000002, is above that of the month, $0.000001: it would never be reached; see cap_month_micro_usd",
            ],
        ),
        (
            "[caps]\nhour_micro_usd = 3\nmonth_micro_usd = 1\n",
            &[
                "config.toml:5: [caps] hour_micro_usd: the cap of the hour, $0.000003, is above that of the month, $0.000001: it would never be reached; see month_micro_usd",
            ],
        ),
        (
            "[caps]\nhour_micro_usd = -1\nday_micro_usd = 1_000_000_000_000_000\ntime_zone = \"Mars\"\n",
            &[
                "config.toml:5: [caps] hour_micro_usd: takes micro-dollars, 0 to 999999999999999, not -1",
                "config.toml:6: [caps] day_micro_usd: takes micro-dollars, 0 to 999999999999999, not 1000000000000000",
                "config.toml:7: [caps] time_zone: \"Mars\" is no time zone of this machine: write a name such as Europe/Berlin, or UTC",
            ],
        ),
        (
            "cap_day_micro_usd = 5\n",
            &[
                "config.toml:4: [upstream] cap_day_micro_usd is unknown here; cap_day_micro_usd belongs to [[app]]",
            ],
        ),
    ];
    let place = Fixture::new();
    for (text, expected) in table {
        let lines = place.load(text).expect_err(text);
        assert_eq!(lines, expected, "{text}");
    }
}

#[test]
fn the_number_of_apps_has_a_limit() {
    let place = Fixture::new();
    let apps = |count: usize| {
        (0..count)
            .map(|number| format!("[[app]]\nname = \"a{number}\"\n"))
            .collect::<String>()
    };

    assert_eq!(place.load(&apps(64)).unwrap().apps.len(), 64);
    assert_eq!(
        place.load(&apps(65)).unwrap_err(),
        ["config.toml:132: [[app]]: at most 64 apps"]
    );
}

#[test]
fn an_app_without_token_or_user_is_accepted_with_a_warning() {
    let place = Fixture::new();
    token(&place, "token", TOKEN);
    let config = place
        .load(
            r#"
            [[app]]
            name = "default"
            [[app]]
            name = "with-token"
            token_file = "token"
            [[app]]
            name = "with-user"
            uids = [7]
            [[app]]
            name = "nightly"
            "#,
        )
        .unwrap();
    let [warning] = config.warnings.as_slice() else {
        panic!("{:?}", config.warnings);
    };
    for part in ["config.toml:", "\"nightly\"", "bursar exec --app nightly"] {
        assert!(warning.contains(part), "{warning}");
    }
}
