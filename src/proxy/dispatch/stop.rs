//! What ends the attempts between two of them, although the table allows another: an order to freeze, a
//! run that has ended, a limit that was reached meanwhile, too many that wait, bursar's own stop.
//!
//! Promise: the app is told what holds now, not what the service answered before, so that it does not
//! knock on; and it is told beside it what the attempts before came to. An entry that is in doubt stays
//! so, and its key adoptable.

use super::Dispatch;
use crate::ledger::entry::Attempt;
use crate::ledger::state::may_have_run;
use crate::proxy::attend::Attendance;
use crate::proxy::limits::guard::SpendGuard;
use crate::proxy::refuse::{Code, Refusal};

impl Dispatch<'_> {
    /// Resolves when an operator freezes the app, or its run ends; pends for ever for what costs nothing.
    pub(super) async fn halted(&self) -> Refusal {
        match &self.guard {
            Some(guard) => self.stopped_by(guard.halted().await),
            None => std::future::pending().await,
        }
    }

    /// Why the next attempt may not be sent, if it may not.
    pub(super) fn forbidden(&self, app: &Attendance<'_>) -> Option<Refusal> {
        let Some(live) = &app.live else {
            let held = self.guard.as_ref().and_then(SpendGuard::holds);
            return held.map(|refusal| self.stopped_by(refusal));
        };
        let caps = &self.gateway.caps;
        if let Some(halt) = self.guard.as_ref().and_then(SpendGuard::halts) {
            return Some(self.stopped_by(halt));
        }
        if self.is_in_doubt() {
            // The same purchase goes on: it is charged already.
            return None;
        }
        let over = caps.over(live.entry)?;
        Some(self.stopped_by((&over).into()))
    }

    /// bursar is stopping, and nobody waits for a place any more. `None` where an attempt may have run:
    /// that is what the app has to know.
    pub(super) fn closed(&self) -> Option<Refusal> {
        let refusal = || self.stopped_by(Refusal::new(Code::ShuttingDown));
        (!self.is_in_doubt()).then(refusal)
    }

    /// An attempt may have run: only a repeat tells what it came to.
    pub(super) fn is_in_doubt(&self) -> bool {
        may_have_run(&self.attempts, self.route.keyed)
    }

    pub(super) fn stopped_by(&self, refusal: Refusal) -> Refusal {
        match so_far(&self.attempts, self.route.keyed) {
            Some(words) => refusal.and(&words),
            None => refusal,
        }
    }
}

/// What the attempts came to, for the app.
fn so_far(attempts: &[Attempt], keyed: bool) -> Option<String> {
    let last = attempts.last()?;
    Some(if may_have_run(attempts, keyed) {
        "This is about a repeat; an attempt before it may have run: the entry is in doubt, and the \
         same request uses the same key where the route has one."
            .to_owned()
    } else if let Some(status) = last.status {
        format!(
            "This is about a repeat; the service answered {status} to the attempt before it, which \
             costs nothing."
        )
    } else {
        "This is about a repeat; the attempt before it did not reach the service.".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::entry::AttemptEnd;

    fn attempt(end: AttemptEnd, status: Option<u16>) -> Attempt {
        Attempt {
            end,
            status,
            wait_ms: 0,
            took_ms: 0,
            cause: None,
            receipt_lines: Vec::new(),
        }
    }

    #[test]
    fn one_attempt_that_may_have_run_is_never_told_as_none() {
        let busy = || attempt(AttemptEnd::Refused, Some(503));
        let unsent = || attempt(AttemptEnd::NotSent, None);
        let lost = || attempt(AttemptEnd::NoHead, None);
        let running = || attempt(AttemptEnd::Refused, Some(409));
        let rows = [
            (vec![busy()], true, "answered 503"),
            (vec![unsent()], true, "did not reach"),
            (vec![lost(), busy()], true, "may have run"),
            (vec![busy(), unsent()], true, "did not reach"),
            (vec![unsent(), lost()], true, "may have run"),
            (vec![running()], true, "may have run"),
            (vec![running()], false, "answered 409"),
        ];
        for (attempts, keyed, part) in rows {
            let words = so_far(&attempts, keyed).expect("there was an attempt");
            assert!(words.contains(part), "{words}");
            assert_eq!(may_have_run(&attempts, keyed), part == "may have run");
        }
        assert_eq!(so_far(&[], true), None);
    }
}
