//! One led request, from its last attempt to its end: what its parts share.
//!
//! Promise: its entry is settled once, with the time that everything took and with all that ended before.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, StatusCode};
use pingora::http::ResponseHeader;

use super::closed::Ends;
use super::given::Given;
use super::own;
use crate::clock::millis;
use crate::config::App;
use crate::ledger::LedgerError;
use crate::ledger::entry::{EntryId, InDoubt, State};
use crate::ledger::undelivered::Delivery;
use crate::money::MicroUsd;
use crate::protocol::body::AnswerPeek;
use crate::protocol::names::{X_BURSAR_QUEUE_MS, X_SHOULD_RETRY};
use crate::protocol::routes::ReceiptFrom;
use crate::protocol::translate::responses::live::Live;
use crate::proxy::client_watch::ClientWatch;
use crate::proxy::dispatch::Dispatch;
use crate::proxy::door::admit::Admitted;
use crate::proxy::gateway::Gateway;
use crate::proxy::limits::queue::UpstreamSlot;
use crate::proxy::purchase::retry::is_retried_by_apps;
use crate::proxy::purchase::shared::Fate;
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::settings::Settings;
use crate::proxy::settle::{EntryGuard, Gathered, Measured};
use crate::proxy::upstream::heads;

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
    pub entry: Option<EntryGuard>,
    pub entry_id: EntryId,
    /// The place of an answer that is complete: given back when what it cost counts.
    pub place: Option<UpstreamSlot>,
    pub adopted: Option<EntryId>,
    /// The model that the app asked for.
    pub model: Option<String>,
    /// The same, where the service may refuse it.
    pub foreign_model: Option<String>,
    pub given: Given,
    pub arrived: Duration,
    /// Where the time went, as the ledger has it.
    pub settled: Option<Measured>,
    /// Time in which the app had the word: its body came, or it took its answer.
    pub app_time: Duration,
    pub state: Option<State>,
    /// What the key came to, where that is known.
    pub price: Option<MicroUsd>,
    /// The app reads what an answer cost in its `usage`.
    pub shows_cost: bool,
}

/// What was answered, for the report.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    pub status: u16,
    pub code: Option<Code>,
    pub stream: bool,
}

// === impl Answered ===

impl From<&Refusal> for Answered {
    fn from(refusal: &Refusal) -> Self {
        Self {
            status: refusal.status().as_u16(),
            code: Some(refusal.code),
            stream: false,
        }
    }
}

// === impl Relay ===

impl Relay<'_> {
    pub(super) fn fate(&self) -> Fate {
        let purchase = self.app.purchase.as_ref();
        purchase.map_or(Fate::Closed, |purchase| purchase.fate(self.state))
    }

    pub(super) fn measured(&self) -> Measured {
        if let Some(settled) = self.settled {
            return settled;
        }
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
            own: total.saturating_sub(elsewhere),
        }
    }

    /// Settles the entry, if there is one.
    pub(super) async fn settle(
        &mut self,
        gathered: &mut Gathered,
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
        gathered.closed = ends.closed();
        gathered.broken_billed = self.dispatch.retries.broken_billed();
        gathered
            .service_detail
            .clone_from(&self.dispatch.service_detail);
        let measured = self.measured();
        let delivery = self.delivery(cut_by);
        let place = self.place.take();
        let Some(entry) = self.entry.as_mut() else {
            return Ok(());
        };
        self.settled = Some(measured);
        if let Some(last) = self.dispatch.retries.last_mut() {
            gathered.lines.append_to(&mut last.receipt_lines);
        }
        let settlement = entry
            .settle(
                gathered,
                self.dispatch.retries.for_outcome(),
                cut_by,
                delivery,
                measured,
                place,
            )
            .await?;
        self.state = Some(settlement.state);
        self.price = settlement.price;
        Ok(())
    }

    /// What stands in the answer's `usage` as its cost. `None`: nothing does.
    pub(super) fn shown_cost(&self) -> Option<MicroUsd> {
        self.price.filter(|_| self.shows_cost)
    }

    /// The answer's translation while it comes. `None`: it passes as it is.
    pub(super) fn live(&self) -> Option<Live> {
        if !self.given.is_live() {
            return None;
        }
        let entry = self.gateway.ledger.answer_id(self.entry_id);
        self.given.live(entry, self.entry_id.unix_s())
    }

    /// Keeps for later requests what they may refer to of a document that the app is given.
    pub(super) fn remember(&self, status: StatusCode, document: &[u8]) {
        if let Some(leaves) = self.given.leaves(status, document) {
            self.gateway.remembers(&self.declared, leaves);
        }
    }

    /// How the answer stands with the app now, for the case that bursar dies before it is given.
    fn delivery(&self, cut_by: Option<InDoubt>) -> Delivery {
        let Some(purchase) = &self.app.purchase else {
            return Delivery::Given;
        };
        let is_answered = self.dispatch.retries.is_answered();
        purchase.delivery(is_answered, cut_by, self.app.downstream.presence())
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

    /// `x-should-retry`.
    pub(super) fn say_whether_to_retry(&self, head: &mut ResponseHeader, own: Option<bool>) {
        if !is_retried_by_apps(head.status) {
            return;
        }
        let purchase = self.app.purchase.as_ref();
        let adoptions = purchase.map_or(0, |purchase| purchase.adoptions);
        let is_known_zero = purchase.is_none_or(|purchase| purchase.is_known_zero(self.state));
        let Dispatch {
            retries, exhausted, ..
        } = &self.dispatch;
        if retries.is_final(is_known_zero, adoptions, *exhausted, own) {
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
