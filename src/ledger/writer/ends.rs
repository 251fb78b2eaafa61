//! How one process ends and the next begins: a note of an end in order, and without it the records
//! of what a killed process left.
//!
//! Promise: what a start assumes of the process before it is written down, so that every later start
//! finds the same.

use super::{USAGE_PAUSE, Writer};
use crate::ledger::entry::EntryId;
use crate::ledger::error::LedgerError;
use crate::ledger::load::STOPPED;
use crate::ledger::mark::Mark;
use crate::ledger::record::Record;
use crate::ledger::undelivered::{Deliveries, Handover, Undelivered};
use crate::ledger::usage::Kept;

/// What a killed process left, and no record tells of yet.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Entries in flight.
    pub crashed: Vec<EntryId>,
    /// Answers of which nobody knows whether their apps have them.
    pub unclear: Vec<Undelivered>,
}

// === impl Left ===

impl Left {
    pub fn is_none(&self) -> bool {
        self.crashed.is_empty() && self.unclear.is_empty()
    }

    /// The record that says what is assumed of an answer.
    fn assumed(row: &Undelivered) -> Record {
        let handover = Handover {
            delivered: false,
            assumed: true,
        };
        Record::Delivery(Box::new(row.clone()), handover)
    }

    /// What is undelivered, with what these will be when they are written down.
    pub fn rows(&self, deliveries: &Deliveries, now_ms: u64) -> Vec<Undelivered> {
        if self.is_none() {
            return deliveries.rows(now_ms);
        }
        let mut then = deliveries.clone();
        for row in &self.unclear {
            then.apply(0, &Self::assumed(row));
        }
        for id in &self.crashed {
            then.end_unwritten(*id, now_ms);
        }
        then.rows(now_ms)
    }
}

// === impl Writer ===

impl Writer {
    /// Writes down what a killed process left. On a disk without room it is tried again.
    pub(super) fn end_what_died(&mut self) -> Result<(), LedgerError> {
        if self.left.is_none() {
            return Ok(());
        }
        let mut batch = self.begin()?;
        if let Some(loaded) = self.loaded.as_mut() {
            for row in &self.left.unclear {
                loaded.add(&mut batch, &Left::assumed(row))?;
            }
        }
        // First: the ends of the others are of now, and move the journal's last moments.
        self.finish(&batch)?;
        self.left.unclear.clear();
        let crashed = self.left.crashed.clone();
        self.end_entries(&crashed, true)?;
        self.left.crashed.clear();
        Ok(())
    }

    /// Notes that nothing came for [`PATIENCE`]: an answer that was settled before that has gone out, or
    /// the proxy has noted that it goes out slowly.
    ///
    /// [`PATIENCE`]: super::PATIENCE
    pub(super) fn note_given(&mut self) {
        if !self.left.is_none() {
            return;
        }
        let Some(loaded) = self.loaded.as_mut() else {
            return;
        };
        let last_seq = loaded.books.last_seq();
        if loaded.given_seq >= last_seq {
            return;
        }
        loaded.given_seq = last_seq;
        if let Some(index) = &loaded.index
            && let Err(error) = index.note_given(last_seq)
        {
            tracing::warn!(%error, "that answers were given could not be noted");
        }
    }

    /// Writes usage to its file, now and then and at the end, so that the next start need not read a
    /// month of the journal.
    pub(super) fn keep_usage(&mut self, is_last: bool) {
        let now = self.options.clock.monotonic();
        let (kept_at, kept_seq) = self.usage_kept;
        let Some(loaded) = self.loaded.as_ref().filter(|_| self.failure.is_none()) else {
            return;
        };
        let last_seq = loaded.books.last_seq();
        let is_due = is_last || now.saturating_sub(kept_at) >= USAGE_PAUSE;
        if !is_due || last_seq == kept_seq {
            return;
        }
        let usage = loaded.books.usage();
        self.usage_kept = (now, last_seq);
        if let Err(error) = Kept::write(&self.directory, &self.ledger, last_seq, usage) {
            tracing::warn!(%error, "what caps were charged is not kept; a start reads more of the journal");
        }
    }

    /// Notes up to where the journal was written by a process that ended in order.
    pub(super) fn note_stop(&self) {
        // The next start has to find what the process before this one left.
        if !self.shared.ends_in_order() || !self.left.is_none() {
            return;
        }
        let Some(loaded) = self.loaded.as_ref().filter(|_| self.failure.is_none()) else {
            return;
        };
        let last_seq = loaded.books.last_seq();
        if let Err(error) = Mark::write_to(&self.directory, STOPPED, last_seq) {
            tracing::warn!(%error, "the end in order could not be noted");
        }
    }
}
