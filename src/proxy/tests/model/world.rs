//! The world of the model: apps, the network, the clock, the disk and the process, one event a step.
//!
//! Promise: every choice is a throw of the dice; nothing iterates over a map, so that a seed replays.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use uuid::Uuid;

use super::audit::Ages;
use super::books::{Command, Disk, Done, Paper};
use super::dice::Dice;
use super::service::{Kind, Reply, Service};
use crate::clock::{Clock, ManualClock};
use crate::config::Adopt;
use crate::ledger::entry::{
    Attempt, EntryId, EntryKey, Fingerprint, InDoubt, Intent, KeyOrigin, State,
};
use crate::ledger::undelivered::{Delivery, Handover};
use crate::money::MicroUsd;
use crate::protocol::receipt::Receipt;
use crate::protocol::routes::{Lookup, Route, RouteTable};
use crate::proxy::claim::live::{Follower, Live};
use crate::proxy::claim::{AdoptPolicy, Claim, ClaimTable, Claimant, Mark};
use crate::proxy::dispatch::backoff::Backoff;

mod apps;
mod attempts;
mod delivery;

pub struct World {
    pub dice: Dice,
    clock: ManualClock,
    service: Service,
    paper: Paper,
    claims: ClaimTable,
    table: RouteTable,
    policy: AdoptPolicy,
    backoff: Backoff,
    flights: Vec<Flight>,
    followers: Vec<(Follower, bool)>,
    disk: Disk,
    /// What this world's apps ask for: few, so that equal requests meet.
    kinds: [Kind; 3],
    /// Generation and last use (true time) of an app's own key.
    own_keys: BTreeMap<(Kind, u64), (u64, u64)>,
    /// When each minted key was first used. Looked up only.
    first_uses: HashMap<Arc<str>, Ages>,
    /// When each own key was first used, in true time. Looked up only.
    own_first_ms: HashMap<Arc<str>, u64>,
    skew_ms: i64,
    entries: u128,
    step: u64,
    pub seen: BTreeMap<&'static str, u64>,
    pub log: VecDeque<(u64, &'static str, u128)>,
}

/// A logical request that leads.
struct Flight {
    entry: EntryId,
    live: Arc<Live>,
    route: Route,
    kind: Kind,
    body: u64,
    began: Ages,
    deadline: Duration,
    attempts: Vec<Attempt>,
    broken: Option<Receipt>,
    app_here: bool,
    phase: Phase,
    /// What the answer is: the receipt of a complete success, or none.
    answer: Option<Receipt>,
    job: Option<u64>,
    cut_by: Option<InDoubt>,
    state: Option<State>,
    /// What the outcome says.
    delivery: Delivery,
}

enum Phase {
    Intending,
    Ready,
    Sending,
    AtService(u64),
    Replying(Reply),
    Waiting(Duration),
    Settling,
    Delivering,
}

/// 2026-05-09 00:00 UTC.
const START_MS: u64 = 1_778_284_800_000;
const HOUR_MS: u64 = 3_600_000;
const FLIGHTS_MAX: usize = 10;
const LOG_MAX: usize = 80;

impl World {
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let clock = ManualClock::at(START_MS);
        let policy = AdoptPolicy {
            adopt: dice.pick(&[Adopt::Always, Adopt::Always, Adopt::Marked, Adopt::Never]),
            window: Duration::from_secs(dice.pick(&[900, 900, 86_000, 0])),
        };
        let kinds = [(); 3].map(|()| dice.pick(&Kind::ALL));
        Self {
            kinds,
            claims: ClaimTable::new(Arc::new(clock.clone())),
            service: Service::at(START_MS),
            dice,
            clock,
            paper: Paper::default(),
            table: RouteTable::new(&[]),
            policy,
            // Without a base the jitter is 0, and waits are those that the service asks for.
            backoff: Backoff {
                retries_max: 2,
                base: Duration::ZERO,
                cap: Duration::from_secs(8),
            },
            flights: Vec::new(),
            followers: Vec::new(),
            disk: Disk::Works,
            own_keys: BTreeMap::new(),
            first_uses: HashMap::new(),
            own_first_ms: HashMap::new(),
            skew_ms: 0,
            entries: u128::from(seed) << 64,
            step: 0,
            seen: BTreeMap::new(),
            log: VecDeque::new(),
        }
    }

