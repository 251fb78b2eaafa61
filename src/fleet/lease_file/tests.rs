//! What is held over a restart, and by whom.

use super::*;

const LEDGER: Uuid = Uuid::from_u128(5);

fn slice(number: u128, ends_up_ms: u64) -> Slice {
    Slice {
        lease: LeaseId(Uuid::from_u128(number)),
        cap: "team".to_owned(),
        window: Window {
            since_ms: 1_000,
            until_ms: 2_000,
        },
        begins_up_ms: 0,
        ends_up_ms,
        totals: LeaseTotals {
            granted: MicroUsd::new(700),
            given_back: MicroUsd::new(100),
            give_back_number: 3,
        },
        giving: Some(MicroUsd::new(50)),
        billed: MicroUsdSum::from_micro_usd(20),
    }
}

fn state() -> (tempfile::TempDir, Directory) {
    let folder = tempfile::tempdir().unwrap();
    let state = Directory::open_or_create(&folder.path().join("state")).unwrap();
    (folder, state)
}

#[test]
fn a_restart_finds_what_was_held_less_what_is_over() {
    let (_folder, state) = state();
    let machine = Machine::this();
    let slices = [slice(1, 900), slice(2, 901)];
    KeptLeases::store(&state, LEDGER, &machine, &slices).unwrap();
    let kept = KeptLeases::read(&state, LEDGER, &machine, 900).unwrap();
    assert_eq!(kept.slices, [slice(2, 901)]);
    assert!(!kept.is_void);
    KeptLeases::remove(&state).unwrap();
    let kept = KeptLeases::read(&state, LEDGER, &machine, 0).unwrap();
    assert_eq!(kept, KeptLeases::default());
}

#[test]
fn another_machine_or_another_start_spends_nothing_of_it_and_shows_all_of_it() {
    let (_folder, state) = state();
    let other = Machine("another".to_owned());
    KeptLeases::store(&state, LEDGER, &other, &[slice(1, 900)]).unwrap();
    // The other one's time says nothing here.
    let kept = KeptLeases::read(&state, LEDGER, &Machine::this(), 5_000).unwrap();
    assert!(kept.is_void);
    assert_eq!(kept.slices, [slice(1, 900)]);
}

#[test]
fn another_ledger_and_a_damaged_file_have_nothing() {
    let (_folder, state) = state();
    let machine = Machine::this();
    KeptLeases::store(&state, LEDGER, &machine, &[slice(1, 900)]).unwrap();
    let kept = KeptLeases::read(&state, Uuid::from_u128(6), &machine, 0).unwrap();
    assert_eq!(kept, KeptLeases::default());
    let text = state.read(FILE).unwrap().unwrap();
    let damaged = text.replace("700", "900");
    state.replace(FILE, damaged.as_bytes()).unwrap();
    let kept = KeptLeases::read(&state, LEDGER, &machine, 0).unwrap();
    assert_eq!(kept, KeptLeases::default());
}

#[test]
fn the_machine_is_named_by_a_hash_that_stays_the_same() {
    let machine = Machine::this();
    assert_eq!(machine, Machine::this());
    assert_eq!(machine.as_str().len(), 64);
    let own = std::fs::read_to_string(MACHINE_ID).unwrap_or_default();
    assert!(own.trim().is_empty() || !machine.as_str().contains(own.trim()));
}
