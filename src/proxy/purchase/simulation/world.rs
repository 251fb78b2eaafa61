//! The world of one run: apps, the clock, the process with its disk, the service. One step is one
//! event, and after each the rules are asked.
//!
//! Promise: a run is its seed. Nothing here depends on the machine's time or on threads.

mod apps;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use uuid::Uuid;

use super::chance::Chance;
use super::flight::{Flight, Step};
use super::rules::Facts;
use super::scribe::{Command, Disk, Reading, Reply, Scribe, Shelf};
use super::service::{Ask, Repeats, Service};
use super::transcript::{Streams, Transcript};
use crate::clock::{Clock, ManualClock};
use crate::config::Adopt;
use crate::ledger::entry::{EntryId, Fingerprint, Intent};
use crate::ledger::kept_key::{KeptKey, Organization};
use crate::ledger::record::{Line, Record};
use crate::protocol::Operation;
use crate::protocol::names::ServiceNames;
use crate::protocol::routes::{Route, RouteTable};
use crate::proxy::purchase::backoff::Backoff;
use crate::proxy::purchase::claim::{Claim, ClaimTable};
use crate::proxy::purchase::claimant::{AdoptPolicy, Claimant, RequestKey};
use crate::proxy::purchase::client::{Presence, Written};
use crate::proxy::purchase::following::{FollowAction, FollowEvent, Following};
use crate::proxy::purchase::retry::Bounds;
use crate::proxy::purchase::shared::{Follower, Purchase};

/// How often each event and each end occurred.
pub type Counts = BTreeMap<&'static str, u64>;

/// What all runs share.
pub struct Stage {
    pub names: Arc<ServiceNames>,
    routes: Vec<Arc<Route>>,
}

pub struct World {
    pub chance: Chance,
    pub clock: ManualClock,
    /// The service's time, which cannot be set.
    pub true_ms: u64,
    pub service: Service,
    pub shelf: Shelf,
    pub reading: Reading,
    pub facts: Facts,
    pub streams: Streams,
    pub names: Arc<ServiceNames>,
    pub counts: Counts,
    /// The events, when they are to be printed.
    pub log: Option<Vec<String>>,
    read_lines: usize,
    process: Option<Process>,
    routes: Vec<Arc<Route>>,
    policy: AdoptPolicy,
    next_entry: u128,
    /// Which key of the service bursar has: 1 or 2.
    service_key: u64,
    /// Both are one organization's.
    is_one_organization: bool,
    /// One in so many rough events happens.
    calm: usize,
}

/// One run of bursar, from start to kill or to its end in order.
pub struct Process {
    pub table: ClaimTable,
    pub scribe: Scribe,
    pub flights: BTreeMap<EntryId, Flight>,
    followers: Vec<Joined>,
    /// It shuts down: nothing new is taken in, what waits is cut.
    pub cutting: bool,
}

struct Joined {
    follower: Follower,
    following: Following,
    action: FollowAction,
    given: Transcript,
    /// Its app is connected, as far as bursar has noticed.
    presence: Presence,
}

/// 2026-05-09 00:00 UTC.
const START_MS: u64 = 1_778_284_800_000;

// === impl Stage ===

impl Stage {
    pub fn new() -> Self {
        let table = RouteTable::untranslated(&[]);
        let metered = table.rows().iter().filter(|route| route.is_metered());
        let mut routes: Vec<_> = metered.cloned().map(Arc::new).collect();
        routes.sort_by_key(|route| !route.keyed);
        let names = Arc::new(ServiceNames::new("service").unwrap());
        Self { names, routes }
    }
}

// === impl World ===

impl World {
    pub fn new(stage: &Stage, seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let calm = [1, 3, 10, 1000][chance.below(4)];
        // Few routes, so that requests meet; and mostly those with keys.
        let keyed = stage.routes.iter().filter(|route| route.keyed).count();
        let of_run = [stage.routes.len(), keyed, keyed].map(|end| chance.below(end));
        let adopt = [Adopt::Always, Adopt::Always, Adopt::Marked, Adopt::Never][chance.below(4)];
        let is_one_organization = chance.one_in(2);
        Self {
            chance,
            clock: ManualClock::at(START_MS),
            true_ms: START_MS,
            service: Service::default(),
            shelf: Shelf::default(),
            reading: Reading::default(),
            facts: Facts::default(),
            streams: Streams::default(),
            names: Arc::clone(&stage.names),
            counts: Counts::new(),
            log: None,
            read_lines: 0,
            process: None,
            routes: of_run.map(|at| Arc::clone(&stage.routes[at])).into(),
            policy: AdoptPolicy {
                adopt,
                window: Duration::from_secs(900),
            },
            next_entry: 1,
            service_key: 1,
            is_one_organization,
            calm,
        }
    }

