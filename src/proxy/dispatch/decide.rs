//! After an attempt has ended: may there be another, and when? Pure, so that the loop that owns the
//! sockets and the model check ask the same code.
//!
//! Promise: only what the route's row allows is repeated, a repeat that would begin after the
//! deadline is not begun, and what may have been billed by a hop in between is not sent again.

use std::time::Duration;

use super::backoff::Backoff;
use crate::ledger::entry::AttemptEnd;
use crate::protocol::routes::RetryRule;

/// What follows an attempt that the row lets be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another attempt after this wait.
    After(Duration),
    /// The retries are used up.
    Exhausted,
    /// The wait does not fit into what is left of the deadline.
    TooLate,
}

/// Why the row allows another attempt after one that ended so; `None`: it does not.
pub fn reason(rule: RetryRule, end: AttemptEnd, status: Option<u16>) -> Option<&'static str> {
    match end {
        AttemptEnd::NotSent => rule.not_sent.then_some("not_sent"),
        AttemptEnd::NoHead => rule.no_head.then_some("no_head"),
        AttemptEnd::Broken => rule.broken.then_some("broken"),
        AttemptEnd::Refused => refusal_reason(rule, status?),
        // The work may have been done.
        AttemptEnd::Gateway | AttemptEnd::Answered => None,
    }
}

/// "statuses 408, 409, 429, 500, 502, 503 and 504 are transient".
pub fn refusal_reason(rule: RetryRule, status: u16) -> Option<&'static str> {
    match status {
        429 | 503 if rule.busy => Some("busy"),
        409 if rule.conflict => Some("conflict"),
        408 | 500 | 502 | 504 if rule.transient => Some("transient"),
        _ => None,
    }
}

// === impl Next ===

impl Next {
    /// `asked` is the wait that the service asked for; `at_once` needs none.
    pub fn decide(
        backoff: Backoff,
        attempts_made: usize,
        asked: Option<Duration>,
        at_once: bool,
        now: Duration,
        deadline: Duration,
    ) -> Self {
        let retries = attempts_made.saturating_sub(1);
        if retries >= backoff.retries_max {
            return Self::Exhausted;
        }
        let wait = if at_once {
            Duration::ZERO
        } else {
            backoff.wait(retries, asked)
        };
        if now.saturating_add(wait) >= deadline {
            return Self::TooLate;
        }
        Self::After(wait)
    }
}
