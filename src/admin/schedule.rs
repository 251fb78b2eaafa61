//! Comparisons of the ledger with the service's figure that bursar makes by itself, `[reconcile] every_h`.
//!
//! Why: a difference that nobody asks for is found by nobody. Promise: off unless it is configured; one free GET
//! a time; one that failed is made again after [`AGAIN`]. What is there is kept, so that a figure on `/metrics`
//! is never younger than the time beside it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::reconcile::Reconciliation;
use super::routes::ask_service;
use super::shared::Admin;
use crate::ledger::reconcile::Conclusion;

/// How often it is looked whether it is time.
const LOOK_PAUSE: Duration = Duration::from_secs(5);

/// After a comparison that could not be made.
const AGAIN: Duration = Duration::from_secs(300);

/// When the last comparison was, on the monotonic clock, and how it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LastComparison {
    #[default]
    Never,
    Made(Duration),
    Failed(Duration),
}

/// Compares until `stop` turns true. A comparison that is under way is dropped then.
pub async fn reconcile(admin: Arc<Admin>, mut stop: watch::Receiver<bool>) {
    let rounds = async {
        let mut last = LastComparison::default();
        loop {
            last = round(&admin, last).await;
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    };
    tokio::select! {
        never = rounds => never,
        // A sender that is gone has stopped, too.
        _ = stop.wait_for(|stopped| *stopped) => {}
    }
}

async fn round(admin: &Arc<Admin>, last: LastComparison) -> LastComparison {
    let every = admin.config.load().reconcile.every;
    let now = admin.clock.monotonic();
    if !every.is_some_and(|every| last.is_due(now, every)) {
        return last;
    }
    match ask_service(admin).await {
        Ok(reconciliation) => {
            log(&reconciliation);
            LastComparison::Made(now)
        }
        Err(failure) => {
            tracing::warn!(%failure, "the ledger could not be compared with the service's figure");
            LastComparison::Failed(now)
        }
    }
}

fn log(reconciliation: &Reconciliation) {
    let Reconciliation {
        service,
        ledger,
        conclusion,
        unexplained,
        ..
    } = reconciliation;
    if *conclusion == Conclusion::Unexplained {
        tracing::warn!(
            %service,
            %ledger,
            %unexplained,
            "the service's figure and the ledger differ by more than the ledger can explain; `bursar reconcile` \
             has the reasons"
        );
    } else {
        tracing::info!(%service, %ledger, %conclusion, "the ledger was compared with the service's figure");
    }
}

// === impl LastComparison ===

impl LastComparison {
    fn is_due(self, now: Duration, every: Duration) -> bool {
        match self {
            Self::Never => true,
            Self::Made(at) => now.saturating_sub(at) >= every,
            Self::Failed(at) => now.saturating_sub(at) >= AGAIN.min(every),
        }
    }
}

#[cfg(test)]
mod tests;
