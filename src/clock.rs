//! Time as a dependency. Everything that asks for the time asks a [`Clock`], so that 24 h edges,
//! deadlines and day windows can be tested without waiting.
//!
//! Promise: wall time is for records and calendars, monotonic time for durations; neither is read
//! from anywhere else (clippy.toml bans the std calls outside this file).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where time comes from. Two implementations: the machine's, and one that tests move by hand.
pub trait Clock: Send + Sync + 'static {
    /// Wall time in milliseconds since 1970-01-01 UTC.
    fn wall_ms(&self) -> u64;
    /// Monotonic time since an arbitrary start.
    fn monotonic(&self) -> Duration;
}

/// A shared clock.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

/// A clock that stands still until it is moved. Clones share the time.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    wall_ms: Arc<AtomicU64>,
    monotonic_ms: Arc<AtomicU64>,
}

// === impl SystemClock ===

impl SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the machine's clock"
    )]
    pub fn shared() -> SharedClock {
        Arc::new(Self {
            started: Instant::now(),
        })
    }
}

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the machine's clock"
    )]
    fn wall_ms(&self) -> u64 {
        // A clock before 1970 reads as 0: an age in doubt, which no rule trusts.
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .ok()
            .and_then(|since| u64::try_from(since.as_millis()).ok())
            .unwrap_or(0)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the machine's clock"
    )]
    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

// === impl ManualClock ===

impl ManualClock {
    pub fn at(wall_ms: u64) -> Self {
        let clock = Self::default();
        clock.wall_ms.store(wall_ms, Ordering::SeqCst);
        clock
    }

    /// Moves wall and monotonic time together.
    pub fn advance(&self, by: Duration) {
        let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.wall_ms.fetch_add(ms, Ordering::SeqCst);
        self.monotonic_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// Sets wall time alone, as an operator or NTP would.
    pub fn set_wall_ms(&self, wall_ms: u64) {
        self.wall_ms.store(wall_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn wall_ms(&self) -> u64 {
        self.wall_ms.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.monotonic_ms.load(Ordering::SeqCst))
    }
}
