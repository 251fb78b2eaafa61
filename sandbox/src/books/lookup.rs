//! Finding debits again.
//!
//! Work in the background has no client that repeats it; after a kill it asks the books what it was billed.
//! Promise: only debits that are there are told.

use super::Books;
use std::collections::BTreeSet;

// === impl Books ===

impl Books {
    /// The request ids of the debits that begin with `prefix`.
    pub fn request_ids(&self, prefix: &str) -> BTreeSet<String> {
        let inner = self.inner.lock();
        inner
            .debits
            .iter()
            .map(|debit| &debit.request_id)
            .filter(|id| id.starts_with(prefix))
            .cloned()
            .collect()
    }
}
