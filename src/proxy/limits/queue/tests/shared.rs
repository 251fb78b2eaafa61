//! What other machines leave of the service's ceilings, and what this one uses of them.

use super::rules::{NONE, goes, granted, waits};
use super::*;
use crate::ceilings::Ceilings;
use crate::proxy::limits::queue::adaptive_limits::Busy;

fn share(in_flight: usize, per_minute: usize) -> Ceilings {
    Ceilings {
        in_flight: Some(in_flight),
        per_minute: Some(per_minute),
    }
}

/// A price would be in doubt. Nor does such a stream hold back an app's request.
#[test]
fn no_stream_is_given_up_for_what_other_machines_leave_and_none_takes_a_place_of_it() {
    let mut desk = Scheduler::new(&shaping(2, 0));
    let drained = goes(&mut desk, s(0));
    desk.drains(drained);
    desk.share(share(1, 9), s(10));
    goes(&mut desk, s(0));
    waits(&mut desk, "a", Priority::First);
    assert_eq!(desk.due(s(0)), Due::default(), "one is read already");
    assert_eq!(desk.due(s(10)).displaced, [drained], "its own limit");
}

#[test]
fn as_many_streams_are_given_up_as_requests_may_go_below_the_share() {
    let mut desk = Scheduler::new(&shaping(4, 0));
    let drained: Vec<SlotNo> = (0..3).map(|_| goes(&mut desk, s(0))).collect();
    drained.iter().for_each(|slot| desk.drains(*slot));
    desk.share(share(2, 9), s(10));
    goes(&mut desk, s(0));
    for _ in 0..3 {
        waits(&mut desk, "a", Priority::First);
    }
    assert_eq!(desk.due(s(0)).displaced, drained[..1]);
    assert_eq!(desk.due(s(0)).displaced, NONE);
    desk.end(drained[0], s(1));
    assert_eq!(granted(&mut desk, s(1)).len(), 1);
    assert_eq!(desk.due(s(1)), Due::default());
}

/// What the service answered one machine is no wish for a larger part of the minute.
#[test]
fn requests_that_wait_for_the_end_of_a_pause_do_not_wait_for_the_minute() {
    let mut desk = Scheduler::new(&shaping(8, 40));
    let slot = goes(&mut desk, s(0));
    let busy = Busy {
        asked: Some(Duration::from_secs(30)),
        names_rate: true,
    };
    desk.busy(slot, s(1), busy);
    desk.end(slot, s(1));
    waits(&mut desk, "a", Priority::First);
    assert_eq!(desk.demand(s(40)).waiting_for_time, 0);
}

/// Else more than was refused would go at once when the share is over.
#[test]
fn a_lowered_limit_does_not_grow_by_what_is_served_below_a_share() {
    let mut desk = Scheduler::new(&shaping(8, 0));
    let held: Vec<SlotNo> = (0..8).map(|_| goes(&mut desk, s(0))).collect();
    let busy = Busy {
        asked: None,
        names_rate: false,
    };
    desk.busy(held[0], s(1), busy);
    assert_eq!(desk.ceilings().in_flight(), Some(4));
    desk.share(share(2, 1), s(100));
    (0..100).for_each(|_| desk.served(s(2)));
    desk.due(s(100));
    assert_eq!(desk.ceilings().in_flight(), Some(4));
}

/// What was too much beside others is not too much without them.
#[test]
fn what_was_lowered_below_a_share_comes_back_a_minute_later_once_the_share_is_over() {
    let lowered_at_one = |is_shared: bool| {
        let mut desk = Scheduler::new(&shaping(8, 40));
        if is_shared {
            desk.share(share(2, 9), s(50));
        }
        let slot = goes(&mut desk, s(0));
        let busy = Busy {
            asked: None,
            names_rate: true,
        };
        desk.busy(slot, s(1), busy);
        desk
    };
    let limits = |desk: &mut Scheduler, at: Duration| {
        desk.due(at);
        (desk.ceilings().in_flight(), desk.ceilings().per_minute())
    };
    let mut desk = lowered_at_one(true);
    assert_eq!(limits(&mut desk, s(60)), (Some(1), Some(1)));
    assert_eq!(limits(&mut desk, s(61)), (Some(8), Some(40)));
    let mut desk = lowered_at_one(true);
    desk.share(share(7, 40), s(100));
    assert_eq!(limits(&mut desk, s(61)), (Some(1), Some(1)), "a part still");
    let mut desk = lowered_at_one(false);
    assert_eq!(limits(&mut desk, s(61)), (Some(1), Some(1)), "by itself");
}

/// Of a fleet's database that is away nothing more is heard.
#[test]
fn a_share_of_the_ceilings_holds_for_its_time_and_leaves_at_least_one() {
    let mut desk = Scheduler::new(&shaping(3, 40));
    desk.share(share(0, 2), s(10));
    let first = goes(&mut desk, s(0));
    let second = waits(&mut desk, "a", Priority::First);
    let third = waits(&mut desk, "a", Priority::First);
    let fourth = waits(&mut desk, "a", Priority::First);
    assert_eq!(granted(&mut desk, s(0)), NONE, "one at once");
    desk.end(first, s(1));
    assert_eq!(granted(&mut desk, s(1)), [second]);
    assert_eq!(desk.ceilings().per_minute(), Some(2));
    desk.share(share(9, 1), s(10));
    assert_eq!(granted(&mut desk, s(2)), NONE, "one a minute");
    assert_eq!(granted(&mut desk, s(10)), [third, fourth]);
    let limits = (desk.ceilings().in_flight(), desk.ceilings().per_minute());
    assert_eq!(limits, (Some(3), Some(40)));
}

#[test]
fn what_is_used_of_the_ceilings_is_what_is_there_and_what_the_service_may_count() {
    let mut desk = Scheduler::new(&shaping(2, 40));
    let first = goes(&mut desk, s(0));
    goes(&mut desk, s(0));
    waits(&mut desk, "a", Priority::First);
    desk.sends(first, s(0));
    desk.end(first, s(1));
    let demand = desk.demand(s(2));
    assert_eq!((demand.in_flight, demand.sent), (1, 2));
    let waiting = (demand.waiting_for_place, demand.waiting_for_time);
    assert_eq!(waiting, (0, 0), "it may go: nothing holds it");
    assert_eq!(granted(&mut desk, s(2)).len(), 1);
    waits(&mut desk, "a", Priority::First);
    let demand = desk.demand(s(2));
    let waiting = (demand.waiting_for_place, demand.waiting_for_time);
    assert_eq!(waiting, (1, 0));
    desk.share(share(8, 1), s(10));
    let demand = desk.demand(s(2));
    assert_eq!(demand.waiting_for_time, 1);
    assert_eq!(demand.limits, share(2, 1));
    assert_eq!(demand.ceilings, share(2, 40));
    assert_eq!(
        desk.demand(s(70)).sent,
        2,
        "the first is not counted any more"
    );
}
