//! The service's side: what to connect to and what to trust, one attempt on the wire, heads in both
//! directions.
//!
//! Lowest first: `trust`, `peers`, `unfit`, `heads`, `exchange`.

pub mod exchange;
pub mod heads;
pub mod peers;
pub mod trust;
mod unfit;
