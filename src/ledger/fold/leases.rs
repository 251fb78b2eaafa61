//! What each lease of a shared cap came to: billed, and held for entries whose price is not known.
//!
//! Promise: made of records alone; bounded by the days that are kept and the leases of them. Which are kept is no
//! matter of the clock: one that was ahead takes nothing away but one of the days.

use std::collections::{BTreeMap, BTreeSet};

use crate::ledger::fold::charge::Charge;
use crate::ledger::leases::{LeaseId, Leases};

/// Days on which any lease was spent, the newest so many: the longest window is a month, and evidence comes late.
const DAYS_MAX: usize = 72;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// What a lease came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseSum {
    pub charge: Charge,
    /// The last day on which an entry of it began, counted from 1970 in UTC.
    pub last_day: u64,
}

/// The sums of all leases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseSums(BTreeMap<LeaseId, LeaseSum>);

// === impl LeaseSums ===

impl LeaseSums {
    /// What is billed and held of a lease.
    pub fn charged(&self, lease: LeaseId) -> Charge {
        self.0.get(&lease).map(|sum| sum.charge).unwrap_or_default()
    }

    /// Adds an entry that began at a moment, Unix milliseconds, to each of its leases.
    pub fn add(&mut self, leases: &Leases, at_ms: u64, charge: Charge) {
        if charge.is_none() {
            return;
        }
        let last_day = at_ms / DAY_MS;
        for lease in leases.iter() {
            self.add_sum(lease, LeaseSum { charge, last_day });
        }
    }

    /// Adds what was summed before.
    pub fn add_sum(&mut self, lease: LeaseId, added: LeaseSum) {
        let sum = self.0.entry(lease).or_default();
        sum.charge += added.charge;
        sum.last_day = sum.last_day.max(added.last_day);
    }

    /// Forgets leases that were spent longest ago, beyond the bound.
    pub fn prune(&mut self) {
        let mut days: BTreeSet<u64> = self.0.values().map(|sum| sum.last_day).collect();
        if days.len() <= DAYS_MAX {
            return;
        }
        while days.len() > DAYS_MAX {
            days.pop_first();
        }
        self.0.retain(|_, sum| days.contains(&sum.last_day));
    }

    pub fn iter(&self) -> impl Iterator<Item = (LeaseId, LeaseSum)> {
        self.0.iter().map(|(lease, sum)| (*lease, *sum))
    }
}

#[cfg(test)]
mod tests;
