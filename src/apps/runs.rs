//! Runs: `bursar exec` gives a child a token of its own, for one app, for as long as the child lives,
//! with a limit that ends with it.
//!
//! A run lives in memory and as a name on its entries' intents. Its token is known to this process
//! and to the child alone; it ends when whoever opened the run closes the connection. What the run
//! spent is in the ledger under its name, so that it can be taken up again after a restart.
//!
//! Promise: no more runs than a bound; a run's token is nobody's once the run has ended; compared in
//! constant time as every token is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use uuid::Builder;

use super::AppsError;
use crate::config::{App, TokenHash};
use crate::ledger::entry::{EntryId, State};
use crate::money::MicroUsd;

/// Runs at once. Each holds a connection of the admin listener, which has twice as many.
pub const RUNS_MAX: usize = 32;

/// How long a request waits for others of its run to tell their price.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// One `bursar exec`.
#[derive(Debug)]
pub struct Run {
    /// Stands on the intents of its entries.
    pub id: Arc<str>,
    pub app: Arc<str>,
    purse: Mutex<Purse>,
    /// Marked when a request has ended: others may have room now.
    moved: watch::Sender<()>,
}

/// What a run has spent, and what it may still have to pay for.
#[derive(Debug)]
pub struct Purse {
    /// `None`: as much as the app.
    max: Option<MicroUsd>,
    /// What the service told, in whole.
    spent: MicroUsd,
    /// Requests on their way, with what they are expected to cost.
    flying: HashMap<EntryId, MicroUsd>,
    /// Ended, and their price is not known.
    held: HashMap<EntryId, MicroUsd>,
    /// Requests that took over the key of one that is held, or of one that did: the same purchase.
    repeats: HashMap<EntryId, EntryId>,
    /// The largest amount or estimate that was told so far.
    dearest: Option<MicroUsd>,
}

/// Whether a request of a run may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    Go,
    /// Others have to tell their price first.
    Wait,
    Reached {
        max: MicroUsd,
        spent: MicroUsd,
        held: MicroUsd,
    },
}

/// What the ledger tells of a run that is taken up again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSoFar {
    pub spent: MicroUsd,
    pub dearest: Option<MicroUsd>,
    /// Entries whose price is not known.
    pub unknown: Vec<EntryId>,
    /// What each of those counts at least.
    pub floor: MicroUsd,
}

/// The runs of this process.
#[derive(Debug, Default)]
pub struct Runs {
    open: Mutex<Vec<(TokenHash, Arc<Run>)>>,
}

// === impl Runs ===

impl Runs {
    pub(super) fn open(&self, run: Arc<Run>, token: TokenHash) -> Result<(), AppsError> {
        let mut open = self.open.lock();
        // A run that is taken up again while its old connection is not yet known to have ended.
        let is_again = open.iter().any(|(_, other)| other.id == run.id);
        if open.len() >= RUNS_MAX && !is_again {
            return Err(AppsError::RunsFull);
        }
        open.retain(|(_, other)| other.id != run.id);
        open.push((token, run));
        Ok(())
    }

    pub(super) fn close(&self, run: &Arc<Run>) {
        self.open
            .lock()
            .retain(|(_, other)| !Arc::ptr_eq(other, run));
    }

    /// Every hash is looked at, also behind one that fits.
    pub(super) fn with(&self, hash: TokenHash) -> Option<Arc<Run>> {
        let mut found = None;
        for (token, run) in self.open.lock().iter() {
            if *token == hash {
                found = Some(Arc::clone(run));
            }
        }
        found
    }
}

// === impl Run ===

impl Run {
    /// A run that begins now.
    pub fn new(app: &App, max: Option<MicroUsd>, now_ms: u64) -> Result<Self, AppsError> {
        let mut random = [0; 10];
        getrandom::fill(&mut random).map_err(AppsError::Random)?;
        let id = Builder::from_unix_timestamp_millis(now_ms, &random).into_uuid();
        Ok(Self::again(id.to_string(), app, max, RunSoFar::default()))
    }

    /// A run that goes on, with what the ledger knows of it.
    pub fn again(id: String, app: &App, max: Option<MicroUsd>, so_far: RunSoFar) -> Self {
        let mut purse = Purse {
            max,
            spent: so_far.spent,
            flying: HashMap::new(),
            held: HashMap::new(),
            repeats: HashMap::new(),
            dearest: so_far.dearest,
        };
        purse.held = so_far
            .unknown
            .into_iter()
            .map(|id| (id, purse.expected(so_far.floor)))
            .collect();
        Self {
            id: id.into(),
            app: Arc::clone(&app.name),
            purse: Mutex::new(purse),
            moved: watch::Sender::new(()),
        }
    }

