//! Where the time of a request's attempts goes.
//!
//! Promise: each moment is counted once, as a rest, as a wait for a place, or as the service's.

use std::time::Duration;

/// The sums so far.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Waits between attempts.
    rested: Duration,
    /// Waits for places.
    queued: Duration,
    /// Time in which the service had the word.
    service: Duration,
    first_byte_at: Option<Duration>,
}

// === impl Times ===

impl Times {
    /// Of a request that had waited so long for its first place.
    pub fn behind(queued: Duration) -> Self {
        Self {
            rested: Duration::ZERO,
            queued,
            service: Duration::ZERO,
            first_byte_at: None,
        }
    }

    pub fn rested(&mut self, took: Duration) {
        self.rested = self.rested.saturating_add(took);
    }

    pub fn queued(&mut self, took: Duration) {
        self.queued = self.queued.saturating_add(took);
    }

    pub fn service_took(&mut self, took: Duration) {
        self.service = self.service.saturating_add(took);
    }

    /// Of an answer before this attempt nothing counts.
    pub fn attempt_begins(&mut self) {
        self.first_byte_at = None;
    }

    /// Bytes of the answer came.
    pub fn bytes_came(&mut self, at: Duration) {
        self.first_byte_at.get_or_insert(at);
    }

    /// When the first byte of the final answer came, on the monotonic clock.
    pub fn first_byte_at(&self) -> Option<Duration> {
        self.first_byte_at
    }

    /// Waits for places, together.
    pub fn queue(&self) -> Duration {
        self.queued
    }

    /// All of it: what is not bursar's own.
    pub fn in_all(&self) -> Duration {
        let waited = self.rested.saturating_add(self.queued);
        self.service.saturating_add(waited)
    }
}
