//! How long requests took, and the percentiles of that.
//!
//! Promise: exact while at most [`KEPT_MAX`] requests came in an hour, otherwise computed from the newest
//! of them; never more than that is kept.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Times kept of an hour; the oldest go first.
pub const KEPT_MAX: usize = 500;

/// The times of one hour, in ms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    kept_ms: VecDeque<u64>,
    /// How many there were, the forgotten ones too.
    seen: u64,
}

// === impl Times ===

impl Times {
    pub fn add(&mut self, took_ms: u64) {
        self.seen += 1;
        self.kept_ms.push_back(took_ms);
        if self.kept_ms.len() > KEPT_MAX {
            self.kept_ms.pop_front();
        }
    }
}

/// The nearest-rank percentiles over several hours, `None` without any time. An hour counts as often as it
/// had requests, also when only its newest times are kept.
pub fn percentiles_ms<'a, const N: usize>(
    hours: impl Iterator<Item = &'a Times>,
    percents: [u64; N],
) -> [Option<u64>; N] {
    let mut weighted: Vec<(u64, f64)> = Vec::new();
    for times in hours {
        let weight = times.seen as f64 / times.kept_ms.len().max(1) as f64;
        weighted.extend(times.kept_ms.iter().map(|took_ms| (*took_ms, weight)));
    }
    weighted.sort_unstable_by_key(|(took_ms, _)| *took_ms);
    let all: f64 = weighted.iter().map(|(_, weight)| weight).sum();
    percents.map(|percent| {
        // A little slack: sums of fractions are not exact, ranks are whole.
        let rank = (all * percent as f64 / 100.0).ceil() - 1e-6;
        let mut reached = 0.0;
        let found = weighted.iter().find(|(_, weight)| {
            reached += weight;
            reached >= rank
        });
        found.or(weighted.last()).map(|(took_ms, _)| *took_ms)
    })
}

#[cfg(test)]
mod tests;
