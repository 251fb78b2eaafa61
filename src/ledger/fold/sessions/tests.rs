use super::*;
use crate::ledger::marks::SessionHasher;
use crate::money::MicroUsd;

fn hash(number: usize) -> SessionHash {
    let hasher = SessionHasher::new([1; 32]);
    hasher.session("a", &number.to_string()).hash
}

fn billed(amount: u64) -> Charge {
    Charge {
        billed: MicroUsd::new(amount).into(),
        ..Charge::default()
    }
}

#[test]
fn beyond_ten_thousand_sessions_new_ones_share_their_sums_and_known_ones_keep_theirs() {
    let app: Arc<str> = Arc::from("a");
    let mut sums = SessionSums::default();
    for number in 0..SESSIONS_MAX + 2 {
        sums.add(&app, hash(number), DAY_MS, billed(1), 1);
    }
    sums.add(&app, hash(0), DAY_MS, billed(1), 1);
    let of = |number| sums.get("a", sums.place("a", hash(number)));
    assert_eq!(of(0).requests, 2);
    assert_eq!(of(SESSIONS_MAX - 1).requests, 1);
    assert_eq!(sums.place("a", hash(SESSIONS_MAX)), SessionAt::Overflow);
    assert_eq!(of(SESSIONS_MAX).requests, 2, "two came too late");
    assert_eq!(
        of(SESSIONS_MAX + 9),
        of(SESSIONS_MAX),
        "and so does the next"
    );
    assert_eq!(sums.iter().count(), SESSIONS_MAX + 1);
    let other = sums.place("b", hash(SESSIONS_MAX));
    assert_eq!(other, SessionAt::Named(hash(SESSIONS_MAX)));
}

#[test]
fn a_session_that_goes_on_keeps_all_of_it_and_one_that_was_silent_for_36_days_is_forgotten() {
    let app: Arc<str> = Arc::from("a");
    let mut sums = SessionSums::default();
    let (silent, steady) = (hash(1), hash(2));
    sums.add(&app, silent, 0, billed(7), 1);
    for day in 0..35 {
        sums.add(&app, steady, day * DAY_MS, billed(1), 1);
        sums.add(&app, hash(100), day * DAY_MS, billed(1), 1);
    }
    sums.prune();
    assert_eq!(sums.get("a", SessionAt::Named(silent)).requests, 1);
    for day in 1..40 {
        let another = hash(1_000 + usize::try_from(day).unwrap());
        sums.add(&app, another, day * DAY_MS, billed(1), 1);
        sums.add(&app, steady, day * DAY_MS, billed(1), 1);
    }
    sums.prune();
    assert_eq!(
        sums.get("a", SessionAt::Named(silent)),
        SessionSum::default()
    );
    assert_eq!(sums.get("a", SessionAt::Named(steady)).requests, 74);
}

#[test]
fn a_clock_that_was_ahead_for_a_moment_takes_no_session_away() {
    let app: Arc<str> = Arc::from("a");
    let mut sums = SessionSums::default();
    sums.add(&app, hash(1), DAY_MS, billed(7), 1);
    sums.add(&app, hash(2), 9_000 * DAY_MS, billed(1), 1);
    sums.prune();
    assert_eq!(sums.get("a", SessionAt::Named(hash(1))).requests, 1);
}
