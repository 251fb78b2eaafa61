//! Many bursars below shared caps, with all that goes wrong between them and their database: calls that do not arrive,
//! answers that are lost, kills between any two steps, restarts of machines, machines that never come back, prices above
//! what was held for them, wall clocks that jump, caps that get another period, and backups of the database that are
//! restored.
//!
//! What is checked: no cap is exceeded beyond what `bursar caps` states, no lease is spent twice, each billed line is
//! counted once, and what nobody needs comes back.
//!
//! `BURSAR_LEASE_RUNS` sets how many runs there are, `BURSAR_LEASE_SEED` the first run's seed, and
//! `BURSAR_LEASE_HOLDERS` how many bursars each run has, instead of 2 to 7 (`make leases`).

use super::model::{Database, Line, Terms};
use super::*;
use crate::caps::engine::room::sum;

mod accidents;
mod checks;
mod holder;

use self::holder::{Chance, Doubt, Flying, Holder};

const RUNS: u64 = 60;
const STEPS: usize = 300;
/// In a run of many bursars: as often is each of them stepped.
const STEPS_EACH: usize = 10;
/// Among so many everything comes about in one run.
const MANY: u64 = 1_000;
/// As many bursars as the chances of a step are made for.
const FEW: usize = 8;
const MINUTE: u64 = 60_000;

/// Beside [`TEAM`], which is of an hour, or for a while of a day: one of a day, with an allowance for the time away.
const ORG: &str = "org";

/// A cap's name, and when one of its windows begins and ends.
type CapWindow = (String, u64, u64);

/// What went wrong on the way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Unsent,
    AnswerLost,
    KilledBeforeDisk,
    KilledAfterDisk,
}

struct World {
    chance: Chance,
    database: Database,
    backup: Option<Database>,
    holders: Vec<Holder>,
    now_ms: u64,
    numbers: u128,
    dearest: u64,
    is_faulty: bool,
    has_restores: bool,
    has_orders: bool,
    /// What leases of a cap's window were billed by the service.
    books: BTreeMap<CapWindow, u64>,
    /// What a restored database had forgotten of it.
    forgotten: BTreeMap<CapWindow, u64>,
    /// What prices that came late were above what was held for them.
    late: BTreeMap<CapWindow, u64>,
    /// The dearest price that came late. As much is held for what comes behind it.
    dearest_late: u64,
    windows: BTreeMap<LeaseId, CapWindow>,
    /// How often what happened.
    seen: BTreeMap<&'static str, u64>,
}

