//! How long to wait before another attempt: exponential with full jitter, or what the service
//! asked for.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName};

use crate::config::Retry;
use crate::protocol::names::{RETRY_AFTER_MS, X_SHOULD_RETRY};

/// The settings of one request's retries.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    pub retries_max: usize,
    pub base: Duration,
    pub cap: Duration,
}

// === impl Backoff ===

impl Backoff {
    pub fn of(retry: &Retry) -> Self {
        Self {
            retries_max: usize::try_from(retry.attempts.saturating_sub(1)).unwrap_or(0),
            base: retry.base,
            cap: retry.cap,
        }
    }

    /// The wait before retry number `retries_done` + 1. What the service asked for is a floor that
    /// is met exactly; without it the wait is anything up to `base` × 2ⁿ, at most `cap`.
    pub fn wait(self, retries_done: usize, asked: Option<Duration>, share: u32) -> Duration {
        asked.unwrap_or_else(|| jitter(self.ceiling(retries_done), share))
    }

    /// `base` × 2ⁿ, at most `cap`.
    pub fn ceiling(self, retries_done: usize) -> Duration {
        let doublings = u32::try_from(retries_done).unwrap_or(u32::MAX).min(31);
        self.base.saturating_mul(1 << doublings).min(self.cap)
    }
}

/// Full jitter: `share` of 2³² parts of the ceiling.
pub fn jitter(ceiling: Duration, share: u32) -> Duration {
    let nanos = ceiling.as_nanos().saturating_mul(u128::from(share)) >> 32;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A new share of jitter.
pub fn random_share() -> u32 {
    // Without a random source every wait is the longest one.
    getrandom::u32().unwrap_or(u32::MAX)
}

/// `retry-after-ms`, else `Retry-After` in seconds or as an HTTP date. `None` where neither can be
/// read.
pub fn asked_wait(headers: &HeaderMap, wall_ms: u64) -> Option<Duration> {
    if let Some(ms) = text(headers, RETRY_AFTER_MS).and_then(parse_decimal) {
        return Duration::try_from_secs_f64(ms / 1000.0).ok();
    }
    let value = text(headers, RETRY_AFTER)?;
    if let Some(seconds) = parse_decimal(value) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = httpdate::parse_http_date(value).ok()?;
    let at = at.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(at.saturating_sub(Duration::from_millis(wall_ms)))
}

/// The service says that a retry is of no use.
pub fn declines_retry(headers: &HeaderMap) -> bool {
    headers
        .get(X_SHOULD_RETRY)
        .is_some_and(|value| value.as_bytes() == b"false")
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Plain decimals only: `f64`'s own grammar would take `inf` and `1e9`.
fn parse_decimal(text: &str) -> Option<f64> {
    let plain = !text.is_empty()
        && text.len() <= 15
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
