//! What follows the end of an attempt: another one, and after what wait, or none.
//!
//! | the attempt ended with | is recorded as | is repeated where the route's row has |
//! |---|---|---|
//! | not sent: the certificate was refused, or what answers speaks no TLS | not sent | – |
//! | not sent, for any other reason | not sent | `not_sent` |
//! | no head; on a pooled connection that had been closed: at once, on a fresh one | no head | `no_head` |
//! | a 2xx head and a broken body, nothing of it given to the app | broken | `broken` |
//! | 429, 503 | refused | `busy` |
//! | 409 | refused | `conflict` |
//! | 408, 500, 502, 504 | refused | `transient` |
//! | 502, 504 without JSON, where an amount is owed and no key makes a repeat safe | gateway | – |
//! | any refusal with `x-should-retry: false`, and any other status | refused | – |
//!
//! Even then nothing is repeated beyond the configured attempts, past the deadline, or under a key that may
//! be too old (rule I6). What happens between two attempts is decided in [`super::attempts`].
//!
//! Promise: pure. The retry loop and the model check decide by the same lines, so what the model
//! holds of them holds on the wire.

use std::time::Duration;

use http::StatusCode;

use super::backoff::Backoff;
use crate::ledger::entry::{Attempt, AttemptEnd};
use crate::ledger::state;
use crate::money::MicroUsd;
use crate::protocol::receipt::Receipt;
use crate::protocol::routes::{RetryRule, Route};
use crate::proxy::purchase::lost::{Cause, Lost};

/// The attempts of one request so far, and the rules for another.
#[derive(Debug)]
pub struct Retries {
    rule: RetryRule,
    keyed: bool,
    is_metered: bool,
    adoptions_max: u32,
    bounds: Bounds,
    attempts: Vec<Attempt>,
    /// The receipt in the head of an answer whose body broke.
    broken: Option<Receipt>,
}

/// What bounds the attempts of one request.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub backoff: Backoff,
    /// Monotonic time after which no wait and no attempt begins.
    pub deadline: Duration,
}

/// How an attempt ended that brought no answer for the app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Lost(Lost),
    Broken,
    Refused(ErrorHead),
}

/// A complete head that is no 2xx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorHead {
    pub status: StatusCode,
    /// Its body was read and is JSON: the service itself speaks.
    pub has_json: bool,
    /// It says that a retry is of no use.
    pub declines: bool,
    /// The wait that the service asked for.
    pub asked: Option<Duration>,
}

/// An attempt that repeats another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repeat {
    /// The wait before it.
    pub wait: Duration,
    /// For the counter.
    pub reason: &'static str,
    /// The pool may hold more connections that the service has closed.
    pub fresh_connection: bool,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Repeat(Repeat),
    /// The table allows another attempt, and none is left.
    Exhausted,
    Stop,
}

/// Adoptions of one key after which the answer asks the app's own retries to stop.
const ADOPTIONS_MAX: u32 = 3;

/// The same on translated routes: Codex repeats four times before a stream and five in it.
const TRANSLATED_ADOPTIONS_MAX: u32 = 10;

// === impl Retries ===

impl Retries {
    pub fn new(route: &Route, bounds: Bounds) -> Self {
        Self {
            rule: route.retry,
            keyed: route.keyed,
            is_metered: route.is_metered(),
            adoptions_max: match route.translation {
                Some(_) => TRANSLATED_ADOPTIONS_MAX,
                None => ADOPTIONS_MAX,
            },
            bounds,
            attempts: Vec::new(),
            broken: None,
        }
    }

    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    pub fn last_mut(&mut self) -> Option<&mut Attempt> {
        self.attempts.last_mut()
    }

    /// The attempts for the outcome, which is written once: their receipt lines go with them.
    pub fn for_outcome(&mut self) -> Vec<Attempt> {
        let with_lines = |attempt: &mut Attempt| {
            let receipt_lines = std::mem::take(&mut attempt.receipt_lines);
            Attempt {
                receipt_lines,
                ..attempt.clone()
            }
        };
        self.attempts.iter_mut().map(with_lines).collect()
    }

    /// An attempt has ended at the service.
    pub fn record(&mut self, attempt: Attempt) {
        self.attempts.push(attempt);
    }

    pub fn deadline(&self) -> Duration {
        self.bounds.deadline
    }

    /// An attempt may have run: only a repeat shows what it came to.
    pub fn may_have_run(&self) -> bool {
        state::may_have_run(&self.attempts, self.keyed)
    }

    /// A limit counts what it may cost already.
    pub fn is_charged(&self) -> bool {
        self.is_metered && self.may_have_run()
    }

    /// How the ledger has it.
    pub fn end_of(&self, ending: &Ending) -> AttemptEnd {
        match ending {
            Ending::Lost(Lost::NotSent(_)) => AttemptEnd::NotSent,
            Ending::Lost(Lost::NoHead(_) | Lost::StaleConnection) => AttemptEnd::NoHead,
            Ending::Broken => AttemptEnd::Broken,
            Ending::Refused(refused) if self.is_from_a_hop(refused) => AttemptEnd::Gateway,
            Ending::Refused(_) => AttemptEnd::Refused,
        }
    }

