use std::time::Duration;

use jiff::tz::TimeZone;

use crate::ledger::entry::{AttemptEnd, InDoubt};
use crate::ledger::fixtures::{Bench, START_MS, begin, billed, buy, ended};
use crate::ledger::query::{Filter, GroupBy, Spend, SpendRow, StateWord, entries, spend};
use crate::ledger::{Ledger, LedgerOptions};
use crate::money::MicroUsd;
use crate::protocol::Operation;
use crate::protocol::receipt::Receipt;

mod bounds;
mod days;
mod model;

/// Thirty entries over several segments, one an hour, beside a daemon that still runs.
async fn thirty() -> (Bench, Ledger) {
    let bench = Bench::new();
    let ledger = Ledger::open(LedgerOptions {
        segment_bytes_max: 3_000,
        ..bench.options()
    })
    .unwrap();
    for amount in 1..=30 {
        buy(&ledger, Some(&format!("k{amount}")), billed(amount)).await;
        bench.clock.advance(Duration::from_secs(3600));
    }
    (bench, ledger)
}

#[tokio::test]
async fn entries_are_listed_beside_a_running_daemon_with_what_the_design_says_is_kept() {
    let (bench, _ledger) = thirty().await;

    let all = entries(&bench.state(), &Filter::default()).unwrap();

    assert_eq!(all.len(), 30);
    let json = serde_json::to_value(&all[6]).unwrap();
    assert_eq!(json["billed_micro_usd"], 7);
    assert_eq!(json["would_have_cost_micro_usd"], serde_json::Value::Null);
    assert_eq!(json["key"], "k7");
    assert_eq!(json["model"], "auto");
    assert_eq!(json["at_ms"], START_MS + 6 * 3_600_000);
    assert_eq!(json["attempts"][0]["status"], 200);
}

#[tokio::test]
async fn the_newest_few_are_whole_wherever_their_intents_lie() {
    let (bench, _ledger) = thirty().await;

    for limit in 1..=31 {
        let filter = Filter {
            limit: Some(limit),
            ..Filter::default()
        };
        let found = entries(&bench.state(), &filter).unwrap();

        assert_eq!(found.len(), limit.min(30));
        assert!(
            found.iter().all(|view| view.model.is_some()),
            "limit {limit}"
        );
        assert_eq!(
            found.last().unwrap().billed_micro_usd,
            Some(MicroUsd::new(30))
        );
    }
}

#[tokio::test]
async fn filters_narrow_by_time_app_state_and_what_is_new() {
    let (bench, ledger) = thirty().await;
    let open = begin(&ledger, None).await;
    let count = |filter: Filter| entries(&bench.state(), &filter).unwrap().len();
    let hour = |hours: u64| Some(START_MS + hours * 3_600_000);

    let window = Filter {
        since_ms: hour(10),
        until_ms: hour(12),
        ..Filter::default()
    };
    let late = Filter {
        since_ms: hour(28),
        ..Filter::default()
    };
    let app = Filter {
        app: Some("other".to_owned()),
        ..Filter::default()
    };
    let state = Filter {
        state: Some(StateWord::Open),
        ..Filter::default()
    };
    let new = Filter {
        after_seq: Some(58),
        ..Filter::default()
    };
    let one = Filter {
        id: Some(open),
        ..Filter::default()
    };

    let counts = [window, late, app, state, new, one].map(count);
    assert_eq!(counts, [2, 3, 0, 1, 2, 1]);
}

#[tokio::test]
async fn operation_and_model_narrow_and_a_reason_admits_no_request_in_flight() {
    let (bench, ledger) = thirty().await;
    begin(&ledger, None).await;
    let all = Filter::default();
    let asked = |filter: Filter| {
        [None, Some(0)].map(|after_seq| {
            let filter = Filter {
                after_seq,
                limit: Some(100),
                ..filter.clone()
            };
            entries(&bench.state(), &filter).unwrap().len()
        })
    };

    let chat = Filter {
        operation: Some(Operation::Chat),
        ..all.clone()
    };
    let rerank = Filter {
        operation: Some(Operation::Rerank),
        ..all.clone()
    };
    let auto = Filter {
        model: Some("auto".to_owned()),
        ..all.clone()
    };
    let other = Filter {
        model: Some("other".to_owned()),
        ..all.clone()
    };
    let reason = Filter {
        reason: Some(InDoubt::Crash),
        ..all
    };

    let counts = [chat, rerank, auto, other, reason].map(asked);
    assert_eq!(counts, [[31, 31], [0, 0], [31, 31], [0, 0], [0, 0]]);
}

#[tokio::test]
async fn sums_by_day_are_those_of_the_named_time_zone() {
    let (bench, _ledger) = thirty().await;
    let zone = TimeZone::get("America/New_York").unwrap();

    let utc = spend(&bench.state(), None, None, &[GroupBy::Day], &TimeZone::UTC).unwrap();
    let local = spend(&bench.state(), None, None, &[GroupBy::Day], &zone).unwrap();

    let days = |spend: &Spend| -> Vec<(String, u64)> {
        let row = |row: &SpendRow| (row.labels[&GroupBy::Day].clone(), row.requests);
        spend.rows.iter().map(row).collect()
    };
    assert_eq!(
        days(&utc),
        [("2026-05-09".to_owned(), 24), ("2026-05-10".to_owned(), 6)]
    );
    assert_eq!(
        days(&local),
        [
            ("2026-05-08".to_owned(), 4),
            ("2026-05-09".to_owned(), 24),
            ("2026-05-10".to_owned(), 2)
        ]
    );
    assert_eq!(utc.total.billed_micro_usd.get(), 465);
    assert_eq!(utc.total, local.total);
}

#[tokio::test]
async fn an_entry_is_counted_in_the_state_it_came_to() {
    let bench = Bench::new();
    let ledger = bench.open();
    let lost = begin(&ledger, Some("k")).await;
    ledger
        .settle(ended(lost, AttemptEnd::NoHead, Receipt::default()))
        .await
        .unwrap();
    begin(&ledger, None).await;
    let by = [GroupBy::State, GroupBy::App];
    let ask = || spend(&bench.state(), None, None, &by, &TimeZone::UTC).unwrap();

    let before = ask();
    buy(&ledger, Some("k"), billed(90)).await;
    let after = ask();

    let states = |spend: &Spend| -> Vec<(String, u64)> {
        let row = |row: &SpendRow| (row.labels[&GroupBy::State].clone(), row.requests);
        spend.rows.iter().map(row).collect()
    };
    let words = |all: &[(&str, u64)]| -> Vec<(String, u64)> {
        all.iter()
            .map(|(word, count)| ((*word).to_owned(), *count))
            .collect()
    };
    assert_eq!(states(&before), words(&[("in_doubt", 1), ("open", 1)]));
    assert_eq!(
        states(&after),
        words(&[("open", 1), ("reconciled", 1), ("settled", 1)])
    );
    assert_eq!((before.total.in_doubt, after.total.in_doubt), (1, 0));
    let json = serde_json::to_value(&after.rows[2]).unwrap();
    assert_eq!(
        (json["app"].as_str(), json["billed_micro_usd"].as_u64()),
        (Some("notes"), Some(90))
    );
}

#[test]
fn no_ledger_is_an_error_that_names_the_place() {
    let bench = Bench::new();

    let error = entries(&bench.state(), &Filter::default()).unwrap_err();

    assert!(error.to_string().contains("state/journal"), "{error}");
}
