//! The ledger as the proxy sees it, over restarts, kills, damage and full disks.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;

use crate::clock::Clock;
use crate::ledger::entry::{AttemptEnd, InDoubt, State};
use crate::ledger::fixtures::{
    Bench, attempt, begin, billed, buy, ended, intent, kill_after_next, outcome,
};
use crate::ledger::id::EntryId;
use crate::ledger::query::verify;
use crate::ledger::{Durability, Ledger, LedgerError, LedgerOptions, Totals};
use crate::money::MicroUsd;
use crate::protocol::Operation;
use crate::protocol::receipt::Receipt;

mod clocks;
mod damage;
pub(crate) mod fixtures;
mod keys;
mod outages;
mod rebuild;
mod serving;

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

fn settled(amount: u64) -> State {
    State::Settled {
        billed: MicroUsd::new(amount),
    }
}

fn in_doubt_now(totals: &Totals, reason: InDoubt) -> u64 {
    totals.in_doubt()[&reason]
}

#[tokio::test]
async fn a_settled_entry_is_in_the_sums_and_survives_a_restart() {
    let bench = Bench::new();
    let ledger = bench.open();

    let settlement = buy(&ledger, Some("k1"), billed(1234)).await;
    buy(&ledger, None, billed(66)).await;
    let before = ledger.totals();
    ledger.close().await;
    let after = bench.open().totals();

    assert_eq!(settlement.state, settled(1234));
    assert_eq!(before.billed().get(), 1300);
    assert_eq!(before.requests(), 2);
    assert_eq!(*before, *after);
}

#[tokio::test]
async fn a_clean_request_writes_two_lines() {
    let bench = Bench::new();
    let ledger = bench.open();

    buy(&ledger, Some("k1"), billed(5)).await;
    ledger.close().await;

    let text = std::fs::read_to_string(bench.segment(1)).unwrap();
    let kinds: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| format!("{} {}", line["kind"], line["seq"]))
        .collect();
    assert_eq!(
        kinds,
        [r#""segment" null"#, r#""intent" 1"#, r#""outcome" 2"#]
    );
}

#[tokio::test]
async fn i3_the_first_positive_amount_resolves_the_others_in_any_order() {
    let bench = Bench::new();
    let ledger = bench.open();
    let lost = begin(&ledger, Some("k")).await;
    let agent = begin(&ledger, Some("k")).await;
    let late = begin(&ledger, Some("k")).await;
    let paid = begin(&ledger, Some("k")).await;

    let first = ledger
        .settle(ended(lost, AttemptEnd::NoHead, Receipt::default()))
        .await
        .unwrap();
    let without_amount = ended(agent, AttemptEnd::Answered, Receipt::default());
    let second = ledger.settle(without_amount).await.unwrap();
    let before = ledger.totals();
    let third = ledger
        .settle(ended(paid, AttemptEnd::Answered, billed(900)))
        .await
        .unwrap();
    let fourth = ledger
        .settle(ended(late, AttemptEnd::Answered, billed(0)))
        .await
        .unwrap();
    let after = ledger.totals();
    ledger.close().await;

    let reason = InDoubt::NoResponse;
    assert_eq!(first.state, State::InDoubt { reason });
    assert_eq!(second.state, State::Unreported);
    assert_eq!(third.state, settled(900));
    assert_eq!(fourth.state, State::Replayed);
    assert_eq!(in_doubt_now(&before, reason), 1);
    assert_eq!(before.unreported()[&Operation::Chat], 1);
    assert_eq!(in_doubt_now(&after, reason), 0);
    assert_eq!(after.unreported()[&Operation::Chat], 0);
    assert_eq!(after.billed().get(), 900);
    assert_eq!(*bench.open().totals(), *after);
    assert!(verify(&bench.state()).unwrap().ok);
}

