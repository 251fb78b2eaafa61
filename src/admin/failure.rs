//! Why a question was not answered.

use std::sync::Arc;
use std::time::Duration;

use super::query::QueryError;
use super::reconcile::{FigureError, Reconciliation};
use crate::ledger::LedgerError;

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error("too many questions at once; try again")]
    Busy,
    #[error("the ledger cannot be read: {0}")]
    Ledger(#[from] LedgerError),
    #[error("the answer cannot be written: {0}")]
    Json(#[from] serde_json::Error),
    #[error("reading the ledger failed; the log has the place")]
    Panicked,
    #[error("{0}")]
    Service(String),
    #[error(transparent)]
    Figure(#[from] FigureError),
    #[error(
        "{failure}; the service was asked {age_s} s ago, and readers make bursar ask once a minute (over \
         its Unix socket the daemon's own user asks at once)"
    )]
    Earlier { failure: Arc<Failure>, age_s: u64 },
}

/// The ledger held against the service's own figure, both of one moment, or why not.
pub type Reconciled = Result<Reconciliation, Arc<Failure>>;

/// How long everything that came of a call is good for readers; without a turn none was made.
const RECONCILED_GOOD_FOR: Duration = Duration::from_secs(60);

pub fn reconciled_good_for(reconciled: &Reconciled, _took: Duration) -> Duration {
    match reconciled {
        Err(failure) if matches!(**failure, Failure::Busy) => Duration::ZERO,
        Ok(_) | Err(_) => RECONCILED_GOOD_FOR,
    }
}