impl World {
    /// `many`: so many bursars, with caps that they use up, and a database that is restored.
    fn new(seed: u64, many: Option<u64>) -> Self {
        let mut chance = Chance(seed);
        let dearest = 4 * (1 + chance.below(25));
        let holders = many.unwrap_or_else(|| 2 + chance.below(6));
        let limit = match many {
            None => 1 + chance.below(dearest * 80),
            Some(holders) => (dearest * holders / 10).max(1),
        };
        let terms = |name: &str, period, limit, ahead_windows, ahead| Terms {
            name: name.to_owned(),
            period,
            limit,
            largest: None,
            ahead_windows,
            ahead,
        };
        let mut team = terms(TEAM, Period::Hour, limit, 0, 0);
        team.largest = match many {
            None => chance.one_in(3).then(|| 1 + chance.below(limit)),
            Some(_) => Some(2 * dearest),
        };
        let far = u32::try_from(chance.below(3)).unwrap() + u32::from(many.is_some());
        let org = terms(ORG, Period::Day, limit * 3, far, dearest);
        let now_ms = NOON + chance.below(12 * HOUR);
        let holders = (0..holders).map(|number| {
            let is_ephemeral = number % 3 == 2;
            Holder::new(1_000 * (number + 1), now_ms, is_ephemeral)
        });
        let holders = holders.collect();
        let has_restores = many.is_some() || chance.one_in(2);
        let has_orders = many.is_some() || chance.one_in(2);
        Self {
            chance,
            database: Database::new(vec![team, org]),
            backup: None,
            holders,
            now_ms,
            numbers: 0,
            dearest,
            is_faulty: true,
            has_restores,
            has_orders,
            books: BTreeMap::new(),
            forgotten: BTreeMap::new(),
            late: BTreeMap::new(),
            dearest_late: 0,
            windows: BTreeMap::new(),
            seen: BTreeMap::new(),
        }
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn was_restored(&self) -> bool {
        self.seen.contains_key("a restored backup")
    }

    fn was_changed(&self) -> bool {
        self.seen.contains_key("another period")
    }

    fn number(&mut self) -> Uuid {
        self.numbers += 1;
        Uuid::from_u128(self.numbers)
    }

    /// How often as many bursars as the chances are made for go into this world's.
    fn crowds(&self) -> u64 {
        u64::try_from(self.holders.len() / FEW + 1).unwrap()
    }

    /// A step of the bursar that is returned.
    fn step(&mut self) -> usize {
        let at = self.chance.place(self.holders.len());
        let crowds = self.crowds();
        if self.holders[at].is_gone {
            return at;
        }
        match self.chance.below(100) {
            0..35 => self.ask(at),
            35..65 => self.end(at),
            65..82 => {
                let shipping = self.chance.one_in(2);
                self.visit(at, shipping, Round::Whole);
            }
            82..90 => self.now_ms += self.chance.below(8 * MINUTE / crowds),
            90..92 => self.evidence(at),
            92..94 => self.write(at),
            94 => self.kill(at),
            95 if self.chance.one_in(6) => self.vanish(at),
            95 => self.reboot(at),
            96 => self.leave(at),
            97 if self.has_orders && self.chance.one_in(2 * crowds) => self.change_period(),
            97 => self.holders[at].skew_ms = self.chance.below(3 * HOUR),
            98 if self.has_restores && self.chance.one_in(crowds) => {
                self.backup = Some(self.database.clone());
            }
            99 if self.has_restores && self.chance.one_in(2 + crowds) => self.restore(),
            _ => {}
        }
        self.hear_answers(at);
        at
    }

    fn ask(&mut self, at: usize) {
        let entry = EntryId(self.number());
        let holder = &mut self.holders[at];
        let (way, decision) = oneshot::channel();
        let ask = Ask {
            entry,
            app: Arc::from("a"),
            run: None,
            session: None,
            operation: Operation::Chat,
            request_bytes: 100,
            repeats: None,
        };
        holder.engine.shared.at(holder.up_ms(self.now_ms));
        let wall_ms = holder.wall_ms(self.now_ms);
        let gone = holder.engine.ask(ask, way, wall_ms).send();
        assert!(gone.is_empty());
        holder.ways.push((entry, decision));
        self.hear_answers(at);
        // What lacks something wakes the shell.
        if self.holders[at].engine.shared.take_wanted() && !self.chance.one_in(4) {
            self.visit(at, false, Round::Ask);
        }
    }

    /// Requests of a bursar that were admitted or refused meanwhile.
    fn hear_answers(&mut self, at: usize) {
        let dearest = self.dearest;
        let holder = &mut self.holders[at];
        let wall_ms = holder.wall_ms(self.now_ms);
        holder.engine.shared.at(holder.up_ms(self.now_ms));
        let gone = holder.engine.serve(wall_ms).send();
        assert!(gone.is_empty());
        let mut still = Vec::new();
        for (entry, mut way) in std::mem::take(&mut holder.ways) {
            match way.try_recv() {
                Ok(Ok(going)) => {
                    // From a quarter of the dearest on: none is four times as dear as those before it.
                    let price = dearest / 4 + self.chance.below(dearest - dearest / 4 + 1);
                    holder.flying.push(Flying {
                        entry,
                        leases: going.leases,
                        reserved: going.reserved.get(),
                        at_ms: wall_ms,
                        price,
                    });
                }
                Ok(Err(_)) => *self.seen.entry("a refusal").or_default() += 1,
                Err(oneshot::error::TryRecvError::Empty) => still.push((entry, way)),
                Err(error) => panic!("{error}"),
            }
        }
        holder.ways = still;
        for flying in &holder.flying {
            let known = |lease: &LeaseId| self.windows.contains_key(lease);
            let names = flying.leases.iter().filter(known).count();
            assert_eq!(names, 2, "one lease of each cap");
        }
    }

    fn bill(&mut self, leases: &Leases, price: u64) {
        for lease in leases.iter() {
            let of = self.windows[&lease].clone();
            *self.books.entry(of).or_default() += price;
        }
    }

    /// One request ends.
    fn end(&mut self, at: usize) {
        if self.holders[at].flying.is_empty() {
            return;
        }
        let which = self.chance.place(self.holders[at].flying.len());
        let mut flying = self.holders[at].flying.remove(which);
        flying.reserved = self.holders[at].reserved(flying.entry);
        let choice = self.chance.below(12);
        let is_estimated = flying.price <= flying.reserved;
        let state = match choice {
            0 => State::Failed,
            1 | 2 if is_estimated => DOUBT,
            _ => State::Settled {
                billed: usd(flying.price),
            },
        };
        if state != State::Failed {
            self.bill(&flying.leases, flying.price);
        }
        self.saw("a purchase");
        let holder = &mut self.holders[at];
        let charged = holder.charged(&flying, state);
        let entry = flying.entry;
        // At times the ledger cannot write.
        if choice > 8 && is_estimated {
            holder.engine.foresee(entry, state);
            holder.unwritten.push((charged, flying));
        } else {
            holder.journal.push(charged.clone());
            holder.engine.update(&UsageUpdate::Records(vec![charged]));
            if state == DOUBT {
                holder.doubts.push(Doubt::of(flying));
            }
        }
        holder.engine.release(entry, FlightEnd::Settled(state));
        self.hear_answers(at);
    }

    fn write(&mut self, at: usize) {
        let holder = &mut self.holders[at];
        for (charged, _) in std::mem::take(&mut holder.unwritten) {
            holder.journal.push(charged.clone());
            holder.engine.update(&UsageUpdate::Records(vec![charged]));
        }
    }

    /// A stop in order: what is under way ends, what is left is shipped, and what is open goes back.
    fn leave(&mut self, at: usize) {
        while !self.holders[at].flying.is_empty() {
            self.end(at);
        }
        self.write(at);
        let is_back_again = self.chance.one_in(2);
        let round = if is_back_again {
            Round::Last
        } else {
            Round::Leave
        };
        self.visit(at, true, round);
        self.kill(at);
    }

    /// As `fleet::Worker` does it: hello, leases, lines, what goes back.
    fn visit(&mut self, at: usize, shipping: bool, round: Round) {
        let fault = self.fault();
        if fault == Fault::Unsent {
            self.holders[at].engine.shared.away();
            return;
        }
        self.database.hello(at, self.now_ms);
        // A visit for a request that waits asks for what it lacks, and nothing else.
        if round != Round::Ask {
            self.holders[at].engine.shared.present();
        }
        let first = match round {
            Round::Last | Round::Leave => Round::Present,
            _ => Round::Ask,
        };
        if !self.carry(at, first) {
            return;
        }
        if shipping {
            self.ship(at);
            self.carry(at, round);
        }
    }

    fn ship(&mut self, at: usize) {
        let mark = self.database.mark(at);
        let holder = &mut self.holders[at];
        let lines = holder.journal.iter().skip(mark).map(|charged| Line {
            leases: charged.leases.iter().collect(),
            billed: u64::try_from(charged.charge.billed.get()).unwrap(),
        });
        let lines: Vec<Line> = lines.collect();
        self.database.ship(at, &lines);
        if self.is_faulty && self.chance.one_in(8) {
            return;
        }
        let holder = &mut self.holders[at];
        holder.acknowledged = holder.acknowledged.max(holder.journal.len());
    }

    fn fault(&mut self) -> Fault {
        match self.chance.below(40) {
            _ if !self.is_faulty => Fault::None,
            0 | 1 => Fault::Unsent,
            2 | 3 => Fault::AnswerLost,
            4 => Fault::KilledBeforeDisk,
            5 => Fault::KilledAfterDisk,
            _ => Fault::None,
        }
    }

    /// Whether all went well.
    fn carry(&mut self, at: usize, round: Round) -> bool {
        let mut last = None;
        for _ in 0..64 {
            let request = self.number();
            let holder = &mut self.holders[at];
            let began_up_ms = holder.up_ms(self.now_ms);
            holder.engine.shared.at(began_up_ms);
            let Some(errand) = holder.engine.errand(request, round) else {
                return true;
            };
            let fault = self.fault();
            if matches!(errand, Errand::GiveBack(_)) {
                let holder = &mut self.holders[at];
                holder.file = (holder.engine.shared.slices(), holder.machine);
            }
            if fault == Fault::Unsent {
                self.holders[at].engine.shared.away();
                return false;
            }
            self.now_ms += self.chance.below(400);
            let heard = self.asked(at, errand.clone());
            last = Some((errand, heard.clone()));
            self.now_ms += self.chance.below(400);
            let holder = &mut self.holders[at];
            let ended_up_ms = holder.up_ms(self.now_ms);
            let call = Call {
                began_up_ms,
                ended_up_ms,
            };
            match fault {
                Fault::AnswerLost => {
                    holder.engine.shared.away();
                    return false;
                }
                Fault::KilledBeforeDisk => {
                    self.kill(at);
                    return false;
                }
                _ => {
                    holder.file = (
                        holder.engine.shared.slices_after(&heard, call),
                        holder.machine,
                    )
                }
            }
            if fault == Fault::KilledAfterDisk {
                self.kill(at);
                return false;
            }
            holder.engine.shared.at(ended_up_ms);
            holder.engine.shared.hear(&heard, call);
            self.hear_answers(at);
            if let Heard::GaveBack {
                answer: GiveBackAnswer::Behind,
                ..
            } = heard
            {
                return true;
            }
        }
        panic!("a carry without an end: {last:?}");
    }

    fn asked(&mut self, at: usize, errand: Errand) -> Heard {
        let holder = &self.holders[at];
        let (machine, mark) = (holder.machine, holder.acknowledged);
        match errand {
            Errand::Present(leases) => {
                let held = self.database.hold(at, machine, mark, &leases, self.now_ms);
                if held.is_paused {
                    self.saw("a pause");
                }
                Heard::Held(held)
            }
            Errand::Ask(ask) => {
                let fresh = self.number();
                let answer = self.database.lease(at, machine, &ask, fresh, self.now_ms);
                if let LeaseAnswer::Granted(grant) = &answer {
                    let lease = &grant.lease.lease;
                    let Window { since_ms, until_ms } = lease.window;
                    let of = (lease.cap.clone(), since_ms, until_ms);
                    self.windows.insert(LeaseId(lease.lease), of);
                }
                self.saw(match &answer {
                    LeaseAnswer::Granted(_) if ask.ahead > 0 => "an allowance",
                    LeaseAnswer::Granted(_) => "a grant",
                    LeaseAnswer::Empty {
                        may_return: true, ..
                    } => "a cap that others have",
                    LeaseAnswer::Empty { .. } => "a cap without anything left",
                    LeaseAnswer::Share { .. } => "a largest share",
                    LeaseAnswer::Elsewhere => "another machine",
                    LeaseAnswer::Paused => "a wish in a pause",
                    LeaseAnswer::NoCap => "a cap that is none",
                });
                Heard::Answer {
                    cap: ask.cap,
                    answer,
                }
            }
            Errand::GiveBack(part) => {
                let part = GiveBack {
                    up_to_seq: u64::try_from(holder.journal.len()).unwrap(),
                    ..part
                };
                let answer = self.database.give_back(at, &part);
                // One request may cost more than is left, and the part that was on its way back with it.
                let counts = holder.engine.counts();
                let counted = sum(counts.of_lease(LeaseId(part.lease)));
                let mut slices = holder.engine.shared.slices().into_iter();
                let slice = slices.find(|slice| slice.lease.0 == part.lease).unwrap();
                let is_exceeded = counted > slice.limit().get().into();
                let is_too_much = matches!(answer, GiveBackAnswer::TooMuch(_));
                assert!(
                    !is_too_much || is_exceeded,
                    "{part:?}: {counted} of {slice:?}"
                );
                self.saw(match answer {
                    GiveBackAnswer::Taken(_) => "a part that came back",
                    GiveBackAnswer::Known(_) => "a part that came back twice",
                    _ => "a part that has to wait",
                });
                Heard::GaveBack {
                    lease: part.lease,
                    answer,
                }
            }
        }
    }
}

fn run(seed: u64, holders: Option<u64>) -> BTreeMap<&'static str, u64> {
    let mut world = World::new(seed, holders);
    let crowds = usize::try_from(world.crowds()).unwrap();
    let steps = STEPS.max(world.holders.len() * STEPS_EACH);
    for step in 0..steps {
        // Of many the chances alone may bring none.
        if holders.is_some() && step == steps / 3 {
            world.backup = Some(world.database.clone());
        } else if holders.is_some() && step == steps * 2 / 3 {
            world.restore();
        }
        let at = world.step();
        world.check_books();
        world.check_holder(at);
        if step % crowds == 0 {
            (0..world.holders.len()).for_each(|at| world.hear_answers(at));
            world.check();
        }
    }
    world.heal();
    world.check();
    world.seen
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long the check runs is no configuration of bursar"
)]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// `make leases` is the whole of it.
#[test]
fn no_shared_cap_is_exceeded_beyond_its_bound_nothing_is_spent_twice_and_nothing_is_lost() {
    let first = number("BURSAR_LEASE_SEED").unwrap_or(1);
    let runs = number("BURSAR_LEASE_RUNS").unwrap_or(RUNS);
    let holders = number("BURSAR_LEASE_HOLDERS");
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in first..first + runs {
        let of_run = std::panic::catch_unwind(|| run(seed, holders)).unwrap_or_else(|why| {
            eprintln!("BURSAR_LEASE_SEED={seed} BURSAR_LEASE_RUNS=1");
            std::panic::resume_unwind(why)
        });
        for (what, count) in of_run {
            *seen.entry(what).or_default() += count;
        }
    }
    println!("{runs} runs from seed {first}: {seen:#?}");
    // The model cannot go blind: each of these must have come about.
    let wanted = [
        "a grant",
        "a part that came back",
        "a cap without anything left",
        "a cap that others have",
        "a largest share",
        "another machine",
        "a pause",
        "a wish in a pause",
        "a restored backup",
        "another period",
        "an allowance",
        "a refusal",
        "a purchase",
        "a machine that never came back",
        "a price above what was held",
    ];
    let missing: Vec<_> = wanted
        .iter()
        .filter(|what| !seen.contains_key(*what))
        .collect();
    let is_long = runs >= RUNS || holders.is_some_and(|of| of >= MANY);
    assert!(!is_long || missing.is_empty(), "never: {missing:?}");
}