#[tokio::test]
async fn i3_a_second_amount_is_never_added_within_24_hours_not_even_after_a_restart() {
    let bench = Bench::new();
    let ledger = bench.open();
    buy(&ledger, Some("k"), billed(100)).await;
    ledger.close().await;
    bench.clock.advance(Duration::from_secs(24 * 3600 - 1));
    let ledger = bench.open();

    let within = buy(&ledger, Some("k"), billed(200)).await;
    bench.clock.advance(Duration::from_secs(1));
    let after = buy(&ledger, Some("k"), billed(300)).await;

    assert_eq!(within.state, State::Replayed);
    assert_eq!(within.anomalies.len(), 1);
    assert_eq!(after.state, settled(300));
    assert_eq!(ledger.totals().billed().get(), 400);
}

#[tokio::test]
async fn an_outcome_sent_twice_counts_once() {
    let bench = Bench::new();
    let ledger = bench.open();
    let id = begin(&ledger, None).await;
    let end = ended(id, AttemptEnd::Answered, billed(7));

    let first = ledger.settle(end.clone()).await.unwrap();
    let second = ledger.settle(end.clone()).await.unwrap();
    ledger.close().await;
    let ledger = bench.open();
    let third = ledger.settle(end).await.unwrap();

    assert_eq!((&first, &first), (&second, &third));
    assert_eq!(ledger.totals().billed().get(), 7);
}

#[tokio::test]
async fn an_outcome_without_an_intent_and_a_second_intent_are_refused() {
    let bench = Bench::new();
    let ledger = bench.open();
    let unknown = ledger.new_entry_id();
    let known = begin(&ledger, None).await;

    let settle = ledger
        .settle(ended(unknown, AttemptEnd::Answered, billed(7)))
        .await;
    let intend = ledger.intend(intent(known, 0, None)).await;

    assert!(matches!(settle, Err(LedgerError::UnknownEntry { id }) if id == unknown));
    assert!(matches!(intend, Err(LedgerError::DuplicateEntry { id }) if id == known));
}

#[tokio::test]
async fn an_eval_run_is_billed_once_when_its_poll_ends() {
    let bench = Bench::new();
    let ledger = bench.open();
    let id = begin(&ledger, None).await;
    let mut started = ended(id, AttemptEnd::Answered, Receipt::default());
    started.run_id = Some("run_1".to_owned());
    ledger.settle(started).await.unwrap();
    ledger.close().await;
    bench.clock.advance(Duration::from_secs(72 * 3600));
    let ledger = bench.open();

    let first = ledger
        .reconcile_run("run_1", MicroUsd::new(5_000))
        .await
        .unwrap();
    let second = ledger
        .reconcile_run("run_1", MicroUsd::new(5_000))
        .await
        .unwrap();
    let other = ledger
        .reconcile_run("run_2", MicroUsd::new(1))
        .await
        .unwrap();
    let totals = ledger.totals();
    ledger.close().await;

    assert_eq!((first, second, other), (Some(id), None, None));
    assert_eq!(totals.billed().get(), 5_000);
    assert_eq!(*bench.open().totals(), *totals);
}

#[tokio::test]
async fn what_a_dead_process_left_open_is_in_doubt_once() {
    let bench = Bench::new();
    let ledger = bench.open();
    let id = begin(&ledger, Some("k")).await;
    kill_after_next(&ledger);
    buy_one_of_a_dying_ledger(&ledger).await;
    drop(ledger);

    let first = bench.open();
    let totals = first.totals();
    first.close().await;
    let second = bench.open();

    assert_eq!(in_doubt_now(&totals, InDoubt::Crash), 2);
    assert_eq!(totals.open, 0);
    assert_eq!(*second.totals(), *totals);
    // Its key's amount may still come: then the doubt is over.
    buy(&second, Some("k"), billed(30)).await;
    assert_eq!(in_doubt_now(&second.totals(), InDoubt::Crash), 1);
    assert!(
        second
            .settle(ended(id, AttemptEnd::NoHead, Receipt::default()))
            .await
            .is_ok()
    );
}

