//! The screen, from figures of a daemon.

use clap::Parser;

use super::*;
use crate::admin::documents::{KeyStatus, LedgerStatus, sample};
use crate::caps::FrozenView;
use crate::ledger::totals::MicroUsdSum;
use crate::money::MicroUsd;

/// What is wrong with a daemon.
type Trouble = fn(&mut StatusDocument);

fn screen(daemon: Option<StatusDocument>) -> StatusScreen {
    let asked = SpendQuestion {
        since_ms: None,
        until_ms: None,
        by: Vec::new(),
        zone: TimeZone::UTC,
    };
    StatusScreen {
        daemon,
        today: SpendDocument::new(&asked, crate::ledger::query::Spend::default()),
        caps: CapsView::default(),
    }
}

fn daemon() -> StatusDocument {
    StatusDocument {
        version: "0.1.0".to_owned(),
        pid: 7,
        uptime_s: 3 * 3600 + 120,
        proxy: vec![
            "unix:/run/bursar.sock".to_owned(),
            "127.0.0.1:8327".to_owned(),
        ],
        upstream: "https://service.example".to_owned(),
        ledger: LedgerStatus {
            state_dir: "/s".to_owned(),
            writable: true,
            ..LedgerStatus::default()
        },
        ..StatusDocument::default()
    }
}

