//! Handing the answer to the app: whole, flowing, followed from another connection, or our own
//! refusal. Here is what the parts of that share: one led request, from its last attempt to its end.
//!
//! Promise: the app never receives a complete success whose receipt is not durable (rule I2); bytes
//! are the service's (rule I8), except for the `error` object added to bodies that have only
//! `detail`, and `cost` in `usage` for an app that asks for it; every answer carries its entry's id. An entry is
//! settled once, with the time that everything took and with all that ended before.

mod clarification;
mod closed;
mod flow;
pub mod follow;
pub mod give;
pub mod given;
pub mod own;
mod speech;
mod whole;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, StatusCode};
use pingora::http::ResponseHeader;

use self::closed::Ends;
use self::given::Given;
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
use crate::proxy::settle::{EntryEnd, EntryGuard, Gathered, Measured};
use crate::proxy::upstream::heads;

/// A led request, as it stays from its last attempt to its end.
pub struct Led<'a> {
    pub gateway: &'a Arc<Gateway>,
    pub settings: Arc<Settings>,
    pub admitted: &'a Admitted,
    /// The app that spends, as it was declared.
    pub declared: Arc<App>,
    pub entry_id: EntryId,
    pub adopted: Option<EntryId>,
    /// The model that the app asked for.
    pub model: Option<String>,
    /// The same, where the service may refuse it.
    pub foreign_model: Option<String>,
    pub given: Given,
    pub arrived: Duration,
    /// The app reads what an answer cost in its `usage`.
    pub shows_cost: bool,
}

/// One led request on its way from its last attempt to its end.
pub struct Relay<'a> {
    led: Led<'a>,
    app: ClientWatch<'a>,
    dispatch: Dispatch<'a>,
    /// `None` on free routes.
    entry: Option<EntryGuard>,
    /// The place of an answer that is complete: given back when what it cost counts.
    place: Option<UpstreamSlot>,
    /// Time in which the app had the word: its body came, or it took its answer.
    app_time: Duration,
    /// Where the time went, as the ledger has it.
    settled: Option<Measured>,
    state: Option<State>,
    /// What the key came to, where that is known.
    price: Option<MicroUsd>,
}

/// What was answered, for the report.
#[derive(Clone, Copy, Debug)]
struct Answered {
    status: u16,
    code: Option<Code>,
    stream: bool,
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

impl<'a> Relay<'a> {
    /// Once its attempts have ended. `body_took`: how long its own body took to come.
    pub fn new(
        led: Led<'a>,
        app: ClientWatch<'a>,
        dispatch: Dispatch<'a>,
        entry: Option<EntryGuard>,
        body_took: Duration,
    ) -> Self {
        Self {
            led,
            app,
            dispatch,
            entry,
            place: None,
            app_time: body_took,
            settled: None,
            state: None,
            price: None,
        }
    }

    fn fate(&self) -> Fate {
        let purchase = self.app.purchase();
        purchase.map_or(Fate::Closed, |purchase| purchase.fate(self.state))
    }

    fn measured(&self) -> Measured {
        if let Some(settled) = self.settled {
            return settled;
        }
        let now = self.led.gateway.clock.monotonic();
        let total = now.saturating_sub(self.led.arrived);
        let times = self.dispatch.times();
        let elsewhere = times.in_all().saturating_add(self.app_time);
        let first_byte_at = times.first_byte_at();
        Measured {
            total,
            first_byte: first_byte_at.map(|at| at.saturating_sub(self.led.arrived)),
            queue: times.queue(),
            own: total.saturating_sub(elsewhere),
        }
    }

