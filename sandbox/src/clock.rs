//! The sandbox's time: the system's clock plus an offset that only grows.
//!
//! The interface has rules of 9 minutes, 30 minutes and 24 hours; a test must not wait for them.
//! Promise: a wait on this clock ends as soon as the clock passes its end, by time or by [`Clock::advance`];
//! no other file reads the system's time or sleeps.

use jiff::{SignedDuration, Timestamp};
use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{OnceCell, watch},
    time::Instant,
};

/// The most that control routes and steps together may move the clock ahead of real time. At the end of
/// the calendar it could only stand still, and it never goes back.
pub const ADVANCE_MAX: Duration = Duration::from_secs(10 * 365 * 86_400);

/// A clone shares the same offset: advance one and all have advanced.
#[derive(Clone, Debug)]
pub struct Clock {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    wall_at_start: Timestamp,
    /// Read on first use, so that a clock can be made outside a runtime and obeys tokio's paused time.
    started: OnceCell<Instant>,
    offset: watch::Sender<Duration>,
    /// What [`Clock::elapsed`] began at: zero, or where an earlier process was.
    base: watch::Sender<Duration>,
}

// === impl Clock ===

impl Clock {
    /// A clock that starts at the system's wall time.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where this package reads the time"
    )]
    pub fn system() -> Self {
        Self::starting_at(Timestamp::now())
    }

    /// A clock that starts at a given wall time and runs from there.
    pub fn starting_at(wall: Timestamp) -> Self {
        Self {
            shared: Arc::new(Shared {
                wall_at_start: wall,
                started: OnceCell::new(),
                offset: watch::Sender::new(Duration::ZERO),
                base: watch::Sender::new(Duration::ZERO),
            }),
        }
    }

    /// Time since this clock was made, or since the state that it continues was made: advances
    /// included.
    pub fn elapsed(&self) -> Duration {
        self.since_made().saturating_add(*self.shared.base.borrow())
    }

    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The sum of all advances.
    pub fn offset(&self) -> Duration {
        *self.shared.offset.borrow()
    }

    /// Makes [`Clock::elapsed`] continue from an earlier process. It never goes back.
    pub(crate) fn count_from(&self, elapsed: Duration) {
        let base = elapsed.saturating_sub(self.since_made());
        self.shared.base.send_modify(|was| *was = base.max(*was));
    }

    fn since_made(&self) -> Duration {
        self.running().saturating_add(self.offset())
    }

    /// The wall time this clock shows.
    pub fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.since_made()).unwrap_or(SignedDuration::MAX);
        self.shared
            .wall_at_start
            .checked_add(elapsed)
            .unwrap_or(Timestamp::MAX)
    }

    pub fn unix_s(&self) -> i64 {
        self.now().as_second()
    }

    /// A fresh id that sorts by this clock's time.
    pub fn new_id(&self) -> String {
        let at_ms = u64::try_from(self.now().as_millisecond()).unwrap_or(0);
        // Each has keys of its own, which nobody outside this process knows.
        let random = RandomState::new();
        let [.., a, b] = random.hash_one(1).to_be_bytes();
        let [c, d, e, f, g, h, i, j] = random.hash_one(2).to_be_bytes();
        let random = [a, b, c, d, e, f, g, h, i, j];
        let id = uuid::Builder::from_unix_timestamp_millis(at_ms, &random);
        id.into_uuid().simple().to_string()
    }

    /// Moves the clock forward and wakes every wait that ends by it. It never goes back.
    pub fn advance(&self, by: Duration) {
        self.shared
            .offset
            .send_modify(|offset| *offset = offset.saturating_add(by));
    }

    /// The same, unless the sum of all advances would exceed `most`; returns false then.
    pub fn try_advance(&self, by: Duration, most: Duration) -> bool {
        self.shared.offset.send_if_modified(|offset| {
            match offset.checked_add(by).filter(|sum| *sum <= most) {
                Some(sum) => {
                    *offset = sum;
                    true
                }
                None => false,
            }
        })
    }

    /// Ends `duration` of this clock's time from now.
    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.elapsed().saturating_add(duration))
            .await;
    }

    /// Ends when [`Clock::elapsed`] reaches `deadline`.
    pub async fn sleep_until(&self, deadline: Duration) {
        let mut offset = self.shared.offset.subscribe();
        loop {
            offset.borrow_and_update();
            let left = deadline.saturating_sub(self.elapsed());
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                // The sender lives in `self`, so this cannot fail while we are here.
                _ = offset.changed() => {}
            }
        }
    }

    fn running(&self) -> Duration {
        match self.shared.started.get() {
            Some(started) => started.elapsed(),
            None => {
                // A lost race means that another thread set it a moment ago: zero is still right.
                let _ = self.shared.started.set(Instant::now());
                Duration::ZERO
            }
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

#[cfg(test)]
mod tests;
