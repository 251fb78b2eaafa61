//! The two ceilings on inference: requests in flight and requests per minute.
//!
//! Interface, Limits: 8 in flight (429, `Retry-After: 5`), 120 per minute (429, `Retry-After: 15`).
//! Promise: a refused request counts towards neither; a slot is held until the work has ended, not until
//! the client has left.

use crate::{clock::Clock, error::ServiceError, settings::LimitsPart};
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc, time::Duration};

const WINDOW: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Limits {
    clock: Clock,
    inner: Mutex<InFlight>,
}

#[derive(Debug)]
struct InFlight {
    in_flight_max: usize,
    per_minute_max: u32,
    in_flight: usize,
    in_flight_highest: usize,
    /// When each request of the last minute was admitted; at most `per_minute_max` entries.
    admitted: VecDeque<Duration>,
}

/// One request in flight; dropping it frees the place.
#[derive(Debug)]
pub struct Slot {
    limits: Arc<Limits>,
}

/// What the control route shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LimitsView {
    pub in_flight: usize,
    pub in_flight_highest: usize,
    pub in_flight_max: usize,
    pub per_minute_max: u32,
    pub admitted_last_minute: usize,
}

// === impl Limits ===

impl Limits {
    pub fn new(clock: Clock, in_flight_max: usize, per_minute_max: u32) -> Arc<Self> {
        Arc::new(Self {
            clock,
            inner: Mutex::new(InFlight {
                in_flight_max,
                per_minute_max,
                in_flight: 0,
                in_flight_highest: 0,
                admitted: VecDeque::new(),
            }),
        })
    }

    pub fn set(&self, wanted: LimitsPart) {
        let mut inner = self.inner.lock();
        inner.in_flight_max = wanted.in_flight.unwrap_or(inner.in_flight_max);
        inner.per_minute_max = wanted.per_minute.unwrap_or(inner.per_minute_max);
    }

    /// A place in flight, or the 429 that says which ceiling was reached.
    pub fn admit(self: &Arc<Self>) -> Result<Slot, ServiceError> {
        let now = self.clock.elapsed();
        let mut inner = self.inner.lock();
        if inner.in_flight >= inner.in_flight_max {
            return Err(ServiceError::TooManyInFlight);
        }
        inner.forget_before(now);
        // Assumed (rate-window): a sliding window of 60 s over admitted requests.
        if inner.admitted.len() >= usize::try_from(inner.per_minute_max).unwrap_or(usize::MAX) {
            return Err(ServiceError::TooManyPerMinute);
        }
        inner.admitted.push_back(now);
        inner.in_flight += 1;
        inner.in_flight_highest = inner.in_flight_highest.max(inner.in_flight);
        Ok(Slot {
            limits: Arc::clone(self),
        })
    }

    pub fn view(&self) -> LimitsView {
        let now = self.clock.elapsed();
        let mut inner = self.inner.lock();
        inner.forget_before(now);
        LimitsView {
            in_flight: inner.in_flight,
            in_flight_highest: inner.in_flight_highest,
            in_flight_max: inner.in_flight_max,
            per_minute_max: inner.per_minute_max,
            admitted_last_minute: inner.admitted.len(),
        }
    }
}

impl InFlight {
    fn forget_before(&mut self, now: Duration) {
        while self
            .admitted
            .front()
            .is_some_and(|at| now.saturating_sub(*at) >= WINDOW)
        {
            self.admitted.pop_front();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut inner = self.limits.inner.lock();
        inner.in_flight = inner.in_flight.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests;
