//! Times. Spans within one process are tokio's monotonic instants; what one process stamps and
//! another one reads is the machine's clock.
//!
//! Why not a monotonic stamp: std hides its number, and a step of the machine's clock in the middle
//! of a run would show as delays of its size, not as a small error.

use std::time::{Duration, SystemTime};

/// Nanoseconds of the clock that all processes of this machine share.
#[expect(
    clippy::disallowed_methods,
    reason = "a stamp that travels between two processes needs the machine's clock"
)]
pub fn stamp_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    nanoseconds(since.unwrap_or_default())
}

/// A span as a whole number of nanoseconds.
pub fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
