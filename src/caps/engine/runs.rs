//! The limits of runs (`bursar exec --max-usd`): a purse without a window, for as long as its run lives.
//!
//! It is charged by the ledger's news of entries that have the run's name, evidence included. A purse
//! outlives its connection, so that a run that is taken up again finds what is under way.
//!
//! Promise: what is under way, told or held is counted once; a bounded number of purses, of which none
//! is forgotten that may still change.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::flight::{Ask, Flight};
use super::room::{Share, Under, sum};
use crate::caps::refused::Refused;
use crate::ledger::entry::EntryId;
use crate::ledger::usage::{Charge, Charged, RunSoFar};
use crate::money::MicroUsd;

/// Purses of runs whose connection has ended, kept for a run that is taken up again.
const ENDED_MAX: usize = 256;

/// Entries of a run that a repeat is known by. One of an older entry is judged as a new request.
const ENTRIES_MAX: usize = 1_024;

/// What a run may spend, and what it has.
#[derive(Debug, Default)]
pub struct RunPurse {
    limit: MicroUsd,
    charge: Charge,
    pub under: Under,
    /// Ends that the ledger has not told.
    untold: HashMap<EntryId, Charge>,
    /// Its newest entries.
    entries: VecDeque<EntryId>,
    /// Connections that hold it open.
    holders: usize,
}

/// The purses of all runs that are known.
#[derive(Debug, Default)]
pub struct Runs(BTreeMap<Arc<str>, RunPurse>);

// === impl RunPurse ===

impl RunPurse {
    pub fn limit(&self) -> MicroUsd {
        self.limit
    }

    /// What is billed and held.
    pub fn counted(&self) -> Charge {
        let mut charge = self.charge;
        self.untold
            .values()
            .for_each(|untold| charge.merge(*untold));
        charge
    }

    /// What an ask repeats is billed or held in this run.
    pub fn covers(&self, ask: &Ask) -> bool {
        let mut charged = ask.repeats.iter().flat_map(|repeats| &repeats.from);
        charged.any(|entry| self.entries.contains(entry))
    }

    pub fn is_reached(&self) -> bool {
        sum(self.counted()) >= u128::from(self.limit.get())
    }

    pub fn refusal(&self, run: &str, app: &str) -> Refused {
        Refused::run_reached(run, app, self.limit, self.counted())
    }

    fn note(&mut self, entry: EntryId) {
        self.entries.push_back(entry);
        if self.entries.len() > ENTRIES_MAX {
            self.entries.pop_front();
        }
    }

    fn may_be_forgotten(&self) -> bool {
        self.holders == 0 && self.under == Under::default() && self.untold.is_empty()
    }
}

// === impl Runs ===

impl Runs {
    /// One connection more holds a run open. `false`: this process does not know the run.
    pub fn hold(&mut self, run: &str, limit: MicroUsd) -> bool {
        let Some(purse) = self.0.get_mut(run) else {
            return false;
        };
        purse.limit = limit;
        purse.holders += 1;
        true
    }

    /// The same, of a run that the journal tells this of.
    pub fn open(&mut self, run: &Arc<str>, limit: MicroUsd, so_far: RunSoFar) {
        if self.hold(run, limit) {
            return;
        }
        let mut purse = RunPurse {
            limit,
            charge: so_far.charge,
            holders: 1,
            ..RunPurse::default()
        };
        so_far.entries.iter().for_each(|entry| purse.note(*entry));
        self.0.insert(Arc::clone(run), purse);
    }

    /// A connection that held a run open has ended.
    pub fn close(&mut self, run: &str) {
        if let Some(purse) = self.0.get_mut(run) {
            purse.holders = purse.holders.saturating_sub(1);
        }
        let is_ended = |(run, purse): (&Arc<str>, &RunPurse)| {
            purse.may_be_forgotten().then(|| Arc::clone(run))
        };
        // Their names begin with the time: the oldest are first.
        let ended: Vec<_> = self.0.iter().filter_map(is_ended).collect();
        let surplus = ended.len().saturating_sub(ENDED_MAX);
        for run in ended.iter().take(surplus) {
            self.0.remove(run);
        }
    }

    /// The purse of the run that an ask belongs to. A run without a limit has none.
    pub fn of(&self, ask: &Ask) -> Option<(&Arc<str>, &RunPurse)> {
        self.get(ask.run.as_ref()?)
    }

    pub fn get(&self, run: &Arc<str>) -> Option<(&Arc<str>, &RunPurse)> {
        self.0.get_key_value(run)
    }

    pub fn begins(&mut self, ask: &Ask, share: Share) {
        if let Some(purse) = self.purse_of(ask.run.as_deref()) {
            purse.under.add(share, share.own);
            purse.note(ask.entry);
        }
    }

    pub fn changes(&mut self, run: Option<&str>, before: Share, share: Share) {
        if let Some(purse) = self.purse_of(run) {
            purse.under.remove(before, before.own);
            purse.under.add(share, share.own);
        }
    }

    /// What a request costs is known before the ledger tells it.
    pub fn hears(&mut self, run: Option<&str>, entry: EntryId, charge: Charge) {
        if let Some(purse) = self.purse_of(run) {
            purse.untold.insert(entry, charge);
        }
    }

    /// A request is not under way any more; `charge`: what it came to, `None` if it was not sent.
    pub fn ends(&mut self, flight: &Flight, charge: Option<Charge>) {
        let Some(purse) = self.purse_of(flight.ask.run.as_deref()) else {
            return;
        };
        purse.under.remove(flight.share, flight.share.own);
        purse.untold.remove(&flight.ask.entry);
        let is_charged = charge.is_some_and(|charge| charge != Charge::default());
        if !is_charged && !purse.covers(&flight.ask) {
            // The run has nothing of it, so that a repeat of it would be its first purchase.
            purse.entries.retain(|entry| *entry != flight.ask.entry);
        }
        let Some(charge) = charge.filter(|charge| *charge != Charge::default()) else {
            return;
        };
        match (flight.booked, flight.told) {
            // It is charged.
            (_, true) => {}
            // Its end is in a journal that was read anew.
            (true, false) => purse.charge.merge(charge),
            (false, false) => drop(purse.untold.insert(flight.ask.entry, charge)),
        }
    }

    /// The ledger tells of an entry that has a run's name.
    pub fn charge(&mut self, charged: &Charged) {
        let Some(purse) = self.purse_of(charged.run.as_deref()) else {
            return;
        };
        let untold = charged.entry.and_then(|entry| purse.untold.remove(&entry));
        // Evidence takes back what its entry's end held; the end itself tells what it holds.
        let is_evidence = charged.charge.held.left.get() > 0;
        if let Some(untold) = untold.filter(|_| is_evidence) {
            purse.charge.merge(untold);
        }
        purse.charge.merge(charged.charge);
    }

    /// The journal was read anew, which tells no single charges. These ends are in it: what is known of
    /// them here stays.
    pub fn keep_untold(&mut self, ended: &[EntryId], is_under_way: impl Fn(&EntryId) -> bool) {
        for purse in self.0.values_mut() {
            for entry in ended.iter().filter(|entry| !is_under_way(entry)) {
                if let Some(untold) = purse.untold.remove(entry) {
                    purse.charge.merge(untold);
                }
            }
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    fn purse_of(&mut self, run: Option<&str>) -> Option<&mut RunPurse> {
        self.0.get_mut(run?)
    }
}
