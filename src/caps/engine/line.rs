//! The requests that wait for room below a cap. Each app has a line of its own, in the order of arrival,
//! and so has each run of it, and each session that has a limit, so that their limits delay no other request. The apps take turns: the one
//! that was served longest ago is first.
//!
//! Promise: no request overtakes another within a line; bounded.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::flight::Ask;
use crate::caps::refused::Refused;
use crate::ledger::entry::{EntryId, Leases};
use crate::ledger::marks::SessionHash;
use crate::money::MicroUsd;

/// Most requests that wait, of all apps; beside the default `[listen] connections_max` the bound on those that wait
/// inside comes first.
const WAITERS_MAX: usize = 8192;

/// The answer to a waiting request. It must not be dropped under the lock: what was admitted is released
/// then.
pub type Decision = Result<Going, Refused>;

/// What a request may go with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Going {
    /// Held for it while its price is not known.
    pub reserved: MicroUsd,
    /// The leases of shared caps that it spends.
    pub leases: Leases,
}

/// The way to a waiter.
pub type Way = oneshot::Sender<Decision>;

/// An app's own line, or that of a run or of a session of it.
type LineOf = (Arc<str>, Option<Arc<str>>, Option<SessionHash>);

/// A request that waits.
#[derive(Debug)]
struct Waiter {
    ask: Ask,
    way: Way,
    number: u64,
}

/// All lines.
#[derive(Debug, Default)]
pub struct WaitingLines {
    of: BTreeMap<LineOf, VecDeque<Waiter>>,
    /// When an app was last given a turn, by number.
    turns: HashMap<Arc<str>, u64>,
    next_number: u64,
}

/// Answers to be sent when the lock is let go of.
#[must_use]
#[derive(Debug, Default)]
pub struct Answers(Vec<(EntryId, Way, Decision)>);

fn line_of(ask: &Ask) -> LineOf {
    let session = ask.session.map(|session| session.hash);
    (Arc::clone(&ask.app), ask.run.clone(), session)
}

// === impl Answers ===

impl Answers {
    pub fn one(entry: EntryId, way: Way, decision: Decision) -> Self {
        Self(vec![(entry, way, decision)])
    }

    pub fn add(&mut self, entry: EntryId, way: Way, decision: Decision) {
        self.0.push((entry, way, decision));
    }

    /// Sends them, and returns what was admitted for requests that have left the line.
    pub fn send(self) -> Vec<EntryId> {
        let mut gone = Vec::new();
        for (entry, way, decision) in self.0 {
            if let Err(Ok(_)) = way.send(decision) {
                gone.push(entry);
            }
        }
        gone
    }
}

// === impl WaitingLines ===

impl WaitingLines {
    pub fn waiting(&self) -> usize {
        self.of.values().map(VecDeque::len).sum()
    }

    /// Puts a request in line. As many wait as may: it gets its way back.
    pub fn push(&mut self, ask: Ask, way: Way) -> Result<(), (Way, Refused)> {
        let waiting = self.waiting();
        if waiting >= WAITERS_MAX {
            return Err((way, Refused::crowded(waiting)));
        }
        let number = self.number();
        let line = self.of.entry(line_of(&ask)).or_default();
        line.push_back(Waiter { ask, way, number });
        Ok(())
    }

    /// Removes a request from the line that does not wait any longer.
    pub fn give_up(&mut self, entry: EntryId) {
        for line in self.of.values_mut() {
            line.retain(|waiter| waiter.ask.entry != entry);
        }
        self.of.retain(|_, line| !line.is_empty());
    }

    /// The first of each line, the one whose turn it is before the others.
    pub fn heads(&self) -> Vec<Ask> {
        let heads = self.of.iter().filter_map(|((app, ..), line)| {
            let head = line.front()?;
            let turn = self.turns.get(app).copied().unwrap_or(0);
            Some((turn, head.number, &head.ask))
        });
        let mut heads: Vec<_> = heads.collect();
        heads.sort_unstable_by_key(|(turn, number, _)| (*turn, *number));
        heads.into_iter().map(|(_, _, ask)| ask.clone()).collect()
    }

    /// Takes the first out of an ask's line.
    pub fn take_first(&mut self, ask: &Ask) -> Option<Way> {
        let of = line_of(ask);
        let line = self.of.get_mut(&of)?;
        let first = line.pop_front();
        if line.is_empty() {
            self.of.remove(&of);
        }
        first.map(|waiter| waiter.way)
    }

    /// An app was given a turn.
    pub fn took_turn(&mut self, app: &Arc<str>) {
        let turn = self.number();
        self.turns.insert(Arc::clone(app), turn);
    }

    pub fn ask_of(&self, entry: EntryId) -> Option<&Ask> {
        let mut waiters = self.of.values().flatten();
        let waiter = waiters.find(|waiter| waiter.ask.entry == entry)?;
        Some(&waiter.ask)
    }

    fn number(&mut self) -> u64 {
        self.next_number = self.next_number.saturating_add(1);
        self.next_number
    }
}
