//! An idealised service: the interface's rules of keys and bills, and nothing else. It is written from
//! the interface's text and shares no code with the proxy or with the sandbox.
//!
//! Promise: its books are the truth. It bills a key once in 24 hours, an unkeyed run each time, and
//! a failed one never.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::chance::Chance;
use crate::ledger::entry::EntryId;

/// "idempotent replay window | 24 hours"
pub const WINDOW_MS: u64 = 24 * 3600 * 1000;

/// "duplicate waits up to 9 minutes"
const WAIT_MS: u64 = 9 * 60 * 1000;

/// How a route treats repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// A 2xx answer is stored and replayed; duplicates wait.
    Stored,
    /// Not stored: a repeat runs alongside and is not billed a second time.
    Alongside,
    /// No key: each run bills.
    Unkeyed,
    /// As unkeyed; the amount is debited when the run ends.
    Run,
}

/// What a request asks the service for.
#[derive(Clone, Debug)]
pub struct Ask {
    pub repeats: Repeats,
    /// The organization that pays. Keys are scoped to it.
    pub organization: u64,
    pub key: Option<Arc<str>>,
    /// Path and bytes.
    pub body: u64,
    /// The account that is billed where there is no key: for the books only.
    pub entry: EntryId,
}

/// Whose debits: an organization's key's, or an unkeyed request's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Account {
    Key(u64, Arc<str>),
    Entry(EntryId),
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAnswer {
    pub status: u16,
    /// What the receipt shows.
    pub shown: u64,
    pub replayed: bool,
    pub clarification: bool,
    pub run_id: Option<String>,
}

#[derive(Clone, Debug)]
enum Phase {
    /// Behind a running first request, since then.
    Waiting(u64),
    Running,
    Done(ServiceAnswer),
}

#[derive(Clone, Debug)]
struct Job {
    ask: Ask,
    phase: Phase,
    /// When the key's 24 h began for this job.
    epoch_ms: u64,
}

/// A key bound to a body.
#[derive(Clone, Debug)]
struct Bound {
    since_ms: u64,
    body: u64,
    stored: Option<ServiceAnswer>,
    is_billed: bool,
}

#[derive(Debug, Default)]
pub struct Service {
    keys: HashMap<Account, Bound>,
    jobs: BTreeMap<u64, Job>,
    next_job: u64,
    /// Eval runs: whose, and their cost once terminal.
    pub runs: Vec<(String, EntryId, Option<u64>)>,
    /// Every debit.
    pub debits: HashMap<Account, Vec<u64>>,
    pub total: u128,
    /// Accounts debited since this was last looked at.
    pub touched: Vec<Account>,
}

// === impl Ask ===

impl Ask {
    pub fn account(&self) -> Account {
        match &self.key {
            Some(key) => Account::Key(self.organization, Arc::clone(key)),
            None => Account::Entry(self.entry),
        }
    }
}

// === impl Service ===

impl Service {
    /// A request arrived whole.
    pub fn arrive(&mut self, ask: Ask, now_ms: u64, chance: &mut Chance) -> u64 {
        let phase = if chance.one_in(9) {
            // Before the key is looked at: ceilings, warm-up, contention, an empty balance.
            Phase::Done(refusal([429, 503, 503, 402, 409, 500][chance.below(6)]))
        } else {
            self.begin(&ask, now_ms)
        };
        let bound = self.keys.get(&ask.account());
        let epoch_ms = bound.map_or(now_ms, |bound| bound.since_ms);
        let number = self.next_job;
        self.next_job += 1;
        self.jobs.insert(
            number,
            Job {
                ask,
                phase,
                epoch_ms,
            },
        );
        number
    }

    fn begin(&mut self, ask: &Ask, now_ms: u64) -> Phase {
        if ask.key.is_none() {
            return Phase::Running;
        }
        let account = ask.account();
        if let Some(bound) = self.keys.get(&account)
            && now_ms.saturating_sub(bound.since_ms) >= WINDOW_MS
        {
            self.keys.remove(&account);
        }
        let is_running = self.is_running(&account);
        let bound = self.keys.entry(account).or_insert_with(|| Bound {
            since_ms: now_ms,
            body: ask.body,
            stored: None,
            is_billed: false,
        });
        if bound.body != ask.body {
            return Phase::Done(refusal(422));
        }
        if ask.repeats == Repeats::Alongside {
            return Phase::Running;
        }
        match &bound.stored {
            Some(stored) => Phase::Done(replay(stored)),
            None if is_running => Phase::Waiting(now_ms),
            None => Phase::Running,
        }
    }

    fn is_running(&self, account: &Account) -> bool {
        self.jobs
            .values()
            .any(|job| job.ask.account() == *account && matches!(job.phase, Phase::Running))
    }

