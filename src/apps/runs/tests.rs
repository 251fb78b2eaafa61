use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

use super::*;
use crate::ledger::entry::InDoubt;

fn usd(micro: u64) -> MicroUsd {
    MicroUsd::new(micro)
}

fn settled(micro: u64) -> State {
    State::Settled { billed: usd(micro) }
}

fn entry() -> EntryId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    EntryId(Uuid::from_u128(u128::from(
        NEXT.fetch_add(1, Ordering::Relaxed),
    )))
}

fn run(max: u64) -> Run {
    Run::new(&App::new("a"), Some(usd(max)), 1_000).unwrap()
}

/// Asks and is let go.
fn go(run: &Run) -> EntryId {
    let id = entry();
    assert_eq!(run.ask(id, usd(10)), Leave::Go);
    id
}

fn reached(run: &Run) -> Option<(u64, u64)> {
    match run.ask(entry(), usd(10)) {
        Leave::Reached { spent, held, .. } => Some((spent.get(), held.get())),
        Leave::Go | Leave::Wait => None,
    }
}

#[test]
fn until_a_price_is_known_they_go_one_at_a_time() {
    let run = run(1_000_000);
    let first = go(&run);
    assert_eq!(run.ask(entry(), usd(10)), Leave::Wait);
    let mut moves = run.moves();

    run.ended(first, settled(40), None);

    assert!(moves.has_changed().unwrap());
    moves.mark_unchanged();
    go(&run);
    go(&run);
}

#[test]
fn side_by_side_only_while_all_of_them_could_be_paid() {
    let run = run(100);
    let first = go(&run);
    run.ended(first, settled(30), None);
    // 70 are left, 30 is expected of each.
    let (one, _two) = (go(&run), go(&run));
    assert_eq!(run.ask(entry(), usd(10)), Leave::Wait);
    // One that costs nothing makes room again.
    run.ended(one, State::Failed, None);
    go(&run);
    assert_eq!(run.ask(entry(), usd(10)), Leave::Wait);
}

#[test]
fn the_services_estimate_counts_for_what_others_may_cost() {
    let run = run(1_000);
    let first = go(&run);
    run.ended(first, settled(1), Some(usd(600)));
    go(&run);
    assert_eq!(
        run.ask(entry(), usd(10)),
        Leave::Wait,
        "another could be escalated"
    );
}

#[test]
fn what_is_not_known_stays_set_aside() {
    let run = run(100);
    let first = go(&run);
    run.ended(first, settled(60), None);
    let second = go(&run);
    run.ended(second, State::Unreported, None);
    assert_eq!(reached(&run), Some((60, 60)));

    // Its price came with a later one of the same key.
    let repeat = entry();
    run.repeats(repeat, second);
    run.ended(repeat, settled(5), None);
    assert_eq!(reached(&run), None);
}

/// A lost answer and its lost retries are one purchase, and the last of them tells its price.
#[test]
fn a_repeat_may_go_at_the_limit_and_holds_nothing_of_its_own() {
    let run = run(50);
    let first = go(&run);
    let lost = State::InDoubt {
        reason: InDoubt::NoResponse,
    };
    run.ended(first, lost, Some(usd(60)));
    let mut from = first;
    for _ in 0..3 {
        let repeat = entry();
        run.repeats(repeat, from);
        run.ended(repeat, lost, None);
        from = repeat;
    }
    let held = |run: &Run| run.purse.lock().held.len();
    assert_eq!(held(&run), 1);
    let last = entry();
    run.repeats(last, from);
    run.ended(last, settled(20), None);
    assert_eq!(held(&run), 0);
    assert_eq!(run.purse.lock().spent, usd(20));
}

#[test]
fn in_doubt_failed_replayed_and_unsent_ones() {
    let run = run(50);
    for (state, gone) in [
        (State::Failed, 0),
        (State::Replayed, 0),
        (settled(0), 0),
        (
            State::InDoubt {
                reason: InDoubt::NoResponse,
            },
            10,
        ),
        (State::Reconciled { billed: usd(5) }, 15),
    ] {
        let id = go(&run);
        run.ended(id, state, None);
        let purse = run.purse.lock();
        let held = sum(purse.held.values());
        assert_eq!(purse.spent.get() + held.get(), gone, "{state:?}");
    }
    let unsent = go(&run);
    run.give_back(unsent);
    assert!(run.purse.lock().flying.is_empty());
}

#[test]
fn the_limit_is_passed_by_one_request_at_most() {
    // Prices that are told at random below a dearest one, always eight that want to go.
    let dearest = 900;
    for seed in 0..200_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let max = 5_000 + random(20_000);
        let run = run(max);
        let mut paid = 0;
        let mut flying: Vec<EntryId> = Vec::new();
        loop {
            while flying.len() < 8 {
                let id = entry();
                match run.ask(id, usd(10)) {
                    Leave::Go => flying.push(id),
                    Leave::Wait | Leave::Reached { .. } => break,
                }
            }
            if flying.is_empty() {
                break;
            }
            let at = usize::try_from(random(flying.len() as u64)).unwrap();
            let id = flying.swap_remove(at);
            let price = 1 + random(dearest);
            paid += price;
            // The service tells what the dearest would have been.
            run.ended(id, settled(price), Some(usd(dearest)));
        }
        assert!(
            paid >= max,
            "seed {seed}: {paid} of {max}: nothing is left over"
        );
        assert!(paid <= max + dearest, "seed {seed}: {paid} of {max}");
    }
}

#[test]
fn a_run_goes_on_with_what_the_ledger_knows() {
    let (one, other) = (entry(), entry());
    let so_far = RunSoFar {
        spent: usd(30),
        dearest: Some(usd(20)),
        unknown: vec![one, other],
        floor: usd(15),
    };
    let run = Run::again("r".to_owned(), &App::new("a"), Some(usd(70)), so_far);
    assert_eq!(reached(&run), Some((30, 40)));
    let repeat = entry();
    run.repeats(repeat, one);
    run.ended(repeat, State::Replayed, None);
    go(&run);
}

#[test]
fn a_run_that_goes_on_without_a_price_holds_the_floor_for_what_is_unknown() {
    let so_far = RunSoFar {
        unknown: vec![entry(), entry()],
        floor: usd(10),
        ..RunSoFar::default()
    };
    let run = Run::again("r".to_owned(), &App::new("a"), Some(usd(20)), so_far);
    assert_eq!(reached(&run), Some((0, 20)));
}

#[test]
fn without_a_limit_nothing_waits() {
    let run = Run::new(&App::new("a"), None, 1_000).unwrap();
    for _ in 0..100 {
        assert_eq!(run.ask(entry(), usd(10)), Leave::Go);
    }
}

#[test]
fn no_more_runs_than_the_bound_and_an_ended_one_makes_room() {
    let runs = Runs::default();
    let all: Vec<Arc<Run>> = (0..RUNS_MAX).map(|_| Arc::new(run(1))).collect();
    for (number, run) in all.iter().enumerate() {
        let token = TokenHash::of(number.to_string().as_bytes());
        runs.open(Arc::clone(run), token).unwrap();
    }
    let more = Arc::new(run(1));
    let said = runs
        .open(Arc::clone(&more), TokenHash::of(b"x"))
        .unwrap_err();
    assert!(matches!(said, AppsError::RunsFull));

    runs.close(&all[3]);
    assert!(runs.with(TokenHash::of(b"3")).is_none());
    assert!(runs.with(TokenHash::of(b"4")).is_some());
    runs.open(more, TokenHash::of(b"x")).unwrap();
}
