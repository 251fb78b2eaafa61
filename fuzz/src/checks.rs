//! One check for each parser that reads foreign bytes. A check panics when its promise is broken.
//!
//! Promise: each compares with a second, plain reading of the same bytes; none only waits for a
//! panic.

pub mod config;
pub mod journal;
pub mod messages;
pub mod receipt;
pub mod responses;
pub mod routes;
pub mod sse;
