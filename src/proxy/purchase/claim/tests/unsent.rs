//! A key that was adopted by a request that was never sent: the one before it stands as it was.

use super::*;

/// An undelivered request whose key may have run.
fn undelivered(bench: &mut Bench) -> Arc<Purchase> {
    let first = bench.lead(1);
    bench.table.finish(&first, Fate::Undelivered);
    first
}

fn adopted_from(purchase: &Purchase) -> Option<EntryId> {
    match purchase.key.as_ref()?.origin {
        KeyOrigin::Adopted { from } => Some(from),
        KeyOrigin::Minted | KeyOrigin::App => None,
    }
}

#[test]
fn what_was_refused_here_is_no_adoption_and_no_entry() {
    let mut bench = Bench::new();
    let first = undelivered(&mut bench);
    for _ in 0..5 {
        let refused = bench.lead(1);
        assert_eq!(key_of(&refused), key_of(&first));
        assert_eq!(refused.adoptions, 1, "refusals are not counted");
        assert_eq!(adopted_from(&refused), Some(first.entry));
        let fate = refused.fate_unsent(false);
        bench.table.finish(&refused, fate);
    }
}

#[test]
fn with_an_intent_its_entry_stands_for_both() {
    let mut bench = Bench::new();
    undelivered(&mut bench);
    let unsent = bench.lead(1);
    bench.table.finish(&unsent, unsent.fate_unsent(true));

    let next = bench.lead(1);
    assert_eq!(adopted_from(&next), Some(unsent.entry));
    assert_eq!(next.adoptions, 1);
}

#[test]
fn a_key_that_is_given_back_is_the_oldest_again() {
    let mut bench = Bench::new();
    let (first, second) = (bench.lead(1), bench.lead(1));
    bench.table.finish(&first, Fate::Undelivered);
    bench.table.finish(&second, Fate::Undelivered);
    let refused = bench.lead(1);
    assert_eq!(key_of(&refused), key_of(&first));
    bench.table.finish(&refused, refused.fate_unsent(false));

    assert_eq!(key_of(&bench.lead(1)), key_of(&first));
    assert_eq!(key_of(&bench.lead(1)), key_of(&second));
}

#[test]
fn a_repeat_looks_again_instead_of_joining_a_request_that_gives_up() {
    let mut bench = Bench::new();
    let first = undelivered(&mut bench);
    let waits = bench.lead(1);
    waits.app_left();
    assert!(waits.gives_up(), "nobody follows");
    let claimant = bench.claimant(1);
    let looks = bench.table.claim(&claimant, POLICY, true);
    assert!(matches!(looks, Claim::LookAgain { .. }), "{looks:?}");

    bench.table.finish(&waits, waits.fate_unsent(false));
    let next = lead(bench.table.claim(&claimant, POLICY, true));
    assert_eq!(key_of(&next), key_of(&first));
}

#[test]
fn a_followed_request_does_not_give_up() {
    let mut bench = Bench::new();
    let waits = bench.lead(1);
    waits.app_left();
    let follower = follow(bench.claim(1));
    assert!(!waits.gives_up());
    drop(follower);
    assert!(waits.gives_up());
}