/// The intent is written, and then the process is gone.
async fn buy_one_of_a_dying_ledger(ledger: &Ledger) {
    let id = ledger.new_entry_id();
    ledger.intend(intent(id, 0, None)).await.unwrap();
}

#[tokio::test]
async fn after_close_every_call_answers_closed() {
    let bench = Bench::new();
    let ledger = bench.open();
    let id = begin(&ledger, None).await;

    ledger.close().await;
    ledger.close().await;

    let settle = ledger
        .settle(ended(id, AttemptEnd::Answered, billed(7)))
        .await;
    assert!(matches!(settle, Err(LedgerError::Closed)));
    assert!(matches!(
        ledger.reconcile_run("r", MicroUsd::ZERO).await,
        Err(LedgerError::Closed)
    ));
    assert!(!ledger.health().is_writable());
}

#[tokio::test]
async fn a_second_daemon_gets_the_pid_of_the_one_that_has_the_ledger() {
    let bench = Bench::new();
    let ledger = bench.open();

    let second = bench.try_open();
    ledger.close().await;
    let third = bench.try_open();

    let own = std::process::id();
    assert!(matches!(second, Err(LedgerError::Locked { pid }) if pid == own));
    assert!(third.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_share_a_sync() {
    let bench = Bench::new();
    let commits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&commits);
    let slow = Arc::new(std::sync::Barrier::new(2));
    let gate = Arc::clone(&slow);
    let ledger = Ledger::open(LedgerOptions {
        durability: Durability::Power,
        on_commit: Some(Arc::new(move |_| {
            // The second commit waits until all others have asked.
            if counted.fetch_add(1, Ordering::SeqCst) == 64 {
                gate.wait();
            }
        })),
        ..bench.options()
    })
    .unwrap();
    let mut ids = Vec::new();
    for _ in 0..64 {
        ids.push(begin(&ledger, None).await);
    }

    let mut asked: Vec<_> = ids
        .into_iter()
        .map(|id| {
            let settle = ended(id, AttemptEnd::Answered, billed(1));
            let ledger = ledger.clone();
            Box::pin(async move { ledger.settle(settle).await })
        })
        .collect();
    // Polled once each: all are in the queue before the first commit is over.
    let first = asked.remove(0);
    let first = tokio::spawn(first);
    while commits.load(Ordering::SeqCst) < 65 {
        tokio::task::yield_now().await;
    }
    for settle in &mut asked {
        assert!(
            std::future::poll_fn(|cx| std::task::Poll::Ready(
                settle.as_mut().poll(cx).is_pending()
            ))
            .await
        );
    }
    tokio::task::spawn_blocking(move || slow.wait())
        .await
        .unwrap();
    first.await.unwrap().unwrap();
    for settle in asked {
        settle.await.unwrap();
    }

    assert_eq!(ledger.totals().billed().get(), 64);
    assert_eq!(ledger.health().commits, 64 + 2);
}

#[tokio::test]
async fn segments_rotate_and_numbers_go_on() {
    let bench = Bench::new();
    let options = LedgerOptions {
        segment_bytes_max: 2_000,
        ..bench.options()
    };
    let ledger = Ledger::open(options.clone()).unwrap();
    for index in 0..20 {
        buy(&ledger, Some(&format!("k{index}")), billed(10)).await;
    }
    let totals = ledger.totals();
    ledger.close().await;

    let report = verify(&bench.state()).unwrap();

    assert!(report.ok, "{report:?}");
    assert!(report.journal.segments > 5);
    assert_eq!(report.journal.last_seq, Some(40));
    assert_eq!(report.billed_micro_usd.get(), 200);
    std::fs::remove_dir_all(bench.state().join("index")).unwrap();
    let ledger = Ledger::open(options).unwrap();
    assert_eq!(*ledger.totals(), *totals);
}

#[tokio::test]
async fn a_full_disk_refuses_intents_and_still_writes_outcomes_of_requests_in_flight() {
    let bench = Bench::new();
    let ledger = bench.open();
    let in_flight = begin(&ledger, None).await;
    let refused = ledger.new_entry_id();

    bench.fail_next_write(10, ENOSPC);
    let settled_then = ledger
        .settle(ended(in_flight, AttemptEnd::Answered, billed(40)))
        .await;
    let intend = ledger.intend(intent(refused, 0, None)).await;
    let health = ledger.health();
    bench.clock.advance(Duration::from_secs(1));
    let intend_later = ledger.intend(intent(refused, 0, None)).await;

    assert_eq!(settled_then.unwrap().state, settled(40));
    assert!(
        matches!(intend, Err(LedgerError::Unavailable { .. })),
        "{intend:?}"
    );
    assert_eq!(health.unavailable.as_deref(), Some("the disk is full"));
    assert!(intend_later.is_ok());
    assert_eq!(ledger.totals().billed().get(), 40);
    ledger.close().await;
    assert!(verify(&bench.state()).unwrap().ok);
}

#[tokio::test]
async fn a_failed_write_is_final_until_the_journal_was_read_again() {
    let bench = Bench::new();
    let ledger = bench.open();
    let in_flight = begin(&ledger, None).await;
    let never_sent = ledger.new_entry_id();

    bench.fail_next_write(usize::MAX, EIO);
    let first = ledger.intend(intent(never_sent, 0, None)).await;
    let outcome = ended(in_flight, AttemptEnd::Answered, billed(40));
    let second = ledger.settle(outcome.clone()).await;
    bench.clock.advance(Duration::from_secs(1));
    let third = ledger.settle(outcome).await;
    let totals = ledger.totals();

    assert!(matches!(first, Err(LedgerError::Io { .. })));
    assert!(matches!(second, Err(LedgerError::Unavailable { .. })));
    assert_eq!(third.unwrap().state, settled(40));
    assert_eq!(totals.billed().get(), 40);
    // Its line had reached the file, but it was refused, so it was never sent: failed, not open.
    assert_eq!((totals.requests(), totals.open), (2, 0));
    ledger.close().await;
    assert!(verify(&bench.state()).unwrap().ok);
}

#[tokio::test]
async fn an_outcome_whose_line_was_written_before_the_error_counts_once() {
    let bench = Bench::new();
    let ledger = bench.open();
    let id = begin(&ledger, None).await;
    let outcome = ended(id, AttemptEnd::Answered, billed(40));

    bench.fail_next_write(usize::MAX, EIO);
    let first = ledger.settle(outcome.clone()).await;
    bench.clock.advance(Duration::from_secs(1));
    let second = ledger.settle(outcome).await;

    assert!(first.is_err());
    assert_eq!(second.unwrap().state, settled(40));
    assert_eq!(ledger.totals().billed().get(), 40);
}

#[test]
fn the_writer_shows_that_it_lives_though_nothing_is_asked_of_it() {
    let bench = Bench::new();
    let ledger = bench.open();

    bench.clock.advance(Duration::from_secs(10));

    // It looks at the clock at least twice a second, in real time.
    while ledger.health().heartbeat_age > Duration::ZERO {
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// What a test does to a ledger, one step at a time.
#[derive(Clone, Debug)]
enum Step {
    Begin {
        key: Option<u8>,
    },
    End {
        which: prop::sample::Index,
        end: u8,
        amount: Option<u64>,
        replayed: bool,
    },
    Advance {
        hours: u8,
    },
    Reopen {
        how: u8,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::option::of(0u8..4).prop_map(|key| Step::Begin { key }),
        6 => (
            any::<prop::sample::Index>(),
            0u8..6,
            prop::option::of(0u64..4),
            prop::bool::weighted(0.2),
        )
            .prop_map(|(which, end, amount, replayed)| Step::End { which, end, amount, replayed }),
        1 => (0u8..20).prop_map(|hours| Step::Advance { hours }),
        1 => (0u8..3).prop_map(|how| Step::Reopen { how }),
    ]
}

fn attempt_end(index: u8) -> AttemptEnd {
    use AttemptEnd::{Answered, Broken, Gateway, NoHead, NotSent, Refused};
    [NotSent, NoHead, Refused, Gateway, Answered, Broken][usize::from(index)]
}

/// Plays the steps. At each restart the sums must be what they were, but for entries in flight.
async fn play(steps: Vec<Step>) {
    let bench = Bench::new();
    let options = LedgerOptions {
        segment_bytes_max: 3_000,
        ..bench.options()
    };
    let mut ledger = Ledger::open(options.clone()).unwrap();
    let mut open: Vec<(EntryId, Option<u8>)> = Vec::new();
    let mut added: HashMap<(u8, u64), u64> = HashMap::new();
    for step in steps {
        match step {
            Step::Begin { key } => {
                let name = key.map(|key| format!("k{key}"));
                open.push((begin(&ledger, name.as_deref()).await, key));
            }
            Step::End {
                which,
                end,
                amount,
                replayed,
            } => {
                if open.is_empty() {
                    continue;
                }
                let (id, key) = open.remove(which.index(open.len()));
                let receipt = Receipt {
                    replayed,
                    ..amount.map_or_else(Receipt::default, billed)
                };
                let outcome = outcome(id, vec![attempt(attempt_end(end))], receipt);
                let settlement = ledger.settle(outcome).await.unwrap();
                let adds = settlement.state.adds();
                if let Some(key) = key.filter(|_| !adds.is_zero()) {
                    *added
                        .entry((key, bench.clock.wall_ms() / 1_000_000_000))
                        .or_default() += 1;
                }
            }
            Step::Advance { hours } => {
                bench
                    .clock
                    .advance(Duration::from_secs(u64::from(hours) * 3600));
            }
            Step::Reopen { how } => {
                let before = ledger.totals();
                match how {
                    0 => ledger.close().await,
                    1 => {
                        kill_after_next(&ledger);
                        ledger
                            .reconcile_run("no such run", MicroUsd::ZERO)
                            .await
                            .unwrap();
                    }
                    _ => {
                        ledger.close().await;
                        std::fs::remove_dir_all(bench.state().join("index")).unwrap();
                    }
                }
                drop(ledger);
                let crashed = u64::try_from(std::mem::take(&mut open).len()).unwrap();
                ledger = Ledger::open(options.clone()).unwrap();
                let after = ledger.totals();
                assert_eq!(after.billed(), before.billed());
                assert_eq!(after.requests(), before.requests() + crashed);
                assert_eq!(after.globals, before.globals);
                if crashed == 0 {
                    assert_eq!(*after, *before);
                }
            }
        }
    }
    let totals = ledger.totals();
    ledger.close().await;
    let report = verify(&bench.state()).unwrap();
    assert!(report.ok, "{report:?}");
    assert_eq!(report.billed_micro_usd, totals.billed());
    let by_day = crate::ledger::query::spend(
        &bench.state(),
        None,
        None,
        &[
            crate::ledger::query::GroupBy::Day,
            crate::ledger::query::GroupBy::State,
        ],
        &jiff::tz::TimeZone::UTC,
    )
    .unwrap();
    assert_eq!(by_day.total.billed_micro_usd, totals.billed());
    assert_eq!(
        by_day.total.in_doubt,
        totals.in_doubt().values().sum::<u64>()
    );
    assert_eq!(by_day.total.requests, totals.requests() + totals.open);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn i10_sums_are_equal_after_any_restart(steps in prop::collection::vec(step(), 1..80)) {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(play(steps));
    }
}
