use super::*;
use crate::rollup::hours::{HOURS_KEPT, start_of};

#[test]
fn a_sum_that_does_not_fit_stays_at_its_highest() {
    let hour = |micro: u64| EndpointHour {
        served: u64::MAX,
        errors: BTreeMap::from([(503, u64::MAX)]),
        billed: MicroUsd::new(micro).unwrap(),
        baseline: MicroUsd::new(micro).unwrap(),
        ..EndpointHour::default()
    };
    let mut sum = hour(i64::MAX as u64 - 1);

    sum += &hour(7);

    assert_eq!((sum.billed, sum.baseline), (MicroUsd::MAX, MicroUsd::MAX));
    assert_eq!((sum.served, sum.failed()), (u64::MAX, u64::MAX));
}

#[test]
fn old_hours_are_forgotten_and_said_to_be() {
    let mut traffic = Traffic::default();
    for hour in 0..1_000 {
        traffic.observe(&Observation {
            at: start_of(hour).unwrap(),
            took_ms: 1,
            outcome: RequestOutcome::Failed(503),
        });
    }

    assert_eq!(
        traffic.hours.between(0, 1_000).count() as i64,
        HOURS_KEPT + 1
    );
    let unsaved = traffic.hours.take_unsaved();
    assert_eq!(unsaved.len(), 1_000);
    assert_eq!(unsaved[0], (0, None));
    assert!(traffic.hours.take_unsaved().is_empty());
}
