//! Outcomes that could not be written while their requests lasted. They wait here for the writer,
//! which takes them first thing when the journal is open again: a receipt that was seen is not lost
//! for an outage of the disk.
//!
//! Promise: bounded; an outcome that finds no room is counted, and its entry is in doubt after the
//! next start. One leaves only when it is durable, or when the ledger says that it never can be.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::ledger::entry::Outcome;
use crate::ledger::error::LedgerError;

/// Most outcomes that wait. About a kilobyte each.
pub const OUTCOMES_MAX: usize = 4_096;

/// The outcomes, oldest first. One thread takes from here.
#[derive(Debug, Default)]
pub struct Later {
    inner: Mutex<Inner>,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: Vec<Outcome>,
    /// The writer is gone.
    closed: bool,
}

// === impl Later ===

impl Later {
    pub fn push(&self, outcome: Outcome) -> Result<(), LedgerError> {
        let mut inner = self.inner.lock();
        if inner.closed {
            return Err(LedgerError::Closed);
        }
        if inner.waiting.len() >= OUTCOMES_MAX {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return Err(LedgerError::Unavailable {
                why: format!("{OUTCOMES_MAX} outcomes wait for it already; this one is in doubt"),
            });
        }
        inner.waiting.push(outcome);
        Ok(())
    }

    /// All that wait. They stay until [`Self::forget`].
    pub fn waiting(&self) -> Vec<Outcome> {
        self.inner.lock().waiting.clone()
    }

    /// The oldest `count` are done with.
    pub fn forget(&self, count: usize) {
        let mut inner = self.inner.lock();
        let count = count.min(inner.waiting.len());
        inner.waiting.drain(..count);
    }

    /// Takes nothing more in. Answers how many will not be written.
    pub fn close(&self) -> usize {
        let mut inner = self.inner.lock();
        inner.closed = true;
        std::mem::take(&mut inner.waiting).len()
    }

    pub fn len(&self) -> usize {
        self.inner.lock().waiting.len()
    }

    /// How many found no room.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}
