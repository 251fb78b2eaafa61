//! Caps that many machines share, as one of them obeys them.

use super::*;
use crate::caps::engine::shared::{Call, Errand, Heard, Round, Slice};
use crate::caps::leases::{
    GiveBack, GiveBackAnswer, Grant, Held, Lease, LeaseAnswer, LeaseAsk, LeaseTotals, LiveLease,
    SharedCap,
};
use crate::caps::refused::SharedWhy;
use crate::ledger::entry::LeaseId;
use crate::ledger::totals::MicroUsdSum;

mod ahead;
mod changed;
mod model;
mod world;

const TEAM: &str = "team";

/// The window of the tests: the hour of [`NOON`].
fn window() -> Window {
    Window::of(Period::Hour, NOON, &TimeZone::UTC)
}

fn totals(granted: u64, given_back: u64, give_back_number: u32) -> LeaseTotals {
    LeaseTotals {
        granted: usd(granted),
        given_back: usd(given_back),
        give_back_number,
    }
}

fn live(lease: u128, totals: LeaseTotals, ends_in_ms: u64) -> LiveLease {
    LiveLease {
        lease: Lease {
            lease: Uuid::from_u128(lease),
            cap: TEAM.to_owned(),
            window: window(),
            totals,
        },
        begins_in_ms: 0,
        ends_in_ms,
        billed: MicroUsdSum::default(),
    }
}

fn order(limit: u64) -> SharedCap {
    SharedCap {
        cap: TEAM.to_owned(),
        period: Period::Hour,
        zone: "UTC".to_owned(),
        limit: usd(limit),
        charged: MicroUsdSum::default(),
        window: window(),
        largest: None,
        ahead_windows: 0,
        ahead: MicroUsd::ZERO,
    }
}

fn granted(lease: u128, amount: u64, totals: LeaseTotals) -> LeaseAnswer {
    LeaseAnswer::Granted(Grant {
        lease: live(lease, totals, HOUR),
        amount: usd(amount),
        left: MicroUsd::ZERO,
        limit: usd(10_000),
    })
}

/// A bursar below one shared cap, of which nothing is leased, whose database is there.
fn obeying() -> Bench {
    let mut bench = Bench::new(rules(Limits::default(), &[], 0));
    let names = [TEAM.to_owned()];
    bench.engine.shared.obey(&names, false, Vec::new(), false);
    bench.presents(&[]);
    bench
}

impl Bench {
    fn errand(&mut self, request: u128, round: Round) -> Option<Errand> {
        self.engine.errand(Uuid::from_u128(request), round)
    }

    fn hears(&mut self, heard: &Heard) {
        let up_ms = self.engine.shared.up_ms();
        let call = Call {
            began_up_ms: up_ms,
            ended_up_ms: up_ms,
        };
        let promised = self.engine.shared.slices_after(heard, call);
        self.engine.shared.hear(heard, call);
        assert_eq!(
            self.engine.shared.slices(),
            promised,
            "as it is on the disk"
        );
        let answers = self.engine.serve(self.now_ms);
        self.send(answers);
    }

    fn presents(&mut self, leases: &[LiveLease]) -> Vec<Lease> {
        let Some(Errand::Present(presented)) = self.errand(0, Round::Ask) else {
            panic!("it presents what it holds first");
        };
        self.hears(&Heard::Held(Held {
            is_paused: false,
            caps: vec![order(10_000)],
            leases: leases.to_vec(),
        }));
        presented
    }

    fn asks_for(&mut self, request: u128) -> LeaseAsk {
        match self.errand(request, Round::Ask) {
            Some(Errand::Ask(ask)) => ask,
            other => panic!("{other:?}"),
        }
    }

    fn is_answered(&mut self, answer: LeaseAnswer) {
        let cap = TEAM.to_owned();
        self.hears(&Heard::Answer { cap, answer });
    }