    /// Settles the entry, if there is one. `drained`: no app is there to read the answer.
    async fn settle(
        &mut self,
        gathered: &Gathered,
        drained: bool,
        cut_by: Option<InDoubt>,
    ) -> Result<(), LedgerError> {
        let ends = Ends {
            app_left: self.app.left(),
            cut_by,
            last: self.dispatch.retries().attempts().last(),
            stage: self.app.stage(),
            now: self.led.gateway.clock.monotonic(),
            arrived: self.led.arrived,
        };
        let closed = ends.closed();
        let measured = self.measured();
        let delivery = self.delivery(cut_by);
        let place = self.place.take();
        let Some(entry) = self.entry.as_mut() else {
            return Ok(());
        };
        self.settled = Some(measured);
        let end = EntryEnd {
            attempts: self.dispatch.for_outcome(gathered.lines()),
            broken_billed: self.dispatch.retries().broken_billed(),
            service_detail: self.dispatch.service_detail().map(str::to_owned),
            cut_by,
            closed,
            delivery,
            drained,
            measured,
        };
        let settlement = entry.settle(gathered, end, place).await?;
        self.state = Some(settlement.state);
        self.price = settlement.price;
        Ok(())
    }

    /// What stands in the answer's `usage` as its cost. `None`: nothing does.
    fn shown_cost(&self) -> Option<MicroUsd> {
        self.price.filter(|_| self.led.shows_cost)
    }

    /// The answer's translation while it comes. `None`: it passes as it is.
    fn live(&self) -> Option<Live> {
        if !self.led.given.is_live() {
            return None;
        }
        let entry = self.led.gateway.ledger.answer_id(self.led.entry_id);
        self.led.given.live(entry, self.led.entry_id.unix_s())
    }

    /// Keeps for later requests what they may refer to of a document that the app is given.
    fn remember(&self, status: StatusCode, document: &[u8]) {
        if let Some(leaves) = self.led.given.leaves(status, document) {
            self.led.gateway.remembers(&self.led.declared, leaves);
        }
    }

    /// How the answer stands with the app now, for the case that bursar dies before it is given.
    fn delivery(&self, cut_by: Option<InDoubt>) -> Delivery {
        let Some(purchase) = self.app.purchase() else {
            return Delivery::Given;
        };
        let is_answered = self.dispatch.retries().is_answered();
        purchase.delivery(is_answered, cut_by, self.app.downstream().presence())
    }

    /// The terminal state of an eval run brings the amount of the request that started it.
    async fn reconcile_run(&self, peek: &AnswerPeek) -> Result<(), LedgerError> {
        if self.led.admitted.route.receipt != ReceiptFrom::TerminalRun {
            return Ok(());
        }
        let Some(run) = peek.run.as_ref().filter(|run| run.is_terminal()) else {
            return Ok(());
        };
        if let Some(billed) = run.cost_micro_usd.value() {
            let ledger = &self.led.gateway.ledger;
            ledger.reconcile_run(&run.id, billed).await?;
        }
        Ok(())
    }

    /// What an app takes to read is its own time.
    fn app_took_since(&mut self, before: Duration) {
        let took = self.led.gateway.clock.monotonic().saturating_sub(before);
        self.app_time = self.app_time.saturating_add(took);
    }

    /// `x-should-retry`.
    fn say_whether_to_retry(&self, head: &mut ResponseHeader, own: Option<bool>) {
        if !is_retried_by_apps(head.status) {
            return;
        }
        let purchase = self.app.purchase();
        let adoptions = purchase.map_or(0, |purchase| purchase.adoptions);
        let is_known_zero = purchase.is_none_or(|purchase| purchase.is_known_zero(self.state));
        if self.dispatch.is_final(is_known_zero, adoptions, own) {
            let inserted = head.insert_header(X_SHOULD_RETRY, HeaderValue::from_static("false"));
            debug_assert!(inserted.is_ok(), "a static header is valid");
        } else if own.is_some() {
            head.remove_header(&X_SHOULD_RETRY);
        }
    }

    /// Adds what bursar says about the answer.
    fn mark(&self, head: &mut ResponseHeader) -> Result<(), heads::HeadError> {
        if self.led.admitted.route.is_inference() {
            let queue_ms = HeaderValue::from(millis(self.dispatch.times().queue()));
            head.insert_header(X_BURSAR_QUEUE_MS, queue_ms)
                .map_err(|_| heads::HeadError)?;
        }
        own::mark(
            head,
            self.led.entry_id,
            self.led.adopted,
            self.led.admitted.origin.as_ref(),
        )
    }
}
