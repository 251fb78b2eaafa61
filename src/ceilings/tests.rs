use super::{Ceilings, Demand};

const SERVICE: Ceilings = Ceilings {
    in_flight: Some(8),
    per_minute: Some(120),
};

fn demand(in_flight: usize, sent: usize, waiting: usize) -> Demand {
    Demand {
        ceilings: SERVICE,
        in_flight,
        sent,
        waiting,
    }
}

#[test]
fn a_machine_that_uses_little_asks_no_other() {
    let rows = [
        (demand(0, 0, 0), false),
        (demand(3, 29, 0), false),
        (demand(4, 0, 0), true),
        (demand(0, 30, 0), true),
        (demand(0, 0, 1), true),
    ];
    for (demand, is_worth) in rows {
        assert_eq!(demand.is_worth_sharing(), is_worth, "{demand:?}");
    }
    let without = Demand {
        ceilings: Ceilings::default(),
        ..demand(900, 900, 900)
    };
    assert!(!without.is_worth_sharing());
}

#[test]
fn what_waits_is_wanted_too_and_never_more_than_the_ceiling() {
    let wanted = |in_flight, per_minute| Ceilings {
        in_flight: Some(in_flight),
        per_minute: Some(per_minute),
    };
    assert_eq!(demand(2, 20, 3).wanted(), wanted(5, 23));
    assert_eq!(demand(2, 20, usize::MAX).wanted(), wanted(8, 120));
    let one = Demand {
        ceilings: Ceilings {
            in_flight: None,
            ..SERVICE
        },
        ..demand(2, 20, 0)
    };
    assert_eq!(one.wanted().in_flight, None);
}
