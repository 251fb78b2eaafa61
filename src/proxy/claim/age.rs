//! How old a key is, by both clocks. The service remembers a key for 24 hours, so a repeat after
//! that would run and bill again.
//!
//! Promise: a key whose age is in doubt counts as too old (rule I6): one purchase more is asked for
//! under a key of its own, never under one that may have been forgotten.

use std::time::Duration;

use crate::clock::Clock;

/// When a key was first sent.
#[derive(Clone, Copy, Debug)]
pub struct FirstSent {
    wall_ms: u64,
    /// Stands still while the machine sleeps.
    monotonic: Duration,
}

/// "No automatic repeat once the key is 23 h old".
const KEY_AGE_MAX: Duration = Duration::from_secs(23 * 3600);

/// Wall time this far before the first use was set back.
const SET_BACK_MAX_MS: u64 = 1000;

/// Clocks that disagree by more than this have been set, or slept through.
const DISAGREE_MAX: Duration = Duration::from_secs(5 * 60);

// === impl FirstSent ===

impl FirstSent {
    pub fn now(clock: &dyn Clock) -> Self {
        Self {
            wall_ms: clock.wall_ms(),
            monotonic: clock.monotonic(),
        }
    }

    /// The age by the monotonic clock.
    pub fn age(self, now: Duration) -> Duration {
        now.saturating_sub(self.monotonic)
    }

    /// Whether the key may be sent again.
    pub fn may_repeat(self, clock: &dyn Clock) -> bool {
        let wall_now = clock.wall_ms();
        let wall = Duration::from_millis(wall_now.saturating_sub(self.wall_ms));
        let monotonic = self.age(clock.monotonic());
        let set_back = wall_now.saturating_add(SET_BACK_MAX_MS) < self.wall_ms;
        let doubtful = set_back || wall.abs_diff(monotonic) > DISAGREE_MAX;
        !doubtful && wall < KEY_AGE_MAX && monotonic < KEY_AGE_MAX
    }
}

#[cfg(test)]
mod tests;
