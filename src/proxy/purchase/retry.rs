//! What follows the end of an attempt: another one, and after what wait, or none.
//!
//! Promise: pure. The retry loop and the model check decide by the same lines, so what the model
//! holds of them holds on the wire.

use std::time::Duration;

use http::StatusCode;

use super::backoff::Backoff;
use crate::ledger::entry::AttemptEnd;
use crate::money::MicroUsd;
use crate::protocol::receipt::Receipt;
use crate::protocol::routes::{RetryRule, Route};
use crate::proxy::upstream::exchange::{Cause, Lost};

/// What bounds the attempts of one request.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub backoff: Backoff,
    /// Monotonic time after which no wait and no attempt begins.
    pub deadline: Duration,
}

/// What to do after an attempt that the table allows to be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Repeat {
        wait: Duration,
    },
    /// No attempts are left.
    Exhausted,
    /// Too late, or the key may not be sent again (rule I6).
    Stop,
}

// === impl Bounds ===

impl Bounds {
    /// `asked` is the service's wait; at once for a stale connection, which says nothing of the
    /// service. `share` of 2³² is the jitter.
    pub fn next(
        &self,
        attempts: usize,
        asked: Option<Duration>,
        at_once: bool,
        share: u32,
        now: Duration,
        may_repeat: bool,
    ) -> Next {
        let retries = attempts.saturating_sub(1);
        if retries >= self.backoff.retries_max {
            return Next::Exhausted;
        }
        let wait = if at_once {
            Duration::ZERO
        } else {
            self.backoff.wait(retries, asked, share)
        };
        if now.saturating_add(wait) >= self.deadline || !may_repeat {
            return Next::Stop;
        }
        Next::Repeat { wait }
    }
}

/// How an attempt without a response head ended.
pub fn end_of_loss(lost: Lost) -> AttemptEnd {
    match lost {
        Lost::NotSent(_) => AttemptEnd::NotSent,
        Lost::NoHead(_) | Lost::StaleConnection => AttemptEnd::NoHead,
    }
}

/// Why an attempt without a response head may be repeated, for the counter; `None` where it may not.
pub fn after_loss(lost: Lost, rule: RetryRule) -> Option<&'static str> {
    match lost {
        // A refused certificate stays refused, and the key must not be offered again; nor does a plain
        // server learn TLS meanwhile.
        Lost::NotSent(Cause::Certificate | Cause::NoTls) => None,
        Lost::NotSent(_) => rule.not_sent.then_some("not_sent"),
        Lost::NoHead(_) | Lost::StaleConnection => rule.no_head.then_some("no_head"),
    }
}

/// The same for a 2xx head whose body broke before anything was given to the app.
pub fn after_break(rule: RetryRule) -> Option<&'static str> {
    rule.broken.then_some("broken")
}

/// The same for an answer that is not a 2xx: "statuses 408, 409, 429, 500, 502, 503 and 504 are
/// transient".
pub fn after_refusal(status: StatusCode, rule: RetryRule) -> Option<&'static str> {
    match status.as_u16() {
        429 | 503 if rule.busy => Some("busy"),
        409 if rule.conflict => Some("conflict"),
        408 | 500 | 502 | 504 if rule.transient => Some("transient"),
        _ => None,
    }
}

/// "A 502/504 without a JSON body on an unkeyed metered route … may come from a hop after the work
/// was done" (rule I4), and so may one whose body could not be read.
pub fn end_of_refusal(route: &Route, status: StatusCode, has_json: bool) -> AttemptEnd {
    let from_a_hop = matches!(status.as_u16(), 502 | 504) && route.is_metered() && !route.keyed;
    if from_a_hop && !has_json {
        AttemptEnd::Gateway
    } else {
        AttemptEnd::Refused
    }
}

/// Keeps what the heads of broken answers told of their price. The first positive amount is the
/// key's: what repeats show is 0.
pub fn keep_first_priced(kept: &mut Option<Receipt>, receipt: impl FnOnce() -> Receipt) {
    let is_priced = kept
        .as_ref()
        .and_then(amount_of_broken)
        .is_some_and(|billed| !billed.is_zero());
    if !is_priced {
        *kept = Some(receipt());
    }
}

/// What a broken answer's head told. A replay adds nothing, whatever it shows (rule I4).
pub fn amount_of_broken(receipt: &Receipt) -> Option<MicroUsd> {
    receipt.billed.value().filter(|_| !receipt.replayed)
}

#[cfg(test)]
mod tests;
