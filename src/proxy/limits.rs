//! What holds a request back before it is sent, and how much of the machine requests may hold.
//!
//! Lowest first: `connections`; `waiters` (what waits inside); `breaker` (what the service just refused
//! to all); `queue` (a place within the service's ceilings, in turn); `guard` (a freeze, a removed
//! app, a run's end).

pub mod breaker;
pub mod connections;
pub mod guard;
pub mod queue;
pub mod waiters;
