//! The service's ceilings where several machines of one organization use them: what this machine makes of them, and how
//! much of them the fleet leaves it.
//!
//! Why: the ceilings are the organization's ("8 requests in flight per serving instance", "120 requests per minute"), and
//! each machine's queue knows its own requests only.
//!
//! Promise: advice, not money: what is shared lowers a limit for a while and refuses nothing by itself.

use std::time::Duration;

/// Requests at once, and requests a minute. `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ceilings {
    pub in_flight: Option<usize>,
    pub per_minute: Option<usize>,
}

/// What a machine uses of its ceilings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// As they are configured.
    pub ceilings: Ceilings,
    /// In force now: at most the ceilings.
    pub limits: Ceilings,
    pub in_flight: usize,
    /// That the service may have counted in its last minute.
    pub sent: usize,
    /// That would be in flight if there were places.
    pub waiting_for_place: usize,
    /// That the minute has no room for.
    pub waiting_for_time: usize,
}

/// The two sides of a queue that one who shares the ceilings out needs.
pub struct Shared {
    demand: Box<dyn Fn() -> Demand + Send + Sync>,
    obey: Box<dyn Fn(Ceilings, Duration) + Send + Sync>,
}

// === impl Demand ===

impl Demand {
    /// So much is used of what may be that the other machines are worth a look: half of the places, a quarter of the
    /// minute, or all of either.
    pub fn is_worth_sharing(&self) -> bool {
        let is_half = |used: usize, limit: Option<usize>| {
            limit.is_some_and(|limit| used.saturating_mul(2) >= limit)
        };
        let waits = |waiting: usize, limit: Option<usize>| waiting > 0 && limit.is_some();
        let limits = self.limits;
        waits(self.waiting_for_place, limits.in_flight)
            || waits(self.waiting_for_time, limits.per_minute)
            || is_half(self.in_flight, limits.in_flight)
            || is_half(self.sent.saturating_mul(2), limits.per_minute)
    }

    /// What it would use of each ceiling if the other machines used nothing.
    pub fn wanted(&self) -> Ceilings {
        let wanted = |used: usize, waiting: usize, ceiling: Option<usize>| {
            ceiling.map(|ceiling| used.saturating_add(waiting).min(ceiling))
        };
        let (place, time) = (self.waiting_for_place, self.waiting_for_time);
        Ceilings {
            in_flight: wanted(self.in_flight, place, self.ceilings.in_flight),
            per_minute: wanted(self.sent, time, self.ceilings.per_minute),
        }
    }

    /// What the service still counts of a machine that sends nothing more.
    pub fn counted(&self) -> Ceilings {
        let sent = |ceiling: usize| self.sent.min(ceiling);
        Ceilings {
            in_flight: self.ceilings.in_flight.map(|_| 0),
            per_minute: self.ceilings.per_minute.map(sent),
        }
    }
}

// === impl Shared ===

impl Shared {
    /// `demand`: what the queue's requests use now. `obey`: holds the queue below a share for so long.
    pub fn new(
        demand: impl Fn() -> Demand + Send + Sync + 'static,
        obey: impl Fn(Ceilings, Duration) + Send + Sync + 'static,
    ) -> Self {
        Self {
            demand: Box::new(demand),
            obey: Box::new(obey),
        }
    }

    pub fn demand(&self) -> Demand {
        (self.demand)()
    }

    /// Holds the queue below a share for so long.
    pub fn obey(&self, share: Ceilings, time: Duration) {
        (self.obey)(share, time);
    }
}

#[cfg(test)]
mod tests;
