//! The rate: how many requests the service may have counted in its last minute.
//!
//! The service counts a request when it arrives, and its window's alignment and the travel time are
//! not known here. So a request counts from the moment it is let go until a window after the moment
//! by which it had certainly arrived: its answer's head, or the end of its attempt.
//!
//! Promise: whatever minute the service looks at, at most the limit of requests arrived in it; one
//! that was never sent counts nothing. What this costs is small where the rate is what binds: 120 a
//! minute through 8 places are answers of 4 s at most, so a loss of 5 in 65.

use std::collections::VecDeque;
use std::time::Duration;

/// "120 requests per minute", and a second more for a service that counts in whole seconds.
pub const WINDOW: Duration = Duration::from_secs(61);

/// What was sent lately. At most as long as the limit it is asked about.
#[derive(Debug, Default)]
pub struct RateWindow {
    /// Let go, and not known to have arrived.
    on_their_way: usize,
    /// When each of the others had arrived at the latest, oldest first.
    arrived: VecDeque<Duration>,
}

// === impl RateWindow ===

impl RateWindow {
    /// Requests that the service may count now.
    pub fn count(&mut self, now: Duration) -> usize {
        while self
            .arrived
            .front()
            .is_some_and(|at| now.saturating_sub(*at) > WINDOW)
        {
            self.arrived.pop_front();
        }
        self.on_their_way + self.arrived.len()
    }

    /// When the count falls below `limit` by time alone; `None` where it is below, or where it takes
    /// an arrival first.
    pub fn next_at(&mut self, now: Duration, limit: usize) -> Option<Duration> {
        let above = self.count(now).checked_sub(limit)?;
        let at = self.arrived.get(above)?;
        // One tick more, because a request counts for the whole of its window.
        Some(*at + WINDOW + Duration::from_nanos(1))
    }

    /// When the `nth` request from now on, counted from 0, can be let go at the earliest, where nothing
    /// but the window holds any of them back, and each goes as soon as it may.
    pub fn earliest(&mut self, now: Duration, limit: usize, nth: usize) -> Duration {
        let limit = limit.max(1);
        let count = self.count(now);
        // One tick more, because a request counts for the whole of its window.
        let counts_for = WINDOW + Duration::from_nanos(1);
        let turns = u32::try_from(nth / limit).unwrap_or(u32::MAX);
        let turn_at = match (nth % limit + count).checked_sub(limit) {
            None => now,
            // What is on its way arrives now at the earliest.
            Some(before) => self.arrived.get(before).copied().unwrap_or(now) + counts_for,
        };
        turn_at.saturating_add(counts_for.saturating_mul(turns))
    }

    pub fn let_go(&mut self) {
        self.on_their_way += 1;
    }

    /// A request that was let go has arrived by now. Where no limit is asked about, none is kept.
    pub fn arrived(&mut self, now: Duration, limit: Option<usize>) {
        self.on_their_way = self.on_their_way.saturating_sub(1);
        if limit.is_some() {
            // Times come from one clock under one lock, so they do not go back.
            self.arrived.push_back(now);
        } else {
            self.arrived.clear();
        }
    }

    /// A request that was let go was not sent.
    pub fn taken_back(&mut self) {
        self.on_their_way = self.on_their_way.saturating_sub(1);
    }
}