#[test]
fn each_trouble_of_a_daemon_stands_on_the_screen() {
    let troubles: [(Trouble, &str); 4] = [
        (|_| {}, "held back   nothing that bursar knows of"),
        (
            |daemon| daemon.traffic.held_back_by = vec!["balance".to_owned()],
            "held back   the balance is empty (402); one request at a time probes it",
        ),
        (
            |daemon| {
                daemon.ledger.writable = false;
                daemon.ledger.unavailable = Some("the disk is full".to_owned());
            },
            "NOT WRITABLE: the disk is full",
        ),
        (
            |daemon| daemon.in_doubt = Some(2),
            "2 entries in all: bursar receipts --state in-doubt",
        ),
    ];
    for (trouble, on_screen) in troubles {
        let mut daemon = daemon();
        trouble(&mut daemon);
        let screen = screen(Some(daemon));
        let text = screen.text(None, &TimeZone::UTC, &Look::of_width(80));
        assert!(text.contains(on_screen), "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

/// Of a key that no answer spoke of nothing is said but that.
#[test]
fn the_screen_says_whether_the_key_was_accepted_and_when_last() {
    let at = |minute: u8| Some(format!("2026-01-31T12:{minute:02}:00.000Z"));
    let rows = [
        (KeyStatus::default(), "the key was not used yet"),
        (
            KeyStatus {
                answered: at(5),
                ..KeyStatus::default()
            },
            "no answer has shown yet whether the service accepts it; the last one came at 2026-01-31 12:05:00",
        ),
        (
            KeyStatus {
                answered: at(5),
                accepted: at(4),
                ..KeyStatus::default()
            },
            "accepted by the service, last at 2026-01-31 12:04:00",
        ),
        (
            KeyStatus {
                accepted: at(4),
                refused: at(5),
                ..KeyStatus::default()
            },
            "refused by the service at 2026-01-31 12:05:00; accepted last at 2026-01-31 12:04:00",
        ),
        (
            KeyStatus {
                accepted: at(4),
                balance_empty: at(4),
                ..KeyStatus::default()
            },
            "last at 2026-01-31 12:04:00; the balance was empty at 2026-01-31 12:04:00",
        ),
    ];
    for (key, wanted) in rows {
        let daemon = StatusDocument { key, ..daemon() };
        let text = screen(Some(daemon)).text(None, &TimeZone::UTC, &Look::unlimited());
        let line = text.lines().find(|line| line.starts_with("key "));
        assert!(line.is_some_and(|line| line.contains(wanted)), "{text}");
    }
}

#[test]
fn everything_that_holds_requests_back_is_named_in_one_place() {
    let mut daemon = daemon();
    daemon.draining = true;
    daemon.ledger.writable = false;
    daemon.traffic.held_back_by = vec!["key".to_owned(), "upstream".to_owned()];
    daemon.traffic.waiting = 2;
    daemon.traffic.at_service = 4;
    daemon.traffic.in_flight_limit = Some(4);
    daemon.waits_for_restart = vec!["[log] format".to_owned()];
    let mut screen = screen(Some(daemon));
    screen.caps.frozen = vec![FrozenView {
        app: Some("nightly".to_owned()),
        since_ms: 0,
        by: "user 0".to_owned(),
        fleet: false,
    }];
    let text = screen.text(None, &TimeZone::UTC, &Look::unlimited());
    let line = text.lines().find(|line| line.starts_with("held back "));
    assert_eq!(
        line.unwrap_or_default(),
        "held back   the service refuses the key (401); one request at a time probes it; the service cannot be \
         reached; one request at a time probes it; bursar is stopping; the ledger cannot be written; all 4 places at \
         the service are taken; nightly is frozen"
    );
    assert!(
        text.contains("RESTART     [log] format: changed in the file"),
        "{text}"
    );
    assert!(text.contains("(4 at once, no limit a minute)"), "{text}");
}

fn shared_cap(state: &str, open: u128) -> SharedCapView {
    SharedCapView {
        cap: "team".to_owned(),
        period: None,
        time_zone: None,
        limit: None,
        charged: None,
        since_ms: None,
        resets_at_ms: None,
        state: state.to_owned(),
        leased: MicroUsd::new(9),
        spent: MicroUsdSum::default(),
        held: MicroUsdSum::default(),
        reserved: MicroUsdSum::default(),
        under_way: 0,
        open: MicroUsdSum::from_micro_usd(open),
        ends_in_ms: None,
        ahead: MicroUsdSum::default(),
        dearest: None,
        refusals: 0,
        reached: 0,
    }
}

/// Of a cap that answers, more is leased by the next request.
#[test]
fn a_shared_cap_of_which_nothing_is_left_here_holds_requests_back() {
    for (state, open, says) in [
        ("leased", 0, None),
        ("empty", 0, Some("has none")),
        ("unreachable", 0, Some("away")),
        ("unreachable", 5, None),
    ] {
        let mut screen = screen(Some(daemon()));
        screen.caps.shared = vec![shared_cap(state, open)];
        let text = screen.text(None, &TimeZone::UTC, &Look::unlimited());
        let wanted = match says {
            Some(says) => format!("nothing is left here of the shared cap team ({says})"),
            None => "nothing that bursar knows of".to_owned(),
        };
        let line = text.lines().find(|line| line.starts_with("held back "));
        assert!(line.is_some_and(|line| line.ends_with(&wanted)), "{text}");
    }
}

/// As after a hello, before the first visit that ships has come to an end.
#[test]
fn the_fleet_is_not_said_to_have_everything_where_that_is_not_known() {
    for (lines_behind, wanted) in [
        (None, "heard at 2026-01-31 12:05:00"),
        (Some(0), "has everything, heard at 2026-01-31 12:05:00"),
        (Some(2), "2 lines behind, heard at 2026-01-31 12:05:00"),
    ] {
        let fleet = FleetStatus {
            heard: Some("2026-01-31T12:05:00.000Z".to_owned()),
            lines_behind,
            ..FleetStatus::default()
        };
        assert_eq!(fleet_line(&fleet, &TimeZone::UTC), wanted);
    }
}

#[test]
fn the_address_to_paste_is_a_port_with_the_path_of_its_routes() {
    let text = screen(Some(daemon())).text(None, &TimeZone::UTC, &Look::of_width(80));
    assert!(
        text.contains("http://127.0.0.1:8327/v1 (a token is needed)"),
        "{text}"
    );
    assert!(
        text.contains("0.1.0 running for 3 h 2 min, process 7"),
        "{text}"
    );
}

/// `bursar thaw` without a name leaves frozen what was frozen by name.
#[test]
fn a_freeze_is_shown_with_the_command_that_ends_it() {
    for (app, wanted) in [
        (None, "all apps, since 1970-01-01 00:00:00: bursar thaw"),
        (
            Some("nightly"),
            "nightly, since 1970-01-01 00:00:00: bursar thaw nightly",
        ),
    ] {
        let mut screen = screen(Some(daemon()));
        screen.caps.frozen = vec![FrozenView {
            app: app.map(str::to_owned),
            since_ms: 0,
            by: "user 0".to_owned(),
            fleet: false,
        }];
        let text = screen.text(None, &TimeZone::UTC, &Look::unlimited());
        assert!(text.lines().any(|line| line.ends_with(wanted)), "{text}");
    }
}

#[test]
fn the_newest_problem_is_shown_with_the_command_that_explains_it() {
    let entry = sample::entry(&serde_json::json!({}));
    let wanted = format!("bursar explain {}", tail(&entry.id));
    let text = screen(Some(daemon())).text(Some(&entry), &TimeZone::UTC, &Look::unlimited());
    assert!(text.contains(&wanted), "{text}");
}

#[test]
fn a_shell_is_given_nothing_but_an_address_whatever_answered() {
    for (proxy, wanted) in [
        (vec!["127.0.0.1:1/$(touch /tmp/x)"], None),
        (vec!["127.0.0.1:1; touch /tmp/x"], None),
        (vec!["127.0.0.1:1\ntouch /tmp/x"], None),
        (
            vec!["127.0.0.1:1`id`", "unix:/a", "[::1]:2"],
            Some("http://[::1]:2/v1"),
        ),
        (vec!["0.0.0.0:3"], Some("http://127.0.0.1:3/v1")),
    ] {
        let daemon = StatusDocument {
            proxy: proxy.iter().map(ToString::to_string).collect(),
            ..daemon()
        };
        assert_eq!(base_url(&daemon).as_deref(), wanted, "{proxy:?}");
    }
}

#[test]
fn no_text_of_a_daemon_reaches_the_terminal_as_its_control() {
    let mut daemon = daemon();
    daemon.version = "\u{1b}]0;x\u{7}".to_owned();
    daemon.proxy = vec!["\u{1b}[2J".to_owned()];
    daemon.traffic.held_back_by = vec!["\u{1b}[31m".to_owned()];
    let screen = screen(Some(daemon));
    let text = screen.text(None, &TimeZone::UTC, &Look::of_width(80));
    assert!(
        !text.contains('\u{1b}') && !text.contains('\u{7}'),
        "{text:?}"
    );
}

/// `bursar env` with nothing around it.
#[derive(Parser)]
struct EnvLine {
    #[command(flatten)]
    args: EnvArgs,
}

#[test]
fn no_token_is_pointed_at_a_port() {
    let typed = [
        "env",
        "--admin",
        "127.0.0.1:1",
        "--token-file",
        "/nowhere/token",
    ];
    let refused = env(&EnvLine::parse_from(typed).args).expect_err("a port");
    assert!(matches!(refused, CliError::Usage(_)), "{refused}");
    assert!(refused.to_string().contains("no app's token"), "{refused}");
}
