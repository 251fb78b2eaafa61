use std::sync::Arc;

use super::{EPOCH_MS, Keys, Unresolved, kept_form};
use crate::ledger::entry::{EntryId, InDoubt, State};
use crate::ledger::fixtures::{START_MS, labels};
use crate::ledger::state::KeyView;
use crate::money::MicroUsd;

fn id(number: u128) -> EntryId {
    EntryId(uuid::Uuid::from_u128(number))
}

fn key(name: &str) -> Arc<str> {
    Arc::from(name)
}

fn ended(number: u128, state: State, at_ms: u64) -> Unresolved {
    Unresolved {
        id: id(number),
        was: state,
        served_by: None,
        labels: labels(at_ms, Some("k")),
    }
}

fn settled(amount: u64) -> State {
    State::Settled {
        billed: MicroUsd::new(amount),
    }
}

const DOUBT: State = State::InDoubt {
    reason: InDoubt::NoResponse,
};

#[test]
fn an_entry_sees_the_others_and_not_itself() {
    let mut keys = Keys::default();
    keys.begin(&key("k"), id(1), START_MS);

    let alone = keys.view("k", id(1), START_MS);
    keys.begin(&key("k"), id(2), START_MS);
    let beside_an_open_one = keys.view("k", id(1), START_MS);
    keys.end(&key("k"), ended(2, State::Failed, START_MS));
    let beside_a_failed_one = keys.view("k", id(1), START_MS);

    assert_eq!(alone, KeyView::default());
    assert!(beside_an_open_one.others_may_have_run);
    assert_eq!(beside_a_failed_one, KeyView::default());
}

#[test]
fn a_doubt_an_answer_and_an_amount_are_remembered() {
    for (state, amount) in [(DOUBT, None), (State::Unreported, None), (settled(0), None)] {
        let mut keys = Keys::default();
        keys.begin(&key("k"), id(1), START_MS);
        keys.end(&key("k"), ended(1, state, START_MS));

        let view = keys.view("k", id(2), START_MS + 1);

        assert_eq!(
            (view.amount, view.others_may_have_run),
            (amount, true),
            "{state:?}"
        );
        assert_eq!(view.is_unreported, state == State::Unreported, "{state:?}");
        assert!(
            !keys.view("k", id(1), START_MS).is_unreported,
            "it stands there"
        );
    }
}

#[test]
fn the_first_amount_stands_and_names_what_it_resolves() {
    let mut keys = Keys::default();
    keys.end(&key("k"), ended(1, DOUBT, START_MS));
    keys.end(&key("k"), ended(2, settled(5), START_MS));
    keys.end(&key("k"), ended(3, settled(6), START_MS));

    let resolved = keys.resolved_by("k", id(2), START_MS);
    keys.resolve("k", id(1));

    assert_eq!(
        resolved
            .iter()
            .map(|waiting| waiting.id)
            .collect::<Vec<_>>(),
        [id(1)]
    );
    assert_eq!(
        keys.view("k", id(9), START_MS).amount,
        Some(MicroUsd::new(5))
    );
    assert!(keys.resolved_by("k", id(2), START_MS).is_empty());
}

#[test]
fn after_24_hours_a_key_begins_anew_and_a_late_end_counts_for_its_own_epoch() {
    let mut keys = Keys::default();
    let next_day = START_MS + EPOCH_MS;
    keys.begin(&key("k"), id(1), START_MS);
    keys.begin(&key("k"), id(2), next_day);

    keys.end(&key("k"), ended(1, settled(5), START_MS));

    assert_eq!(keys.view("k", id(2), next_day), KeyView::default());
    assert_eq!(
        keys.view("k", id(3), next_day - 1).amount,
        Some(MicroUsd::new(5))
    );
}

#[test]
fn a_clock_set_back_does_not_begin_an_epoch() {
    let mut keys = Keys::default();
    keys.end(&key("k"), ended(1, settled(5), START_MS));

    let view = keys.view("k", id(2), START_MS - 3_600_000);

    assert_eq!(view.amount, Some(MicroUsd::new(5)));
}

