//! When which eval run is looked at again: a plan without sockets and without a clock of its own.
//!
//! Promise: bounded by the ledger's list of runs; while the service is out of breath nothing is asked
//! but, when the pause is over, one run to see whether it is well again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::ledger::WaitingRun;

/// "Waiting for a run means a look every `3.0` seconds": the first wait. Each one after is doubled.
pub const FIRST_WAIT: Duration = Duration::from_secs(3);

/// Longest wait between two looks at a run.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// A run that is older than this is looked at once more and then left alone.
pub const AGE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Runs looked at side by side.
pub const AT_ONCE: usize = 4;

/// Runs that are taken up together, as after a restart, are first looked at so far apart.
pub const SPREAD: Duration = Duration::from_millis(250);

/// The first pause after a failure, doubled with each further one up to [`QUIET_MAX`]. A `Retry-After`
/// that is longer counts, up to [`ASKED_MAX`].
pub const QUIET: Duration = Duration::from_secs(5);
pub const QUIET_MAX: Duration = Duration::from_secs(300);
pub const ASKED_MAX: Duration = Duration::from_secs(3600);

/// What one look at a run brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLook {
    /// Queued, running or evaluating.
    NotYet,
    /// `completed` or `failed`: there is nothing more to learn.
    Over,
    /// The service does not know the run (any more).
    Gone,
    /// An answer that says nothing of the run; or one that could not be recorded.
    Unreadable,
    /// 401, 402, 403, 429, 5xx, or no answer: the service wants to be left alone.
    Busy { asked: Option<Duration> },
}

/// The runs that wait, and when each is looked at. Times are those of a monotonic clock.
#[derive(Debug, Default)]
pub struct Schedule {
    runs: HashMap<Arc<str>, PolledRun>,
    quiet_until: Duration,
    /// Failures in a row.
    failures: u32,
}

#[derive(Debug)]
struct PolledRun {
    started_ms: u64,
    looks: u32,
    /// `None`: it is not looked at any more.
    due: Option<Duration>,
    /// Taken from the ledger's list at this sync.
    seen: bool,
}

// === impl Schedule ===

impl Schedule {
    /// Takes over the ledger's list: what is new waits, what is gone is forgotten.
    pub fn sync(&mut self, listed: &[WaitingRun], now: Duration) {
        let mut taken_up = 0;
        for run in listed {
            let fresh = || PolledRun {
                started_ms: run.started_ms,
                looks: 0,
                due: None,
                seen: true,
            };
            let is_new = !self.runs.contains_key(&run.run_id);
            let waiting = self.runs.entry(Arc::clone(&run.run_id));
            let waiting = waiting.or_insert_with(fresh);
            waiting.seen = true;
            if is_new {
                waiting.due = Some(now + FIRST_WAIT + SPREAD * taken_up);
                taken_up += 1;
            }
        }
        self.runs
            .retain(|_, waiting| std::mem::take(&mut waiting.seen));
    }

    /// The runs to look at now, the longest due first.
    pub fn due(&self, now: Duration) -> Vec<Arc<str>> {
        if now < self.quiet_until {
            return Vec::new();
        }
        let is_due = |(run_id, waiting): (&Arc<str>, &PolledRun)| {
            let due = waiting.due.filter(|due| *due <= now)?;
            Some((due, Arc::clone(run_id)))
        };
        let mut due: Vec<_> = self.runs.iter().filter_map(is_due).collect();
        due.sort();
        due.truncate(if self.failures > 0 { 1 } else { AT_ONCE });
        due.into_iter().map(|(_, run_id)| run_id).collect()
    }

    /// When [`Self::due`] has something to say again; `None` while nothing waits.
    pub fn next(&self) -> Option<Duration> {
        let first = self.runs.values().filter_map(|waiting| waiting.due).min();
        first.map(|due| due.max(self.quiet_until))
    }

    /// Plans what follows a look. True when the run is given up for its age.
    pub fn looked(&mut self, run_id: &str, look: RunLook, now: Duration, wall_ms: u64) -> bool {
        if let RunLook::Busy { asked } = look {
            let doublings = self.failures.min(16);
            let pause = QUIET.saturating_mul(1 << doublings).min(QUIET_MAX);
            let asked = asked.unwrap_or_default().min(ASKED_MAX);
            self.failures = self.failures.saturating_add(1);
            self.quiet_until = self.quiet_until.max(now + pause.max(asked));
            return false;
        }
        self.failures = 0;
        let Some(waiting) = self.runs.get_mut(run_id) else {
            return false;
        };
        let age_ms = wall_ms.saturating_sub(waiting.started_ms);
        let is_old = u128::from(age_ms) >= AGE_MAX.as_millis();
        let goes_on = matches!(look, RunLook::NotYet | RunLook::Unreadable);
        waiting.looks = waiting.looks.saturating_add(1);
        waiting.due = (goes_on && !is_old).then(|| now + wait(waiting.looks));
        goes_on && is_old
    }
}

/// The wait after so many looks.
fn wait(looks: u32) -> Duration {
    FIRST_WAIT.saturating_mul(1 << looks.min(16)).min(WAIT_MAX)
}

#[cfg(test)]
mod tests;