    /// Leases an amount, as the first request needs it.
    fn leases(&mut self, amount: u64) {
        let Became::Waits(entry) = self.ask("a") else {
            panic!("nothing is leased");
        };
        self.asks_for(1);
        self.is_answered(granted(7, amount, totals(amount, 0, 0)));
        assert!(matches!(self.became(entry), Became::Admitted(..)));
        self.settle_on(entry, 10);
    }

    fn leases_of(&self, entry: EntryId) -> Vec<u128> {
        let flight = &self.engine.flights[&entry];
        flight
            .leases
            .iter()
            .map(|lease| lease.0.as_u128())
            .collect()
    }

    /// Ends a request, on the leases that it names.
    fn settle_on(&mut self, entry: EntryId, price: u64) {
        self.ends_on(entry, State::Settled { billed: usd(price) });
    }

    fn ends_on(&mut self, entry: EntryId, state: State) {
        let flight = self.engine.flights[&entry].clone();
        let charged = Charged {
            leases: flight.leases,
            ..charged(
                entry,
                "a",
                Operation::Chat,
                flight.at_ms,
                state,
                flight.reserved,
                100,
            )
        };
        self.engine.update(&UsageUpdate::Records(vec![charged]));
        self.engine.release(entry, FlightEnd::Settled(state));
        let answers = self.engine.serve(self.now_ms);
        self.send(answers);
    }

    fn refuses(&mut self) -> SharedWhy {
        let asks = self.asks("a", Operation::Chat);
        let entry = asks.entry;
        let (way, mut decision) = oneshot::channel();
        let answers = self.engine.ask(asks, way, self.now_ms);
        self.send(answers);
        match decision.try_recv() {
            Ok(Err(Refused::Shared(refusal))) => refusal.why,
            other => panic!("{entry}: {other:?}"),
        }
    }

    fn counted(&self, lease: u128) -> (u128, u128) {
        let charge = self
            .engine
            .counts()
            .of_lease(LeaseId(Uuid::from_u128(lease)));
        (charge.billed.get(), charge.held.now())
    }

    fn pass(&mut self, ms: u64) {
        let up_ms = self.engine.shared.up_ms() + ms;
        self.engine.shared.at(up_ms);
        self.now_ms += ms;
        let answers = self.engine.serve(self.now_ms);
        self.send(answers);
    }
}

#[test]
fn a_request_without_a_slice_waits_for_the_database_and_names_what_it_was_leased() {
    let mut bench = obeying();
    let Became::Waits(entry) = bench.ask("a") else {
        panic!("nothing is leased");
    };
    assert!(bench.engine.shared.take_wanted(), "the shell is woken");
    assert!(bench.engine.waits_for_lease(entry, NOON).is_some());
    let ask = bench.asks_for(1);
    assert_eq!((ask.want, ask.least, ask.ahead), (usd(1), usd(1), 0));
    bench.is_answered(granted(7, 1, totals(1, 0, 0)));
    assert!(matches!(bench.became(entry), Became::Admitted(..)));
    assert_eq!(bench.leases_of(entry), [7]);
    // It cost more than was leased: that is the one request by which a holder may exceed it.
    bench.settle_on(entry, 40);
    assert_eq!(bench.counted(7), (40, 0));
    let Became::Waits(_) = bench.ask("a") else {
        panic!("its slice is used up");
    };
    let ask = bench.asks_for(2);
    assert_eq!(
        ask.want,
        usd(39 + 16 * 40),
        "what is owed, and 16 of the dearest"
    );
    assert_eq!(ask.least, usd(39 + 40), "one goes");
}

#[test]
fn what_the_slice_has_room_for_waits_for_nobody() {
    let mut bench = obeying();
    bench.leases(1_000);
    bench.engine.shared.away();
    for _ in 0..24 {
        let (entry, _) = bench.admitted("a");
        assert_eq!(bench.leases_of(entry), [7]);
        assert!(bench.engine.waits_for_lease(entry, NOON).is_none());
        bench.settle_on(entry, 40);
    }
    // 970 are taken: one goes alone, and the next finds it used up.
    let (last, _) = bench.admitted("a");
    assert!(
        matches!(bench.ask("a"), Became::Waits(_)),
        "for the one under way"
    );
    bench.settle_on(last, 40);
    assert_eq!(bench.refuses(), SharedWhy::Away);
}

