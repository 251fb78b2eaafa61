//! What the service's answers showed of the organization's key and of its balance.
//!
//! Promise: only an answer shows anything, and only of the key that it was asked with: a reload with another key or
//! another service begins anew, and an answer to an older request counts for the key that it had. Nothing is kept
//! over a restart: the key may be another one then.

use http::StatusCode;
use parking_lot::Mutex;

use crate::clock::SharedClock;

/// What the answers to one key showed.
pub struct KeyRecord {
    clock: SharedClock,
    seen: Mutex<KeyEvidence>,
}

/// Times in Unix milliseconds; `None`: there was no such answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyEvidence {
    /// The newest answer, whatever it was.
    pub answered_ms: Option<u64>,
    /// The newest answer that is given only to a key the service knows: a 2xx, or 402 for an empty balance. Of others
    /// (404, 429, 5xx) a hop before the service can be the author.
    pub accepted_ms: Option<u64>,
    /// The newest 401, if no answer since then took the key.
    pub refused_ms: Option<u64>,
    /// The newest 402, if no paid request succeeded since.
    pub balance_empty_ms: Option<u64>,
}

// === impl KeyRecord ===

impl KeyRecord {
    pub fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            seen: Mutex::default(),
        }
    }

    /// An answer came to a request with this key; `is_metered`: the request costs money.
    pub fn heard(&self, status: StatusCode, is_metered: bool) {
        let now = Some(self.clock.wall_ms());
        let mut seen = self.seen.lock();
        seen.answered_ms = now;
        match status {
            StatusCode::UNAUTHORIZED => seen.refused_ms = now,
            StatusCode::PAYMENT_REQUIRED => {
                seen.accepted_ms = now;
                seen.refused_ms = None;
                seen.balance_empty_ms = now;
            }
            status if status.is_success() => {
                seen.accepted_ms = now;
                seen.refused_ms = None;
                if is_metered {
                    seen.balance_empty_ms = None;
                }
            }
            _ => {}
        }
    }

    pub fn evidence(&self) -> KeyEvidence {
        *self.seen.lock()
    }
}

#[cfg(test)]
mod tests;
