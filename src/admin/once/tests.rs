use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use tokio::sync::Notify;

use super::*;
use crate::clock::ManualClock;

/// A question that counts its calls, each of which is answered with its number when it may go on.
struct Bench {
    clock: ManualClock,
    once: OnceAMinute<usize>,
    calls: Arc<AtomicUsize>,
    go: Arc<Notify>,
}

impl Bench {
    fn new() -> Self {
        let clock = ManualClock::at(0);
        Self {
            once: OnceAMinute::new(Arc::new(clock.clone())),
            clock,
            calls: Arc::default(),
            go: Arc::default(),
        }
    }

    async fn ask(&self) -> (usize, u64) {
        let (calls, go) = (Arc::clone(&self.calls), Arc::clone(&self.go));
        let told = self.once.ask(|| async move {
            let number = calls.fetch_add(1, Ordering::SeqCst) + 1;
            go.notified().await;
            number
        });
        let (answer, age) = told.await.expect("an answer");
        (*answer, age.as_secs())
    }
}

#[tokio::test]
async fn who_asks_at_once_gets_one_answer_which_is_good_for_a_minute() {
    let bench = Bench::new();
    bench.go.notify_one();
    let answers = join_all((0..50).map(|_| bench.ask())).await;
    assert_eq!(answers, [(1, 0); 50]);

    bench.clock.advance(Duration::from_secs(59));
    assert_eq!(bench.ask().await, (1, 59));
    bench.clock.advance(Duration::from_secs(1));
    bench.go.notify_one();
    assert_eq!(bench.ask().await, (2, 0));

    bench.once.forget();
    bench.go.notify_one();
    assert_eq!(bench.ask().await, (3, 0), "other settings");
}

/// Else whoever hangs up at once makes one call after the other.
#[tokio::test]
async fn a_call_goes_on_when_who_asked_has_gone() {
    let bench = Bench::new();
    for _ in 0..20 {
        let asked = tokio::time::timeout(Duration::ZERO, bench.ask());
        assert!(asked.await.is_err(), "it waits");
        tokio::task::yield_now().await;
    }
    bench.go.notify_one();
    assert_eq!(bench.ask().await, (1, 0));
}

#[tokio::test]
async fn a_call_that_dies_is_told_and_made_anew() {
    let once = OnceAMinute::<u8>::new(Arc::new(ManualClock::at(0)));
    let dies = || async { panic!("a test's own") };
    assert!(once.ask(dies).await.is_none());
    let told = once.ask(|| async { 7 }).await;
    assert_eq!(told.map(|(answer, _)| *answer), Some(7));
}
