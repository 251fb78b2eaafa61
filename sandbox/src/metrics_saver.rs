//! Writes the counts behind the metrics to the store, a moment after they changed.
//!
//! A write per request would make each request wait for the disk; metrics are not money and may follow later.
//! Promise: counts are on disk within [`SAVE_AFTER`] of the clock, and all of them at the end of a shutdown; a
//! saver that has ended holds the store no more.

use crate::{
    books::Books,
    clock::Clock,
    endpoints::Endpoints,
    rollup::Rollup,
    store::{Store, StoreError},
};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

pub const SAVE_AFTER: Duration = Duration::from_millis(250);

#[derive(Clone)]
pub struct MetricsSaver {
    pub store: Store,
    pub clock: Clock,
    pub books: Arc<Books>,
    pub endpoints: Arc<Endpoints>,
}

// === impl MetricsSaver ===

impl MetricsSaver {
    /// Saves until the service begins to shut down. It ends between two saves: an aborted save would continue on
    /// its thread, and the state's file would not be free yet.
    pub async fn run(self, closing: CancellationToken) {
        loop {
            let changed = async {
                tokio::select! {
                    () = self.endpoints.unsaved.notified() => {}
                    () = self.books.unsaved.notified() => {}
                }
                self.clock.sleep(SAVE_AFTER).await;
            };
            tokio::select! {
                () = closing.cancelled() => return,
                () = changed => {}
            }
            self.save().await;
        }
    }

    /// Saves now; counts that cannot be written stay in memory, and the log says so.
    pub async fn save(&self) {
        let saver = self.clone();
        // A worker of the runtime must not wait for the disk.
        let saved = tokio::task::spawn_blocking(move || saver.write()).await;
        match saved {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the metrics could not be saved"),
            Err(error) => tracing::error!(%error, "saving the metrics broke"),
        }
    }

    fn write(&self) -> Result<(), StoreError> {
        Rollup::save(&self.store, self.books.unsaved_rollup())?;
        self.endpoints.save()
    }
}

#[cfg(test)]
mod tests;
