use super::row::KeyRow;
use super::{EPOCH_MS, KEYS_MAX, KeyStanding, Keys, Unresolved};
use crate::ledger::entry::{InDoubt, State};
use crate::ledger::fingerprint::Fingerprint;
use crate::ledger::fixtures::{START_MS, labels, minted};
use crate::ledger::fold::state::KeyView;
use crate::ledger::id::EntryId;
use crate::ledger::kept_key::{KeptKey, KeyOrigin, Organization};
use crate::money::MicroUsd;

fn id(number: u128) -> EntryId {
    EntryId(uuid::Uuid::from_u128(number))
}

const REQUEST: Fingerprint = Fingerprint([1; 32]);

fn key(name: &str) -> KeptKey {
    minted(name)
}

/// An app's own, of an organization, for a request.
fn own(name: &str, organization: u64, request: u8) -> KeptKey {
    KeptKey {
        origin: KeyOrigin::App,
        organization: Some(Organization(organization)),
        request: Some(Fingerprint([request; 32])),
        ..minted(name)
    }
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
    keys.begin(&key("k"), REQUEST, id(1), START_MS);

    let alone = keys.view(&key("k"), id(1), START_MS);
    keys.begin(&key("k"), REQUEST, id(2), START_MS);
    let beside_an_open_one = keys.view(&key("k"), id(1), START_MS);
    keys.end(&key("k"), ended(2, State::Failed, START_MS));
    let beside_a_failed_one = keys.view(&key("k"), id(1), START_MS);

    assert_eq!(alone, KeyView::default());
    assert!(beside_an_open_one.others_may_have_run);
    assert_eq!(beside_a_failed_one, KeyView::default());
}

