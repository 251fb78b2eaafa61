//! Writes to the index what was committed, on a thread beside the writer: sled wakes all its threads for a
//! batch and may wait for its file, and no commit waits for that.
//!
//! Promise: one write at a time, in the order in which they were begun. What was begun is at its end before the
//! index is read again, closed, or written by another hand.

use std::thread::JoinHandle;
use std::time::Duration;

use crate::ledger::fold::books::Pending;
use crate::ledger::index::db::IndexError;
use crate::ledger::index::tree::{Index, IndexedUpTo};

/// The write that is under way, if one is.
#[derive(Debug, Default)]
pub struct IndexUpkeep {
    job: Option<JoinHandle<Result<(), IndexError>>>,
    /// Of the write that is under way.
    records: u64,
    /// When the last one began, on the monotonic clock.
    begun_at: Duration,
}

// === impl IndexUpkeep ===

impl IndexUpkeep {
    /// A write is under way, or was and [`Self::finish`] has not looked at its end.
    pub fn is_busy(&self) -> bool {
        self.job.is_some()
    }

    /// [`Self::finish`] waits for nothing.
    pub fn has_ended(&self) -> bool {
        self.job.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// How many records are being written.
    pub fn records(&self) -> u64 {
        self.job.as_ref().map_or(0, |_| self.records)
    }

    /// Time since the last write began.
    pub fn pause(&self, now: Duration) -> Duration {
        now.saturating_sub(self.begun_at)
    }

    /// Begins a write, when the one before it has ended. An error is of either.
    pub fn begin(
        &mut self,
        now: Duration,
        index: Index,
        reached: IndexedUpTo,
        pending: Pending,
    ) -> Result<(), IndexError> {
        self.finish()?;
        self.begun_at = now;
        self.records = pending.records;
        let thread = std::thread::Builder::new().name("ledger-index".to_owned());
        let job = thread.spawn(move || index.write(&reached, pending));
        self.job = Some(job.map_err(IndexError::NoThread)?);
        Ok(())
    }

    /// Waits for the write that is under way.
    pub fn finish(&mut self) -> Result<(), IndexError> {
        let ended = self.job.take().map(JoinHandle::join);
        ended.map_or(Ok(()), |ended| ended.unwrap_or(Err(IndexError::Panicked)))
    }
}

impl Drop for IndexUpkeep {
    fn drop(&mut self) {
        // The index must be at rest when it is opened again.
        if let Err(error) = self.finish() {
            tracing::warn!(%error, "the index could not be written; the next start completes it from the journal");
        }
    }
}
