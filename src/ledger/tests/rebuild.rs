//! Without a sound index a long journal is added up while requests are served. What money rests on is known
//! from the first of them; the totals are not shown before they are whole.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;

use super::{EIO, ENOSPC, in_doubt_now, settled};
use crate::ledger::entry::{AttemptEnd, InDoubt, State};
use crate::ledger::fixtures::{Bench, START_MS, begin, billed, buy, ended, intent};
use crate::ledger::fold::books::{Books, RECENT_MAX};
use crate::ledger::id::EntryId;
use crate::ledger::query::{SpendRow, spend, verify};
use crate::ledger::record::{Position, Record};
use crate::ledger::totals::Totals;
use crate::ledger::{Ledger, LedgerOptions};
use crate::money::MicroUsd;
use crate::protocol::receipt::Receipt;

const DAY_MS: u64 = 24 * 3_600_000;

const AT: Position = Position {
    segment: 1,
    offset: 0,
    bytes: 0,
};

/// Opens the ledger without its index, and with nothing too short to be added up beside requests.
fn open_without_index(bench: &Bench) -> Ledger {
    fs::remove_dir_all(bench.state().join("index")).unwrap();
    Ledger::open(LedgerOptions {
        rebuild_beside_bytes: 0,
        ..bench.options()
    })
    .unwrap()
}

/// Each question wakes the writer, which takes over what is whole.
async fn until_whole(ledger: &Ledger) {
    while ledger.health().is_adding_up {
        ledger.undelivered().await.unwrap();
        tokio::task::yield_now().await;
    }
}

/// Small segments, so that a start need not read all of them.
fn options(bench: &Bench) -> LedgerOptions {
    LedgerOptions {
        segment_bytes_max: 2_000,
        ..bench.options()
    }
}

/// A run that waits, a doubt under a key, and answers on both sides of the last day.
async fn fill(bench: &Bench) {
    let ledger = Ledger::open(options(bench)).unwrap();
    let started = begin(&ledger, None).await;
    let mut run = ended(started, AttemptEnd::Answered, Receipt::default());
    run.run_id = Some("run-1".to_owned());
    ledger.settle(run).await.unwrap();
    for day in 0..5 {
        bench.clock.set_wall_ms(START_MS + day * DAY_MS);
        for amount in 1..=10 {
            buy(&ledger, None, billed(amount)).await;
        }
    }
    let lost = begin(&ledger, Some("doubt")).await;
    let broken = ended(lost, AttemptEnd::NoHead, Receipt::default());
    ledger.settle(broken).await.unwrap();
    buy(&ledger, Some("paid"), billed(50)).await;
    ledger.close().await;
}

fn summed(bench: &Bench) -> SpendRow {
    let all = spend(&bench.state(), None, None, &[], &TimeZone::UTC).unwrap();
    all.total
}

#[tokio::test]
async fn requests_are_served_and_keys_known_while_the_journal_is_added_up() {
    let bench = Bench::new();
    fill(&bench).await;
    let ledger = open_without_index(&bench);
    let health = ledger.health();
    assert!(health.is_adding_up && health.is_writable());
    assert!(ledger.index().is_none(), "the journal answers");

    let replay = buy(&ledger, Some("paid"), billed(50)).await;
    assert_eq!(replay.state, State::Replayed);
    let repeat = buy(&ledger, Some("doubt"), billed(0)).await;
    let reason = InDoubt::ReplayLostAmount;
    assert_eq!(repeat.state, State::InDoubt { reason });
    let paid = buy(&ledger, Some("doubt"), billed(7)).await;
    assert_eq!(paid.state, settled(7));
    until_whole(&ledger).await;

    let totals = ledger.totals();
    assert_eq!(totals.billed().get(), 5 * 55 + 50 + 7);
    assert_eq!(totals.billed(), summed(&bench).billed_micro_usd);
    assert_eq!(totals.requests(), summed(&bench).requests);
    assert_eq!(ledger.waiting_runs().borrow().len(), 1);
    assert!(ledger.index().is_some());
    let sums = ledger.spend(None, None, &[], &TimeZone::UTC).unwrap();
    assert_eq!(sums.total, summed(&bench));
    ledger.close().await;
    assert!(verify(&bench.state()).unwrap().ok);
    assert_eq!(anew(&bench).await, *totals);
}