#[test]
fn a_doubt_an_answer_and_an_amount_are_remembered() {
    for (state, amount) in [(DOUBT, None), (State::Unreported, None), (settled(0), None)] {
        let mut keys = Keys::default();
        keys.begin(&key("k"), REQUEST, id(1), START_MS);
        keys.end(&key("k"), ended(1, state, START_MS));

        let view = keys.view(&key("k"), id(2), START_MS + 1);

        assert_eq!(
            (view.amount, view.others_may_have_run),
            (amount, true),
            "{state:?}"
        );
        assert_eq!(view.is_unreported, state == State::Unreported, "{state:?}");
        assert!(
            !keys.view(&key("k"), id(1), START_MS).is_unreported,
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

    let resolved = keys.resolved_by(&key("k"), id(2), START_MS);
    keys.resolve(&key("k"), id(1));

    assert_eq!(
        resolved
            .iter()
            .map(|waiting| waiting.id)
            .collect::<Vec<_>>(),
        [id(1)]
    );
    assert_eq!(
        keys.view(&key("k"), id(9), START_MS).amount,
        Some(MicroUsd::new(5))
    );
    assert!(keys.resolved_by(&key("k"), id(2), START_MS).is_empty());
}

#[test]
fn after_24_hours_a_key_begins_anew_and_a_late_end_counts_for_its_own_epoch() {
    let mut keys = Keys::default();
    let next_day = START_MS + EPOCH_MS;
    keys.begin(&key("k"), REQUEST, id(1), START_MS);
    keys.begin(&key("k"), REQUEST, id(2), next_day);

    keys.end(&key("k"), ended(1, settled(5), START_MS));

    assert_eq!(keys.view(&key("k"), id(2), next_day), KeyView::default());
    assert_eq!(
        keys.view(&key("k"), id(3), next_day - 1).amount,
        Some(MicroUsd::new(5))
    );
}

#[test]
fn a_clock_set_back_does_not_begin_an_epoch() {
    let mut keys = Keys::default();
    keys.end(&key("k"), ended(1, settled(5), START_MS));

    let view = keys.view(&key("k"), id(2), START_MS - 3_600_000);

    assert_eq!(view.amount, Some(MicroUsd::new(5)));
}

#[test]
fn keys_are_forgotten_after_24_hours_and_not_while_an_entry_is_open() {
    let mut keys = Keys::default();
    keys.begin(&key("open"), REQUEST, id(1), START_MS);
    keys.end(&key("k"), ended(2, settled(5), START_MS));

    keys.prune(START_MS + EPOCH_MS);
    let while_open = keys.table.len();
    keys.end(&key("open"), ended(1, State::Failed, START_MS));
    keys.prune(START_MS + EPOCH_MS);

    assert_eq!((while_open, keys.table.len()), (1, 0));
    assert_eq!(keys.dropped(), 0);
}

#[test]
fn a_key_with_an_open_entry_does_not_keep_the_keys_behind_it() {
    let mut keys = Keys::default();
    keys.begin(&key("open"), REQUEST, id(1), START_MS);
    for number in 2..=9 {
        let name = key(&format!("k{number}"));
        keys.end(&name, ended(number, settled(5), START_MS + 1));
    }
    keys.begin(&key("young"), REQUEST, id(10), START_MS + 2);

    keys.prune(START_MS + 1 + EPOCH_MS);

    let left: Vec<_> = keys.table.rows().map(KeyRow::key).collect();
    assert_eq!(left, ["open", "young"].map(|name| key(name).id(&[0; 32])));
    let open = keys.view(&key("open"), id(11), START_MS);
    assert!(open.others_may_have_run, "it is found where it is now");
    assert_eq!(keys.dropped(), 0);
}

#[test]
fn i11_the_oldest_key_goes_first_and_is_counted() {
    let mut keys = Keys {
        keys_max: 10,
        ..Keys::default()
    };
    for number in 0..25u128 {
        keys.begin(&key(&format!("k{number}")), REQUEST, id(number), START_MS);
        keys.prune(START_MS);
    }

    assert_eq!((keys.table.len(), keys.dropped()), (10, 15));
    let knows = |number: u128| {
        let view = keys.view(&key(&format!("k{number}")), id(99), START_MS);
        view.others_may_have_run
    };
    assert!(knows(24) && knows(15) && !knows(14));
}

/// In the window of the entry that it is charged to, which may be later than the key's first use.
#[test]
fn a_charge_is_that_of_the_entries_that_it_stands_on() {
    let mut keys = Keys::default();
    let charge = |keys: &Keys| {
        keys.charge(&key("k"), REQUEST, START_MS + 9)
            .map(|charge| (charge.since_ms - START_MS, charge.entries))
    };
    assert_eq!(charge(&keys), None);
    keys.begin(&key("k"), REQUEST, id(1), START_MS);
    assert_eq!(charge(&keys), Some((0, vec![id(1)])), "under way");
    keys.end(&key("k"), ended(1, State::Failed, START_MS));
    assert_eq!(charge(&keys), None, "it cost nothing");
    keys.begin(&key("k"), REQUEST, id(2), START_MS + 5);
    keys.end(&key("k"), ended(2, DOUBT, START_MS + 5));
    assert_eq!(charge(&keys), Some((5, vec![id(2)])), "held");
    keys.begin(&key("k"), REQUEST, id(3), START_MS + 7);
    assert_eq!(charge(&keys), Some((7, vec![id(3), id(2)])));
    keys.end(&key("k"), ended(3, settled(60), START_MS + 7));
    keys.begin(&key("k"), REQUEST, id(4), START_MS + 8);
    assert_eq!(charge(&keys), Some((7, vec![id(3)])), "billed on one");
}

/// Whether the amount is an equal request's, and whether it is another's.
#[test]
fn i3_a_key_is_an_organizations_and_one_requests() {
    let stands = |known: &KeptKey, other: &KeptKey| {
        let mut keys = Keys::default();
        keys.begin(known, REQUEST, id(1), START_MS);
        keys.end(known, ended(1, settled(5), START_MS));
        keys.begin(other, REQUEST, id(2), START_MS + 1);
        let view = keys.view(other, id(2), START_MS + 1);
        (view.amount.is_some(), view.stands_on_another_request)
    };
    let bought = own("k", 1, 1);
    for (other, wanted) in [
        (own("k", 1, 1), (true, false)),
        (own("k", 1, 2), (false, true)),
        (own("k", 2, 1), (false, false)),
        (own("x", 1, 1), (false, false)),
    ] {
        assert_eq!(stands(&bought, &other), wanted, "{other:?}");
    }
}

#[test]
fn only_an_equal_request_of_the_organization_is_charged_already() {
    let mut keys = Keys::default();
    keys.begin(&own("k", 1, 1), REQUEST, id(1), START_MS);
    keys.end(&own("k", 1, 1), ended(1, settled(5), START_MS));
    for (other, is_charged) in [
        (own("k", 1, 1), true),
        (own("k", 1, 2), false),
        (own("k", 2, 1), false),
        (minted("k"), false),
    ] {
        let charge = keys.charge(&other, REQUEST, START_MS + 1);
        assert_eq!(charge.is_some(), is_charged, "{other:?}");
    }
}

/// Lines of an older bursar name no organization, and of the request only its bytes: a repeat is charged
/// already, and no amount of now is that of then.
#[test]
fn what_an_older_bursar_left_is_charged_and_may_be_another_organizations() {
    let old = KeptKey {
        organization: None,
        request: None,
        ..own("k", 1, 1)
    };
    let other_bytes = Fingerprint([2; 32]);
    let mut keys = Keys::default();
    keys.begin(&old, REQUEST, id(1), START_MS);
    keys.end(&old, ended(1, DOUBT, START_MS));
    let now = own("k", 1, 1);
    let charged = |keys: &Keys, bytes| keys.charge(&now, bytes, START_MS + 1).is_some();
    assert!(charged(&keys, REQUEST) && !charged(&keys, other_bytes));

    keys.begin(&now, REQUEST, id(2), START_MS + 1);
    let beside_a_doubt = keys.view(&now, id(2), START_MS + 1);
    assert_eq!(keys.resolved_by(&now, id(2), START_MS + 1), []);
    keys.end(&old, ended(3, settled(5), START_MS + 1));
    let beside_an_amount = keys.view(&now, id(2), START_MS + 1);

    let wanted = |stands_under_another_organization| KeyView {
        stands_under_another_organization,
        others_may_have_run: true,
        ..KeyView::default()
    };
    assert_eq!(beside_a_doubt, wanted(false));
    assert_eq!(beside_an_amount, wanted(true));
}

/// The organization's name in the ledger changes with its API key, and may be another organization's.
#[test]
fn i3_under_another_key_of_the_service_a_zero_is_in_doubt_and_a_replay_is_explained() {
    for (was, (stands, may_have_run)) in [
        (settled(5), (true, true)),
        (State::Unreported, (true, true)),
        (DOUBT, (false, true)),
        (State::Failed, (false, false)),
    ] {
        for origin in [KeyOrigin::App, KeyOrigin::Minted] {
            let of = |organization| KeptKey {
                origin,
                ..own("k", organization, 1)
            };
            let mut keys = Keys::default();
            keys.begin(&of(1), REQUEST, id(1), START_MS);
            keys.end(&of(1), ended(1, was, START_MS));
            keys.begin(&of(2), REQUEST, id(2), START_MS + 1);

            let view = keys.view(&of(2), id(2), START_MS + 1);

            let wanted = KeyView {
                stands_under_another_organization: stands,
                others_may_have_run: may_have_run,
                ..KeyView::default()
            };
            assert_eq!(view, wanted, "{was:?} {origin:?}");
            assert_eq!(keys.charge(&of(3), REQUEST, START_MS + 1), None);
            let a_day_later = keys.view(&of(2), id(2), START_MS + EPOCH_MS);
            assert_eq!(a_day_later, KeyView::default(), "{was:?} {origin:?}");
        }
    }
}

/// In whatever order they end: what began later is beside an entry, too.
#[test]
fn i3_an_entry_sees_what_began_after_it_under_its_key() {
    let first = own("k", 1, 1);
    for (other, is_organization) in [(own("k", 2, 1), true), (own("k", 1, 2), false)] {
        for (was, stands) in [(settled(5), true), (DOUBT, false)] {
            let mut keys = Keys::default();
            keys.begin(&first, REQUEST, id(1), START_MS);
            keys.begin(&other, REQUEST, id(2), START_MS + 1);
            keys.end(&other, ended(2, was, START_MS + 1));

            let view = keys.view(&first, id(1), START_MS);

            let wanted = KeyView {
                stands_under_another_organization: stands && is_organization,
                stands_on_another_request: stands && !is_organization,
                others_may_have_run: true,
                ..KeyView::default()
            };
            assert_eq!(view, wanted, "{was:?} {is_organization}");
        }
    }
}

/// A refused request leaves nothing to know, so it keeps no place from one that is bought.
#[test]
fn refused_requests_of_a_key_do_not_keep_out_one_that_is_bought() {
    let mut keys = Keys::default();
    for request in 0..=255 {
        let number = u128::from(request);
        keys.begin(&own("k", 1, request), REQUEST, id(number), START_MS);
        let failed = ended(number, State::Failed, START_MS);
        keys.end(&own("k", 1, request), failed);
    }
    let bought = own("k", 1, 0);
    keys.begin(&bought, REQUEST, id(300), START_MS + 1);
    keys.end(&bought, ended(300, settled(5), START_MS + 1));

    let amount = keys.view(&bought, id(301), START_MS + 2).amount;
    assert_eq!(amount, Some(MicroUsd::new(5)));
    assert_eq!(keys.dropped(), 0);
    keys.prune(START_MS + EPOCH_MS + 1);
    assert_eq!(keys.table.len(), 0);
}

/// The service refuses all but the first, so they are many only where something is wrong.
#[test]
fn i11_a_key_has_so_many_requests_and_no_more() {
    let mut keys = Keys::default();
    for request in 0..=255 {
        let number = u128::from(request);
        keys.begin(&own("k", 1, request), REQUEST, id(number), START_MS);
    }
    assert_eq!(keys.table.len(), super::REQUESTS_MAX);
    let view = keys.view(&own("k", 1, 255), id(255), START_MS);
    assert!(view.others_may_have_run);
    keys.end(&own("k", 1, 255), ended(255, settled(5), START_MS));
    assert_eq!(keys.dropped(), 1, "it is counted as not known");
}

/// All of what a table of ordinary keys takes: the ring, the places, and nothing in boxes.
#[test]
fn a_key_takes_at_most_100_bytes_at_the_bound() {
    let mut keys = Keys::default();
    let mut most = 0;
    for number in 0..KEYS_MAX + KEYS_MAX / 10 {
        let name = key(&format!("bursar-{number:032x}"));
        let entry = u128::try_from(number).unwrap();
        keys.begin(&name, REQUEST, id(entry), START_MS);
        keys.end(&name, ended(entry, settled(5), START_MS));
        if number % 4_096 == 0 {
            keys.prune(START_MS);
            most = most.max(keys.table.bytes());
        }
    }
    keys.prune(START_MS);

    assert_eq!(keys.table.len(), KEYS_MAX);
    assert_eq!(keys.table.rows().map(KeyRow::boxed_bytes).sum::<usize>(), 0);
    let bytes = most.max(keys.table.bytes());
    assert!(bytes <= 100 * KEYS_MAX, "{} bytes a key", bytes / KEYS_MAX);

    // A day later nothing is left of it.
    keys.prune(START_MS + EPOCH_MS);
    assert_eq!(keys.table.len(), 0);
    assert!(keys.table.bytes() < 32 << 20, "{}", keys.table.bytes());
}

/// A charge in a later window than its key's first use takes a box, and waits for nothing.
#[test]
fn what_waits_for_nothing_takes_no_place_from_a_doubt() {
    let mut keys = Keys {
        waiting_max: 16,
        ..Keys::default()
    };
    let name = |number: u128| key(&format!("k{number}"));
    for number in 0..8 {
        keys.begin(&name(number), REQUEST, id(number), START_MS);
        keys.end(&name(number), ended(number, DOUBT, START_MS));
    }
    for number in 8..24 {
        keys.begin(&name(number), REQUEST, id(number), START_MS);
        keys.end(&name(number), ended(number, State::Failed, START_MS));
        let (again, at_ms) = (number + 100, START_MS + 1);
        keys.begin(&name(number), REQUEST, id(again), at_ms);
        keys.end(&name(number), ended(again, settled(5), at_ms));
        keys.prune(at_ms);
    }

    assert_eq!((keys.unresolved().count(), keys.dropped()), (8, 0));
    let bought = keys.view(&name(8), id(999), START_MS + 2);
    assert_eq!(bought.amount, Some(MicroUsd::new(5)));
}

/// As every streamed agent turn is.
#[test]
fn i11_entries_that_wait_for_an_amount_take_at_most_32_mib_and_the_oldest_are_counted() {
    let mut keys = Keys::default();
    let name = |number: usize| key(&format!("bursar-{number:032x}"));
    let count = 3 * super::WAITING_MAX;
    let mut most = 0;
    for number in 0..count {
        let entry = u128::try_from(number).unwrap();
        let mut waits = ended(entry, State::Unreported, START_MS);
        waits.labels.key = Some(name(number));
        waits.labels.run = Some(format!("{number:036}"));
        keys.begin(&name(number), REQUEST, id(entry), START_MS);
        keys.end(&name(number), waits);
        if number % 4_096 == 0 {
            keys.prune(START_MS);
        }
        if number % 65_536 == 0 {
            most = most.max(keys.table.rows().map(KeyRow::boxed_bytes).sum::<usize>());
        }
    }
    keys.prune(START_MS);
    most = most.max(keys.table.rows().map(KeyRow::boxed_bytes).sum::<usize>());

    assert!(keys.unresolved().count() <= super::WAITING_MAX);
    assert_eq!(keys.unresolved().count(), keys.waiting);
    assert!(most <= 32 << 20, "{most} bytes");
    assert!(most > 0);
    // A 0 beside one that is forgotten stays in doubt; of one that is not it is known what it was.
    for (number, is_unreported) in [(0, false), (count - 1, true)] {
        let view = keys.view(&name(number), id(u128::MAX), START_MS);
        let wanted = KeyView {
            is_unreported,
            others_may_have_run: true,
            ..KeyView::default()
        };
        assert_eq!(view, wanted, "{number}");
    }
    let forgotten = count - keys.unresolved().count();
    assert_eq!(keys.dropped(), u64::try_from(forgotten).unwrap());
    keys.prune(START_MS + EPOCH_MS);
    assert_eq!((keys.table.len(), keys.waiting), (0, 0));
}

#[test]
fn a_key_that_went_with_another_request_alone_stands_elsewhere_for_its_24_h() {
    let (bound, other) = (own("k", 1, 1), own("k", 1, 2));
    let mut keys = Keys::default();
    let standing = |keys: &Keys, key: &KeptKey, at_ms| keys.standing(key, REQUEST, at_ms);
    assert_eq!(standing(&keys, &other, START_MS), KeyStanding::Free);
    keys.begin(&bound, REQUEST, id(1), START_MS);
    keys.end(&bound, ended(1, State::Failed, START_MS));
    assert_eq!(
        standing(&keys, &other, START_MS),
        KeyStanding::Free,
        "it failed"
    );
    keys.begin(&bound, REQUEST, id(2), START_MS);
    keys.end(&bound, ended(2, settled(5), START_MS));

    let equal = standing(&keys, &bound, START_MS + 1);
    assert!(matches!(equal, KeyStanding::Charged(_)), "{equal:?}");
    assert_eq!(
        standing(&keys, &other, START_MS + 1),
        KeyStanding::Elsewhere
    );
    let rows = [(own("k", 2, 2), START_MS + 1), (other, START_MS + EPOCH_MS)];
    for (key, at_ms) in rows {
        assert_eq!(
            standing(&keys, &key, at_ms),
            KeyStanding::Free,
            "{key:?} {at_ms}"
        );
    }
}