#[test]
fn keys_are_forgotten_after_24_hours_and_not_while_an_entry_is_open() {
    let mut keys = Keys::default();
    keys.begin(&key("open"), id(1), START_MS);
    keys.end(&key("k"), ended(2, settled(5), START_MS));

    keys.prune(START_MS + EPOCH_MS);
    let while_open = keys.epochs.len();
    keys.end(&key("open"), ended(1, State::Failed, START_MS));
    keys.prune(START_MS + EPOCH_MS);

    assert_eq!((while_open, keys.epochs.len(), keys.order.len()), (1, 0, 0));
    assert_eq!(keys.dropped(), 0);
}

#[test]
fn a_key_with_an_open_entry_does_not_keep_the_keys_behind_it() {
    let mut keys = Keys::default();
    keys.begin(&key("open"), id(1), START_MS);
    for number in 2..=9 {
        let name = key(&format!("k{number}"));
        keys.end(&name, ended(number, settled(5), START_MS + 1));
    }
    keys.begin(&key("young"), id(10), START_MS + 2);

    keys.prune(START_MS + 1 + EPOCH_MS);

    let mut left: Vec<&str> = keys.epochs.keys().map(AsRef::as_ref).collect();
    left.sort_unstable();
    assert_eq!(left, ["open", "young"]);
    let order: Vec<&str> = keys.order.iter().map(|(_, key)| key.as_ref()).collect();
    assert_eq!(order, ["open", "young"]);
    assert_eq!(keys.dropped(), 0);
}

#[test]
fn i11_a_key_of_up_to_256_characters_is_kept_and_a_longer_one_as_its_hash() {
    let whole = "\u{e9}".repeat(256);
    let long = "k".repeat(64 << 10);
    let other = format!("{}x", "k".repeat((64 << 10) - 1));

    let short = kept_form(&long);

    assert_eq!(kept_form(&whole), whole);
    assert_eq!(kept_form(""), "");
    assert!(short.starts_with("h:") && short.len() == 66, "{short}");
    assert_eq!(short, kept_form(&long));
    assert_ne!(short, kept_form(&other));
}

#[test]
fn i11_the_oldest_key_goes_first_and_is_counted() {
    let mut keys = Keys::with_capacity(10);
    for number in 0..25u128 {
        keys.begin(&key(&format!("k{number}")), id(number), START_MS);
        keys.prune(START_MS);
    }

    assert_eq!(
        (keys.epochs.len(), keys.order.len(), keys.dropped()),
        (10, 10, 15)
    );
    assert!(keys.epochs.contains_key("k24") && !keys.epochs.contains_key("k14"));
}

/// In the window of the entry that it is charged to, which may be later than the key's first use.
#[test]
fn a_charge_is_that_of_the_entries_that_it_stands_on() {
    let mut keys = Keys::default();
    let charge = |keys: &Keys| {
        keys.charge("k", START_MS + 9)
            .map(|charge| (charge.since_ms - START_MS, charge.entries))
    };
    assert_eq!(charge(&keys), None);
    keys.begin(&key("k"), id(1), START_MS);
    assert_eq!(charge(&keys), Some((0, vec![id(1)])), "under way");
    keys.end(&key("k"), ended(1, State::Failed, START_MS));
    assert_eq!(charge(&keys), None, "it cost nothing");
    keys.begin(&key("k"), id(2), START_MS + 5);
    keys.end(&key("k"), ended(2, DOUBT, START_MS + 5));
    assert_eq!(charge(&keys), Some((5, vec![id(2)])), "held");
    keys.begin(&key("k"), id(3), START_MS + 7);
    assert_eq!(charge(&keys), Some((7, vec![id(3), id(2)])));
    keys.end(&key("k"), ended(3, settled(60), START_MS + 7));
    keys.begin(&key("k"), id(4), START_MS + 8);
    assert_eq!(charge(&keys), Some((7, vec![id(3)])), "billed on one");
}