    /// "A 502/504 without a JSON body on an unkeyed metered route … may come from a hop after the work
    /// was done" (rule I4), and so may one whose body could not be read.
    fn is_from_a_hop(&self, refused: &ErrorHead) -> bool {
        let is_of_hops = matches!(refused.status.as_u16(), 502 | 504);
        is_of_hops && self.is_metered && !self.keyed && !refused.has_json
    }

    /// Whether a refusal with this status is followed by another attempt as far as its head says, before
    /// it is recorded.
    pub fn is_followed_up(&self, status: StatusCode, declines: bool) -> bool {
        // The attempts before this one are the retries done when it is counted too.
        after_refusal(status, self.rule).is_some()
            && !declines
            && self.attempts.len() < self.bounds.backoff.retries_max
    }

    /// What follows the attempt that was recorded last. `share` of 2³² is the jitter; `may_repeat`: the
    /// age of the key allows it.
    pub fn next(&self, ending: &Ending, share: u32, now: Duration, may_repeat: bool) -> Next {
        let Some(reason) = self.reason(ending) else {
            return Next::Stop;
        };
        let retries = self.attempts.len().saturating_sub(1);
        if retries >= self.bounds.backoff.retries_max {
            return Next::Exhausted;
        }
        // A stale connection says nothing of the service.
        let fresh_connection = *ending == Ending::Lost(Lost::StaleConnection);
        let wait = if fresh_connection {
            Duration::ZERO
        } else {
            let asked = match ending {
                Ending::Refused(refused) => refused.asked,
                Ending::Lost(_) | Ending::Broken => None,
            };
            self.bounds.backoff.wait(retries, asked, share)
        };
        if now.saturating_add(wait) >= self.bounds.deadline || !may_repeat {
            return Next::Stop;
        }
        Next::Repeat(Repeat {
            wait,
            reason,
            fresh_connection,
        })
    }

    /// Why the table allows another attempt, if it does.
    fn reason(&self, ending: &Ending) -> Option<&'static str> {
        let rule = self.rule;
        match ending {
            // A refused certificate stays refused, and the key must not be offered again; nor does a plain
            // server learn TLS meanwhile.
            Ending::Lost(Lost::NotSent(Cause::Certificate | Cause::NoTls)) => None,
            Ending::Lost(Lost::NotSent(_)) => rule.not_sent.then_some("not_sent"),
            Ending::Lost(Lost::NoHead(_) | Lost::StaleConnection) => {
                rule.no_head.then_some("no_head")
            }
            Ending::Broken => rule.broken.then_some("broken"),
            Ending::Refused(refused) if refused.declines || self.is_from_a_hop(refused) => None,
            Ending::Refused(refused) => after_refusal(refused.status, rule),
        }
    }

    /// The last attempt brought a whole answer.
    pub fn is_answered(&self) -> bool {
        let last = self.attempts.last();
        last.is_some_and(|last| last.end == AttemptEnd::Answered)
    }

    /// Whether the app is asked not to repeat a request that ended with an error: one layer retries, not three.
    /// While something may still run under a key, the app's retry is welcome, because it is joined or adopted.
    /// `exhausted`: all attempts were made; `own`: what bursar's own refusal says of a retry.
    pub fn is_final(
        &self,
        is_known_zero: bool,
        adoptions: u32,
        exhausted: bool,
        own: Option<bool>,
    ) -> bool {
        !self.keyed
            || (is_known_zero && (exhausted || own == Some(false)))
            || adoptions >= self.adoptions_max
    }

    /// Keeps the prices in the heads of broken answers. The first positive amount is the
    /// key's: what repeats show is 0.
    pub fn saw_broken_head(&mut self, receipt: impl FnOnce() -> Receipt) {
        if self.broken_billed().is_none_or(|billed| billed.is_zero()) {
            self.broken = Some(receipt());
        }
    }

    /// The amount in a broken answer's head. A replay adds nothing, whatever it shows (rule I4).
    pub fn broken_billed(&self) -> Option<MicroUsd> {
        let broken = self.broken.as_ref().filter(|broken| !broken.replayed)?;
        broken.billed.value()
    }

    /// The receipt of an entry that got no whole answer.
    pub fn take_broken(&mut self) -> Receipt {
        self.broken.take().unwrap_or_default()
    }
}

/// Why a refusal may be repeated: "statuses 408, 409, 429, 500, 502, 503 and 504 are transient".
fn after_refusal(status: StatusCode, rule: RetryRule) -> Option<&'static str> {
    match status.as_u16() {
        429 | 503 if rule.busy => Some("busy"),
        409 if rule.conflict => Some("conflict"),
        408 | 500 | 502 | 504 if rule.transient => Some("transient"),
        _ => None,
    }
}

/// Whether SDKs retry this status by themselves.
pub fn is_retried_by_apps(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 409 | 429) || status.is_server_error()
}

#[cfg(test)]
mod tests;
