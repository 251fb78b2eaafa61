//! sled's handle. When the last one is let go, sled syncs its file and panics if that fails: on a
//! disk that fails, that would end the ledger's writer.
//!
//! Promise: letting go never panics.

use super::{IndexError, guarded};

/// An open database, until it is dropped.
#[derive(Clone, Debug)]
pub(super) struct Handle(Option<sled::Db>);

// === impl Handle ===

impl Handle {
    pub(super) fn new(db: sled::Db) -> Self {
        Self(Some(db))
    }

    /// The database. Every handle that can be reached has one.
    pub(super) fn db(&self) -> Result<&sled::Db, IndexError> {
        self.0.as_ref().ok_or(IndexError::Panicked)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let db = self.0.take();
        let closed = guarded(move || {
            drop(db);
            Ok(())
        });
        if closed.is_err() {
            tracing::warn!("the index could not be closed; the journal will tell it");
        }
    }
}
