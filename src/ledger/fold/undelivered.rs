//! Requests whose answer their app never received, as the journal records them, so that a restarted
//! proxy still knows which purchase an app's retry belongs to.
//!
//! An entry is undelivered when its process died under it, when by its outcome no app had the
//! answer, or when a `delivery` record says so afterwards: a receipt is settled before its answer is
//! written (rule I2), so a failed write is known too late for the outcome. An intent that adopts a key
//! removes the key's row; the end of that intent decides again.
//!
//! Promise: made of records alone, so what is read back equals what wrote it; bounded, and the oldest
//! goes first. A key has one row at most, and an app's own key none.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

pub use crate::ledger::delivery::{Handover, Remembered, Undelivered};
pub use crate::ledger::entry::{Delivery, FirstSent, KeyUse};
use crate::ledger::entry::{Intent, Outcome, State};
use crate::ledger::id::EntryId;
use crate::ledger::kept_key::EPOCH_MS;
use crate::ledger::record::Record;

/// The table, fed by the journal's records.
#[derive(Clone, Debug, Default)]
pub struct Deliveries {
    /// Requests under way: undelivered if the process dies now.
    open: HashMap<EntryId, Undelivered>,
    rows: HashMap<Arc<str>, (u64, Undelivered)>,
    /// Keys of the rows by the order in which they ended.
    order: BTreeMap<u64, Arc<str>>,
    next_number: u64,
    /// Answers that were about to be written, or streams about to be ended, with their outcomes'
    /// sequence numbers, of the journal's last moments.
    unclear: VecDeque<(u64, Undelivered)>,
    /// Wall time of the last record.
    last_ms: u64,
}

/// Rows held at once; the oldest is forgotten first. As many as the proxy keeps.
const ROWS_MAX: usize = 4096;

/// Answers in `unclear` at once.
const UNCLEAR_MAX: usize = 4096;

/// How long before the journal's last record an answer may have been settled that a killed process
/// had not yet written to its app.
///
/// An answer that takes longer is noted by the proxy.
const UNCLEAR_MS: u64 = 2_000;

// === impl Deliveries ===

impl Deliveries {
    pub fn apply(&mut self, seq: u64, record: &Record) {
        match record {
            Record::Intent(intent) => self.begin(intent),
            Record::Outcome(outcome, _, verdict) => self.end(seq, outcome, verdict.state),
            Record::Crashed(ended, _) => self.end_unwritten(ended.id, ended.at_ms),
            Record::Withdrawn(ended, _) => {
                self.last_ms = ended.at_ms;
                // Never sent; a key that it had adopted is passed on.
                if let Some(row) = self.open.remove(&ended.id)
                    && row.key_use.adoptions > 0
                {
                    self.insert(row);
                }
            }
            Record::Delivery(row, handover) => {
                self.unclear.retain(|(_, unclear)| unclear.id != row.id);
                if handover.delivered {
                    self.remove(&row.key.value);
                } else {
                    self.insert((**row).clone());
                }
            }
            Record::Reconciled(evidence, _) => self.last_ms = evidence.at_ms,
            Record::Rollup(_) | Record::Unknown => {}
        }
    }

    fn begin(&mut self, intent: &Intent) {
        self.last_ms = intent.at_ms;
        if let Some(row) = Undelivered::of_intent(intent) {
            self.remove(&row.key.value);
            self.open.insert(intent.id, row);
        }
    }

    fn end(&mut self, seq: u64, outcome: &Outcome, state: State) {
        self.last_ms = outcome.at_ms;
        let Some(mut row) = self.open.remove(&outcome.id) else {
            return;
        };
        row.at_ms = outcome.at_ms;
        match outcome.delivery {
            Delivery::Given => {}
            Delivery::Missed => {
                if Delivery::Missed.leaves_undelivered(state, row.key_use.adoptions) {
                    self.insert(row);
                }
            }
            Delivery::Pending => {
                self.unclear.push_back((seq, row));
                while self.unclear.len() > UNCLEAR_MAX
                    || self
                        .unclear
                        .front()
                        .is_some_and(|(_, oldest)| !self.is_of_the_last_moments(oldest))
                {
                    self.unclear.pop_front();
                }
            }
        }
    }

    /// The process of an entry died under it.
    pub fn end_unwritten(&mut self, id: EntryId, at_ms: u64) {
        self.last_ms = at_ms;
        if let Some(row) = self.open.remove(&id) {
            self.insert(Undelivered { at_ms, ..row });
        }
    }

    fn is_of_the_last_moments(&self, row: &Undelivered) -> bool {
        self.last_ms.abs_diff(row.at_ms) <= UNCLEAR_MS
    }

    fn insert(&mut self, row: Undelivered) {
        let key = Arc::clone(&row.key.value);
        self.remove(&key);
        let number = self.next_number;
        self.next_number = number.saturating_add(1);
        self.order.insert(number, Arc::clone(&key));
        self.rows.insert(key, (number, row));
        if self.rows.len() > ROWS_MAX
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.rows.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &str) {
        if let Some((number, _)) = self.rows.remove(key) {
            self.order.remove(&number);
        }
    }

    /// The rows of the last 24 hours, in the order in which they ended. Old ones are left out and not
    /// taken out: a clock that jumped may come back.
    pub fn rows(&self, now_ms: u64) -> Vec<Undelivered> {
        self.order
            .values()
            .filter_map(|key| self.rows.get(key))
            .filter(|(_, row)| now_ms.saturating_sub(row.at_ms) < EPOCH_MS)
            .map(|(_, row)| row.clone())
            .collect()
    }

    /// Wall time of the last record.
    pub fn last_ms(&self) -> u64 {
        self.last_ms
    }

    /// Answers that a killed process may not have written to their end, oldest first. `sure_seq`: up to here a
    /// process ended in order, or the index recorded so when the writer had had nothing to do for a
    /// while.
    ///
    /// Assumed: such an answer was not delivered. An adopted repeat costs 0, a second purchase does
    /// not; the price is that an equal request that an app makes on purpose is answered with it, when
    /// its process was killed within two seconds of the answer and the app asks again.
    pub fn unclear(&self, sure_seq: u64) -> Vec<Undelivered> {
        self.unclear
            .iter()
            .filter(|(seq, row)| *seq > sure_seq && self.is_of_the_last_moments(row))
            .map(|(_, row)| row.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests;
