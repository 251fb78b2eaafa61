//! The queue in front of a service that counts: seeded random arrivals, answers and travel times.

use std::collections::{BTreeMap, HashMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::proxy::limits::queue::adaptive_limits::Busy;

const MINUTE: Duration = Duration::from_secs(60);

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Comes {
        app_no: usize,
    },
    Arrives {
        slot: SlotNo,
    },
    Head {
        slot: SlotNo,
    },
    Ends {
        slot: SlotNo,
    },
    /// Time alone.
    Look,
}

/// A service with its ceilings, and the queue before it.
struct World {
    desk: Scheduler,
    now: Duration,
    events: BTreeMap<(Duration, u64), Event>,
    number: u64,
    /// When each request arrived at the service and was admitted.
    admitted: VecDeque<Duration>,
    arrivals: Vec<Duration>,
    at_service: usize,
    ceiling: (usize, usize),
    /// Places and requests a minute that others use.
    outside: (usize, usize),
    refused: HashMap<SlotNo, Busy>,
    answers: u64,
    refusals: u64,
    waiting: HashMap<TicketNo, (usize, Duration)>,
    /// Grants in their order: the app, and how long it waited.
    grants: Vec<(usize, Duration)>,
    /// The next look that time asks for.
    look: Option<(Duration, u64)>,
    chance: u64,
    travel_ms: u64,
    answer_ms: u64,
}

impl World {
    fn new(desk: Scheduler, ceiling: (usize, usize), seed: u64) -> Self {
        Self {
            desk,
            now: Duration::ZERO,
            events: BTreeMap::new(),
            number: 0,
            admitted: VecDeque::new(),
            arrivals: Vec::new(),
            at_service: 0,
            ceiling,
            outside: (0, 0),
            refused: HashMap::new(),
            answers: 0,
            refusals: 0,
            waiting: HashMap::new(),
            grants: Vec::new(),
            look: None,
            chance: seed | 1,
            travel_ms: 2_000,
            answer_ms: 4_000,
        }
    }

