use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use tokio::sync::Notify;

use super::*;
use crate::clock::ManualClock;

const MINUTE: Duration = Duration::from_secs(60);

/// A question that counts its calls, each of which is answered with its number when it may go on.
struct Bench {
    clock: ManualClock,
    once: OnceAWhile<usize>,
    calls: Arc<AtomicUsize>,
    go: Arc<Notify>,
}

impl Bench {
    fn new() -> Self {
        let clock = ManualClock::at(0);
        Self {
            once: OnceAWhile::new(Arc::new(clock.clone()), |_, _| MINUTE),
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
    let once = OnceAWhile::<u8>::new(Arc::new(ManualClock::at(0)), |_, _| MINUTE);
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
    let of_some = |answer: &Option<u8>, _| answer.map_or(Duration::ZERO, |_| MINUTE);
    let once = OnceAWhile::<Option<u8>>::new(Arc::new(ManualClock::at(0)), of_some);
    let answer_of = async |next| {
        let (answer, _) = once.ask(|| async move { next }).await.expect("an answer");
        *answer
    };
    assert_eq!(answer_of(None).await, None);
    assert_eq!(answer_of(Some(7)).await, Some(7), "asked anew");
    assert_eq!(answer_of(Some(8)).await, Some(7), "kept");
}

/// So that a question which takes long does not keep the machine busy.
#[tokio::test]
async fn how_long_an_answer_is_good_may_follow_from_the_time_that_it_took() {
    let clock = ManualClock::at(0);
    let once = OnceAWhile::<u8>::new(Arc::new(clock.clone()), |_, took| took * 20);
    let answer_of = async |next: u8, took: u64| {
        let clock = clock.clone();
        let call = || async move {
            clock.advance(Duration::from_secs(took));
            next
        };
        *once.ask(call).await.expect("an answer").0
    };
    assert_eq!(answer_of(1, 3).await, 1);
    clock.advance(Duration::from_secs(56));
    assert_eq!(answer_of(2, 0).await, 1, "59 s old");
    clock.advance(Duration::from_secs(1));
    assert_eq!(answer_of(3, 0).await, 3);
}
