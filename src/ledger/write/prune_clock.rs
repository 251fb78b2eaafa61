//! The time that keys are forgotten by. A wall clock that is ahead for a moment must not drop keys whose
//! 24 hours are not over.
//!
//! Promise: it goes no faster than the monotonic clock and is never later than the wall clock. From a start on
//! it goes on from the journal's last record: whether the wall clock is ahead, or time went by, is not known
//! then. For clocks that were set, and for time that the machine slept, it begins anew once a day.

use std::time::Duration;

use crate::clock::Clock;

/// How long it goes on from one look at the wall clock.
const ANCHOR_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The clock.
#[derive(Debug)]
pub struct PruneClock {
    /// Unix milliseconds.
    wall_ms: u64,
    /// When it showed that, on the monotonic clock.
    at: Duration,
}

// === impl PruneClock ===

impl PruneClock {
    /// `ended_ms`: when the journal's last record was written.
    pub fn begin(clock: &dyn Clock, ended_ms: Option<u64>) -> Self {
        let now_ms = clock.wall_ms();
        Self {
            wall_ms: ended_ms.map_or(now_ms, |ended_ms| ended_ms.min(now_ms)),
            at: clock.monotonic(),
        }
    }

    /// Unix milliseconds.
    pub fn now_ms(&mut self, clock: &dyn Clock) -> u64 {
        let elapsed = clock.monotonic().saturating_sub(self.at);
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let steady_ms = self.wall_ms.saturating_add(elapsed_ms);
        let now_ms = clock.wall_ms().min(steady_ms);
        if elapsed >= ANCHOR_MAX {
            *self = Self::begin(clock, None);
        }
        now_ms
    }
}
