//! The line, from a document of a daemon, and what is read of standard input.

use std::io::{Write, pipe};

use super::*;
use crate::caps::TodayView;
use crate::money::MicroUsd;

/// What is wrong with a daemon.
type Trouble = fn(&mut LineDocument);

fn day(spent: u64) -> LineDocument {
    LineDocument {
        app: None,
        session_micro_usd: None,
        today: TodayView {
            spent: MicroUsd::new(spent).into(),
            limit: None,
            in_doubt: 0,
            frozen: false,
        },
        held_back_by: Vec::new(),
        writable: true,
    }
}

#[test]
fn the_line_has_the_day_its_cap_its_doubts_and_each_trouble() {
    let troubles: [(Trouble, &str); 7] = [
        (|_| {}, "$3.10 today"),
        (
            |day| day.today.limit = Some(MicroUsd::new(5_000_000)),
            "$3.10 of $5.00 today",
        ),
        (
            |day| day.session_micro_usd = Some(MicroUsd::new(420_000).into()),
            "$0.42 session · $3.10 today",
        ),
        (|day| day.today.in_doubt = 2, "$3.10 today · 2 in doubt"),
        (|day| day.today.frozen = true, "$3.10 today · FROZEN"),
        (
            |day| day.held_back_by = vec!["balance".to_owned()],
            "$3.10 today · held back: balance",
        ),
        (
            |day| day.writable = false,
            "$3.10 today · ledger not writable",
        ),
    ];
    for (trouble, wanted) in troubles {
        let mut day = day(3_100_000);
        trouble(&mut day);
        let socket = ListenAddr::Unix("/run/bursar-admin.sock".into());
        assert_eq!(text(&day, &socket), wanted);
        // Behind a port any user may listen.
        let at_port = text(&day, &ListenAddr::DEFAULT_ADMIN);
        assert_eq!(at_port, format!("{wanted} · {}", ListenAddr::DEFAULT_ADMIN));
    }
}

#[test]
fn an_amount_is_rounded_to_cents_and_a_little_is_not_nothing() {
    for (micro_usd, wanted) in [
        (0, "$0.00"),
        (1, "<$0.01"),
        (4_999, "<$0.01"),
        (5_000, "$0.01"),
        (14_999, "$0.01"),
        (995_000, "$1.00"),
        (1_234_567_890, "$1234.57"),
    ] {
        assert_eq!(cents(MicroUsd::new(micro_usd).into()), wanted);
    }
}

#[test]
fn no_text_of_a_daemon_reaches_the_terminal_as_its_control() {
    let mut day = day(0);
    day.held_back_by = vec!["\u{1b}[31m\n".to_owned()];
    let line = text(&day, &ListenAddr::DEFAULT_ADMIN);
    assert!(!line.contains(['\u{1b}', '\n']), "{line:?}");
}

#[test]
fn the_session_is_read_of_an_object_and_of_nothing_else() {
    let status_line = r#"{"hook_event_name":"Status","session_id":"abc-1","cwd":"/x","cost":{"total_cost_usd":0.1}}"#;
    for (given, wanted) in [
        (status_line, Some("abc-1")),
        (r#"{"session_id":""}"#, None),
        (r#"{"session_id":7}"#, None),
        (r#"{"session_id":"abc"#, None),
        (r#"{"cwd":"/x"}"#, None),
        ("", None),
        ("y\n", None),
    ] {
        let (reader, mut writer) = pipe().unwrap();
        writer.write_all(given.as_bytes()).unwrap();
        drop(writer);
        assert_eq!(session_in(reader.as_fd()).as_deref(), wanted, "{given}");
    }
}

#[test]
fn an_input_that_stays_open_is_not_waited_for() {
    let (reader, mut writer) = pipe().unwrap();
    writer.write_all(br#"{"session_id":"abc"}"#).unwrap();
    assert_eq!(session_in(reader.as_fd()).as_deref(), Some("abc"));
    // Nothing comes any more, and the writer lives.
    let before = Instant::now();
    assert_eq!(session_in(reader.as_fd()), None);
    assert!(before.elapsed() < Duration::from_secs(2));
    drop(writer);
}
