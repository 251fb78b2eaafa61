//! Time as a dependency. Everything that asks for the time asks a [`Clock`], so that 24 h edges,
//! deadlines and day windows can be tested without waiting.
//!
//! Promise: wall time is for records and calendars, monotonic time for durations; neither is read
//! from anywhere else (clippy.toml bans the std calls outside this file). Monotonic times of two
//! processes compare when their boots are the same and known.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Which start of the machine a monotonic time belongs to: the first 32 bits of the kernel's boot id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(pub u32);

/// Where time comes from. Two implementations: the machine's, and one that tests move by hand.
pub trait Clock: std::fmt::Debug + Send + Sync + 'static {
    /// Wall time in milliseconds since 1970-01-01 UTC.
    fn wall_ms(&self) -> u64;
    /// Monotonic time since an arbitrary start, the same for all processes of one boot. It stands
    /// still while the machine sleeps.
    fn monotonic(&self) -> Duration;
    /// Time since the machine's start, the same for all processes of one boot. It counts while the machine sleeps:
    /// what was lent for a time ends by it, whatever is done to the wall clock.
    fn since_boot(&self) -> Duration;
    /// The boot to which monotonic time belongs. `None` when the kernel does not report it; then the
    /// time is worthless to another process.
    fn boot(&self) -> Option<BootId>;
}

/// A shared clock.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    boot: Option<BootId>,
}

/// A clock that stands still until it is moved. Clones share the time.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    wall_ms: Arc<AtomicU64>,
    monotonic_ms: Arc<AtomicU64>,
    slept_ms: Arc<AtomicU64>,
    boots: Arc<AtomicU32>,
}

/// A UUID, new at each boot. A container sees that of its machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Processor time that this process has used.
pub fn process_cpu() -> Duration {
    duration_on(ClockId::ProcessCPUTime)
}

fn duration_on(clock: ClockId) -> Duration {
    let since = clock_gettime(clock);
    let seconds = u64::try_from(since.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(since.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}

// === impl BootId ===

impl BootId {
    /// Of the kernel's text: `9b2a1c3d-…`.
    fn parse(text: &str) -> Option<Self> {
        let (digits, _) = text.split_once('-')?;
        u32::from_str_radix(digits, 16).ok().map(Self)
    }
}

// === impl SystemClock ===

impl SystemClock {
    pub fn shared() -> SharedClock {
        let boot = std::fs::read_to_string(BOOT_ID).ok();
        Arc::new(Self {
            boot: boot.as_deref().and_then(BootId::parse),
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

    fn monotonic(&self) -> Duration {
        duration_on(ClockId::Monotonic)
    }

    fn since_boot(&self) -> Duration {
        duration_on(ClockId::Boottime)
    }

    fn boot(&self) -> Option<BootId> {
        self.boot
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

    /// The machine sleeps: monotonic time stands still.
    pub fn sleep(&self, by: Duration) {
        let ms = millis(by);
        self.wall_ms.fetch_add(ms, Ordering::SeqCst);
        self.slept_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// A reboot: monotonic time begins at 0, wall time continues.
    pub fn reboot(&self) {
        self.boots.fetch_add(1, Ordering::SeqCst);
        self.monotonic_ms.store(0, Ordering::SeqCst);
        self.slept_ms.store(0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn wall_ms(&self) -> u64 {
        self.wall_ms.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.monotonic_ms.load(Ordering::SeqCst))
    }

    fn since_boot(&self) -> Duration {
        let slept_ms = self.slept_ms.load(Ordering::SeqCst);
        self.monotonic() + Duration::from_millis(slept_ms)
    }

    fn boot(&self) -> Option<BootId> {
        Some(BootId(self.boots.load(Ordering::SeqCst)))
    }
}

/// Whole milliseconds, for records.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