    /// Asks for leave for one request. With `Go` it counts as on its way.
    pub fn ask(&self, entry: EntryId, floor: MicroUsd) -> Leave {
        self.purse.lock().ask(entry, floor)
    }

    /// A request that repeats what was bought, under the key of the entry `from`: it may go, for what it
    /// costs is spent or set aside.
    pub fn repeats(&self, entry: EntryId, from: EntryId) {
        self.purse.lock().repeats(entry, from);
    }

    /// Nothing is left: the limit, what was billed, and what is set aside.
    pub fn over(&self) -> Option<(MicroUsd, MicroUsd, MicroUsd)> {
        let purse = self.purse.lock();
        let held = sum(purse.held.values());
        let max = purse.max.filter(|max| purse.left(*max).is_zero())?;
        Some((max, purse.spent, held))
    }

    /// Nothing of it was sent.
    pub fn give_back(&self, entry: EntryId) {
        self.purse.lock().flying.remove(&entry);
        self.moved.send_replace(());
    }

    /// How a request ended; the service's estimate counts for what others may cost.
    pub fn ended(&self, entry: EntryId, state: State, estimate: Option<MicroUsd>) {
        self.purse.lock().ended(entry, state, estimate);
        self.moved.send_replace(());
    }

    /// Marked whenever a request has ended.
    pub fn moves(&self) -> watch::Receiver<()> {
        self.moved.subscribe()
    }
}

// === impl Purse ===

impl Purse {
    /// What a request is expected to cost: as much as the dearest so far, and no less than `floor`.
    fn expected(&self, floor: MicroUsd) -> MicroUsd {
        self.dearest.map_or(floor, |dearest| dearest.max(floor))
    }

    /// What is paid is above the limit by one request at most, as long as none costs more than the
    /// dearest amount or estimate before it: alone, a request may go as long as anything is left; beside
    /// others, only when what is left would pay for all of them. Before the first price is known they go
    /// one at a time.
    fn ask(&mut self, entry: EntryId, floor: MicroUsd) -> Leave {
        let Some(max) = self.max else {
            self.flying.insert(entry, MicroUsd::ZERO);
            return Leave::Go;
        };
        let left = self.left(max);
        if left.is_zero() {
            let (spent, held) = (self.spent, sum(self.held.values()));
            return Leave::Reached { max, spent, held };
        }
        let expected = self.expected(floor);
        let others = u64::try_from(self.flying.len()).unwrap_or(u64::MAX);
        let all = others
            .checked_add(1)
            .and_then(|count| expected.get().checked_mul(count))
            .map(MicroUsd::new);
        let fits = self.dearest.is_some() && all.is_some_and(|all| all <= left);
        if others > 0 && !fits {
            return Leave::Wait;
        }
        self.flying.insert(entry, expected);
        Leave::Go
    }

    fn left(&self, max: MicroUsd) -> MicroUsd {
        self.spent
            .checked_add(sum(self.held.values()))
            .and_then(|gone| max.checked_sub(gone))
            .unwrap_or(MicroUsd::ZERO)
    }

    fn repeats(&mut self, entry: EntryId, from: EntryId) {
        let first = self.repeats.get(&from).copied().unwrap_or(from);
        self.repeats.insert(entry, first);
        self.flying.insert(entry, MicroUsd::ZERO);
    }

    fn ended(&mut self, entry: EntryId, state: State, estimate: Option<MicroUsd>) {
        let expected = self.flying.remove(&entry).unwrap_or(MicroUsd::ZERO);
        // "One key adds at most one amount": whoever tells it tells it for all of the key.
        let first = self.repeats.get(&entry).copied();
        let billed = match state {
            State::Settled { billed } | State::Reconciled { billed } => {
                if !billed.is_zero() {
                    first.map(|first| self.held.remove(&first));
                }
                Some(billed)
            }
            State::Replayed => {
                first.map(|first| self.held.remove(&first));
                None
            }
            State::Failed => None,
            State::Open | State::Unreported | State::InDoubt { .. } => {
                let is_held = first.is_some_and(|first| self.held.contains_key(&first));
                if !is_held {
                    let at_least = self.expected(expected);
                    self.held.insert(entry, at_least);
                }
                None
            }
        };
        if let Some(billed) = billed {
            // A sum that cannot be held is above every limit.
            let most = MicroUsd::new(u64::MAX);
            self.spent = self.spent.checked_add(billed).unwrap_or(most);
        }
        self.dearest = self.dearest.max(billed).max(estimate);
    }
}

/// A sum that cannot be held is above every limit.
fn sum<'a>(amounts: impl Iterator<Item = &'a MicroUsd>) -> MicroUsd {
    amounts.fold(MicroUsd::ZERO, |sum, amount| {
        sum.checked_add(*amount).unwrap_or(MicroUsd::new(u64::MAX))
    })
}

#[cfg(test)]
mod tests;
