//! Retention as the daemon keeps it: beside requests, at start and once a day.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::ledger::compact as compact_offline;
use crate::ledger::entry::{AttemptEnd, State};
use crate::ledger::fixtures::{begin, billed, buy, ended};
use crate::ledger::id::EntryId;
use crate::ledger::query::find;
use crate::ledger::upkeep::compact::write::NEXT;
use crate::ledger::{Copied, LedgerError};
use crate::money::MicroUsd;
use crate::protocol::receipt::Receipt;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Most requests that are bought while something is waited for.
const PATIENCE: u32 = 5_000;

fn keeping(bench: &Bench, days: u32) -> LedgerOptions {
    LedgerOptions {
        retention: Some(DAY * days),
        segment_bytes_max: 4_000,
        ..bench.options()
    }
}

/// A request whose price comes with the end of its run.
async fn run(ledger: &Ledger, run_id: &str) -> EntryId {
    let id = begin(ledger, None).await;
    let mut outcome = ended(id, AttemptEnd::Answered, Receipt::default());
    outcome.run_id = Some(run_id.to_owned());
    ledger.settle(outcome).await.unwrap();
    id
}

/// Goes on buying until compaction came this far: the writer looks after each batch.
async fn until(ledger: &Ledger, bench: &Bench, is_so: impl Fn(&[String]) -> bool) -> u64 {
    for bought in 0..PATIENCE {
        if is_so(&names(&bench.state())) {
            return u64::from(bought);
        }
        buy(ledger, None, billed(1)).await;
        tokio::task::yield_now().await;
    }
    panic!("waited in vain: {:?}", names(&bench.state()));
}

#[tokio::test]
async fn a_running_daemon_compacts_by_itself_and_goes_on_serving() {
    let bench = Bench::new();
    let ledger = Ledger::open(keeping(&bench, 7)).unwrap();
    let mut bought = 0;
    for _ in 0..10 {
        for _ in 0..20 {
            buy(&ledger, Some(&format!("k{bought}")), billed(3)).await;
            bought += 1;
        }
        bench.clock.advance(DAY);
    }
    let gone = entries(&bench.state(), &Filter::default()).unwrap()[0].id;
    let waiting = run(&ledger, "run-1").await;
    let before = ledger.totals();
    let last = names(&bench.state()).pop().unwrap();
    bench.clock.advance(DAY * 8);
    let all_old = |names: &[String]| names[0] == "00000000.jsonl" && names[1] >= last;
    let more = until(&ledger, &bench, all_old).await;

    assert_eq!(
        ledger.totals().billed().get(),
        before.billed().get() + u128::from(more)
    );
    // The run's entry is still there, and its price still comes.
    let found = |text: &str| find(&bench.state(), text).unwrap().entries.len();
    assert_eq!(found(&waiting.to_string()), 1);
    assert_eq!((found(&gone.to_string()), found("k0")), (0, 0));
    let paid = ledger.reconcile_run("run-1", MicroUsd::new(77)).await;
    assert_eq!(paid.unwrap(), Some(waiting));
    let asked = Filter {
        id: Some(waiting),
        ..Filter::default()
    };
    let view = entries(&bench.state(), &asked).unwrap().remove(0);
    let billed = MicroUsd::new(77);
    assert_eq!(view.state, State::Reconciled { billed });
    assert_eq!(ledger.totals().unreported().values().sum::<u64>(), 0);
    ledger.close().await;
    sound(&bench.state());

    // A start finds the same, with its index and without.
    let totals = (*ledger.totals()).clone();
    assert_eq!(started(&bench).lines, totals.lines);
    fs::remove_dir_all(bench.state().join("index")).unwrap();
    assert_eq!(started(&bench).lines, totals.lines);
}

#[tokio::test]
async fn one_day_is_not_enough_whatever_retention_says() {
    let bench = Bench::new();
    let ledger = Ledger::open(keeping(&bench, 0)).unwrap();
    for _ in 0..30 {
        buy(&ledger, None, billed(3)).await;
    }
    bench.clock.advance(DAY);
    for _ in 0..200 {
        buy(&ledger, None, billed(3)).await;
    }
    ledger.close().await;

    assert!(
        !names(&bench.state())
            .iter()
            .any(|name| name.starts_with("00000000"))
    );
}

