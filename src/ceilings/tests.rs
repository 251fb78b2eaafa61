use super::{Ceilings, Demand};

const SERVICE: Ceilings = Ceilings {
    in_flight: Some(8),
    per_minute: Some(120),
};

const NO_LIMITS: Ceilings = Ceilings {
    in_flight: None,
    per_minute: None,
};

fn demand(in_flight: usize, sent: usize, (place, time): (usize, usize)) -> Demand {
    Demand {
        ceilings: SERVICE,
        limits: SERVICE,
        in_flight,
        sent,
        waiting_for_place: place,
        waiting_for_time: time,
    }
}

#[test]
fn a_machine_that_uses_little_asks_no_other() {
    let rows = [
        (demand(0, 0, (0, 0)), false),
        (demand(3, 29, (0, 0)), false),
        (demand(4, 0, (0, 0)), true),
        (demand(0, 30, (0, 0)), true),
        (demand(0, 0, (1, 0)), true),
        (demand(0, 0, (0, 1)), true),
    ];
    for (demand, is_worth) in rows {
        assert_eq!(demand.is_worth_sharing(), is_worth, "{demand:?}");
    }
    let without = Demand {
        ceilings: NO_LIMITS,
        limits: NO_LIMITS,
        ..demand(900, 900, (900, 900))
    };
    assert!(!without.is_worth_sharing());
}

/// Else it would leave its part, take all, and come back.
#[test]
fn what_a_small_part_is_used_up_by_is_worth_sharing() {
    let part = Ceilings {
        in_flight: Some(1),
        per_minute: Some(24),
    };
    for (in_flight, sent, is_worth) in [(0, 5, false), (1, 0, true), (0, 6, true)] {
        let small = Demand {
            limits: part,
            ..demand(in_flight, sent, (0, 0))
        };
        assert_eq!(small.is_worth_sharing(), is_worth, "{small:?}");
    }
}

#[test]
fn what_waits_is_wanted_of_what_it_waits_for_and_never_more_than_the_ceiling() {
    let wanted = |in_flight, per_minute| Ceilings {
        in_flight: Some(in_flight),
        per_minute: Some(per_minute),
    };
    assert_eq!(demand(2, 20, (3, 0)).wanted(), wanted(5, 20));
    assert_eq!(demand(2, 20, (0, 30)).wanted(), wanted(2, 50));
    let all = demand(2, 20, (usize::MAX, usize::MAX));
    assert_eq!(all.wanted(), wanted(8, 120));
    let one = Demand {
        ceilings: Ceilings {
            in_flight: None,
            ..SERVICE
        },
        ..demand(2, 20, (0, 0))
    };
    assert_eq!(one.wanted().in_flight, None);
    assert_eq!(demand(2, 20, (3, 0)).counted(), wanted(0, 20));
    assert_eq!(demand(2, 200, (3, 0)).counted(), wanted(0, 120));
}
