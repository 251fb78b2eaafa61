//! Sums over the whole ledger: what `/metrics` and the caps print, and what the index keeps.
//!
//! Promise: derived from the journal's records and nothing else, so that the same records give the
//! same sums after any restart (rule I10).

use std::collections::BTreeMap;
use std::ops::AddAssign;

use crate::ledger::entry::InDoubt;
pub use crate::ledger::fold::effect::Effect;
use crate::ledger::sums::Globals;
pub use crate::ledger::sums::{
    Compared, HeldSums, LineKey, LineSums, MicroUsdSum, ReceiptKind, Standing,
};
use crate::protocol::Operation;

/// The whole ledger in sums. Cheap to clone by its `Arc`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub lines: BTreeMap<LineKey, LineSums>,
    pub globals: Globals,
    /// Entries in flight: an intent and no end yet.
    pub open: u64,
}

// === impl Totals ===

impl Totals {
    /// All that was billed, as far as it is known.
    pub fn billed(&self) -> MicroUsdSum {
        let mut sum = MicroUsdSum::default();
        self.lines.values().for_each(|row| sum.merge(row.billed));
        sum
    }

    /// What was saved against a frontier model, where both prices are known.
    pub fn compared(&self) -> Compared {
        let mut sum = Compared::default();
        self.lines.values().for_each(|row| sum += row.compared);
        sum
    }

    /// The part of it that was spent on answers that no app was there to read.
    pub fn drained(&self) -> MicroUsdSum {
        let mut sum = MicroUsdSum::default();
        self.lines.values().for_each(|row| sum.merge(row.drained));
        sum
    }

    /// Entries that ended.
    pub fn requests(&self) -> u64 {
        self.lines.values().map(|row| row.requests).sum()
    }

    /// Entries in doubt now, each reason listed, zero or not.
    pub fn in_doubt(&self) -> BTreeMap<InDoubt, u64> {
        let mut sums: BTreeMap<_, _> = InDoubt::ALL.iter().map(|reason| (*reason, 0)).collect();
        for row in self.lines.values() {
            for (reason, standing) in &row.in_doubt {
                *sums.entry(*reason).or_default() += standing.now();
            }
        }
        sums
    }

    /// Sound of complete answers in milliseconds, by speech route.
    pub fn audio_ms(&self) -> BTreeMap<Operation, u64> {
        let mut sums: BTreeMap<_, u64> = BTreeMap::new();
        for (key, row) in &self.lines {
            if row.audio_ms > 0 || row.audio_untold > 0 {
                let sum = sums.entry(key.operation).or_default();
                *sum = sum.saturating_add(row.audio_ms);
            }
        }
        sums
    }

    /// Entries without an amount now, by operation.
    pub fn unreported(&self) -> BTreeMap<Operation, u64> {
        let mut sums = BTreeMap::new();
        for (key, row) in &self.lines {
            if row.unreported.came > 0 {
                *sums.entry(key.operation).or_default() += row.unreported.now();
            }
        }
        sums
    }
}

impl AddAssign<&Effect> for Totals {
    fn add_assign(&mut self, effect: &Effect) {
        self.extend([(&effect.line, &effect.row)]);
        if let Some(globals) = &effect.globals {
            self.globals += globals;
        }
    }
}

impl<'a> Extend<(&'a LineKey, &'a LineSums)> for Totals {
    /// Adds each row to the sums of its line.
    fn extend<T: IntoIterator<Item = (&'a LineKey, &'a LineSums)>>(&mut self, rows: T) {
        for (line, row) in rows {
            if let Some(sums) = self.lines.get_mut(line) {
                *sums += row;
            } else {
                self.lines.insert(line.clone(), row.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;
