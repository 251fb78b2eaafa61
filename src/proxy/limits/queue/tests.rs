//! What the queue promises, on a clock of the test's own: the decisions alone, a service that counts,
//! and requests that wait.

mod rules;
mod service;
mod shared;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use super::line::{Priority, TicketNo};
use super::scheduler::{Due, Entered, Granted, Scheduler, SlotNo};
use crate::config::Shaping;

pub(super) const FAR: Duration = Duration::from_secs(1_000_000);

pub(super) fn shaping(in_flight: usize, per_minute: usize) -> Shaping {
    let limit = |limit: usize| (limit > 0).then_some(limit);
    Shaping {
        in_flight: limit(in_flight),
        per_minute: limit(per_minute),
        queue_max: 1_000,
        queue_wait: Duration::from_secs(90),
    }
}

pub(super) fn app(name: &str) -> Arc<str> {
    Arc::from(name)
}

pub(super) const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
