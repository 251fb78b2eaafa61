//! Evidence that bursar goes and gets: an eval run names its price only when it is over, so bursar looks
//! at each run that it saw start until then. A look is a free GET; nothing is ever sent again that could
//! bill (rule I12).
//!
//! Promise: few looks at once, seldomer with time, none while the service wants quiet or bursar shuts
//! down; what an app's own look brings counts as well; a run that names no amount stays unreported,
//! never 0. The runs come from the ledger, so a restart takes them up again.

pub mod schedule;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use http::StatusCode;
use tokio::sync::watch;

use self::schedule::{RunLook, Schedule};
use super::own_call::{self, OwnAnswer};
use crate::ledger::WaitingRun;
use crate::protocol::Reported;
use crate::protocol::body::AnswerPeek;
use crate::protocol::routes::{ReceiptFrom, Route};
use crate::proxy::gateway::Gateway;
use crate::proxy::purchase::backoff::asked_wait;
use crate::proxy::settings::Settings;

/// Least time between two rounds: with [`schedule::AT_ONCE`], the most looks a second.
const PAUSE: Duration = Duration::from_secs(1);

/// Looks at eval runs until they name their price.
pub struct EvalRunPoller {
    gateway: Arc<Gateway>,
    listed: watch::Receiver<Arc<[WaitingRun]>>,
    schedule: Schedule,
}

// === impl EvalRunPoller ===

impl EvalRunPoller {
    pub fn new(gateway: &Arc<Gateway>) -> Self {
        Self {
            listed: gateway.ledger.waiting_runs(),
            gateway: Arc::clone(gateway),
            schedule: Schedule::default(),
        }
    }

    /// Looks until `stop` turns true. A look that is under way is dropped then: it was free, and the
    /// run waits in the ledger.
    pub async fn gather(mut self, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            () = self.rounds() => {}
            // A sender that is gone has stopped, too.
            _ = stop.wait_for(|stopped| *stopped) => {}
        }
    }

    async fn rounds(&mut self) {
        loop {
            self.round().await;
            if self.schedule.next().is_some() || !self.is_on() {
                tokio::time::sleep(PAUSE).await;
            } else if self.listed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Looks at what is due now, and returns when all of it has answered.
    pub async fn round(&mut self) {
        if !self.is_on() {
            return;
        }
        let now = self.gateway.clock.monotonic();
        let listed = Arc::clone(&self.listed.borrow_and_update());
        self.schedule.sync(&listed, now);
        let due = self.schedule.due(now);
        let settings = self.gateway.settings.load_full();
        let looks = due
            .iter()
            .map(|run_id| look(&self.gateway, &settings, run_id));
        let looks = join_all(looks).await;
        let (now, wall_ms) = (self.gateway.clock.monotonic(), self.gateway.clock.wall_ms());
        for (run_id, look) in due.iter().zip(looks) {
            self.gateway.metrics.evidence.eval_run_look(word(look));
            if self.schedule.looked(run_id, look, now, wall_ms) {
                tracing::warn!(%run_id, "an eval run has named no price for a day; it stays unreported");
            }
        }
    }

    /// Monotonic time of the next look; `None` while no run waits for one.
    pub fn next(&self) -> Option<Duration> {
        self.schedule.next()
    }

    fn is_on(&self) -> bool {
        let settings = self.gateway.settings.load();
        settings.config.reconcile.poll_eval_runs
    }
}

/// One look at one run; its price goes to the ledger.
async fn look(gateway: &Gateway, settings: &Settings, run_id: &str) -> RunLook {
    let Some(route) = route(settings) else {
        return RunLook::Unreadable;
    };
    let answer = match own_call::get(gateway, settings, route, run_id).await {
        Ok(answer) => answer,
        Err(error) => {
            tracing::debug!(%run_id, %error, "an eval run could not be looked at");
            return RunLook::Busy { asked: None };
        }
    };
    match answer.status.as_u16() {
        401..=403 | 408 | 429 | 500..=599 => {
            let asked = asked_wait(&answer.headers, gateway.clock.wall_ms());
            tracing::debug!(%run_id, status = answer.status.as_u16(), "the service wants quiet");
            RunLook::Busy { asked }
        }
        404 | 410 => {
            tracing::warn!(%run_id, "the service does not know this eval run; it stays unreported");
            RunLook::Gone
        }
        _ => read_run(gateway, &answer, run_id).await,
    }
}

async fn read_run(gateway: &Gateway, answer: &OwnAnswer, run_id: &str) -> RunLook {
    let run = AnswerPeek::read(&answer.body).run;
    let run = run.filter(|run| answer.status == StatusCode::OK && run.id == run_id);
    let Some(run) = run else {
        tracing::debug!(%run_id, status = answer.status.as_u16(), "no word of the eval run");
        return RunLook::Unreadable;
    };
    if !run.is_terminal() {
        return RunLook::NotYet;
    }
    match run.cost_micro_usd {
        Reported::Value(billed) => match gateway.ledger.reconcile_run(run_id, billed).await {
            Ok(entry) => {
                let entry = entry.map(|entry| entry.to_string());
                tracing::info!(%run_id, entry, %billed, "an eval run named its price");
                RunLook::Over
            }
            Err(error) => {
                tracing::warn!(%run_id, %error, "the price of an eval run could not be recorded");
                RunLook::Unreadable
            }
        },
        Reported::Absent => {
            tracing::warn!(%run_id, "an eval run is over and names no price; it stays unreported");
            RunLook::Over
        }
        Reported::Malformed => {
            tracing::warn!(%run_id, "the price of an eval run is no amount; it stays unreported");
            RunLook::Over
        }
    }
}

/// The row of the table that names a run's price.
fn route(settings: &Settings) -> Option<&Route> {
    let rows = settings.table.rows().iter();
    rows.into_iter()
        .find(|route| route.receipt == ReceiptFrom::TerminalRun)
}

/// The label of `eval_run_looks_total{result}`.
fn word(look: RunLook) -> &'static str {
    match look {
        RunLook::NotYet => "not_yet",
        RunLook::Over => "over",
        RunLook::Gone => "gone",
        RunLook::Unreadable => "unreadable",
        RunLook::Busy { .. } => "busy",
    }
}
