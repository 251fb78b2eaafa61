//! The totals and the index are made anew beside the writer, from all of the journal, while requests are
//! served.
//!
//! Promise: what it makes stands for the records up to the one that it began with; what is written
//! meanwhile is added by the writer. Nothing of it counts before it is whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::ledger::error::LedgerError;
use crate::ledger::fold::books::Books;
use crate::ledger::index::tree::Index;
use crate::ledger::journal::quarantine::set_aside;
use crate::ledger::journal::report::ScanReport;
use crate::ledger::journal::state_dir::Directory;

/// What was made.
#[derive(Debug)]
pub struct Rebuilt {
    pub books: Books,
    /// `None`: it failed, and the books are whole all the same.
    pub index: Option<Index>,
    pub report: ScanReport,
}

/// A thread that makes it. Dropped, it stops.
#[derive(Debug)]
pub struct Rebuild {
    stop: Arc<AtomicBool>,
    /// `None` once it was waited for.
    thread: Option<JoinHandle<Result<Rebuilt, LedgerError>>>,
}

// === impl Rebuilt ===

impl Rebuilt {
    /// Copies what was found damaged to `quarantine/`. Answers how many ranges lie there.
    pub fn set_aside(&self, state: &Directory) -> Result<u64, LedgerError> {
        set_aside(state, &state.child("journal")?, &self.report)
    }
}

// === impl Rebuild ===

impl Rebuild {
    /// Begins. `work` looks at the flag now and then, and ends when it is set.
    pub fn begin(
        work: impl FnOnce(&AtomicBool) -> Result<Rebuilt, LedgerError> + Send + 'static,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("ledger-rebuild".to_owned())
            .spawn(move || work(&stopped))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// What was made; waits for it.
    pub fn finish(mut self) -> Result<Rebuilt, LedgerError> {
        let joined = self.thread.take().map(JoinHandle::join);
        joined.and_then(Result::ok).unwrap_or_else(|| {
            Err(LedgerError::Unavailable {
                why: "the reading of the journal ended by a panic".to_owned(),
            })
        })
    }
}

impl Drop for Rebuild {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The index must be closed when it is opened again.
            drop(thread.join());
        }
    }
}
