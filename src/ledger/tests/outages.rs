//! Outcomes over failed writes and syncs, a crash at a rotation, long keys and receipts that cannot be
//! read.

use std::time::Duration;

use super::{EIO, ENOSPC, settled};
use crate::clock::Clock;
use crate::ledger::entry::{AttemptEnd, State};
use crate::ledger::fixtures::{Bench, begin, billed, buy, buy_own, ended, intent};
use crate::ledger::query::{entries, find, verify};
use crate::ledger::read::filter::Filter;
use crate::ledger::record::SegmentHeader;
use crate::ledger::write::backlog::OUTCOMES_MAX;
use crate::ledger::{Durability, Ledger, LedgerError, LedgerOptions, OnFailure};
use crate::money::MicroUsd;
use crate::protocol::Reported;
use crate::protocol::receipt::Receipt;

#[tokio::test]
async fn an_outcome_that_outlasts_its_request_is_written_when_the_ledger_can_be_written_again() {
    // How much of each write gets into the file. A full disk is tried twice at once, the second
    // time with the reserve. In the last row the whole line is there, and is answered as an error.
    let outages: [(i32, &[usize]); 3] = [
        (EIO, &[10, 10, 0]),
        (ENOSPC, &[10, 10, 0, 0, 10, 10]),
        (EIO, &[usize::MAX]),
    ];
    for (errno, kept) in outages {
        let bench = Bench::new();
        let ledger = bench.open();
        let id = begin(&ledger, Some("k")).await;
        let outcome = ended(id, AttemptEnd::Answered, billed(40));

        for keep in kept {
            bench.fail_next_write(*keep, errno);
        }
        let first = ledger.settle(outcome.clone()).await;
        ledger.settle_later(outcome.clone()).unwrap();
        let during = ledger.health().waiting;
        let mut rounds = 0;
        while ledger.health().waiting > 0 {
            bench.clock.advance(Duration::from_secs(1));
            let _ = ledger.reconcile_run("nobody's", MicroUsd::ZERO).await;
            rounds += 1;
            assert!(rounds < 20, "{:?}", ledger.health());
        }
        bench.clock.advance(Duration::from_secs(1));
        let again = ledger.settle(outcome.clone()).await;
        ledger.settle_later(outcome).unwrap();
        let _ = ledger.reconcile_run("nobody's", MicroUsd::ZERO).await;
        let totals = ledger.totals();
        ledger.close().await;

        assert!(first.is_err(), "{errno}");
        assert_eq!(during, 1);
        assert_eq!(again.unwrap().state, settled(40));
        assert_eq!((totals.billed().get(), totals.requests()), (40, 1));
        assert!(totals.in_doubt().values().all(|count| *count == 0));
        let text = std::fs::read_to_string(bench.segment(1)).unwrap();
        assert_eq!(text.matches(r#""kind":"outcome""#).count(), 1);
        assert!(verify(&bench.state()).unwrap().ok);
        assert_eq!(*bench.open().totals(), *totals);
    }
}

#[tokio::test]
async fn an_outcome_that_waits_is_written_at_close_without_a_pause() {
    let bench = Bench::new();
    let ledger = bench.open();
    let id = begin(&ledger, None).await;
    let outcome = ended(id, AttemptEnd::Answered, billed(40));

    bench.fail_next_write(0, EIO);
    let first = ledger.settle(outcome.clone()).await;
    ledger.settle_later(outcome.clone()).unwrap();
    ledger.close().await;

    assert!(matches!(first, Err(LedgerError::Io { .. })));
    assert!(matches!(
        ledger.settle_later(outcome),
        Err(LedgerError::Closed)
    ));
    assert_eq!(bench.open().totals().billed().get(), 40);
}

#[tokio::test]
async fn requests_that_keep_coming_do_not_put_off_that_the_ledger_is_opened_again() {
    for on_failure in [OnFailure::Refuse, OnFailure::Serve] {
        let bench = Bench::new();
        let ledger = Ledger::open(LedgerOptions {
            on_failure,
            ..bench.options()
        })
        .unwrap();
        let id = begin(&ledger, None).await;
        bench.fail_next_write(0, EIO);
        let _ = ledger
            .settle(ended(id, AttemptEnd::Answered, billed(40)))
            .await;
        let mut words = 0;
        for _ in 0..20 {
            bench.clock.advance(Duration::from_millis(100));
            let at_ms = bench.clock.wall_ms();
            let asked = intent(ledger.new_entry_id(), at_ms, None);
            let _ = ledger.intend(asked).await;
            let why = ledger.health().unavailable;
            words = words.max(why.map_or(0, |why| why.len()));
        }
        let health = ledger.health();
        ledger.close().await;

        assert!(health.is_writable(), "{on_failure:?}: {health:?}");
        assert!(words < 400, "the reason grows: {words}");
    }
}

#[tokio::test]
async fn i11_outcomes_that_find_no_room_to_wait_are_counted() {
    let bench = Bench::new();
    let ledger = bench.open();
    let id = begin(&ledger, None).await;
    let outcome = ended(id, AttemptEnd::Answered, billed(40));
    bench.fail_next_write(0, EIO);
    ledger.settle(outcome.clone()).await.unwrap_err();

    for _ in 0..OUTCOMES_MAX {
        ledger.settle_later(outcome.clone()).unwrap();
    }
    let beyond = ledger.settle_later(outcome);
    let unwritten = ledger.health();
    ledger.close().await;

    assert!(matches!(beyond, Err(LedgerError::Unavailable { .. })));
    assert_eq!((unwritten.waiting, unwritten.dropped), (OUTCOMES_MAX, 1));
    assert_eq!(bench.open().totals().billed().get(), 40);
}

#[tokio::test]
async fn while_the_sync_of_the_file_read_back_fails_nothing_is_acknowledged() {
    let bench = Bench::new();
    let ledger = Ledger::open(LedgerOptions {
        durability: Durability::Power,
        ..bench.options()
    })
    .unwrap();
    let id = begin(&ledger, None).await;
    let outcome = ended(id, AttemptEnd::Answered, billed(40));

    // The line is in the file; neither its own sync nor that of the re-opened file succeeds.
    bench.fail_next_sync(EIO);
    bench.fail_next_sync(EIO);
    let first = ledger.settle(outcome.clone()).await;
    bench.clock.advance(Duration::from_secs(1));
    let second = ledger.settle(outcome.clone()).await;
    let meanwhile = (
        ledger.health().is_writable(),
        ledger.totals().billed().get(),
    );
    bench.clock.advance(Duration::from_secs(1));
    let third = ledger.settle(outcome).await;

    assert!(matches!(first, Err(LedgerError::Io { .. })));
    assert!(matches!(second, Err(LedgerError::Unavailable { .. })));
    assert_eq!(meanwhile, (false, 0));
    assert_eq!(third.unwrap().state, settled(40));
    assert_eq!(ledger.totals().billed().get(), 40);
}

#[tokio::test]
async fn a_crash_right_after_a_rotation_loses_nothing_and_says_so() {
    let bench = Bench::new();
    let ledger = bench.open();
    buy(&ledger, Some("k"), billed(40)).await;
    let totals = ledger.totals();
    ledger.close().await;
    // The new segment has its header, and then the machine stood for a day.
    let known = std::fs::read_to_string(bench.state().join("identity.json")).unwrap();
    let known: serde_json::Value = serde_json::from_str(&known).unwrap();
    let ledger_id = known["ledger"].as_str().unwrap().parse().unwrap();
    let mut header = Vec::new();
    SegmentHeader::new(ledger_id, 2, 3, bench.clock.wall_ms())
        .encode(&mut header)
        .unwrap();
    std::fs::write(bench.segment(2), header).unwrap();
    bench.clock.advance(Duration::from_secs(25 * 3600));

    let ledger = bench.open();
    let health = ledger.health();
    let after = ledger.totals();
    buy(&ledger, Some("k"), billed(2)).await;
    ledger.close().await;

    let notes = std::fs::read_dir(bench.state().join("quarantine")).unwrap();
    assert_eq!(notes.count(), 0);
    assert_eq!((health.index_rebuilds, health.quarantined), (0, 0));
    assert_eq!(*after, *totals);
    let report = verify(&bench.state()).unwrap();
    assert!(report.ok, "{report:?}");
    assert_eq!(report.journal.last_seq, Some(4));
}

#[tokio::test]
async fn a_long_key_is_journaled_as_its_hash_and_found_by_the_whole() {
    let bench = Bench::new();
    let ledger = bench.open();
    let long = "k".repeat(64 << 10);

    buy_own(&ledger, &long, 1, b"{}", billed(40)).await;
    let repeat = buy_own(&ledger, &long, 1, b"{}", billed(40)).await;
    ledger.close().await;
    let _ledger = bench.open();
    let found = find(&bench.state(), &long).unwrap().entries;

    assert_eq!(repeat.state, State::Replayed);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].key, None);
    let hash = found[0].key_hash.unwrap().to_string();
    assert_eq!(find(&bench.state(), &hash).unwrap().entries.len(), 2);
    assert!(std::fs::metadata(bench.segment(1)).unwrap().len() < 8_000);
}

#[tokio::test]
async fn i5_an_absent_a_malformed_and_a_zero_receipt_read_as_three_things() {
    let bench = Bench::new();
    let ledger = bench.open();
    let malformed = Receipt {
        billed: Reported::Malformed,
        ..Receipt::default()
    };
    for receipt in [Receipt::default(), malformed, billed(0)] {
        buy(&ledger, None, receipt).await;
    }
    begin(&ledger, None).await;

    let entries = entries(&bench.state(), &Filter::default()).unwrap();

    let words: Vec<_> = entries
        .iter()
        .map(|entry| (entry.state.word().as_str(), entry.receipt.as_str()))
        .collect();
    assert_eq!(
        words,
        [
            ("unreported", "absent"),
            ("unreported", "malformed"),
            ("settled", "told"),
            ("open", "absent"),
        ]
    );
}
