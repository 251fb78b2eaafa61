//! Retention: once a day, and at start, what is older than `[ledger] retention_days` is compacted.
//!
//! Old segments do not change, so another thread reads them and writes the compacted one. Only the
//! writer makes it count, between two batches: that is one rename. Then another thread clears up.
//!
//! Promise: requests wait for a rename, never for the reading of a segment. A failure is logged, changes nothing, and is tried again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::ledger::error::LedgerError;
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::upkeep::compact::{Built, PASS_BYTES, Wanted, build, clear, plan};

/// Time from one look to the next.
const LOOK_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// The same after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(60 * 60);

/// What goes on beside the writer.
#[derive(Debug, Default)]
pub struct Retention {
    running: Option<Upkeep>,
    /// When the next look is due, on the monotonic clock.
    next_look: Duration,
    /// The writer is stopping.
    cancel: Arc<AtomicBool>,
}

/// What the writer has to do.
#[derive(Debug)]
pub enum RetentionStep {
    Nothing,
    /// To leave its segment if that is old, and [`Retention::begin`].
    Due,
    /// To make this count, and [`Retention::clear`].
    Built(Built),
}

/// What a job of compaction came to: what was written, and why more could not be.
type Written = Result<(Option<Built>, Option<String>), LedgerError>;

#[derive(Debug)]
enum Upkeep {
    Building(JoinHandle<Written>),
    Clearing(JoinHandle<Result<(), LedgerError>>),
}

fn panicked() -> LedgerError {
    LedgerError::CannotCompact {
        why: "it ended by a panic".to_owned(),
    }
}

// === impl Retention ===

impl Retention {
    /// Goes on by one step, when one is due. Never waits for a job.
    pub fn step(&mut self, now: Duration) -> RetentionStep {
        match self.running.take() {
            None if now >= self.next_look => return RetentionStep::Due,
            None => {}
            Some(Upkeep::Building(thread)) if thread.is_finished() => {
                let written = thread.join().unwrap_or_else(|_| Err(panicked()));
                return self.built(written, now);
            }
            Some(Upkeep::Clearing(thread)) if thread.is_finished() => {
                let cleared = thread.join().unwrap_or_else(|_| Err(panicked()));
                if let Err(error) = cleared {
                    tracing::warn!(%error, "what was compacted could not be removed");
                    self.retry(now);
                }
            }
            busy => self.running = busy,
        }
        RetentionStep::Nothing
    }

    /// Begins to write what takes the place of old segments.
    pub fn begin(&mut self, journal: Directory, wanted: Wanted) -> Result<(), LedgerError> {
        let cancel = Arc::clone(&self.cancel);
        let path = journal.path().to_owned();
        let work = move || -> Written {
            let next = plan(&journal, &wanted, false, PASS_BYTES)?;
            let built = build(&journal, &next, &wanted, &cancel)?;
            Ok((built, next.stopped_by))
        };
        let thread = std::thread::Builder::new().name("ledger-compact".to_owned());
        let thread = thread
            .spawn(work)
            .map_err(|error| LedgerError::io(&path, error))?;
        self.running = Some(Upkeep::Building(thread));
        Ok(())
    }

    /// Begins to remove what was compacted. When it has ended there may be more to compact.
    pub fn clear(&mut self, journal: Directory, now: Duration) {
        let thread = std::thread::Builder::new().name("ledger-compact".to_owned());
        match thread.spawn(move || clear(&journal)) {
            Ok(thread) => self.running = Some(Upkeep::Clearing(thread)),
            Err(error) => {
                tracing::error!(%error, "what was compacted stays until the next start");
                self.retry(now);
            }
        }
    }

    /// It could not be done now.
    pub fn retry(&mut self, now: Duration) {
        self.next_look = now.saturating_add(RETRY_PAUSE);
    }

    /// Before the writer ends.
    pub fn stop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
        match self.running.take() {
            // What was built and does not count yet is removed by the next start.
            Some(Upkeep::Building(thread)) => drop(thread.join()),
            Some(Upkeep::Clearing(thread)) => drop(thread.join()),
            None => {}
        }
    }

    fn built(&mut self, written: Written, now: Duration) -> RetentionStep {
        let (built, stopped_by) = match written {
            Ok(written) => written,
            // A journal that fails is opened again by the writer; this is tried again later.
            Err(error) => {
                tracing::error!(%error, "the journal could not be compacted");
                self.retry(now);
                return RetentionStep::Nothing;
            }
        };
        if let Some(why) = stopped_by {
            tracing::error!(why, "old entries cannot be compacted; they stay");
        }
        match built {
            Some(built) => RetentionStep::Built(built),
            None => {
                self.next_look = now.saturating_add(LOOK_PAUSE);
                RetentionStep::Nothing
            }
        }
    }
}
