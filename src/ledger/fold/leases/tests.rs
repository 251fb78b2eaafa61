use uuid::Uuid;

use super::*;

fn lease(number: u128) -> LeaseId {
    LeaseId(Uuid::from_u128(number))
}

fn billed(amount: u64) -> Charge {
    Charge {
        billed: crate::money::MicroUsd::new(amount).into(),
        ..Charge::default()
    }
}

#[test]
fn an_entry_counts_in_each_of_its_leases() {
    let mut sums = LeaseSums::default();
    let both: Leases = [lease(1), lease(2)].into_iter().collect();
    sums.add(&both, 5 * DAY_MS, billed(30));
    sums.add(&[lease(2)].into_iter().collect(), 5 * DAY_MS, billed(4));
    sums.add(&Leases::default(), 5 * DAY_MS, billed(100));
    assert_eq!(sums.charged(lease(1)), billed(30));
    assert_eq!(sums.charged(lease(2)), billed(34));
    assert_eq!(sums.charged(lease(3)), Charge::default());
}

#[test]
fn those_that_were_spent_longest_ago_are_forgotten_and_a_clock_ahead_takes_one_day() {
    let mut sums = LeaseSums::default();
    let days = u64::try_from(DAYS_MAX).unwrap();
    for day in 0..days {
        let own: Leases = [lease(day.into())].into_iter().collect();
        sums.add(&own, day * DAY_MS, billed(1));
    }
    sums.prune();
    assert_eq!(sums.iter().count(), DAYS_MAX);
    let ahead: Leases = [lease(1_000)].into_iter().collect();
    sums.add(&ahead, 90_000 * DAY_MS, billed(1));
    sums.prune();
    assert_eq!(sums.iter().count(), DAYS_MAX);
    assert_eq!(sums.charged(lease(0)), Charge::default(), "the oldest");
    assert_eq!(sums.charged(lease(1)), billed(1));
}

#[test]
fn an_entry_without_a_lease_is_written_as_before_there_were_any() {
    let intent = crate::ledger::fixtures::intent(
        crate::ledger::entry::EntryId(Uuid::nil()),
        crate::ledger::fixtures::START_MS,
        None,
    );
    let text = serde_json::to_string(&intent).unwrap();
    assert!(!text.contains("leases"), "{text}");
    let named: Leases = [lease(7)].into_iter().collect();
    let intent = crate::ledger::entry::Intent {
        leases: named.clone(),
        ..intent
    };
    let text = serde_json::to_string(&intent).unwrap();
    assert!(
        text.contains(r#""leases":["00000000-0000-0000-0000-000000000007"]"#),
        "{text}"
    );
    let read: crate::ledger::entry::Intent = serde_json::from_str(&text).unwrap();
    assert_eq!(read.leases, named);
}