#[test]
fn a_used_up_slice_is_answered_by_what_the_database_last_said() {
    for (answer, why) in [
        (
            LeaseAnswer::Empty {
                may_return: false,
                limit: usd(5),
            },
            SharedWhy::Reached,
        ),
        (
            LeaseAnswer::Empty {
                may_return: true,
                limit: usd(5),
            },
            SharedWhy::Busy,
        ),
        (LeaseAnswer::Share { limit: usd(5) }, SharedWhy::Share),
        (LeaseAnswer::NoCap, SharedWhy::NoCap),
        (LeaseAnswer::Paused, SharedWhy::Paused),
    ] {
        let mut bench = obeying();
        let Became::Waits(entry) = bench.ask("a") else {
            panic!("nothing is leased");
        };
        bench.asks_for(1);
        bench.is_answered(answer.clone());
        let Became::Refused(text) = bench.became(entry) else {
            panic!("{answer:?}");
        };
        assert!(
            text.contains(TEAM) && text.contains("Nothing was sent"),
            "{text}"
        );
        assert_eq!(bench.refuses(), why);
        let shown = bench.engine.view(NOON).shared.remove(0);
        let reached = matches!(why, SharedWhy::Reached | SharedWhy::Share);
        assert_eq!((shown.refusals, shown.reached), (2, 2 * u64::from(reached)));
        assert_eq!(
            bench.errand(2, Round::Ask),
            None,
            "it is not asked for each request"
        );
        if answer == LeaseAnswer::Paused {
            continue;
        }
        // The word does not hold for ever.
        bench.pass(5_000);
        assert!(matches!(bench.ask("a"), Became::Waits(_)));
        assert_eq!(bench.asks_for(3).request, Uuid::from_u128(3));
    }
}

#[test]
fn without_a_database_what_is_held_is_spent_and_then_nothing() {
    let mut bench = obeying();
    let Became::Waits(entry) = bench.ask("a") else {
        panic!("nothing is leased");
    };
    bench.engine.shared.away();
    let answers = bench.engine.serve(NOON);
    bench.send(answers);
    let Became::Refused(text) = bench.became(entry) else {
        panic!("it waits for nobody");
    };
    assert!(text.contains("cannot be asked"), "{text}");
    assert!(
        bench.engine.shared.is_lacking(),
        "and is asked for as soon as it is back"
    );
}

#[test]
fn a_wish_whose_answer_was_lost_is_made_again_under_its_name() {
    let mut bench = obeying();
    assert!(matches!(bench.ask("a"), Became::Waits(_)));
    let first = bench.asks_for(1);
    assert!(matches!(bench.ask("a"), Became::Waits(_)));
    assert_eq!(bench.asks_for(2), first);
    bench.is_answered(granted(7, 1, totals(1, 0, 0)));
    assert_eq!(
        bench.asks_for(3).request,
        Uuid::from_u128(3),
        "the other one's"
    );
}

#[test]
fn nothing_is_asked_for_while_one_of_no_known_price_goes_alone() {
    let mut bench = obeying();
    let Became::Waits(first) = bench.ask("a") else {
        panic!("nothing is leased");
    };
    bench.asks_for(1);
    bench.is_answered(granted(7, 1_000, totals(1_000, 0, 0)));
    assert!(matches!(bench.became(first), Became::Admitted(..)));
    let Became::Waits(second) = bench.ask("a") else {
        panic!("nobody knows what the first one costs");
    };
    assert_eq!(
        bench.errand(2, Round::Whole),
        None,
        "no lease makes that known"
    );
    assert!(bench.engine.waits_for_lease(second, NOON).is_none());
    bench.settle_on(first, 10);
    assert!(matches!(bench.became(second), Became::Admitted(..)));
}

