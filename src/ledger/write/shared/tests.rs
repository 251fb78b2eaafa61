use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::Poll;
use std::thread::{self, ThreadId};
use std::time::Duration;

use parking_lot::Mutex;

use super::{DiskPace, SLOW, STALL, STALL_PAUSE};
use crate::ledger::fixtures::{Bench, begin, intent};
use crate::ledger::{Ledger, LedgerError, LedgerOptions, OnCommit};

fn open(bench: &Bench, on_commit: OnCommit) -> Ledger {
    let options = LedgerOptions {
        on_commit: Some(on_commit),
        ..bench.options()
    };
    Ledger::open(options).unwrap()
}

#[tokio::test]
async fn a_lone_request_is_written_on_the_thread_that_asks() {
    let bench = Bench::new();
    let threads = Arc::new(Mutex::new(Vec::<ThreadId>::new()));
    let noted = Arc::clone(&threads);
    let ledger = open(
        &bench,
        Arc::new(move |_| noted.lock().push(thread::current().id())),
    );

    begin(&ledger, None).await;
    begin(&ledger, None).await;

    assert_eq!(*threads.lock(), [thread::current().id(); 2]);
}

#[tokio::test]
async fn what_comes_while_one_writes_is_written_by_the_thread() {
    let bench = Bench::new();
    let commits = Arc::new(Mutex::new(Vec::<ThreadId>::new()));
    let gate = Arc::new(Barrier::new(2));
    let (noted, held) = (Arc::clone(&commits), Arc::clone(&gate));
    let ledger = open(
        &bench,
        Arc::new(move |_| {
            let mut noted = noted.lock();
            noted.push(thread::current().id());
            if noted.len() == 1 {
                // Another asks now.
                held.wait();
                held.wait();
            }
        }),
    );
    let other = ledger.clone();
    let second = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(async {
            let id = other.new_entry_id();
            let mut asked = pin!(other.intend(intent(id, other.wall_ms(), None)));
            gate.wait();
            let is_pending =
                std::future::poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx).is_pending()));
            assert!(is_pending.await);
            gate.wait();
            asked.await
        })
    });

    begin(&ledger, None).await;
    let second_id = second.thread().id();
    second.join().unwrap().unwrap();

    let commits = commits.lock();
    assert_eq!(commits.len(), 2);
    assert_eq!(commits[0], thread::current().id());
    assert!(commits[1] != commits[0] && commits[1] != second_id);
}

#[tokio::test]
async fn a_panic_of_the_task_that_writes_stops_the_ledger_and_leaves_no_sender_waiting() {
    let bench = Bench::new();
    let commits = AtomicUsize::new(0);
    let ledger = open(
        &bench,
        Arc::new(move |_| assert_eq!(commits.fetch_add(1, Ordering::SeqCst), 0, "planned")),
    );
    begin(&ledger, None).await;

    let own = ledger.clone();
    let failed = tokio::spawn(async move { begin(&own, None).await }).await;
    let id = ledger.new_entry_id();
    let after = ledger.intend(intent(id, ledger.wall_ms(), None)).await;
    let is_writable = ledger.health().is_writable();
    ledger.close().await;

    assert!(failed.is_err_and(|error| error.is_panic()));
    assert!(matches!(after, Err(LedgerError::Closed)));
    assert!(!is_writable);
    // It has let go of the directory, and the journal decides.
    let again = bench.open();
    assert_eq!(again.totals().requests() + again.totals().open, 2);
}

#[test]
fn a_slow_disk_is_waited_for_by_the_thread_until_it_is_fast_again() {
    let now = Duration::from_secs(60);
    let mut pace = DiskPace::default();

    pace.note(now, SLOW * 4);
    assert!(pace.is_fast(now), "once is not often");
    for _ in 0..8 {
        pace.note(now, SLOW * 2);
    }
    assert!(!pace.is_fast(now));
    for _ in 0..16 {
        pace.note(now, SLOW / 4);
    }
    assert!(pace.is_fast(now));
}

#[test]
fn a_disk_that_stalls_holds_a_task_up_once_a_second_at_most() {
    let now = Duration::from_secs(60);
    let mut pace = DiskPace::default();

    pace.note(now, STALL * 2);
    for _ in 0..100 {
        pace.note(now, Duration::ZERO);
    }

    assert!(!pace.is_fast(now));
    assert!(!pace.is_fast(now + STALL_PAUSE / 2));
    assert!(pace.is_fast(now + STALL_PAUSE));
}