#[tokio::test]
async fn compacting_without_a_daemon_takes_the_last_segment_along_when_it_is_old() {
    let bench = Bench::new();
    let ledger = bench.open();
    for _ in 0..30 {
        buy(&ledger, None, billed(3)).await;
    }
    run(&ledger, "run-1").await;
    let locked = compact_offline(bench.options(), DAY * 30);
    assert!(
        matches!(locked, Err(LedgerError::Locked { .. })),
        "{locked:?}"
    );
    ledger.close().await;
    drop(ledger);
    bench.clock.advance(DAY * 31);

    let report = compact_offline(bench.options(), DAY * 30).unwrap();
    assert_eq!(
        (report.segments, report.entries),
        (1, Some(30)),
        "{report:?}"
    );
    assert_eq!(names(&bench.state()), ["00000000.jsonl", "00000002.jsonl"]);
    sound(&bench.state());
    let again = compact_offline(bench.options(), DAY * 30).unwrap();
    assert_eq!(again, CompactReport::default());

    let ledger = bench.open();
    assert_eq!(ledger.totals().billed().get(), 90);
    let paid = ledger.reconcile_run("run-1", MicroUsd::new(9)).await;
    assert!(paid.unwrap().is_some());
    assert_eq!(ledger.totals().billed().get(), 99);
}

/// In a fleet: until the database has acknowledged it and `resend_days` have passed.
#[tokio::test]
async fn what_is_copied_elsewhere_stays_until_the_copy_has_it_and_its_days_are_over() {
    /// An intent and an outcome each.
    const REQUESTS: u64 = 30;
    const LAST_SEQ: u64 = 2 * REQUESTS;
    for (acknowledged_seq, stays, is_compacted) in [
        (0, DAY * 7, false),
        (LAST_SEQ - 1, DAY * 7, false),
        (LAST_SEQ, DAY * 60, false),
        (LAST_SEQ, DAY * 7, true),
    ] {
        let bench = Bench::new();
        let ledger = bench.open();
        for _ in 0..REQUESTS {
            buy(&ledger, None, billed(3)).await;
        }
        ledger.close().await;
        drop(ledger);
        bench.clock.advance(DAY * 31);
        let copied = Copied::new(stays);
        copied.up_to(acknowledged_seq);
        let options = LedgerOptions {
            copied: Some(copied),
            ..bench.options()
        };
        let report = compact_offline(options, DAY * 2).unwrap();
        assert_eq!(
            report.entries,
            is_compacted.then_some(REQUESTS),
            "{acknowledged_seq}, {stays:?}: {report:?}"
        );
        assert_eq!(bench.open().totals().billed().get(), 90);
    }
}

#[tokio::test]
async fn a_running_daemon_compacts_no_further_than_the_copy_is() {
    const ACKNOWLEDGED_SEQ: u64 = 100;
    let bench = Bench::new();
    let copied = Copied::new(DAY * 7);
    let ledger = Ledger::open(LedgerOptions {
        copied: Some(Arc::clone(&copied)),
        ..keeping(&bench, 2)
    })
    .unwrap();
    for _ in 0..100 {
        buy(&ledger, None, billed(3)).await;
    }
    bench.clock.advance(DAY * 8);
    for _ in 0..200 {
        buy(&ledger, None, billed(3)).await;
    }
    let is_compacted = |names: &[String]| names[0] == "00000000.jsonl";
    assert!(!is_compacted(&names(&bench.state())), "nothing is copied");

    copied.up_to(ACKNOWLEDGED_SEQ);
    // The next look is due a day after the end of the last one.
    let an_hour_later = |names: &[String]| {
        bench.clock.advance(DAY / 24);
        is_compacted(names)
    };
    until(&ledger, &bench, an_hour_later).await;
    ledger.close().await;
    let sums = segments(&journal(&bench.state()), None).unwrap().remove(0);
    let up_to = sums.stands_for().unwrap().seq;
    assert!(up_to <= ACKNOWLEDGED_SEQ, "{up_to}");
    sound(&bench.state());
}

/// The disk fills up, and fails, while the compacted segment is made to count.
#[test]
fn an_unfinished_segment_is_removed_and_made_anew() {
    let history = History::of(300);
    let state = history.state();
    let before = ask_all(&state, &history);
    fs::write(state.join("journal").join(NEXT), b"{\"kind\":\"segm").unwrap();
    let bench = &history.paper.bench;
    bench.clock.advance(DAY * 400);
    // A start ends what was open.
    drop(bench.open());
    assert!(!state.join("journal").join(NEXT).exists());
    let started = ask_all(&state, &history);
    assert_eq!(started.len(), before.len());

    fs::write(state.join("journal").join(NEXT), b"{\"kind\":\"segm").unwrap();
    compact_offline(bench.options(), DAY * 2).unwrap();

    assert_eq!(ask_all(&state, &history), started);
    assert!(!state.join("journal").join(NEXT).exists());
    sound(&state);
}
