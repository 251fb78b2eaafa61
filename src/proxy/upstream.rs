//! The service's side: what to connect to and what to trust, one attempt on the wire, heads in both
//! directions.
//!
//! Lowest first: `silence`, `trust`, `tls`, `stream`, `peers`, `connections`, `http1`, `unfit`, `heads`, `outgoing`, `exchange`.

pub mod connections;
pub mod exchange;
pub mod heads;
mod http1;
pub mod outgoing;
pub mod peers;
mod silence;
mod stream;
mod tls;
pub mod trust;
mod unfit;
