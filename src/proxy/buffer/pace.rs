//! How quickly a body has to come.
//!
//! Why: a body that is being read holds a connection and memory, and to send a byte now and then costs its
//! sender nothing. A poor link that brings 5 kB a second and stands still for ten of them passes.
//!
//! Promise: only time in which the app had the word counts, none in which it waited for memory.

use std::time::Duration;

/// In each stretch of this length a body has to bring so much, or its end.
const STRETCH: Duration = Duration::from_secs(15);
const STRETCH_BYTES_MIN: usize = 16 * 1024;

/// From the first look for a body's bytes to its end.
const BODY_TIME_MAX: Duration = Duration::from_secs(600);

/// What a body has done so far.
#[derive(Debug, Default)]
pub struct Pace {
    took: Duration,
    /// Of the stretch that runs.
    stretch_took: Duration,
    stretch_bytes: usize,
}

// === impl Pace ===

impl Pace {
    /// The longest that may pass until the next bytes.
    pub fn left(&self) -> Duration {
        STRETCH.saturating_sub(self.stretch_took)
    }

    /// Counts bytes that came after a wait. False: they came too slowly.
    pub fn keeps(&mut self, waited: Duration, bytes: usize) -> bool {
        self.took = self.took.saturating_add(waited);
        self.stretch_took = self.stretch_took.saturating_add(waited);
        self.stretch_bytes = self.stretch_bytes.saturating_add(bytes);
        if self.stretch_bytes >= STRETCH_BYTES_MIN {
            self.stretch_took = Duration::ZERO;
            self.stretch_bytes = 0;
        }
        self.took <= BODY_TIME_MAX && self.stretch_took < STRETCH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds until it is too slow, at most 700; `steps` of a wait and what came after it, over and over.
    fn ends_after(steps: &[(u64, usize)]) -> Option<u64> {
        let (mut pace, mut now) = (Pace::default(), 0);
        for (seconds, bytes) in steps.iter().cycle() {
            let wait = Duration::from_secs(*seconds);
            if wait >= pace.left() {
                return Some(now + pace.left().as_secs());
            }
            now += seconds;
            if !pace.keeps(wait, *bytes) {
                return Some(now);
            }
            if now > 700 {
                return None;
            }
        }
        None
    }

    #[test]
    fn a_body_that_drips_is_too_slow_and_one_that_flows_is_not() {
        for (what, steps, ends) in [
            ("nothing", &[(700, 1)][..], Some(15)),
            ("a byte a second", &[(1, 1)], Some(15)),
            ("a byte in each stretch", &[(14, 1)], Some(15)),
            ("just below", &[(1, 1092)], Some(15)),
            ("just quick enough", &[(1, 1171)], Some(601)),
            (
                "5 kB a second and 10 s of nothing",
                &[(1, 5000), (1, 5000), (1, 5000), (10, 5000)],
                Some(601),
            ),
            ("much, then nothing", &[(1, 1024 * 1024), (15, 1)], Some(16)),
            (
                "much without a pause",
                &[(0, 30_000_000), (500, 1)],
                Some(15),
            ),
        ] {
            assert_eq!(ends_after(steps), ends, "{what}");
        }
    }
}
