use serde_json::{Value, json};

use super::*;
use crate::admin::documents::sample;
use crate::ledger::query::{Spend, SpendRow};
use crate::money::MicroUsd;

const NOW_MS: u64 = 1_778_284_900_000;

/// An entry that ended so many seconds ago.
fn ended(number: u32, ago_s: u64, others: &Value) -> EntryView {
    let at_ms = NOW_MS - ago_s * 1000;
    let mut members = json!({
        "id": format!("018f3c00-0000-7000-8000-0000{number:08}"),
        "at_ms": at_ms - 1500,
        "ended_ms": at_ms,
        "app": "nightly",
        "state": "settled",
        "billed_micro_usd": 100,
        "timings": {"queue_ms": 0, "first_byte_ms": 5, "total_ms": 1500, "own_us": 900},
    });
    let others = others.as_object().expect("members");
    for (name, value) in others {
        members[name] = value.clone();
    }
    sample::entry(&members)
}

fn open(number: u32, app: &str) -> EntryView {
    let mut entry = ended(number, 0, &json!({"app": app}));
    entry.state = State::Open;
    entry.ended_ms = None;
    entry.billed_micro_usd = None;
    entry
}

fn spent_today(app: &str, micro_usd: u64) -> SpendDocument {
    let mut row = SpendRow::default();
    row.labels.insert(GroupBy::App, app.to_owned());
    row.billed_micro_usd = MicroUsd::new(micro_usd).into();
    let spend = Spend {
        rows: vec![row],
        ..Spend::default()
    };
    SpendDocument::new(&today(vec![GroupBy::App], NOW_MS, &TimeZone::UTC), spend)
}

#[test]
fn an_apps_figures_are_those_of_its_entries_of_late() {
    let mut watch = Watch::default();
    for entry in [
        ended(1, 10, &json!({"escalated": "true"})),
        ended(2, 59, &json!({"escalated": "false"})),
        ended(3, 61, &json!({"escalated": "false"})),
        ended(
            4,
            20,
            &json!({"state": "in_doubt", "reason": "crash", "billed_micro_usd": null}),
        ),
        ended(5, 301, &json!({})),
        ended(6, 5, &json!({"app": "team", "billed_micro_usd": 900})),
        open(7, "nightly"),
    ] {
        watch.take(entry);
    }
    watch.forget(NOW_MS);
    let loads = watch.loads(&spent_today("nightly", 5000), NOW_MS);
    let nightly = AppLoad {
        app: "nightly".to_owned(),
        today_micro_usd: MicroUsd::new(5000).into(),
        last_minute_micro_usd: MicroUsd::new(200).into(),
        in_flight: 1,
        ended: 4,
        escalated: 1,
        not_escalated: 2,
        in_doubt: 1,
    };
    assert_eq!(loads[0].app, "team", "the busiest first");
    assert_eq!(loads[1], nightly);
    assert_eq!(nightly.escalation(), "33 %");
    assert_eq!(AppLoad::sum(&loads).ended, 5);
}

#[test]
fn an_entry_counts_once_however_often_it_changes() {
    let mut watch = Watch::default();
    watch.take(open(1, "nightly"));
    watch.take(ended(1, 1, &json!({})));
    watch.take(ended(1, 1, &json!({})));
    let loads = watch.loads(&spent_today("nightly", 100), NOW_MS);
    assert_eq!((loads[0].in_flight, loads[0].ended), (0, 1));
    assert_eq!(watch.newest.len(), 1);
}

#[test]
fn no_line_is_wider_than_the_screen_and_none_obeys_an_app() {
    let mut watch = Watch::default();
    let wild = "\u{1b}[2J".to_owned() + &"a-very-long-name".repeat(5);
    for number in 0..20 {
        let others = json!({
            "app": format!("{wild}{number}"),
            "operation": "frontier_comparison",
            "billed_micro_usd": 9_999_999_999_u64,
        });
        watch.take(ended(number, 1, &others));
    }
    let frame = Frame {
        at: None,
        daemon: None,
        window_s: WINDOW_S,
        apps: watch.loads(&spent_today("nightly", 5000), NOW_MS),
        receipts: watch.newest.iter().cloned().map(EntryDocument).collect(),
    };
    let lines = frame.lines(&TimeZone::UTC);
    assert!(lines.len() <= 23, "{lines:#?}");
    for line in lines {
        assert!(line.chars().count() <= COLUMNS, "{line}");
        assert!(!line.contains('\u{1b}'), "{line:?}");
    }
}
