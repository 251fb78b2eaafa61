//! Turns to read the ledger's files, for the questions of all connections.
//!
//! Promise: a few questions read at once, each on a thread that may block; a question that waits too long for its
//! turn is refused.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::failure::Failure;
use super::shared::Admin;
use crate::ledger::LedgerError;

/// Longest wait for a turn to read the journal.
const TURN_MAX: Duration = Duration::from_secs(10);

/// Reads the journal's files, on a thread that may block; a few at a time.
pub async fn read<T: Send + 'static>(
    admin: &Arc<Admin>,
    question: impl FnOnce(&Path) -> Result<T, LedgerError> + Send + 'static,
) -> Result<T, Failure> {
    read_in(turn(admin).await?, admin, question).await
}

pub async fn turn(admin: &Admin) -> Result<OwnedSemaphorePermit, Failure> {
    match timeout(TURN_MAX, Arc::clone(&admin.queries).acquire_owned()).await {
        Ok(Ok(turn)) => Ok(turn),
        Ok(Err(_)) | Err(_) => Err(Failure::Busy),
    }
}

pub async fn read_in<T: Send + 'static>(
    turn: OwnedSemaphorePermit,
    admin: &Admin,
    question: impl FnOnce(&Path) -> Result<T, LedgerError> + Send + 'static,
) -> Result<T, Failure> {
    let state_dir = admin.config.load().ledger.state_dir.clone();
    let reading = spawn_blocking(move || {
        // Kept until the reading ends, also when its reader has disconnected.
        let _turn = turn;
        question(&state_dir)
    });
    match reading.await {
        Ok(read) => Ok(read?),
        Err(_) => Err(Failure::Panicked),
    }
}
