//! What left or broke off before an answer was settled: the app, the service, or bursar by one of its
//! bounds. For the reader of the ledger; no amount depends on it.
//!
//! Promise: at most three, in the order in which they happened.

use std::time::Duration;

use crate::clock::millis;
use crate::ledger::entry::{Attempt, AttemptEnd, Closed, InDoubt, Side, Stage};
use crate::proxy::purchase::lost::Cause;

/// What ended before, as far as it is known when an answer is settled.
pub(super) struct Ends<'a> {
    /// How far the answer was when the app left, and when that was.
    pub app_left: Option<(Stage, Duration)>,
    pub cut_by: Option<InDoubt>,
    pub last: Option<&'a Attempt>,
    /// How far the answer is.
    pub stage: Stage,
    pub now: Duration,
    pub arrived: Duration,
}

// === impl Ends ===

impl Ends<'_> {
    pub(super) fn closed(&self) -> Vec<Closed> {
        let left = self.app_left;
        let left = left.map(|(stage, at)| self.closed_at(Side::App, stage, at, None));
        left.into_iter().chain(self.broke_off()).collect()
    }

    fn broke_off(&self) -> Option<Closed> {
        if let Some(reason) = self.cut_by {
            let why = match reason {
                InDoubt::Shutdown => "shutdown",
                // The app had left, and reading on for it was not allowed, or not any longer.
                InDoubt::ClientGone => "drain_bound",
                _ => "stopped",
            };
            return Some(self.closed_at(Side::Bursar, self.stage, self.now, Some(why)));
        }
        let last = self.last?;
        let stage = match (last.end, self.stage) {
            (AttemptEnd::NoHead, _) => Stage::Waiting,
            (AttemptEnd::Broken, Stage::Streaming) => Stage::Streaming,
            (AttemptEnd::Broken, _) => Stage::Answering,
            _ => return None,
        };
        let why = last.cause.as_deref();
        let timed_out = why == Some(Cause::Timeout.as_str());
        Some(if timed_out {
            self.closed_at(Side::Bursar, stage, self.now, Some("read_timeout"))
        } else {
            self.closed_at(Side::Service, stage, self.now, why)
        })
    }

    fn closed_at(&self, by: Side, stage: Stage, at: Duration, why: Option<&str>) -> Closed {
        Closed {
            by,
            stage,
            after_ms: millis(at.saturating_sub(self.arrived)),
            why: why.map(str::to_owned),
        }
    }
}
