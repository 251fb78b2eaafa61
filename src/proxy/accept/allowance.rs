//! How much of a connection may be read while a request head is.
//!
//! Promise: a head cannot make the parser gather more than it may have.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many more bytes may be read before the head has to be whole. pingora's parser alone would
/// gather a megabyte a connection.
#[derive(Clone, Debug)]
pub struct HeadAllowance(Arc<AtomicUsize>);

// === impl HeadAllowance ===

impl HeadAllowance {
    const UNLIMITED: usize = usize::MAX;

    /// From here on a head is read.
    pub fn limit(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// The head is whole, or given up.
    pub fn lift(&self) {
        self.0.store(Self::UNLIMITED, Ordering::Relaxed);
    }

    /// The head did not end within its bytes.
    pub fn is_used_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    pub(super) fn take(&self, bytes: usize) {
        let left = self.0.load(Ordering::Relaxed);
        if left != Self::UNLIMITED {
            self.0.store(left.saturating_sub(bytes), Ordering::Relaxed);
        }
    }
}

impl Default for HeadAllowance {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(Self::UNLIMITED)))
    }
}
