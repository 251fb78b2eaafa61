//! Runs: `bursar exec` gives a child a token of its own, for one app, for as long as the child lives.
//!
//! A run lives in memory and as a name on its entries. Its token is known to this process and to the
//! child alone; it ends when the process that opened the run closes the connection. Its limit is one of the
//! caps ([`crate::caps`]); what it spent is in the ledger under its name, so that it can be continued after
//! a restart.
//!
//! Promise: no more runs than a bound; a run's token is no caller's once the run has ended; compared in
//! constant time as every token is.

use std::sync::Arc;

use parking_lot::Mutex;
use uuid::{Builder, Uuid};

use super::error::{AppsError, RUNS_MAX};
use crate::config::{App, TokenHash};

/// One `bursar exec`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Stands on the intents of its entries.
    pub id: Arc<str>,
    pub app: Arc<str>,
}

/// The runs of this process.
#[derive(Debug, Default)]
pub struct Runs {
    open: Mutex<Vec<(TokenHash, Arc<Run>)>>,
}

// === impl Runs ===

impl Runs {
    pub(super) fn open(&self, run: Arc<Run>, token: TokenHash) -> Result<(), AppsError> {
        let mut open = self.open.lock();
        // A run that is taken up again while its old connection is not yet known to have ended.
        let is_again = open.iter().any(|(_, other)| other.id == run.id);
        if open.len() >= RUNS_MAX && !is_again {
            return Err(AppsError::RunsFull);
        }
        open.retain(|(_, other)| other.id != run.id);
        open.push((token, run));
        Ok(())
    }

    /// Of all that are open.
    pub(super) fn tokens(&self) -> Vec<TokenHash> {
        self.open.lock().iter().map(|(token, _)| *token).collect()
    }

    pub(super) fn holds(&self, id: &str) -> bool {
        self.open.lock().iter().any(|(_, run)| *run.id == *id)
    }

    pub(super) fn close(&self, run: &Arc<Run>) {
        self.open
            .lock()
            .retain(|(_, other)| !Arc::ptr_eq(other, run));
    }

    /// Every hash is looked at, also behind one that fits.
    pub(super) fn with(&self, hash: TokenHash) -> Option<Arc<Run>> {
        let mut found = None;
        for (token, run) in self.open.lock().iter() {
            if *token == hash {
                found = Some(Arc::clone(run));
            }
        }
        found
    }
}

// === impl Run ===

impl Run {
    /// A run that begins now.
    pub fn new(app: &App, now_ms: u64) -> Result<Self, AppsError> {
        let mut random = [0; 10];
        getrandom::fill(&mut random).map_err(AppsError::Random)?;
        let id = Builder::from_unix_timestamp_millis(now_ms, &random).into_uuid();
        Ok(Self::again(id, app))
    }

    /// A run that goes on.
    pub fn again(id: Uuid, app: &App) -> Self {
        Self {
            id: id.to_string().into(),
            app: Arc::clone(&app.name),
        }
    }
}

#[cfg(test)]
mod tests;
