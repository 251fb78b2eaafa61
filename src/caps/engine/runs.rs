//! The limits of runs (`bursar exec --max-usd`): a budget without a window, for as long as its run lives.
//!
//! The ledger's updates on entries with the run's name charge it, evidence included. A budget outlives its
//! connection, so that a run that reconnects finds what is under way.
//!
//! Promise: what is under way, reported or held is counted once; a bounded number of budgets, of which none
//! is forgotten that may still change.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::flight::{Ask, Flight};
use super::room::{Room, Share, Take, Under, sum};
use crate::caps::refused::Refused;
use crate::ledger::entry::EntryId;
use crate::ledger::usage::{Charge, Charged, RunSoFar};
use crate::money::MicroUsd;

/// Budgets of runs whose connection has ended, kept for a run that is taken up again.
const ENDED_MAX: usize = 256;

/// Entries of a run that a repeat is known by. One of an older entry is judged as a new request.
const ENTRIES_MAX: usize = 1_024;

/// What a run may spend, and what it has.
#[derive(Debug, Default)]
pub struct RunBudget {
    limit: MicroUsd,
    charge: Charge,
    under: Under,
    /// Ends that the ledger has not reported.
    unreported: HashMap<EntryId, Charge>,
    /// Its newest entries.
    entries: VecDeque<EntryId>,
    /// Connections that hold it open.
    holders: usize,
}

/// The budgets of all runs that are known.
#[derive(Debug, Default)]
pub struct RunBudgets(BTreeMap<Arc<str>, RunBudget>);

// === impl RunBudget ===

impl RunBudget {
    /// What is billed and held.
    pub fn counted(&self) -> Charge {
        let mut charge = self.charge;
        self.unreported
            .values()
            .for_each(|unreported| charge += *unreported);
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

    /// Whether a request of it fits below its limit now.
    pub fn room(&self, take: Take) -> Room {
        self.under.room(self.counted(), self.limit, take)
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
        self.holders == 0 && self.under == Under::default() && self.unreported.is_empty()
    }
}

// === impl RunBudgets ===

impl RunBudgets {
    /// One connection more holds a run open. `false`: this process does not know the run.
    pub fn hold(&mut self, run: &str, limit: MicroUsd) -> bool {
        let Some(budget) = self.0.get_mut(run) else {
            return false;
        };
        budget.limit = limit;
        budget.holders += 1;
        true
    }

    /// The same, for a run of which the journal reports `so_far`.
    pub fn open(&mut self, run: &Arc<str>, limit: MicroUsd, so_far: RunSoFar) {
        if self.hold(run, limit) {
            return;
        }
        let mut budget = RunBudget {
            limit,
            charge: so_far.charge,
            holders: 1,
            ..RunBudget::default()
        };
        so_far.entries.iter().for_each(|entry| budget.note(*entry));
        self.0.insert(Arc::clone(run), budget);
    }

    /// A connection that held a run open has ended.
    pub fn close(&mut self, run: &str) {
        if let Some(budget) = self.0.get_mut(run) {
            budget.holders = budget.holders.saturating_sub(1);
        }
        let is_ended = |(run, budget): (&Arc<str>, &RunBudget)| {
            budget.may_be_forgotten().then(|| Arc::clone(run))
        };
        // Their names begin with the time: the oldest are first.
        let ended: Vec<_> = self.0.iter().filter_map(is_ended).collect();
        let surplus = ended.len().saturating_sub(ENDED_MAX);
        for run in ended.iter().take(surplus) {
            self.0.remove(run);
        }
    }

    /// The budget of the run that an ask belongs to. A run without a limit has none.
    pub fn of(&self, ask: &Ask) -> Option<(&Arc<str>, &RunBudget)> {
        self.get(ask.run.as_ref()?)
    }

    pub fn get(&self, run: &Arc<str>) -> Option<(&Arc<str>, &RunBudget)> {
        self.0.get_key_value(run)
    }

    /// The words for what takes no room, where a run has nothing left.
    pub fn reached(&self, run: &Arc<str>, app: &str) -> Option<Refused> {
        let (run, budget) = self.get(run)?;
        budget.is_reached().then(|| budget.refusal(run, app))
    }

    pub fn begins(&mut self, ask: &Ask, share: Share) {
        if let Some(budget) = self.budget_of(ask.run.as_deref()) {
            budget.under.add(share, share.own);
            budget.note(ask.entry);
        }
    }

    pub fn changes(&mut self, run: Option<&str>, before: Share, share: Share) {
        if let Some(budget) = self.budget_of(run) {
            budget.under.remove(before, before.own);
            budget.under.add(share, share.own);
        }
    }

    /// What a request costs is known here before the ledger reports it.
    pub fn foresees(&mut self, run: Option<&str>, entry: EntryId, charge: Charge) {
        if let Some(budget) = self.budget_of(run) {
            budget.unreported.insert(entry, charge);
        }
    }

    /// A request is not under way any more; `charge`: what it came to, `None` if it was not sent.
    pub fn ends(&mut self, flight: &Flight, charge: Option<Charge>) {
        let Some(budget) = self.budget_of(flight.ask.run.as_deref()) else {
            return;
        };
        budget.under.remove(flight.share, flight.share.own);
        budget.unreported.remove(&flight.ask.entry);
        let is_charged = charge.is_some_and(|charge| charge != Charge::default());
        if !is_charged && !budget.covers(&flight.ask) {
            // The run has nothing of it, so that a repeat of it would be its first purchase.
            budget.entries.retain(|entry| *entry != flight.ask.entry);
        }
        let Some(charge) = charge.filter(|charge| *charge != Charge::default()) else {
            return;
        };
        match (flight.booked, flight.is_reported) {
            // It is charged.
            (_, true) => {}
            // Its end is in a journal that was read anew.
            (true, false) => budget.charge += charge,
            (false, false) => drop(budget.unreported.insert(flight.ask.entry, charge)),
        }
    }

    /// The ledger reports an entry that has a run's name.
    pub fn charge(&mut self, charged: &Charged) {
        let Some(budget) = self.budget_of(charged.run.as_deref()) else {
            return;
        };
        let unreported = charged
            .entry
            .and_then(|entry| budget.unreported.remove(&entry));
        // Evidence takes back what its entry's end held; the end itself has what it holds.
        let is_evidence = charged.charge.held.left.get() > 0;
        if let Some(unreported) = unreported.filter(|_| is_evidence) {
            budget.charge += unreported;
        }
        budget.charge += charged.charge;
    }

    /// The journal was read again, which reports no single charges. These ends are in it: what is known of
    /// them here stays.
    pub fn keep_unreported(&mut self, ended: &[EntryId], is_under_way: impl Fn(&EntryId) -> bool) {
        for budget in self.0.values_mut() {
            for entry in ended.iter().filter(|entry| !is_under_way(entry)) {
                if let Some(unreported) = budget.unreported.remove(entry) {
                    budget.charge += unreported;
                }
            }
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    fn budget_of(&mut self, run: Option<&str>) -> Option<&mut RunBudget> {
        self.0.get_mut(run?)
    }
}
