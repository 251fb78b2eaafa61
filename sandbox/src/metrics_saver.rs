//! Writes the counts behind the metrics to the store, a moment after they changed.
//!
//! A write per request would make each request wait for the disk; metrics are not money and may follow later.
//! Promise: counts are on disk within [`SAVE_AFTER`] of the clock, and all of them at the end of a shutdown; a
//! saver that has ended holds the state no more.

use crate::{rollup::Rollup, state::State, store::StoreError};
use std::{sync::Arc, time::Duration};

pub const SAVE_AFTER: Duration = Duration::from_millis(250);

/// Saves until the service begins to shut down. It ends between two saves: an aborted save would continue on
/// its thread, and the state's file would not be free yet.
pub async fn keep_saving(state: Arc<State>) {
    loop {
        let changed = async {
            tokio::select! {
                () = state.endpoints.unsaved.notified() => {}
                () = state.books.unsaved.notified() => {}
            }
            state.clock.sleep(SAVE_AFTER).await;
        };
        tokio::select! {
            () = state.closing.cancelled() => return,
            () = changed => {}
        }
        save_and_tell(&state).await;
    }
}

/// Saves now; counts that cannot be written stay in memory, and the log says so.
pub async fn save_and_tell(state: &Arc<State>) {
    let to_save = Arc::clone(state);
    // A worker of the runtime must not wait for the disk.
    let saved = tokio::task::spawn_blocking(move || save(&to_save)).await;
    match saved {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "the metrics could not be saved"),
        Err(error) => tracing::error!(%error, "saving the metrics broke"),
    }
}

fn save(state: &State) -> Result<(), StoreError> {
    Rollup::save(&state.store, state.books.unsaved_rollup())?;
    state.endpoints.save()
}

#[cfg(test)]
mod tests;
