//! What stops a waiting request, wherever it waits: an operator's order to freeze its app, the removal of the
//! app, the end of its run.
//!
//! Why: a request may wait for room below a cap, for a place at the service, and between two attempts, and
//! none of these may let it spend for an app that may not any more.
//! Promise: a waiting request is refused at once; nothing here waits for a disk.

use std::sync::Arc;

use crate::apps::Apps;
use crate::apps::runs::Run;
use crate::caps::Caps;
use crate::ledger::marks::Session;
use crate::proxy::refuse::{Code, Refusal};

/// The app and the run that a request spends for.
pub struct SpendGuard {
    pub apps: Arc<Apps>,
    pub caps: Arc<Caps>,
    pub app: Arc<str>,
    pub run: Option<Arc<Run>>,
    pub session: Option<Session>,
}

// === impl SpendGuard ===

impl SpendGuard {
    /// Why nothing may be sent now. Asked before each attempt.
    pub fn halts(&self) -> Option<Refusal> {
        let has_ended = |run: &Arc<Run>| !self.apps.is_open(run);
        if self.run.as_ref().is_some_and(has_ended) {
            return Some(Refusal::new(Code::RunEnded));
        }
        let frozen = self.caps.stops(&self.app)?;
        Some((&frozen).into())
    }

    /// Why nothing may be sent now that lets something cost from then on: the same, or a limit that is
    /// reached. It takes no room below one, for nothing says what it will cost.
    pub fn holds(&self) -> Option<Refusal> {
        self.halts().or_else(|| {
            let run = self.run.as_ref().map(|run| &run.id);
            let reached = self.caps.reached(&self.app, run, self.session)?;
            Some((&reached).into())
        })
    }

    /// Resolves when nothing may be sent any more.
    pub async fn halted(&self) -> Refusal {
        let ended = async {
            match &self.run {
                Some(run) => self.apps.ended(run).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = ended => Refusal::new(Code::RunEnded),
            frozen = self.caps.stopped(&self.app) => (&frozen).into(),
        }
    }
}
