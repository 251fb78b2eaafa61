//! `on_failure = "serve"`: what cannot be written waits, in bounded memory, and is written once.

use std::time::Duration;

use super::{EIO, ENOSPC, settled};
use crate::clock::Clock;
use crate::ledger::entry::{AttemptEnd, State};
use crate::ledger::fixtures::{Bench, begin, billed, ended, intent};
use crate::ledger::query::{entries, verify};
use crate::ledger::read::filter::Filter;
use crate::ledger::write::backlog::OUTCOMES_MAX;
use crate::ledger::{Ledger, LedgerError, LedgerOptions, OnFailure};
use crate::money::MicroUsd;

fn serving(bench: &Bench) -> Ledger {
    Ledger::open(LedgerOptions {
        on_failure: OnFailure::Serve,
        ..bench.options()
    })
    .unwrap()
}

/// Lets the writer try again until nothing waits.
async fn write_what_waits(bench: &Bench, ledger: &Ledger) {
    let mut rounds = 0;
    while ledger.health().waiting > 0 {
        bench.clock.advance(Duration::from_secs(1));
        let _ = ledger.reconcile_run("nobody's", MicroUsd::ZERO).await;
        rounds += 1;
        assert!(rounds < 20, "{:?}", ledger.health());
    }
}

#[tokio::test]
async fn what_could_not_be_written_is_written_once_when_it_can_be() {
    // How much of each failing write gets into the file: nothing, a torn line, the whole line.
    for (errno, keep) in [
        (EIO, 0),
        (EIO, 10),
        (EIO, usize::MAX),
        (ENOSPC, 10),
        (ENOSPC, usize::MAX),
    ] {
        let bench = Bench::new();
        let ledger = serving(&bench);
        let before = begin(&ledger, Some("before")).await;

        bench.fail_next_write(keep, errno);
        let during = begin(&ledger, Some("during")).await;
        bench.fail_next_write(keep, errno);
        let one = ledger
            .settle(ended(before, AttemptEnd::Answered, billed(40)))
            .await;
        let two = ledger
            .settle(ended(during, AttemptEnd::Answered, billed(2)))
            .await;
        write_what_waits(&bench, &ledger).await;
        // One whose outcome comes when the intent has been written late.
        bench.fail_next_write(keep, errno);
        let last = begin(&ledger, None).await;
        write_what_waits(&bench, &ledger).await;
        let three = ledger
            .settle(ended(last, AttemptEnd::Answered, billed(3)))
            .await;
        let totals = ledger.totals();
        ledger.close().await;

        assert_eq!(one.unwrap().state, settled(40), "{errno} {keep}");
        assert_eq!(two.unwrap().state, settled(2), "{errno} {keep}");
        assert_eq!(three.unwrap().state, settled(3), "{errno} {keep}");
        assert_eq!((totals.billed().get(), totals.requests()), (45, 3));
        let found = entries(&bench.state(), &Filter::default()).unwrap();
        assert_eq!(found.len(), 3, "{errno} {keep}");
        assert!(
            found
                .iter()
                .all(|entry| matches!(entry.state, State::Settled { .. }))
        );
        assert!(verify(&bench.state()).unwrap().ok, "{errno} {keep}");
        assert_eq!(*bench.open().totals(), *totals);
    }
}

#[tokio::test]
async fn i11_when_the_memory_is_full_requests_are_refused_and_no_outcome_is_dropped() {
    let bench = Bench::new();
    let ledger = serving(&bench);
    bench.fail_next_write(0, EIO);
    let mut ids = Vec::new();
    for _ in 0..OUTCOMES_MAX {
        ids.push(begin(&ledger, None).await);
    }
    let degraded = ledger.health().is_serving_unwritten();
    let beyond = ledger
        .intend(intent(ledger.new_entry_id(), bench.clock.wall_ms(), None))
        .await;
    for id in &ids {
        let outcome = ended(*id, AttemptEnd::Answered, billed(1));
        ledger.settle(outcome).await.unwrap();
    }
    let unwritten = ledger.health();
    write_what_waits(&bench, &ledger).await;
    let totals = ledger.totals();
    ledger.close().await;

    assert!(!degraded, "no room is left");
    assert!(matches!(beyond, Err(LedgerError::Unavailable { .. })));
    assert_eq!((unwritten.waiting, unwritten.dropped), (OUTCOMES_MAX, 0));
    assert_eq!(totals.billed().get(), OUTCOMES_MAX as u128);
}