    /// Something of this entry's, or of its key's, still runs.
    pub fn may_still_run(&self, account: &Account) -> bool {
        self.jobs.values().any(|job| {
            job.ask.account() == *account && matches!(job.phase, Phase::Running | Phase::Waiting(_))
        })
    }

    pub fn unfinished(&self) -> Vec<u64> {
        let is_open = |job: &Job| !matches!(job.phase, Phase::Done(_));
        let jobs = self.jobs.iter().filter(|(_, job)| is_open(job));
        jobs.map(|(number, _)| *number).collect()
    }

    pub fn answer(&self, number: u64) -> Option<ServiceAnswer> {
        match &self.jobs.get(&number)?.phase {
            Phase::Done(answer) => Some(answer.clone()),
            Phase::Waiting(_) | Phase::Running => None,
        }
    }

    /// A job goes on. Says what became of it.
    pub fn proceed(&mut self, number: u64, now_ms: u64, chance: &mut Chance) -> &'static str {
        let Some(job) = self.jobs.get(&number).cloned() else {
            return "no job";
        };
        let (phase, word) = match job.phase {
            Phase::Waiting(since_ms) => self.wait_on(&job.ask, since_ms, now_ms),
            Phase::Running if chance.one_in(5) => {
                let status = [502, 500, 503, 504, 400, 408][chance.below(6)];
                (Phase::Done(refusal(status)), "service failed")
            }
            Phase::Running => (self.succeed(&job, chance), "service ran"),
            done @ Phase::Done(_) => (done, "no job"),
        };
        if let Some(job) = self.jobs.get_mut(&number) {
            job.phase = phase;
        }
        word
    }

    fn wait_on(&self, ask: &Ask, since_ms: u64, now_ms: u64) -> (Phase, &'static str) {
        let account = ask.account();
        let bound = self.keys.get(&account);
        match bound.and_then(|bound| bound.stored.as_ref()) {
            Some(stored) => (Phase::Done(replay(stored)), "service replayed to a waiter"),
            None if self.is_running(&account) => {
                if now_ms.saturating_sub(since_ms) >= WAIT_MS {
                    (Phase::Done(refusal(409)), "service waited 9 minutes")
                } else {
                    (Phase::Waiting(since_ms), "service waits")
                }
            }
            None => (Phase::Running, "service runs the waiter"),
        }
    }

    fn succeed(&mut self, job: &Job, chance: &mut Chance) -> Phase {
        let ask = &job.ask;
        let clarification = ask.key.is_some() && ask.body.is_multiple_of(7);
        let price = match chance.below(12) {
            _ if clarification => 0,
            0 => 0,
            _ => 1 + chance.next() % 100_000,
        };
        let mut answer = ServiceAnswer {
            status: 200,
            shown: price,
            replayed: false,
            clarification,
            run_id: None,
        };
        match ask.repeats {
            Repeats::Unkeyed => self.debit(ask.account(), price),
            Repeats::Run => {
                let run_id = format!("run-{}", self.runs.len());
                self.runs.push((run_id.clone(), ask.entry, None));
                answer.run_id = Some(run_id);
            }
            Repeats::Stored | Repeats::Alongside => {
                let Some(bound) = self.keys.get_mut(&ask.account()) else {
                    return Phase::Done(refusal(500));
                };
                if bound.since_ms != job.epoch_ms {
                    // Its 24 h are over and the key is another's: what it used is its own debit.
                    self.debit(ask.account(), price);
                    return Phase::Done(answer);
                }
                let is_first = !bound.is_billed;
                bound.is_billed |= price > 0;
                if !is_first {
                    answer.shown = 0;
                }
                if ask.repeats == Repeats::Stored {
                    bound.stored = Some(answer.clone());
                }
                if is_first {
                    self.debit(ask.account(), price);
                }
            }
        }
        Phase::Done(answer)
    }

    /// A run reaches its end, or is there already: its cost.
    pub fn end_run(&mut self, index: usize, chance: &mut Chance) -> Option<(String, u64)> {
        let (run_id, entry, cost) = self.runs.get(index)?.clone();
        let cost = match cost {
            Some(cost) => cost,
            None => {
                let cost = 1 + chance.next() % 1_000_000;
                self.debit(Account::Entry(entry), cost);
                self.runs[index].2 = Some(cost);
                cost
            }
        };
        Some((run_id, cost))
    }

    fn debit(&mut self, account: Account, price: u64) {
        if price > 0 {
            self.total += u128::from(price);
            self.debits.entry(account.clone()).or_default().push(price);
        }
        self.touched.push(account);
    }
}

fn refusal(status: u16) -> ServiceAnswer {
    ServiceAnswer {
        status,
        shown: 0,
        replayed: false,
        clarification: false,
        run_id: None,
    }
}

fn replay(stored: &ServiceAnswer) -> ServiceAnswer {
    ServiceAnswer {
        shown: 0,
        replayed: true,
        ..stored.clone()
    }
}
