//! When the next visit comes.

use std::time::Duration;

use super::{HELLO_PAUSE, due, spread};

#[test]
fn visits_of_many_that_started_together_are_spread_by_a_tenth_to_either_side() {
    let spread: Vec<Duration> = (0..1_000).map(|_| spread(HELLO_PAUSE)).collect();
    let (shortest, longest) = (Duration::from_secs(27), Duration::from_secs(33));
    let is_within = |pause: &Duration| (shortest..=longest).contains(pause);
    assert!(spread.iter().all(is_within), "{spread:?}");
    let is_early = |pause: &&Duration| **pause < HELLO_PAUSE;
    let early = spread.iter().filter(is_early).count();
    assert!((300..700).contains(&early), "{early} of 1,000 are early");
}

/// What is shipped goes with a hello: by the next one it is due, however early that is.
#[test]
fn after_one_interval_the_next_hello_ships() {
    for interval in [Duration::from_secs(1), HELLO_PAUSE] {
        let due = due(interval);
        assert!((0..1_000).all(|_| due <= spread(interval)), "{interval:?}");
        assert!(due * 10 >= interval * 9, "{due:?} is no whole interval");
    }
}