    pub fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            self.step += 1;
            self.one_event();
            self.hear_debits();
            if self.step.is_multiple_of(32) {
                self.paper.audit.check_all();
            }
        }
        self.disk = Disk::Works;
        self.commit();
        self.crash();
        self.paper.audit.check_all();
    }

    fn one_event(&mut self) {
        match self.dice.below(1000) {
            0..110 => self.ask(),
            110..600 => self.progress(),
            600..720 => self.run_at_service(),
            720..830 => self.commit(),
            830..880 => self.app_leaves(),
            880..920 => self.follower_reads(),
            920..950 => self.time_passes(),
            950..970 => self.eval_run_ends(),
            970..990 => {
                self.disk = match self.disk {
                    Disk::Works if self.dice.chance(12) => Disk::Fails(self.dice.below(101)),
                    _ => Disk::Works,
                };
            }
            990..994 => {
                if self.dice.chance(60) {
                    self.crash();
                } else {
                    self.shutdown();
                }
            }
            994..998 => self.commit(),
            _ => {
                self.note("crash_in_commit", 0);
                self.disk = Disk::Fails(self.dice.below(101));
                self.commit();
                self.disk = Disk::Works;
                self.crash();
            }
        }
    }

    fn note(&mut self, event: &'static str, about: u128) {
        *self.seen.entry(event).or_default() += 1;
        if self.log.len() == LOG_MAX {
            self.log.pop_front();
        }
        self.log.push_back((self.step, event, about));
    }

    fn now(&self) -> Ages {
        Ages {
            wall_ms: self.clock.wall_ms(),
            monotonic_ms: self.clock.monotonic().as_millis() as u64,
        }
    }

    fn hear_debits(&mut self) {
        for debit in std::mem::take(&mut self.service.debits) {
            self.paper.audit.debit(&debit);
        }
    }

    fn time_passes(&mut self) {
        // Bytes are not on their way for hours: the read timeout ends such an attempt.
        let is_sending = |flight: &Flight| matches!(flight.phase, Phase::Sending);
        let is_short = self.flights.iter().any(is_sending);
        let ms = match self.dice.below(if is_short { 6 } else { 10 }) {
            0..6 => self.dice.below(30_000) as u64,
            6..8 => self.dice.below(20 * 60_000) as u64,
            8 => self.dice.below(26 * HOUR_MS as usize) as u64,
            _ => {
                // An operator or NTP sets the clock; it stays within two hours of the truth.
                self.note("clock_set", 0);
                let skew = self.dice.below(4 * HOUR_MS as usize) as i64 - 2 * HOUR_MS as i64;
                let wall = self.clock.wall_ms();
                self.clock
                    .set_wall_ms(wall.saturating_add_signed(skew - self.skew_ms));
                self.skew_ms = skew;
                return;
            }
        };
        if ms >= 1000 {
            // An answer that is written slowly is noted.
            for at in 0..self.flights.len() {
                if matches!(self.flights[at].phase, Phase::Delivering) {
                    let live = Arc::clone(&self.flights[at].live);
                    self.tell_delivery(&live, true);
                }
            }
        }
        self.service.now_ms += ms;
        if self.dice.chance(20) {
            // Asleep: monotonic time stands still.
            self.note("suspended", u128::from(ms));
            self.clock.set_wall_ms(self.clock.wall_ms() + ms);
        } else {
            if ms > HOUR_MS {
                self.note("hours", u128::from(ms));
            }
            self.clock.advance(Duration::from_millis(ms));
        }
    }

    /// The process is killed and starts again.
    fn crash(&mut self) {
        self.note("crash", 0);
        self.flights.clear();
        self.followers.clear();
        let (open, remembered) = self.paper.restart(self.clock.wall_ms());
        if open > 0 {
            self.note("restart_open", 0);
        }
        if !remembered.rows.is_empty() {
            self.note("restart_undelivered", 0);
        }
        self.claims = ClaimTable::new(Arc::new(self.clock.clone()));
        self.claims.restore(remembered);
    }

    /// The drain's time is up: what runs is cut, settled as far as the disk takes it, and the
    /// process ends.
    fn shutdown(&mut self) {
        self.note("shutdown", 0);
        for at in 0..self.flights.len() {
            self.cut(at);
        }
        self.commit();
        let is_settled = |flight: &Flight| matches!(flight.phase, Phase::Delivering);
        while let Some(at) = self.flights.iter().position(is_settled) {
            self.deliver(at);
        }
        self.commit();
        if self.paper.pending.is_empty() {
            self.paper.stop();
        }
        self.crash();
    }

    fn commit(&mut self) {
        let disk = self.disk;
        if disk != Disk::Works && !self.paper.pending.is_empty() {
            self.note("disk_failed", 0);
        }
        for done in self.paper.commit(disk, self.clock.wall_ms()) {
            match done {
                Done::Intended(id) => {
                    if let Some(flight) = self.flight(id) {
                        flight.phase = Phase::Ready;
                    }
                }
                Done::Refused(id) => {
                    self.note("intent_refused", id.0.as_u128());
                    self.never_sent(id);
                }
                Done::Settled(id, state, twice) => {
                    let word = match state {
                        State::Replayed => "state_replayed",
                        state => state.word(),
                    };
                    self.note(word, id.0.as_u128());
                    if twice {
                        self.note("settle_twice", id.0.as_u128());
                    }
                    if let Some(flight) = self.flight(id)
                        && matches!(flight.phase, Phase::Settling)
                    {
                        flight.live.told_at_settling(flight.delivery, Some(state));
                        flight.state = Some(state);
                        flight.phase = Phase::Delivering;
                    }
                }
                Done::Reconciled => {
                    self.note("run_reconciled", 0);
                    self.note("reconciled", 0);
                }
            }
        }
    }

    fn flight(&mut self, id: EntryId) -> Option<&mut Flight> {
        self.flights.iter_mut().find(|flight| flight.entry == id)
    }

    fn eval_run_ends(&mut self) {
        if self.service.jobs.is_empty() {
            return;
        }
        let at = self.dice.below(self.service.jobs.len());
        if self.dice.chance(50) {
            self.service.end_job(at);
        }
        let job = &self.service.jobs[at];
        if job.ended {
            // The poll is free and can be asked any number of times.
            self.paper.pending.push(Command::Run {
                run_id: format!("run-{}", job.id),
                billed: MicroUsd::new(job.amount),
            });
        }
    }
}
