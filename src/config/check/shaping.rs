//! Checks of `[shaping]`: the service's ceilings, and the queue in front of them.

use super::Check;
use crate::config::Shaping;
use crate::config::file::{At, ShapingTable};

/// More than this many requests cannot come at once: connections are bounded.
const PLACES_MAX: u64 = 1_000;
const PER_MINUTE_MAX: u64 = 1_000_000;

impl Check<'_> {
    pub(super) fn shaping(&mut self, file: ShapingTable) -> Shaping {
        let queue_max = self.number("shaping", "queue_max", file.queue_max, 500, 0..=PLACES_MAX);
        Shaping {
            in_flight: self.ceiling("in_flight", file.in_flight, 8, PLACES_MAX),
            per_minute: self.ceiling("per_minute", file.per_minute, 120, PER_MINUTE_MAX),
            queue_max: usize::try_from(queue_max).unwrap_or(usize::MAX),
            queue_wait: self.seconds("shaping", "queue_wait_s", file.queue_wait_s, 90, 1..=3600),
        }
    }

    /// 0 is no limit.
    fn ceiling(
        &mut self,
        key: &str,
        given: Option<At<i64>>,
        default: u64,
        most: u64,
    ) -> Option<usize> {
        let ceiling = self.number("shaping", key, given, default, 0..=most);
        usize::try_from(ceiling).ok().filter(|limit| *limit > 0)
    }
}
