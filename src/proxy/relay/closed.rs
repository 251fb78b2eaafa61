//! Who left or broke off before an answer was settled: the app, the service, or bursar by one of its
//! bounds. For the reader of the ledger; no amount depends on it.
//!
//! Promise: at most three, in the order in which they happened.

use std::time::Duration;

use super::Relay;
use crate::clock::millis;
use crate::ledger::entry::{AttemptEnd, Closed, InDoubt, Side, Stage};
use crate::proxy::attend::Phase;
use crate::proxy::upstream::exchange::Cause;

impl Relay<'_> {
    pub(super) fn closed(&self, cut_by: Option<InDoubt>) -> Vec<Closed> {
        let mut closed = Vec::new();
        if let Some((phase, at)) = self.app.left {
            closed.push(self.closed_at(Side::App, stage(phase), at, None));
        }
        let now = self.gateway.clock.monotonic();
        if let Some(reason) = cut_by {
            let why = match reason {
                InDoubt::Shutdown => "shutdown",
                // The app had left, and reading on for it was not allowed, or not any longer.
                InDoubt::ClientGone => "drain_bound",
                _ => "stopped",
            };
            closed.push(self.closed_at(Side::Bursar, stage(self.app.phase), now, Some(why)));
            return closed;
        }
        let Some(last) = self.dispatch.attempts.last() else {
            return closed;
        };
        let stage = match (last.end, self.app.phase) {
            (AttemptEnd::NoHead, _) => Stage::Waiting,
            (AttemptEnd::Broken, Phase::Streaming) => Stage::Streaming,
            (AttemptEnd::Broken, _) => Stage::Answering,
            _ => return closed,
        };
        let why = last.cause.as_deref();
        let timed_out = why == Some(Cause::Timeout.as_str());
        closed.push(if timed_out {
            self.closed_at(Side::Bursar, stage, now, Some("read_timeout"))
        } else {
            self.closed_at(Side::Service, stage, now, why)
        });
        closed
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

const fn stage(phase: Phase) -> Stage {
    match phase {
        Phase::Waiting => Stage::Waiting,
        Phase::Streaming => Stage::Streaming,
        Phase::Answering => Stage::Answering,
    }
}
