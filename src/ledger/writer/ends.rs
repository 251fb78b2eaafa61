//! How one process ends and the next begins: a note of an end in order, and without it the records
//! of what a killed process left.
//!
//! Promise: what a start assumes of the process before it is written down, so that every later start
//! finds the same.

use super::{USAGE_PAUSE, Writer};
use crate::ledger::entry::EntryId;
use crate::ledger::error::LedgerError;
use crate::ledger::load::STOPPED;
use crate::ledger::record::Record;
use crate::ledger::undelivered::{Handover, Undelivered};
use crate::ledger::usage::Kept;

// === impl Writer ===

impl Writer {
    /// What a killed process left: entries in flight, and answers of which nobody knows whether their
    /// apps have them.
    pub(super) fn end_what_died(
        &mut self,
        crashed: &[EntryId],
        unclear: &[Undelivered],
    ) -> Result<(), LedgerError> {
        let mut batch = self.begin()?;
        if let Some(loaded) = self.loaded.as_mut() {
            for row in unclear {
                let handover = Handover {
                    delivered: false,
                    assumed: true,
                };
                let record = Record::Delivery(Box::new(row.clone()), handover);
                loaded.add(&mut batch, &record)?;
            }
        }
        // First: the ends of the others are of now, and move the journal's last moments.
        self.finish(&batch)?;
        self.end_entries(crashed, true)
    }

    /// Notes that nothing came for [`PATIENCE`]: an answer that was settled before that has gone out, or
    /// the proxy has noted that it goes out slowly.
    ///
    /// [`PATIENCE`]: super::PATIENCE
    pub(super) fn note_given(&mut self) {
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
        if !self.shared.ends_in_order() {
            return;
        }
        let Some(loaded) = self.loaded.as_ref().filter(|_| self.failure.is_none()) else {
            return;
        };
        let last_seq = loaded.books.last_seq().to_string();
        if let Err(error) = self.directory.replace(STOPPED, last_seq.as_bytes()) {
            tracing::warn!(%error, "the end in order could not be noted");
        }
    }
}