/// What a start comes to that adds all up before it answers.
async fn anew(bench: &Bench) -> Totals {
    fs::remove_dir_all(bench.state().join("index")).unwrap();
    let ledger = bench.open();
    assert!(!ledger.health().is_adding_up);
    let totals = (*ledger.totals()).clone();
    ledger.close().await;
    totals
}

#[tokio::test]
async fn a_rebuild_that_a_stop_cuts_off_comes_to_the_same_sums() {
    let bench = Bench::new();
    fill(&bench).await;
    drop(open_without_index(&bench));
    let ledger = Ledger::open(LedgerOptions {
        rebuild_beside_bytes: 0,
        ..bench.options()
    })
    .unwrap();
    until_whole(&ledger).await;
    let totals = ledger.totals();
    ledger.close().await;
    assert_eq!(totals.billed().get(), 5 * 55 + 50);
    assert_eq!(anew(&bench).await, *totals);
}

/// However many requests end while the journal is added up: what the start found in flight ends once.
#[test]
fn what_a_start_has_ended_is_not_ended_again_when_the_sums_are_whole() {
    let id = EntryId(uuid::Uuid::from_u128(1));
    let begun = Record::Intent(Arc::new(intent(id, START_MS, None)));
    let mut before = Books::default();
    before.apply(1, AT, &begun, true);
    let mut books = Books::default();
    books.apply(1, AT, &begun, false);
    let known = books.open_ids().into_iter().collect();
    let crashed = books.end(id, START_MS, Some(InDoubt::Crash)).unwrap();
    books.apply(2, AT, &crashed, true);
    for n in 1..=u64::try_from(RECENT_MAX).unwrap() {
        let id = EntryId(uuid::Uuid::from_u128(u128::from(n + 1)));
        let begun = Record::Intent(Arc::new(intent(id, START_MS, None)));
        books.apply(2 * n + 1, AT, &begun, true);
        let withdrawn = books.end(id, START_MS, None).unwrap();
        books.apply(2 * n + 2, AT, &withdrawn, true);
    }
    assert!(books.recent(id).is_none(), "it is long ago");
    assert_eq!(books.take_over(before, &known), []);
    assert_eq!(books.totals().open, 0);
}

/// A run that waits since before the last day is known again when the sums are whole; its price may come earlier.
#[tokio::test]
async fn a_runs_price_that_comes_while_the_journal_is_added_up_is_not_lost() {
    let bench = Bench::new();
    fill(&bench).await;
    let ledger = open_without_index(&bench);
    let price = MicroUsd::new(33);
    ledger.reconcile_run("run-1", price).await.unwrap();
    until_whole(&ledger).await;
    assert_eq!(ledger.reconcile_run("run-1", price).await.unwrap(), None);
    assert!(ledger.waiting_runs().borrow().is_empty());
    assert_eq!(ledger.totals().billed().get(), 5 * 55 + 50 + 33);
    let sums = ledger.spend(None, None, &[], &TimeZone::UTC).unwrap();
    assert_eq!(sums.total, summed(&bench));
    ledger.close().await;
    assert!(verify(&bench.state()).unwrap().ok);
}

/// What the journal lost at its end is missing to the new index too.
#[tokio::test]
async fn records_that_were_cut_off_are_missing_after_the_sums_are_whole() {
    let bench = Bench::new();
    let ledger = bench.open();
    for amount in 1..=5 {
        buy(&ledger, None, billed(amount)).await;
    }
    ledger.close().await;
    let text = fs::read_to_string(bench.segment(1)).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    fs::write(bench.segment(1), lines[..lines.len() - 2].concat()).unwrap();

    let ledger = open_without_index(&bench);
    until_whole(&ledger).await;
    buy(&ledger, None, billed(100)).await;
    ledger.index().unwrap();
    let sums = ledger.spend(None, None, &[], &TimeZone::UTC).unwrap();
    ledger.close().await;
    let journal = spend(&bench.state(), None, None, &[], &TimeZone::UTC).unwrap();
    assert_eq!(
        (journal.damaged, journal.total.billed_micro_usd.get()),
        (1, 110)
    );
    assert_eq!(sums, journal);
    let ledger = bench.open();
    assert_eq!(ledger.health().index_rebuilds, 0, "nothing new is missing");
    let sums = ledger.spend(None, None, &[], &TimeZone::UTC).unwrap();
    assert_eq!(sums, journal);
}

