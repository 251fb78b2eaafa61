//! Where the clock is, on disk.
//!
//! Promise: a clock that can be moved does not go back over a restart.

use crate::clock::Clock;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A movable clock must not go back over a restart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeptClock {
    pub offset: Duration,
    pub elapsed: Duration,
    /// Wall time, as text.
    pub now: String,
}

// === impl KeptClock ===

impl KeptClock {
    pub fn of(clock: &Clock) -> Self {
        Self {
            offset: clock.offset(),
            elapsed: clock.elapsed(),
            now: clock.now().to_string(),
        }
    }

    /// Sets a clock forward to where this one was, and by the time that has passed since.
    pub fn resume(self, clock: &Clock) {
        clock.advance(self.offset.saturating_sub(clock.offset()));
        let was: Timestamp = self.now.parse().unwrap_or_else(|_| clock.now());
        let behind = was.duration_since(clock.now());
        if let Ok(behind) = Duration::try_from(behind) {
            clock.advance(behind);
        }
        let since = clock.now().duration_since(was);
        let since = Duration::try_from(since).unwrap_or(Duration::ZERO);
        clock.count_from(self.elapsed.saturating_add(since));
    }
}
