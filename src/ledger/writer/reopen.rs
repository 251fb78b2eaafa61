//! After a failure: the journal is let go of, opened and read again.
//!
//! Promise: at most once a second; what was refused although its line reached the file ends as never
//! sent; what this process was told is durable counts as known, whatever the file says now.

use super::{RETRY_PAUSE, Writer};
use crate::ledger::entry::EntryId;
use crate::ledger::error::LedgerError;
use crate::ledger::load::{Held, load};

// === impl Writer ===

impl Writer {
    pub(super) fn fail(&mut self, error: LedgerError) {
        if !self.is_told {
            let requests = if self.serves {
                "sent all the same, and written when it can write again"
            } else {
                "refused"
            };
            tracing::error!(%error, "the ledger cannot write; metered requests are {requests}");
        }
        self.is_told = true;
        self.failure = Some(error);
        self.unload();
        self.tried_at = self.options.clock.monotonic();
    }

    /// After a failure: opens and reads the journal again, at most once a second.
    pub(super) fn recover(&mut self) -> bool {
        let is_due = self.failure.is_some() && self.may_try();
        if is_due {
            self.reload();
        }
        is_due
    }

    pub(super) fn reload(&mut self) {
        self.tried_at = self.options.clock.monotonic();
        self.unload();
        self.failure = None;
        let mut reloaded = self.load().and_then(|()| {
            let loaded = self.loaded.as_ref();
            let withdrawn: Vec<EntryId> = self
                .refused
                .iter()
                .copied()
                .filter(|id| loaded.is_some_and(|loaded| loaded.books.is_open(*id)))
                .collect();
            self.end_entries(&withdrawn, false)?;
            self.end_what_died()
        });
        // Without room for what the process before this one left, the ledger can be read all the same. It
        // is opened once more, because a failed write is final.
        let waits = self.is_full && self.refused.is_empty() && !self.left.is_none();
        if waits && reloaded.as_ref().is_err_and(LedgerError::is_full) {
            self.unload();
            reloaded = self.load();
        }
        match reloaded {
            Ok(()) => {
                self.refused.clear();
                self.is_told = false;
                self.write_mark();
                tracing::info!("the journal is open again");
            }
            Err(error) => self.fail(error),
        }
    }

    /// Lets go of the journal, so that it can be opened anew.
    fn unload(&mut self) {
        if let Some(loaded) = self.loaded.take() {
            self.held.index = loaded.index;
        }
    }

    pub(super) fn load(&mut self) -> Result<(), LedgerError> {
        let held = Held {
            index: self.held.index.take(),
            last_seq: self.held.last_seq,
        };
        let loaded = load(&self.directory, &self.identity, &self.options, held)?;
        self.held.last_seq = self.held.last_seq.max(Some(loaded.books.last_seq()));
        self.shared.loaded(&loaded);
        self.loaded = Some(loaded);
        Ok(())
    }

    pub(super) fn may_try(&self) -> bool {
        let now = self.options.clock.monotonic();
        now.saturating_sub(self.tried_at) >= RETRY_PAUSE
    }
}