    fn below(&mut self, most: u64) -> u64 {
        // xorshift64*
        self.chance ^= self.chance >> 12;
        self.chance ^= self.chance << 25;
        self.chance ^= self.chance >> 27;
        (self.chance.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % most.max(1)
    }

    fn after(&mut self, ms: u64, event: Event) {
        self.number += 1;
        let at = self.now + Duration::from_millis(ms);
        self.events.insert((at, self.number), event);
    }

    fn go(&mut self, slot: SlotNo) {
        self.desk.sends(slot, self.now);
        let travel = self.below(self.travel_ms);
        self.after(travel, Event::Arrives { slot });
    }

    fn settle(&mut self) {
        let due = self.desk.due(self.now);
        for Granted { ticket, slot } in due.granted {
            let (app_no, since) = self.waiting.remove(&ticket).expect("it waited");
            self.grants.push((app_no, self.now - since));
            self.go(slot);
        }
        if let Some(at) = self.desk.next_at(self.now) {
            assert!(at > self.now, "time alone lets a request go, and none went");
            if let Some(old) = self.look.take() {
                self.events.remove(&old);
            }
            self.number += 1;
            self.look = Some((at, self.number));
            self.events.insert((at, self.number), Event::Look);
        }
    }

    fn arrives(&mut self, slot: SlotNo) {
        self.arrivals.push(self.now);
        let now = self.now;
        self.admitted.retain(|at| now - *at < MINUTE);
        let (places, rate) = self.ceiling;
        let busy = if self.at_service + self.outside.0 >= places {
            Some(5)
        } else if self.admitted.len() + self.outside.1 >= rate {
            Some(15)
        } else {
            None
        };
        let mut head_ms = 1;
        match busy {
            Some(seconds) => {
                self.refusals += 1;
                let asked = Some(Duration::from_secs(seconds));
                let names_rate = false;
                self.refused.insert(slot, Busy { asked, names_rate });
            }
            None => {
                self.admitted.push_back(now);
                self.at_service += 1;
                head_ms += self.below(self.answer_ms);
            }
        }
        self.after(head_ms, Event::Head { slot });
    }

    fn step(&mut self) -> bool {
        let Some(((at, _), event)) = self.events.pop_first() else {
            return false;
        };
        self.now = at;
        match event {
            Event::Comes { app_no } => {
                let app = app(&format!("app-{app_no}"));
                match self.desk.enter(at, &app, Priority::First, FAR).0 {
                    Entered::Goes(slot) => {
                        self.grants.push((app_no, Duration::ZERO));
                        self.go(slot);
                    }
                    Entered::Waits(ticket) => {
                        self.waiting.insert(ticket, (app_no, at));
                    }
                    Entered::Full => assert!(self.desk.waiting() >= 50),
                    Entered::TooLate(at) => panic!("any time is in time, also {at:?}"),
                    Entered::Closed => panic!("nobody closed it"),
                }
            }
            Event::Arrives { slot } => self.arrives(slot),
            Event::Head { slot } => {
                self.desk.arrived(slot, at);
                match self.refused.remove(&slot) {
                    Some(busy) => {
                        self.desk.busy(slot, at, busy);
                        self.desk.end(slot, at);
                    }
                    None => {
                        self.answers += 1;
                        self.desk.served(at);
                        let rest = self.below(self.answer_ms);
                        self.after(rest, Event::Ends { slot });
                    }
                }
            }
            Event::Ends { slot } => {
                self.at_service -= 1;
                self.desk.end(slot, at);
            }
            Event::Look => {}
        }
        self.settle();
        true
    }

    fn run_until(&mut self, end: Duration) {
        while self
            .events
            .first_key_value()
            .is_some_and(|((at, _), _)| *at <= end)
        {
            self.step();
        }
        self.now = end;
    }
}

/// The most arrivals in any minute, wherever it begins.
fn most_in_a_minute(arrivals: &[Duration]) -> usize {
    let count = |(at, from): (usize, &Duration)| {
        arrivals[at..]
            .iter()
            .take_while(|to| **to - *from <= MINUTE)
            .count()
    };
    arrivals.iter().enumerate().map(count).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Never more than the ceilings, in any minute, however long a request travels; and none is left
    /// waiting.
    #[test]
    fn no_minute_holds_more_than_the_rate_and_all_are_served(
        seed in any::<u64>(),
        places in 1_usize..12,
        rate in 1_usize..60,
        // App, and the milliseconds after the one before.
        arrivals in prop::collection::vec((0_usize..5, 0_u64..800), 1..300),
    ) {
        let mut world = World::new(Scheduler::new(&shaping(places, rate)), (places, rate), seed);
        let mut at = 0;
        for (app_no, gap) in &arrivals {
            at += gap;
            world.after(at, Event::Comes { app_no: *app_no });
        }
        while world.step() {
            prop_assert!(world.desk.in_flight() <= places);
        }
        prop_assert!(most_in_a_minute(&world.arrivals) <= rate);
        prop_assert_eq!(world.refusals, 0, "the service never has to refuse");
        prop_assert_eq!(world.answers, arrivals.len() as u64);
        prop_assert_eq!(world.desk.waiting() + world.desk.in_flight(), 0);
    }

    /// Work-conserving: while a request waits, either all places are taken or the minute is full.
    #[test]
    fn no_request_waits_while_there_is_room(
        seed in any::<u64>(),
        places in 1_usize..12,
        rate in 1_usize..60,
        arrivals in prop::collection::vec((0_usize..5, 0_u64..800), 1..300),
    ) {
        let mut world = World::new(Scheduler::new(&shaping(places, rate)), (places, rate), seed);
        let mut at = 0;
        for (app_no, gap) in &arrivals {
            at += gap;
            world.after(at, Event::Comes { app_no: *app_no });
        }
        while world.step() {
            let now = world.now;
            if world.desk.waiting() == 0 || world.desk.in_flight() == places {
                continue;
            }
            // Whatever left in the last minute, and what travel and the answer's head may add.
            let slack = Duration::from_millis(world.travel_ms + world.answer_ms + 1_001);
            let lately = world.arrivals.iter().filter(|at| now - **at <= MINUTE + slack).count();
            prop_assert!(lately + world.desk.in_flight() >= rate, "{lately} of {rate}");
        }
    }

    /// Between two turns of an app that waits, each other app has at most one.
    #[test]
    fn an_app_waits_for_one_turn_of_each_other(
        seed in any::<u64>(),
        places in 1_usize..6,
        counts in prop::collection::vec(1_usize..60, 2..6),
    ) {
        let mut world = World::new(Scheduler::new(&shaping(places, 0)), (places, 1_000_000), seed);
        for (app_no, count) in counts.iter().enumerate() {
            for _ in 0..*count {
                world.after(0, Event::Comes { app_no });
            }
        }
        while world.step() {}
        let turns: Vec<usize> = world.grants.iter().map(|(app_no, _)| *app_no).collect();
        // The first ones went without waiting.
        let turns = &turns[places.min(turns.len())..];
        for app_no in 0..counts.len() {
            let own: Vec<usize> = (0..turns.len()).filter(|at| turns[*at] == app_no).collect();
            // From its coming to its first turn, and from each turn to the next.
            let first = own.first().map(|first| (0, *first));
            let later = own.windows(2).map(|pair| (pair[0] + 1, pair[1]));
            for (from, to) in first.into_iter().chain(later) {
                let between = &turns[from..to];
                let mut others: Vec<usize> = between.to_vec();
                others.sort_unstable();
                others.dedup();
                prop_assert_eq!(others.len(), between.len(), "{:?}", between);
            }
        }
    }
}

/// Keeps `count` requests coming, so that one always waits.
fn keep_busy(world: &mut World, from: Duration, to: Duration) {
    let mut at = from;
    while at < to {
        world.now = at;
        for app_no in 0..5 {
            world.after(0, Event::Comes { app_no });
        }
        at += Duration::from_secs(1);
    }
    world.now = from;
}

/// A desk with these limits, kept busy before a service that takes 8 in flight and `per_minute`, of which
/// others take `outside`.
fn beside_others(
    seed: u64,
    limits: (usize, usize),
    per_minute: usize,
    outside: (usize, usize),
    until: Duration,
) -> World {
    let few_wait = Shaping {
        queue_max: 50,
        ..shaping(limits.0, limits.1)
    };
    let mut world = World::new(Scheduler::new(&few_wait), (8, per_minute), seed);
    world.travel_ms = 20;
    world.answer_ms = 1_500;
    world.outside = outside;
    keep_busy(&mut world, s(0), until);
    world
}

/// Runs on to `to`: how many were answered meanwhile, and how many refused.
fn run_on(world: &mut World, to: Duration) -> (u64, u64) {
    let (answers, refusals) = (world.answers, world.refusals);
    world.run_until(to);
    (world.answers - answers, world.refusals - refusals)
}

/// Others take half of both ceilings and later go: bursar settles at what they leave, with few
/// refusals, and finds all of it again.
#[test]
fn the_limits_settle_beside_an_outside_load_and_find_back() {
    for seed in 1..=3 {
        let mut world = beside_others(seed, (8, 120), 120, (4, 60), s(6_000));
        world.run_until(s(600));
        let (answers, refusals) = run_on(&mut world, s(1_800));
        // 20 minutes of 60 are 1200.
        assert!(answers >= 800, "seed {seed}: {answers} answers of 1200");
        assert!(
            refusals * 8 <= answers,
            "seed {seed}: {refusals} refusals, {answers} answers"
        );

        world.outside = (0, 0);
        world.run_until(s(3_000));
        let ceilings = world.desk.ceilings();
        assert_eq!(
            (ceilings.in_flight(), ceilings.per_minute()),
            (Some(8), Some(120))
        );
        let (answers, _) = run_on(&mut world, s(3_600));
        assert!(answers >= 1_100, "seed {seed}: {answers} answers of 1200");
    }
}

/// Others hold two of eight places for long: bursar uses nearly all of the other six, for a number that
/// was refused is tried seldom, and a pause of all apps follows each try. When they go, it finds back.
#[test]
fn a_number_in_flight_that_was_refused_is_tried_seldom() {
    for seed in 1..=3 {
        let mut world = beside_others(seed, (8, 0), 1_000_000, (2, 0), s(2_400));
        world.run_until(s(300));
        let (answers, refusals) = run_on(&mut world, s(1_500));
        assert!(
            answers >= 4_000 && refusals <= 40,
            "seed {seed}: {answers} answers of about 4600, {refusals} refusals"
        );

        world.outside = (0, 0);
        world.run_until(s(1_800));
        assert_eq!(world.desk.ceilings().in_flight(), Some(8), "seed {seed}");
    }
}
