//! How old a key is, by both clocks. The service remembers a key for 24 hours, so a repeat after
//! that would run and bill again.
//!
//! Promise: a key whose age is in doubt counts as too old (rule I6): one purchase more is asked for
//! under a key of its own, never under one that may have been forgotten.

use std::time::Duration;

use crate::clock::Clock;
use crate::ledger::undelivered::FirstSent;

/// "No automatic repeat once the key is 23 h old".
const KEY_AGE_MAX: Duration = Duration::from_secs(23 * 3600);

/// Wall time this far before the first use was set back.
pub const SET_BACK_MAX_MS: u64 = 1000;

/// Clocks that disagree by more than this have been set, or slept through.
const DISAGREE_MAX: Duration = Duration::from_secs(5 * 60);

/// The age by the monotonic clock. Of another boot it says nothing.
pub fn of(first: &FirstSent, clock: &dyn Clock) -> Duration {
    let first_at = Duration::from_millis(first.up_ms);
    clock.monotonic().saturating_sub(first_at)
}

/// Whether a key may be sent again.
pub fn may_repeat(first: &FirstSent, clock: &dyn Clock) -> bool {
    let wall_now = clock.wall_ms();
    let wall = Duration::from_millis(wall_now.saturating_sub(first.at_ms));
    let monotonic = of(first, clock);
    let set_back = wall_now.saturating_add(SET_BACK_MAX_MS) < first.at_ms;
    let rebooted = first.boot != clock.boot();
    let doubtful = set_back || rebooted || wall.abs_diff(monotonic) > DISAGREE_MAX;
    !doubtful && wall < KEY_AGE_MAX && monotonic < KEY_AGE_MAX
}

#[cfg(test)]
mod tests;