/// An entry in flight that lies further back than what a start reads.
async fn lose_one_long_ago(bench: &Bench) -> EntryId {
    let ledger = Ledger::open(options(bench)).unwrap();
    let lost = begin(&ledger, Some("k")).await;
    bench.clock.set_wall_ms(START_MS + 3 * DAY_MS);
    for amount in 1..=20 {
        buy(&ledger, None, billed(amount)).await;
    }
    lost
}

/// Its process died.
#[tokio::test]
async fn what_was_in_flight_long_ago_is_ended_when_it_is_found() {
    let bench = Bench::new();
    let lost = lose_one_long_ago(&bench).await;

    let ledger = open_without_index(&bench);
    until_whole(&ledger).await;
    let totals = ledger.totals();
    assert_eq!((totals.open, totals.requests()), (0, 21));
    assert_eq!(in_doubt_now(&totals, InDoubt::Crash), 1);
    ledger.close().await;
    let found = crate::ledger::query::find(&bench.state(), &lost.to_string()).unwrap();
    let reason = InDoubt::Crash;
    assert_eq!(found.entries[0].state, State::InDoubt { reason });
    assert!(verify(&bench.state()).unwrap().ok);
}

/// Its end is the first that is written, and that fails. The reserve has room for it, or it waits for the disk.
#[tokio::test]
async fn what_was_in_flight_long_ago_is_ended_also_where_that_cannot_be_written_at_once() {
    for failures in [vec![EIO], vec![ENOSPC], vec![ENOSPC, ENOSPC]] {
        let bench = Bench::new();
        lose_one_long_ago(&bench).await;
        let ledger = open_without_index(&bench);
        for errno in &failures {
            bench.fail_next_write(0, *errno);
        }
        while ledger.health().is_adding_up {
            bench.clock.advance(Duration::from_secs(1));
            // Its answer may be that the journal is not open.
            let _ = ledger.undelivered().await;
            tokio::task::yield_now().await;
        }
        for _ in 0..3 {
            bench.clock.advance(Duration::from_secs(1));
            let _ = ledger.undelivered().await;
        }
        let totals = ledger.totals();
        assert_eq!((totals.open, totals.requests()), (0, 21), "{failures:?}");
        assert_eq!(in_doubt_now(&totals, InDoubt::Crash), 1, "{failures:?}");
        assert!(ledger.health().is_writable(), "{failures:?}");
        ledger.close().await;
        assert!(verify(&bench.state()).unwrap().ok, "{failures:?}");
    }
}

/// What a start writes first is the end of what was in flight. Where the disk is full then, the journal is opened
/// once more.
#[tokio::test]
async fn an_index_that_a_start_has_made_anew_is_not_made_again_on_a_full_disk() {
    let bench = Bench::new();
    let ledger = bench.open();
    buy(&ledger, None, billed(5)).await;
    begin(&ledger, Some("k")).await;
    drop(ledger);
    fs::remove_dir_all(bench.state().join("index")).unwrap();
    bench.fail_next_write(0, ENOSPC);

    let ledger = bench.open();

    assert_eq!(ledger.health().index_rebuilds, 1);
    let totals = ledger.totals();
    assert_eq!((totals.open, totals.requests()), (0, 2));
    assert_eq!(in_doubt_now(&totals, InDoubt::Crash), 1);
    ledger.close().await;
    assert!(verify(&bench.state()).unwrap().ok);
}

/// A question found it damaged, and its rows are still held open by that question's clone.
#[tokio::test]
async fn an_index_that_is_doubted_when_the_journal_is_opened_again_is_made_anew() {
    let bench = Bench::new();
    let ledger = bench.open();
    buy(&ledger, None, billed(5)).await;
    let doubted = ledger.index().unwrap();
    doubted.doubt();
    bench.fail_next_write(0, EIO);
    let id = ledger.new_entry_id();
    let refused = ledger.intend(intent(id, ledger.wall_ms(), None)).await;
    assert!(refused.is_err(), "{refused:?}");
    bench.clock.advance(Duration::from_secs(2));

    buy(&ledger, None, billed(7)).await;

    assert_eq!(ledger.health().index_rebuilds, 1);
    let sums = ledger.spend(None, None, &[], &TimeZone::UTC).unwrap();
    assert_eq!(
        sums,
        spend(&bench.state(), None, None, &[], &TimeZone::UTC).unwrap()
    );
    assert_eq!(sums.total.billed_micro_usd.get(), 12);
    ledger.close().await;
    assert!(verify(&bench.state()).unwrap().ok);
}