#[test]
fn more_is_asked_for_before_the_slice_is_used_up() {
    let mut bench = obeying();
    bench.leases(160);
    bench.pass(5_000);
    bench.engine.shared.take_wanted();
    for round in 0..12_u64 {
        let (entry, _) = bench.admitted("a");
        let is_low = bench.engine.shared.take_wanted();
        assert_eq!(is_low, 10 + round * 10 + 10 > 120, "round {round}");
        bench.settle_on(entry, 10);
    }
    bench.admitted("a");
    let ask = bench.asks_for(2);
    assert!(ask.want >= usd(160 - 20), "{ask:?}");
    assert_eq!(ask.least, usd(1), "nobody waits for it");
}

#[test]
fn a_lease_ends_by_the_time_since_the_machines_start_whatever_the_wall_clock_says() {
    let mut bench = obeying();
    bench.leases(1_000);
    bench.now_ms -= 20 * HOUR;
    bench.admitted("a");
    bench.pass(HOUR - 1);
    let (late, _) = bench.admitted("a");
    bench.pass(1);
    let Became::Waits(_) = bench.ask("a") else {
        panic!("its time is over");
    };
    // What was admitted counts where it was, and the new window has all of its own.
    bench.settle_on(late, 30);
    assert_eq!(bench.counted(7), (40, 0));
    assert_eq!(bench.asks_for(9).ahead, 0);
}

#[test]
fn the_duration_of_a_call_is_taken_off_the_time_of_a_lease() {
    let mut bench = obeying();
    assert!(matches!(bench.ask("a"), Became::Waits(_)));
    bench.asks_for(1);
    let call = Call {
        began_up_ms: 1_000,
        ended_up_ms: 3_500,
    };
    let mut answer = live(7, totals(5, 0, 0), 60_000);
    let slice = Slice::of(&answer, call);
    assert_eq!((slice.begins_up_ms, slice.ends_up_ms), (0, 61_000));
    answer.begins_in_ms = 20_000;
    let ahead = Slice::of(&answer, call);
    assert_eq!((ahead.begins_up_ms, ahead.ends_up_ms), (23_500, 61_000));
    assert!(!ahead.is_current(23_499) && ahead.is_current(23_500) && !ahead.is_current(61_000));
}

#[test]
fn what_is_idle_goes_back_less_what_is_held_and_is_not_spent_meanwhile() {
    let mut bench = obeying();
    bench.leases(1_000);
    let (doubt, reserved) = bench.admitted("a");
    assert_eq!(reserved, 10);
    assert_eq!(bench.errand(2, Round::Last), None, "something is under way");
    bench.ends_on(doubt, DOUBT);
    bench.pass(59_999);
    assert_eq!(
        bench.errand(2, Round::Whole),
        None,
        "a moment of quiet is not enough"
    );
    bench.pass(1);
    assert_eq!(
        bench.errand(2, Round::Ask),
        None,
        "lines have to be shipped first"
    );
    let part = GiveBack {
        lease: Uuid::from_u128(7),
        number: 1,
        amount: usd(1_000 - 10 - 10),
        up_to_seq: 0,
    };
    assert_eq!(bench.errand(2, Round::Whole), Some(Errand::GiveBack(part)));
    // Its answer is lost, and the database away: the part is not spent, and goes back under its number.
    bench.engine.shared.away();
    assert_eq!(bench.refuses(), SharedWhy::Away);
    // More is asked for, for the one that was refused.
    bench.asks_for(3);
    bench.is_answered(LeaseAnswer::Share { limit: usd(20) });
    assert_eq!(bench.errand(4, Round::Whole), Some(Errand::GiveBack(part)));
    bench.hears(&Heard::GaveBack {
        lease: part.lease,
        answer: GiveBackAnswer::Taken(totals(1_000, 980, 1)),
    });
    let slices = bench.engine.shared.slices();
    assert_eq!((slices[0].limit(), slices[0].giving), (usd(20), None));
    assert_eq!(bench.counted(7), (10, 10));
    bench.pass(600_000);
    assert_eq!(bench.errand(5, Round::Whole), None, "nothing is open");
}

