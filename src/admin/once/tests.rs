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
            once: OnceAMinute::new(Arc::new(clock.clone()), |_| true),
            clock,
            calls: Arc::default(),
            go: Arc::default(),
        }
    }

    async fn ask(&self) -> (usize, u64) {
        let (calls, go) = (Arc::clone(&self.calls), Arc::clone(&self.go));
        let asked = self.once.ask(|| async move {
            let number = calls.fetch_add(1, Ordering::SeqCst) + 1;
            go.notified().await;
            number
        });
        let (answer, age) = asked.await.expect("an answer");
        (*answer, age.as_secs())
    }
}

#[tokio::test]
async fn callers_at_once_get_one_answer_which_is_good_for_a_minute() {
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

/// Else a caller that hangs up at once would cause one call after the other.
#[tokio::test]
async fn a_call_goes_on_when_its_caller_has_gone() {
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
async fn a_call_that_panics_gives_no_answer_and_is_made_anew() {
    let once = OnceAMinute::<u8>::new(Arc::new(ManualClock::at(0)), |_| true);
    let dies = || async { panic!("a test's own") };
    assert!(once.ask(dies).await.is_none());
    let answered = once.ask(|| async { 7 }).await;
    assert_eq!(answered.map(|(answer, _)| *answer), Some(7));
}

/// The service may have taken its figure when the call had just begun.
#[tokio::test]
async fn the_age_of_a_slow_answer_counts_from_the_beginning_of_its_call() {
    let bench = Bench::new();
    let asking = bench.ask();
    tokio::pin!(asking);
    assert!(futures_util::poll!(&mut asking).is_pending());
    bench.clock.advance(Duration::from_secs(25));
    bench.go.notify_one();
    assert_eq!(asking.await, (1, 25));
    bench.clock.advance(Duration::from_secs(34));
    assert_eq!(bench.ask().await, (1, 59));
    bench.clock.advance(Duration::from_secs(1));
    bench.go.notify_one();
    assert_eq!(bench.ask().await, (2, 0));
}

#[tokio::test]
async fn an_answer_that_is_not_worth_a_minute_is_returned_and_not_kept() {
    let once = OnceAMinute::<Option<u8>>::new(Arc::new(ManualClock::at(0)), Option::is_some);
    let answer_of = async |next| {
        let (answer, _) = once.ask(|| async move { next }).await.expect("an answer");
        *answer
    };
    assert_eq!(answer_of(None).await, None);
    assert_eq!(answer_of(Some(7)).await, Some(7), "asked anew");
    assert_eq!(answer_of(Some(8)).await, Some(7), "kept");
}
