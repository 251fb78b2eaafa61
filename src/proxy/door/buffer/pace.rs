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

/// So long a request without its body gives way to no other; one whose bytes come, so long after them.
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

    /// How long it gives way to no other from now on.
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
mod tests;