#[test]
fn a_part_on_its_way_back_is_settled_by_what_the_database_shows_after_a_restart() {
    for (number, is_taken) in [(0, false), (1, true)] {
        let mut bench = obeying();
        bench.leases(1_000);
        bench.pass(60_000);
        let Some(Errand::GiveBack(part)) = bench.errand(2, Round::Whole) else {
            panic!("it is idle");
        };
        let kept = bench.engine.shared.slices();
        bench
            .engine
            .shared
            .obey(&[TEAM.to_owned()], false, kept, false);
        let given_back = if is_taken { 990 } else { 0 };
        bench.presents(&[live(7, totals(1_000, given_back, number), HOUR)]);
        let again = bench.errand(3, Round::Whole);
        assert_eq!(again, (!is_taken).then_some(Errand::GiveBack(part)));
        let limit = bench.engine.shared.slices()[0].limit();
        assert_eq!(limit, usd(10), "either way it is gone");
    }
}

#[test]
fn what_another_machine_held_is_spent_when_the_database_says_so_and_not_before() {
    let mut bench = obeying();
    bench.leases(1_000);
    let kept = bench.engine.shared.slices();
    let names = [TEAM.to_owned()];
    bench.engine.shared.obey(&names, false, kept, true);
    assert!(matches!(bench.ask("a"), Became::Waits(_)));
    let presented = bench.presents(&[live(7, totals(1_000, 0, 0), HOUR)]);
    assert_eq!(presented.len(), 1, "it is shown what there is");
    bench.admitted("a");
    // And what the database does not name is void.
    bench.engine.shared.present();
    bench.presents(&[]);
    assert!(matches!(bench.ask("a"), Became::Waits(_)));
}

#[test]
fn a_database_that_shows_less_than_it_granted_is_shown_what_it_granted() {
    let mut bench = obeying();
    bench.leases(1_000);
    for _ in 0..99 {
        let (entry, _) = bench.admitted("a");
        bench.settle_on(entry, 10);
    }
    assert!(matches!(bench.ask("a"), Became::Waits(_)));
    bench.asks_for(2);
    bench.is_answered(granted(7, 30, totals(40, 0, 0)));
    let Some(Errand::Present(presented)) = bench.errand(3, Round::Ask) else {
        panic!("it was restored from a backup");
    };
    assert_eq!(presented[0].totals, totals(1_000, 0, 0));
}

#[test]
fn a_repeat_of_what_was_bought_in_the_window_passes_a_used_up_slice_and_counts_on_it() {
    let mut bench = obeying();
    bench.leases(10);
    bench.engine.shared.away();
    assert_eq!(bench.refuses(), SharedWhy::Away);
    let repeat = match bench.ask_of("a", Operation::Chat, 100, Some(NOON)) {
        Became::Admitted(entry, 0) => entry,
        other => panic!("{other:?}"),
    };
    assert_eq!(bench.leases_of(repeat), [7]);
    // One of an earlier window is a purchase of its own.
    let earlier = bench.ask_of("a", Operation::Chat, 100, Some(NOON - 2 * HOUR));
    assert!(matches!(earlier, Became::Refused(_)), "{earlier:?}");
}

#[test]
fn a_restart_counts_what_its_ledger_has_of_a_lease() {
    let mut bench = obeying();
    bench.leases(100);
    let (doubt, _) = bench.admitted("a");
    bench.ends_on(doubt, DOUBT);
    let (usage, kept) = (bench.engine.usage.clone(), bench.engine.shared.slices());
    let mut again = Bench::new(rules(Limits::default(), &[], 0));
    let ended = Vec::new();
    again.engine.update(&UsageUpdate::All { usage, ended });
    let names = [TEAM.to_owned()];
    again.engine.shared.obey(&names, false, kept, false);
    assert_eq!(again.counted(7), (10, 10));
    again.engine.shared.away();
    for _ in 0..8 {
        let (entry, _) = again.admitted("a");
        again.settle_on(entry, 10);
    }
    assert_eq!(again.refuses(), SharedWhy::Away);
}