    pub fn count(&mut self, event: &'static str) {
        *self.counts.entry(event).or_default() += 1;
        if let Some(log) = &mut self.log {
            log.push(format!("    {event}"));
        }
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(line());
        }
    }

    pub fn wall_ms(&self) -> u64 {
        self.clock.wall_ms()
    }

    /// The organization that the service bills for what goes out with bursar's key.
    fn organization(&self) -> u64 {
        if self.is_one_organization {
            1
        } else {
            self.service_key
        }
    }

    pub fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    /// One event, and the rules.
    pub fn step(&mut self) -> Result<(), String> {
        match self.process.take() {
            Some(mut process) => {
                if self.act(&mut process)? {
                    self.process = Some(process);
                }
            }
            None => match self.chance.below(4) {
                0..=1 => self.start()?,
                2 => self.pass_time(),
                _ => self.serve(),
            },
        }
        self.look()
    }

    /// What happens while bursar runs. `false`: it runs no more.
    fn act(&mut self, process: &mut Process) -> Result<bool, String> {
        if process.scribe.has_failed() && self.chance.one_in(6) {
            self.count("journal opened again");
            let now_ms = self.wall_ms();
            process.scribe.recover(&mut self.shelf, now_ms)?;
            return Ok(true);
        }
        match self.chance.below(100) {
            0..=40 => self.advance(process)?,
            41..=54 => self.serve(),
            55..=68 => self.commit(process, Disk::Writes)?,
            69..=79 => self.arrive(process)?,
            80..=81 => self.leave(process),
            82..=88 => self.follow(process)?,
            89..=94 => self.pass_time(),
            95 => self.poll_run(process),
            96..=97 => {
                if process.scribe.queue.is_empty() && !process.scribe.has_failed() {
                    self.count("index updated");
                    process.scribe.update_index(&mut self.shelf);
                }
            }
            // How rough the run is was chosen with its seed.
            _ if !self.chance.one_in(self.calm) => {}
            98 => match self.chance.below(3) {
                0 => return self.kill(process),
                _ => self.commit(process, Disk::Fails)?,
            },
            _ => match self.chance.below(3) {
                0 if !process.cutting => {
                    self.count("shutdown");
                    process.cutting = true;
                }
                _ => return self.kill(process),
            },
        }
        if process.cutting && process.flights.is_empty() {
            return self.stop(process);
        }
        Ok(true)
    }

    fn start(&mut self) -> Result<(), String> {
        self.count("start");
        let now_ms = self.wall_ms();
        let scribe = Scribe::start(&mut self.shelf, now_ms)?;
        if self.chance.one_in(4) {
            scribe.whole_sums_agree(&self.shelf)?;
        }
        let table = ClaimTable::new(Arc::new(self.clock.clone()));
        table.restore(scribe.remembered(now_ms));
        self.process = Some(Process {
            table,
            scribe,
            flights: BTreeMap::new(),
            followers: Vec::new(),
            cutting: false,
        });
        self.look()?;
        self.facts.all_accounts(&self.reading, &self.service)
    }

    fn kill(&mut self, process: &mut Process) -> Result<bool, String> {
        self.count("kill");
        self.shelf.stopped = None;
        self.facts.killed();
        if !process.scribe.queue.is_empty() {
            self.count("killed in a commit");
            let now_ms = self.wall_ms();
            let (shelf, chance) = (&mut self.shelf, &mut self.chance);
            process.scribe.commit(shelf, now_ms, Disk::Dies, chance);
        }
        if self.chance.one_in(6) {
            self.count("reboot");
            self.clock.reboot();
        }
        Ok(false)
    }

    fn stop(&mut self, process: &mut Process) -> Result<bool, String> {
        for following in std::mem::take(&mut process.followers) {
            self.cut_off(process, following)?;
        }
        self.commit(process, Disk::Writes)?;
        let now_ms = self.wall_ms();
        if process.scribe.has_failed() {
            process.scribe.recover(&mut self.shelf, now_ms)?;
        }
        self.count("stopped in order");
        let left = process.scribe.books.deliveries().rows(0);
        self.facts.stopped(&left)?;
        process.scribe.update_index(&mut self.shelf);
        self.shelf.stopped = Some(process.scribe.books.last_seq());
        Ok(false)
    }

    fn advance(&mut self, process: &mut Process) -> Result<(), String> {
        let Some(id) = self.pick(process) else {
            return Ok(());
        };
        let Some(mut flight) = process.flights.remove(&id) else {
            return Ok(());
        };
        self.note(|| format!("{} {}", short(id), flight.step.word()));
        flight.advance(self, process)?;
        if !matches!(flight.step, Step::Over) {
            process.flights.insert(id, flight);
        }
        Ok(())
    }

    fn pick(&mut self, process: &Process) -> Option<EntryId> {
        let at = self.chance.below(process.flights.len());
        process.flights.keys().nth(at).copied()
    }

    fn serve(&mut self) {
        let jobs = self.service.unfinished();
        if jobs.is_empty() {
            return;
        }
        let job = jobs[self.chance.below(jobs.len())];
        let word = self.service.proceed(job, self.true_ms, &mut self.chance);
        self.note(|| format!("job {job}"));
        self.count(word);
        if word == "service waits" && self.chance.one_in(2) {
            // What it waits for takes longer than the service lets a request wait.
            let by = 10 * 60_000;
            self.move_clock("minutes pass", by, by);
        }
    }

    fn commit(&mut self, process: &mut Process, disk: Disk) -> Result<(), String> {
        if process.scribe.queue.is_empty() {
            return Ok(());
        }
        let now_ms = self.wall_ms();
        let (shelf, chance) = (&mut self.shelf, &mut self.chance);
        let replies = process.scribe.commit(shelf, now_ms, disk, chance);
        if process.scribe.has_failed() {
            self.facts.notes_lost();
        }
        self.count(match disk {
            Disk::Writes if process.scribe.has_failed() => "commit refused",
            Disk::Writes => "commit",
            Disk::Fails | Disk::Dies => "commit failed",
        });
        self.look()?;
        for reply in replies {
            let (id, settlement) = match reply {
                Reply::Intended(id, ok) => {
                    if let Some(flight) = process.flights.get_mut(&id) {
                        flight.step = Step::Intended(ok);
                    }
                    continue;
                }
                Reply::Settled(id, settlement) => (id, settlement),
            };
            if let Some(flight) = process.flights.get_mut(&id) {
                flight.step = match std::mem::replace(&mut flight.step, Step::Over) {
                    Step::Settling(outcome, reached) => Step::Settled {
                        ok: settlement.is_some(),
                        outcome,
                        reached,
                    },
                    step => step,
                };
            }
        }
        if !process.scribe.has_failed() {
            process.scribe.sums_agree(&self.shelf, &self.reading)?;
        }
        Ok(())
    }

    fn pass_time(&mut self) {
        let hour = 3_600_000;
        match self.chance.below(60) {
            0 => {
                let by = self.chance.ms(26 * hour);
                self.move_clock("hours pass", by, by);
            }
            1 => {
                let by = self.chance.ms(26 * hour);
                self.move_clock("machine slept", by, 0);
            }
            2 => {
                let by = self.chance.ms(30 * hour);
                let at = self.wall_ms();
                let at = if self.chance.one_in(2) {
                    at + by
                } else {
                    at - by
                };
                self.count("clock was set");
                self.clock.set_wall_ms(at);
            }
            3..=5 => {
                self.count("another key of the service");
                self.service_key = 3 - self.service_key;
            }
            6..=15 => {
                let by = self.chance.ms(10 * 60_000);
                self.move_clock("minutes pass", by, by);
            }
            _ => {
                let by = self.chance.ms(3_000);
                self.move_clock("seconds pass", by, by);
            }
        }
    }

    /// True and wall time move on; monotonic time, too, unless the machine sleeps.
    fn move_clock(&mut self, word: &'static str, by_ms: u64, awake_ms: u64) {
        self.count(word);
        self.true_ms += by_ms;
        self.clock.advance(Duration::from_millis(awake_ms));
        let wall_ms = self.clock.wall_ms() + by_ms - awake_ms;
        self.clock.set_wall_ms(wall_ms);
    }

    pub fn may_send(&mut self, ask: &Ask, is_own: bool) -> Result<(), String> {
        let wall_error = i128::from(self.clock.wall_ms()) - i128::from(self.true_ms);
        let at = (self.true_ms, wall_error);
        let (reading, service) = (&self.reading, &self.service);
        self.facts.sending(ask, is_own, at, reading, service)
    }

    /// Reads what is new in the journal and at the service, and asks the rules of it.
    fn look(&mut self) -> Result<(), String> {
        let mut touched = std::mem::take(&mut self.service.touched);
        for line in &self.shelf.lines[self.read_lines..] {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            let Some(Line::Record { record, .. }) = Line::decode(text) else {
                return Err(format!("no record: {}", String::from_utf8_lossy(line)));
            };
            self.reading.add(&record);
            if let Some(log) = &mut self.log {
                log.push(String::from_utf8_lossy(text).into_owned());
            }
            let (id, word) = match &record {
                Record::Outcome(outcome, _, verdict) => (outcome.id, verdict.state.word().as_str()),
                Record::Crashed(ended, _) => (ended.id, "crashed"),
                Record::Withdrawn(ended, _) => (ended.id, "withdrawn"),
                Record::Reconciled(evidence, _) => (evidence.id, "reconciled"),
                Record::Delivery(..) => {
                    *self.counts.entry("delivery noted").or_default() += 1;
                    continue;
                }
                Record::Intent(_) | Record::Rollup(_) | Record::Unknown => continue,
            };
            *self.counts.entry(word).or_default() += 1;
            touched.extend(self.facts.account_of.get(&id).cloned());
        }
        self.read_lines = self.shelf.lines.len();
        for account in &touched {
            self.facts.account(account, &self.reading, &self.service)?;
        }
        self.facts.sums(&self.reading, &self.service)
    }

    /// The end of a run: all accounts.
    pub fn close(&mut self) -> Result<(), String> {
        self.facts.all_accounts(&self.reading, &self.service)
    }
}

/// An entry's number in this run.
fn short(id: EntryId) -> u128 {
    id.0.as_u128()
}
