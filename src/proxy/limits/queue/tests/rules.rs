//! The decisions, one by one.

use super::*;
use crate::proxy::limits::queue::adaptive_limits::{Busy, PAUSE_MAX};
use crate::proxy::limits::queue::line::{RoundRobin, Ticket};
use crate::proxy::limits::queue::rate_window::{RateWindow, WINDOW};

/// No request.
pub(super) const NONE: [u64; 0] = [];

/// Enters, and is let go at once.
pub(super) fn goes(desk: &mut Scheduler, now: Duration) -> SlotNo {
    match desk.enter(now, &app("a"), Priority::First, FAR).0 {
        Entered::Goes(slot) => slot,
        other => panic!("{other:?}"),
    }
}

pub(super) fn waits(desk: &mut Scheduler, name: &str, turn: Priority) -> TicketNo {
    match desk.enter(s(0), &app(name), turn, FAR).0 {
        Entered::Waits(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

pub(super) fn granted(desk: &mut Scheduler, now: Duration) -> Vec<TicketNo> {
    let due = desk.due(now);
    due.granted.iter().map(|granted| granted.ticket).collect()
}

/// Frees one place after the other and returns the requests that got them.
fn order(desk: &mut Scheduler, mut held: SlotNo) -> Vec<TicketNo> {
    let mut order = Vec::new();
    loop {
        desk.end(held, s(0));
        let Due { granted, .. } = desk.due(s(0));
        let [Granted { ticket, slot }] = granted[..] else {
            assert!(granted.is_empty());
            return order;
        };
        order.push(ticket);
        held = slot;
    }
}

#[test]
fn as_many_go_at_once_as_there_are_places() {
    let mut desk = Scheduler::new(&shaping(3, 0));
    let first = goes(&mut desk, s(0));
    goes(&mut desk, s(0));
    goes(&mut desk, s(0));
    let fourth = waits(&mut desk, "a", Priority::First);
    assert_eq!(granted(&mut desk, s(0)), NONE);
    desk.end(first, s(0));
    assert_eq!(granted(&mut desk, s(0)), [fourth]);
    assert_eq!((desk.in_flight(), desk.waiting()), (3, 0));
}

#[test]
fn apps_take_turns_and_within_an_app_the_first_goes_first() {
    let mut desk = Scheduler::new(&shaping(1, 0));
    let held = goes(&mut desk, s(0));
    let many: Vec<_> = (0..400)
        .map(|_| waits(&mut desk, "many", Priority::First))
        .collect();
    let one = waits(&mut desk, "one", Priority::First);
    let two: Vec<_> = (0..2)
        .map(|_| waits(&mut desk, "two", Priority::First))
        .collect();
    let order = order(&mut desk, held);
    assert_eq!(order[..5], [many[0], one, two[0], many[1], two[1]]);
    assert_eq!(order[5..], many[2..]);
}

#[test]
fn a_retry_goes_before_what_its_app_never_tried_and_not_before_other_apps() {
    let mut desk = Scheduler::new(&shaping(1, 0));
    let held = goes(&mut desk, s(0));
    let first = waits(&mut desk, "a", Priority::First);
    let other = waits(&mut desk, "b", Priority::First);
    let retry = waits(&mut desk, "a", Priority::Again);
    let later_retry = waits(&mut desk, "a", Priority::Again);
    assert_eq!(order(&mut desk, held), [retry, other, later_retry, first]);
}

#[test]
fn a_request_that_leaves_or_runs_out_of_time_takes_no_place() {
    let mut desk = Scheduler::new(&shaping(1, 0));
    let held = goes(&mut desk, s(0));
    let leaves = waits(&mut desk, "a", Priority::First);
    let stays = waits(&mut desk, "a", Priority::First);
    let (late, _) = desk.enter(s(0), &app("b"), Priority::First, s(5));
    desk.leave(leaves);
    assert_eq!(desk.next_at(s(0)), Some(s(5)));
    assert_eq!(desk.expired(s(4)), NONE);
    assert_eq!(
        vec![late],
        desk.expired(s(5))
            .into_iter()
            .map(Entered::Waits)
            .collect::<Vec<_>>()
    );
    assert_eq!(order(&mut desk, held), [stays]);
}

#[test]
fn a_full_line_has_room_for_an_app_with_less_than_the_longest() {
    let mut desk = Scheduler::new(&Shaping {
        queue_max: 4,
        ..shaping(1, 0)
    });
    let held = goes(&mut desk, s(0));
    let hog: Vec<_> = (0..4)
        .map(|_| waits(&mut desk, "hog", Priority::First))
        .collect();
    let enter = |desk: &mut Scheduler, name| desk.enter(s(0), &app(name), Priority::First, FAR);
    assert_eq!(enter(&mut desk, "hog"), (Entered::Full, None));
    let (Entered::Waits(one), Some(gone)) = enter(&mut desk, "one") else {
        panic!("no room was made");
    };
    assert_eq!(gone, hog[3]);
    let (Entered::Waits(two), Some(gone)) = enter(&mut desk, "one") else {
        panic!("no room was made");
    };
    assert_eq!(gone, hog[2]);
    // Two and two: neither app has more than the other would have.
    assert_eq!(enter(&mut desk, "one"), (Entered::Full, None));
    // A retry was let in once already.
    let retry = waits(&mut desk, "hog", Priority::Again);
    assert_eq!(order(&mut desk, held), [retry, one, hog[0], two, hog[1]]);
}

#[test]
fn the_window_says_when_the_nth_from_now_can_go_at_the_earliest() {
    let after = |seconds: u64, minutes: u32| {
        s(seconds) + (WINDOW + Duration::from_nanos(1)).saturating_mul(minutes)
    };
    let mut pace = RateWindow::default();
    for nth in [0, 1, 2] {
        assert_eq!(pace.earliest(s(9), 3, nth), s(9), "nothing was sent");
    }
    assert_eq!(pace.earliest(s(9), 3, 3), after(9, 1));
    assert_eq!(pace.earliest(s(9), 3, 8), after(9, 2));
    // Two have arrived, one is on its way.
    (0..3).for_each(|_| pace.let_go());
    pace.arrived(s(2), Some(3));
    pace.arrived(s(5), Some(3));
    let rows = [
        (0, after(2, 1)),
        (1, after(5, 1)),
        (2, after(9, 1)),
        (3, after(2, 2)),
        (8, after(9, 3)),
    ];
    for (nth, at) in rows {
        assert_eq!(pace.earliest(s(9), 3, nth), at, "{nth}");
    }
    assert_eq!(pace.earliest(s(9), 4, 0), s(9), "one place is left");
    assert_eq!(pace.earliest(s(9), 4, 1), after(2, 1));
    // A lower ceiling than what was sent.
    assert_eq!(pace.earliest(s(9), 2, 0), after(5, 1));
    assert_eq!(pace.earliest(s(9), 2, 1), after(9, 1));
    assert_eq!(pace.earliest(s(9), 2, 2), after(5, 2));
}

#[test]
fn requests_of_a_burst_that_can_have_no_place_in_time_are_refused_at_once() {
    let mut desk = Scheduler::new(&shaping(8, 120));
    let mut became = [0; 3];
    let mut earliest = None;
    for number in 0..300_u64 {
        // They come within a second.
        let now = Duration::from_millis(number * 3);
        let deadline = now + s(90);
        let which = match desk.enter(now, &app("a"), Priority::First, deadline).0 {
            Entered::Goes(_) => 0,
            Entered::Waits(_) => 1,
            Entered::TooLate(at) => {
                earliest.get_or_insert(at);
                2
            }
            other => panic!("{other:?}"),
        };
        became[which] += 1;
    }
    assert_eq!(became, [8, 232, 60]);
    let earliest = earliest.expect("one of them");
    assert!(earliest >= s(122) && earliest < s(123), "{earliest:?}");
    // Another app has its turn after one of theirs.
    let (entered, _) = desk.enter(s(1), &app("b"), Priority::First, s(91));
    assert!(matches!(entered, Entered::Waits(_)), "{entered:?}");
    // With an hour's patience they wait.
    let (entered, _) = desk.enter(s(1), &app("a"), Priority::First, s(3_600));
    assert!(matches!(entered, Entered::Waits(_)), "{entered:?}");
}

#[test]
fn less_patience_than_the_window_is_refused_at_once_and_more_waits() {
    let mut desk = Scheduler::new(&shaping(0, 1));
    let first = goes(&mut desk, s(0));
    desk.sends(first, s(0));
    desk.arrived(first, s(0));
    let free = WINDOW + Duration::from_nanos(1);
    let enter =
        |desk: &mut Scheduler, deadline| desk.enter(s(30), &app("a"), Priority::First, deadline).0;
    assert_eq!(enter(&mut desk, s(60)), Entered::TooLate(free));
    assert_eq!(enter(&mut desk, WINDOW), Entered::TooLate(free));
    assert!(matches!(enter(&mut desk, free), Entered::Waits(_)));
}

/// Those ahead may stand there for a place, and then their minute is not used.
#[test]
fn a_request_ahead_that_gives_up_takes_nothing_of_the_window() {
    let mut desk = Scheduler::new(&shaping(1, 2));
    goes(&mut desk, s(0));
    let enter = |desk: &mut Scheduler, now, deadline| {
        desk.enter(now, &app("a"), Priority::First, deadline).0
    };
    for _ in 0..3 {
        assert!(matches!(enter(&mut desk, s(0), s(90)), Entered::Waits(_)));
    }
    assert!(matches!(enter(&mut desk, s(0), s(90)), Entered::TooLate(_)));
    assert!(matches!(enter(&mut desk, s(0), s(94)), Entered::TooLate(_)));
    assert!(matches!(enter(&mut desk, s(5), s(95)), Entered::Waits(_)));
}

#[test]
fn a_limit_that_was_lowered_may_be_raised_again_and_refuses_no_request_at_once() {
    let mut desk = Scheduler::new(&shaping(0, 8));
    let slots: Vec<_> = (0..4).map(|_| goes(&mut desk, s(0))).collect();
    for slot in &slots {
        desk.sends(*slot, s(0));
        desk.arrived(*slot, s(0));
    }
    let busy = Busy {
        asked: None,
        names_rate: true,
    };
    desk.busy(slots[0], s(0), busy);
    assert_eq!(desk.ceilings().per_minute(), Some(3));
    let entered = desk.enter(s(1), &app("a"), Priority::First, s(10)).0;
    assert!(matches!(entered, Entered::Waits(_)), "{entered:?}");
}

#[test]
fn the_requests_ahead_follow_from_the_order_of_turns() {
    let mut line = RoundRobin::default();
    let mut no = 0;
    let mut push = |line: &mut RoundRobin, name: &str, turn| {
        no += 1;
        line.push(&app(name), turn, Ticket { no, deadline: FAR });
    };
    for (name, turn, times) in [
        ("a", Priority::First, 4),
        ("b", Priority::First, 2),
        ("b", Priority::Again, 1),
        ("c", Priority::First, 1),
    ] {
        (0..times).for_each(|_| push(&mut line, name, turn));
    }
    for (name, turn) in [
        ("a", Priority::First),
        ("a", Priority::Again),
        ("b", Priority::First),
        ("b", Priority::Again),
        ("c", Priority::First),
        ("new", Priority::First),
    ] {
        let ahead = line.ahead(&app(name), turn, |_| true);
        // As it turns out.
        let mut lived = RoundRobin::default();
        for (name, turn, times) in [
            ("a", Priority::First, 4),
            ("b", Priority::First, 2),
            ("b", Priority::Again, 1),
            ("c", Priority::First, 1),
        ] {
            (0..times).for_each(|_| push(&mut lived, name, turn));
        }
        let own = Ticket {
            no: 0,
            deadline: FAR,
        };
        lived.push(&app(name), turn, own);
        let mut popped = 0;
        while lived.pop().expect("it has its turn").no != 0 {
            popped += 1;
        }
        assert_eq!(ahead, popped, "{name} {turn:?}");
    }
}

#[test]
fn no_request_waits_once_the_queue_is_closed() {
    let mut desk = Scheduler::new(&shaping(1, 0));
    let held = goes(&mut desk, s(0));
    waits(&mut desk, "a", Priority::First);
    desk.close();
    assert_eq!(desk.waiting(), 0);
    assert_eq!(
        desk.enter(s(0), &app("a"), Priority::First, FAR).0,
        Entered::Closed
    );
    desk.end(held, s(0));
    goes(&mut desk, s(0));
}

#[test]
fn a_request_counts_from_its_leaving_to_a_minute_after_its_arrival() {
    let mut desk = Scheduler::new(&shaping(0, 2));
    let slow = goes(&mut desk, s(0));
    let quick = goes(&mut desk, s(0));
    for slot in [slow, quick] {
        desk.sends(slot, s(0));
    }
    desk.arrived(quick, s(1));
    desk.end(quick, s(2));
    let third = waits(&mut desk, "a", Priority::First);
    let fourth = waits(&mut desk, "a", Priority::First);
    // The one that arrived at 1 counts for the whole of its minute.
    assert_eq!(granted(&mut desk, s(1) + WINDOW), NONE);
    let after = s(1) + WINDOW + Duration::from_nanos(1);
    assert_eq!(desk.opens_at(s(2)), Some(after));
    assert_eq!(granted(&mut desk, after), [third]);
    // The slow one has not arrived yet, so it counts on.
    assert_eq!(granted(&mut desk, s(500)), NONE);
    desk.arrived(slow, s(500));
    assert_eq!(granted(&mut desk, s(500) + WINDOW), NONE);
    assert_eq!(granted(&mut desk, s(501) + WINDOW), [fourth]);
}

#[test]
fn what_was_never_sent_counts_nothing() {
    let mut desk = Scheduler::new(&shaping(0, 1));
    let refused = goes(&mut desk, s(0));
    desk.sends(refused, s(0));
    desk.not_sent(refused);
    desk.end(refused, s(0));
    let unused = goes(&mut desk, s(0));
    desk.end(unused, s(0));
    let cut = goes(&mut desk, s(0));
    desk.sends(cut, s(0));
    desk.end(cut, s(0));
    waits(&mut desk, "a", Priority::First);
    assert_eq!(granted(&mut desk, s(0)), NONE);
}

#[test]
fn the_oldest_drain_makes_room_when_only_a_place_is_missing() {
    let mut desk = Scheduler::new(&shaping(3, 5));
    let slots: Vec<_> = (0..3).map(|_| goes(&mut desk, s(0))).collect();
    desk.drains(slots[1]);
    desk.drains(slots[0]);
    assert_eq!(desk.due(s(0)).displaced, NONE, "nobody waits");
    waits(&mut desk, "a", Priority::First);
    assert_eq!(desk.due(s(0)).displaced, [slots[1]]);
    assert_eq!(desk.due(s(0)).displaced, NONE, "one is ending already");
    waits(&mut desk, "a", Priority::First);
    assert_eq!(desk.due(s(0)).displaced, [slots[0]]);
    waits(&mut desk, "a", Priority::First);
    assert_eq!(desk.due(s(0)).displaced, NONE, "the third is no drain");
    desk.end(slots[1], s(0));
    desk.end(slots[0], s(0));
    let due = desk.due(s(0));
    assert_eq!((due.granted.len(), due.displaced), (2, vec![]));
}

#[test]
fn a_drain_stays_while_the_rate_or_a_pause_is_what_is_waited_for() {
    let mut desk = Scheduler::new(&shaping(1, 1));
    let held = goes(&mut desk, s(0));
    desk.drains(held);
    waits(&mut desk, "a", Priority::First);
    assert_eq!(desk.due(s(0)).displaced, NONE, "the rate lacks, too");

    let mut desk = Scheduler::new(&shaping(1, 0));
    let held = goes(&mut desk, s(0));
    desk.busy(
        held,
        s(0),
        Busy {
            asked: Some(s(5)),
            names_rate: false,
        },
    );
    desk.drains(held);
    waits(&mut desk, "a", Priority::First);
    assert_eq!(desk.due(s(4)).displaced, NONE);
    assert_eq!(desk.due(s(5)).displaced, [held]);
}

#[test]
fn a_drain_that_somebody_reads_again_stays() {
    let mut desk = Scheduler::new(&shaping(1, 0));
    let held = goes(&mut desk, s(0));
    desk.drains(held);
    desk.drains_no_more(held);
    waits(&mut desk, "a", Priority::First);
    assert_eq!(desk.due(s(0)).displaced, NONE);
}

#[test]
fn a_429_halves_what_goes_at_once_once_for_one_overload() {
    let mut desk = Scheduler::new(&shaping(8, 0));
    let slots: Vec<_> = (0..8).map(|_| goes(&mut desk, s(0))).collect();
    let busy = Busy {
        asked: Some(s(5)),
        names_rate: false,
    };
    for slot in &slots {
        desk.busy(*slot, s(1), busy);
        desk.end(*slot, s(1));
    }
    assert_eq!(desk.ceilings().in_flight(), Some(4));
    let (entered, _) = desk.enter(s(2), &app("a"), Priority::First, FAR);
    assert!(
        matches!(entered, Entered::Waits(_)),
        "a pause holds all: {entered:?}"
    );
    assert_eq!(granted(&mut desk, Duration::from_millis(5_999)), NONE);
    assert_eq!(granted(&mut desk, s(6)).len(), 1);
    let slot = goes(&mut desk, s(6));
    desk.busy(slot, s(7), busy);
    assert_eq!(desk.ceilings().in_flight(), Some(1), "two were in flight");
}

#[test]
fn limits_grow_again_with_what_is_served_up_to_their_ceilings() {
    let mut desk = Scheduler::new(&shaping(4, 8));
    let slots: Vec<_> = (0..4).map(|_| goes(&mut desk, s(0))).collect();
    for slot in &slots {
        desk.sends(*slot, s(0));
        desk.arrived(*slot, s(0));
    }
    desk.busy(
        slots[0],
        s(0),
        Busy {
            asked: Some(s(15)),
            names_rate: false,
        },
    );
    let now = |desk: &Scheduler| (desk.ceilings().in_flight(), desk.ceilings().per_minute());
    assert_eq!(now(&desk), (Some(2), Some(3)), "15 s are the rate's");
    desk.served(s(1));
    assert_eq!(now(&desk).0, Some(2));
    desk.served(s(1));
    assert_eq!(now(&desk).0, Some(3));
    for _ in 0..3 {
        desk.served(s(1));
    }
    assert_eq!(now(&desk).0, Some(4));
    for _ in 0..45 {
        desk.served(s(1));
    }
    assert_eq!(now(&desk), (Some(4), Some(8)));
    for _ in 0..100 {
        desk.served(s(1));
    }
    assert_eq!(now(&desk), (Some(4), Some(8)), "never above the ceilings");
}

#[test]
fn a_limit_is_at_least_one_and_is_forgotten_after_ten_quiet_minutes() {
    let mut desk = Scheduler::new(&shaping(8, 120));
    for second in 0..5 {
        let slot = goes(&mut desk, s(second));
        desk.busy(
            slot,
            s(second),
            Busy {
                asked: None,
                names_rate: true,
            },
        );
        desk.end(slot, s(second));
    }
    let now = |desk: &Scheduler| (desk.ceilings().in_flight(), desk.ceilings().per_minute());
    assert_eq!(now(&desk), (Some(1), Some(1)));
    desk.due(s(603));
    assert_eq!(now(&desk), (Some(1), Some(1)));
    desk.due(s(604));
    assert_eq!(now(&desk), (Some(8), Some(120)));
}

#[test]
fn the_longest_pause_holds_and_none_is_longer_than_a_minute() {
    let mut desk = Scheduler::new(&shaping(0, 0));
    let slot = goes(&mut desk, s(0));
    let busy = |asked| Busy {
        asked: Some(s(asked)),
        names_rate: false,
    };
    desk.busy(slot, s(0), busy(20));
    desk.busy(slot, s(0), busy(3));
    assert_eq!(desk.opens_at(s(0)), Some(s(20)));
    desk.busy(slot, s(0), busy(86_400));
    assert_eq!(desk.opens_at(s(0)), Some(PAUSE_MAX));
}

#[test]
fn new_ceilings_hold_at_once_and_a_lowered_limit_stays_low() {
    let mut desk = Scheduler::new(&shaping(8, 0));
    let slots: Vec<_> = (0..8).map(|_| goes(&mut desk, s(0))).collect();
    waits(&mut desk, "a", Priority::First);
    desk.reconfigure(&shaping(9, 0));
    assert_eq!(granted(&mut desk, s(0)).len(), 1);
    desk.busy(
        slots[0],
        s(0),
        Busy {
            asked: None,
            names_rate: false,
        },
    );
    assert_eq!(desk.ceilings().in_flight(), Some(4));
    desk.reconfigure(&shaping(20, 0));
    assert_eq!(desk.ceilings().in_flight(), Some(4));
    desk.reconfigure(&shaping(2, 0));
    assert_eq!(desk.ceilings().in_flight(), Some(2));
    desk.reconfigure(&shaping(0, 0));
    assert_eq!(desk.ceilings().in_flight(), None);
}
