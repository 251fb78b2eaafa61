//! How quickly a body has to come.
//!
//! Why: a body that is being read holds a connection and memory, and to send a byte now and then costs its
//! sender nothing. A poor link that brings 5 kB a second and stands still for ten of them passes.
//!
//! Promise: only time in which the app had the word counts, none in which it waited for memory. Where all
//! places are taken, a body keeps its own for a moment, and for longer only as quickly as it comes.

use std::time::Duration;

/// In each stretch of this length a body has to bring so much, or its end.
const STRETCH: Duration = Duration::from_secs(15);
const STRETCH_BYTES_MIN: usize = 16 * 1024;

/// From the first look for a body's bytes to its end.
const BODY_TIME_MAX: Duration = Duration::from_secs(600);

/// So long a request without its body gives way to nobody; one whose bytes come, so long after them.
pub const ASKING_PATIENCE: Duration = Duration::from_secs(1);

/// Unless it comes slower than so many bytes a second. To hold all places as quickly as this soon takes all
/// memory for bodies, too, where the slowest goes first.
const UNMOVED_BYTES_MIN: u32 = 64 * 1024;

/// What a body has done so far.
#[derive(Debug, Default)]
pub struct Pace {
    took: Duration,
    bytes: usize,
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

    /// How long it gives way to nobody from now on.
    pub fn patience(&self) -> Duration {
        let bytes = u32::try_from(self.bytes).unwrap_or(u32::MAX);
        let earned = Duration::from_secs(1) * bytes / UNMOVED_BYTES_MIN;
        let left = ASKING_PATIENCE
            .saturating_add(earned)
            .saturating_sub(self.took);
        left.min(ASKING_PATIENCE)
    }

    /// Counts bytes that came after a wait. False: they came too slowly.
    pub fn keeps(&mut self, waited: Duration, bytes: usize) -> bool {
        self.took = self.took.saturating_add(waited);
        self.bytes = self.bytes.saturating_add(bytes);
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

    #[test]
    fn a_body_keeps_its_place_for_a_moment_or_as_quickly_as_it_comes() {
        for (what, steps, millis) in [
            ("nothing yet", &[][..], 1000),
            ("a byte at once", &[(0, 1)], 1000),
            ("a byte late", &[(900, 1)], 100),
            ("a byte now and then", &[(900, 1), (900, 1)], 0),
            (
                "small and quick, then a drip",
                &[(0, 60_000), (900, 1), (900, 1)],
                115,
            ),
            (
                "as slowly as a body may come",
                &[(1000, 1171), (1000, 1171)],
                0,
            ),
            ("64 KiB a second", &[(1000, 65536), (1000, 65536)], 1000),
            ("after a stop", &[(3000, 131_072)], 0),
            ("whatever came before", &[(0, 30_000_000)], 1000),
        ] {
            let mut pace = Pace::default();
            for (wait, bytes) in steps {
                assert!(pace.keeps(Duration::from_millis(*wait), *bytes), "{what}");
            }
            assert_eq!(pace.patience().as_millis(), millis, "{what}");
        }
    }
}
