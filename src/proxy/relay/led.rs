//! One led request, from its last attempt to its end: what its parts share.
//!
//! Promise: its entry is settled once, with the time that everything took and with all that ended before.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use pingora::http::ResponseHeader;

use super::closed::Ends;
use super::own;
use crate::clock::millis;
use crate::config::App;
use crate::ledger::LedgerError;
use crate::ledger::entry::{AttemptEnd, EntryId, InDoubt, State};
use crate::ledger::undelivered::Delivery;
use crate::protocol::body::AnswerPeek;
use crate::protocol::names::{X_BURSAR_QUEUE_MS, X_SHOULD_RETRY};
use crate::protocol::routes::ReceiptFrom;
use crate::proxy::client_watch::ClientWatch;
use crate::proxy::dispatch::{Dispatch, is_transient};
use crate::proxy::door::admit::Admitted;
use crate::proxy::gateway::Gateway;
use crate::proxy::limits::queue::Slot;
use crate::proxy::purchase::client::Presence;
use crate::proxy::purchase::fate::Fate;
use crate::proxy::refuse::Code;
use crate::proxy::settings::Settings;
use crate::proxy::settle::{Gathered, Measured, OpenEntry};
use crate::proxy::upstream::heads;

/// Adoptions of one key after which the answer asks the app's own retries to stop.
const ADOPTIONS_MAX: u32 = 3;

/// One led request from its last attempt to its end.
pub struct Relay<'a> {
    pub gateway: &'a Arc<Gateway>,
    pub settings: Arc<Settings>,
    pub admitted: &'a Admitted,
    /// The app that spends, as it was declared.
    pub declared: Arc<App>,
    pub app: ClientWatch<'a>,
    pub dispatch: Dispatch<'a>,
    /// `None` on free routes.
    pub entry: Option<OpenEntry>,
    pub entry_id: EntryId,
    /// The place of an answer that is complete: given back when what it cost counts.
    pub place: Option<Slot>,
    pub adopted: Option<EntryId>,
    /// The model that the app asked for, where the service may refuse it.
    pub foreign_model: Option<String>,
    /// The app wants a stream, and a whole turn was asked for, which names its price.
    pub made_stream: bool,
    /// The table allowed another attempt and none was left.
    pub exhausted: bool,
    pub arrived: Duration,
    /// Own time as the ledger has it.
    pub own: Option<Duration>,
    /// Time in which the app had the word: its body came, or it took its answer.
    pub app_time: Duration,
    pub state: Option<State>,
}

/// What was answered, for the report.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    pub status: u16,
    pub code: Option<Code>,
    pub stream: bool,
}

// === impl Relay ===

impl Relay<'_> {
    pub(super) fn fate(&self) -> Fate {
        match &self.entry {
            Some(entry) => entry.purchase.fate(self.state),
            None => Fate::Closed,
        }
    }

    pub(super) fn measured(&self) -> Measured {
        let total = self.gateway.clock.monotonic().saturating_sub(self.arrived);
        let elsewhere = self
            .dispatch
            .service_time
            .saturating_add(self.dispatch.waited)
            .saturating_add(self.dispatch.queued)
            .saturating_add(self.app_time);
        Measured {
            total,
            first_byte: self
                .dispatch
                .first_byte_at
                .map(|at| at.saturating_sub(self.arrived)),
            queue: self.dispatch.queued,
            own: self.own.unwrap_or(total.saturating_sub(elsewhere)),
        }
    }

    /// Settles the entry, if there is one.
    pub(super) async fn settle(
        &mut self,
        gathered: &Gathered,
        cut_by: Option<InDoubt>,
    ) -> Result<(), LedgerError> {
        let ends = Ends {
            app_left: self.app.left(),
            cut_by,
            last: self.dispatch.retries.attempts().last(),
            stage: self.app.stage,
            now: self.gateway.clock.monotonic(),
            arrived: self.arrived,
        };
        let gathered = &Gathered {
            closed: ends.closed(),
            broken_billed: self.dispatch.retries.broken_billed(),
            ..gathered.clone()
        };
        let measured = self.measured();
        let delivery = self.delivery(cut_by);
        let place = self.place.take();
        let Some(entry) = self.entry.as_mut() else {
            return Ok(());
        };
        self.own = Some(measured.own);
        if let Some(last) = self.dispatch.retries.last_mut() {
            gathered.lines.append_to(&mut last.receipt_lines);
        }
        let settlement = entry
            .settle(
                gathered,
                self.dispatch.retries.attempts(),
                cut_by,
                delivery,
                measured,
                place,
            )
            .await?;
        self.state = Some(settlement.state);
        Ok(())
    }

    /// How the answer stands with the app now, for the case that bursar dies before it is given.
    fn delivery(&self, cut_by: Option<InDoubt>) -> Delivery {
        let Some(purchase) = self.entry.as_ref().map(|entry| &entry.purchase) else {
            return Delivery::Given;
        };
        let attempts = self.dispatch.retries.attempts();
        let answered = attempts
            .last()
            .is_some_and(|last| last.end == AttemptEnd::Answered);
        let has_reader = purchase.is_followed() || self.app.downstream.presence() != Presence::Gone;
        purchase.delivery(answered, cut_by, has_reader)
    }

    /// The terminal state of an eval run brings the amount of the request that started it.
    pub(super) async fn reconcile_run(&self, peek: &AnswerPeek) -> Result<(), LedgerError> {
        if self.admitted.route.receipt != ReceiptFrom::TerminalRun {
            return Ok(());
        }
        let Some(run) = peek.run.as_ref().filter(|run| run.is_terminal()) else {
            return Ok(());
        };
        if let Some(billed) = run.cost_micro_usd.value() {
            self.gateway.ledger.reconcile_run(&run.id, billed).await?;
        }
        Ok(())
    }

    /// What an app takes to read is its own time.
    pub(super) fn app_took_since(&mut self, before: Duration) {
        let took = self.gateway.clock.monotonic().saturating_sub(before);
        self.app_time = self.app_time.saturating_add(took);
    }

    /// `x-should-retry`: one layer retries, not three; but while something may
    /// still run under a key, the app's retry is welcome, because it is joined or adopted.
    pub(super) fn say_whether_to_retry(&self, head: &mut ResponseHeader, own: Option<bool>) {
        if !is_transient(head.status) {
            return;
        }
        let keyed = self.admitted.route.keyed;
        let adoptions = self
            .entry
            .as_ref()
            .map_or(0, |entry| entry.purchase.adoptions);
        let known_zero = self
            .entry
            .as_ref()
            .is_none_or(|entry| entry.purchase.is_known_zero(self.state));
        let stop = !keyed
            || (known_zero && (self.exhausted || own == Some(false)))
            || adoptions >= ADOPTIONS_MAX;
        if stop {
            let inserted = head.insert_header(X_SHOULD_RETRY, HeaderValue::from_static("false"));
            debug_assert!(inserted.is_ok(), "a static header is valid");
        } else if own.is_some() {
            head.remove_header(&X_SHOULD_RETRY);
        }
    }

    /// Adds what bursar says about the answer.
    pub(super) fn mark(&self, head: &mut ResponseHeader) -> Result<(), heads::HeadError> {
        if self.admitted.route.is_inference() {
            let queue_ms = HeaderValue::from(millis(self.dispatch.queued));
            head.insert_header(X_BURSAR_QUEUE_MS, queue_ms)
                .map_err(|_| heads::HeadError)?;
        }
        own::mark(
            head,
            self.entry_id,
            self.adopted,
            self.admitted.origin.as_ref(),
        )
    }
}
