//! The end of an entry: what was seen goes to the ledger once. Whatever way a request ends, it comes by here.
//!
//! Promise: an entry whose intent was written is settled exactly once, also when its task panics.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

use crate::caps::Permit;
use crate::clock::millis;
use crate::ledger::LedgerError;
use crate::ledger::entry::{Attempt, AttemptEnd, Closed, InDoubt, Outcome, Settlement, Timings};
use crate::ledger::state::fold;
use crate::ledger::undelivered::Delivery;
use crate::money::MicroUsd;
use crate::protocol::body::AnswerPeek;
use crate::protocol::names::X_REQUEST_ID;
use crate::protocol::receipt::Receipt;
use crate::protocol::receipt::lines::ReceiptLines;
use crate::protocol::routes::{ReceiptFrom, Route};
use crate::protocol::{Reported, Usage};
use crate::proxy::gateway::Gateway;
use crate::proxy::limits::queue::UpstreamSlot;
use crate::proxy::purchase::shared::Fate;
use crate::proxy::purchase::shared::Purchase;
use crate::proxy::settings::Settings;
use crate::proxy::upstream::heads;

/// An entry between its intent and its outcome.
pub struct EntryGuard {
    gateway: Arc<Gateway>,
    purchase: Arc<Purchase>,
    /// Kept until the end is in the ledger.
    permit: Option<Permit>,
    progress: Progress,
}

/// How far an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// The table of undelivered requests has it, the ledger does not.
    Claimed,
    /// Its intent is written: it may be sent.
    Intended,
    /// Its outcome was handed to the ledger.
    Settled,
    /// The table knows how it ended.
    Closed,
}

/// What an answer contained, gathered while it passed.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    receipt: Receipt,
    lines: ReceiptLines,
    usage: Usage,
    audio_ms: Option<u64>,
    request_id: Option<String>,
    run_id: Option<String>,
    response_bytes: u64,
}

/// How an entry ends, beside what its answer contained.
pub struct EntryEnd {
    pub attempts: Vec<Attempt>,
    /// The amount in an earlier attempt's head whose body broke.
    pub broken_billed: Option<MicroUsd>,
    /// What the service said when it last refused an attempt.
    pub service_detail: Option<String>,
    pub cut_by: Option<InDoubt>,
    /// What left or broke off before it was settled.
    pub closed: Vec<Closed>,
    pub delivery: Delivery,
    /// No app is there to read the answer.
    pub drained: bool,
    pub measured: Measured,
}

/// Where the time went, measured by the proxy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    pub total: Duration,
    pub first_byte: Option<Duration>,
    /// Waits for places at the service.
    pub queue: Duration,
    /// All of them are the same in the ledger, the log and the metrics. Own time is counted from the arrival until the outcome is
    /// handed to the ledger, or until the end of what makes no entry, less waits for a place and between
    /// attempts, and less the service's time.
    pub own: Duration,
}

/// Longest kept request id.
const REQUEST_ID_CHARS_MAX: usize = 128;

/// How often, and after what pause, an outcome is offered again to a ledger that could not write it.
const SETTLE_RETRIES: u32 = 3;
const SETTLE_PAUSE: Duration = Duration::from_millis(1100);

// === impl EntryGuard ===

impl EntryGuard {
    pub fn new(gateway: &Arc<Gateway>, purchase: Arc<Purchase>) -> Self {
        Self {
            gateway: Arc::clone(gateway),
            purchase,
            permit: None,
            progress: Progress::Claimed,
        }
    }

    /// Writes the outcome; returns when it is durable. Its place is given back before, and behind the
    /// caps' knowing what it came to: the request that takes the place finds it counted.
    pub async fn settle(
        &mut self,
        gathered: &Gathered,
        end: EntryEnd,
        place: Option<UpstreamSlot>,
    ) -> Result<Settlement, LedgerError> {
        self.progress = Progress::Settled;
        let delivery = end.delivery;
        let answered = end
            .attempts
            .last()
            .is_some_and(|last| last.end == AttemptEnd::Answered);
        let outcome = self.outcome(gathered, end);
        if let Some(permit) = &self.permit {
            // What the key is known for is left to the ledger, which answers in a moment.
            permit.foresees(fold(&outcome, None).state);
        }
        drop(place);
        let settled = write(&self.gateway, &self.purchase, outcome).await;
        let state = settled.as_ref().ok().map(|settlement| settlement.state);
        self.purchase.settled_as(delivery, state);
        if let Ok(settlement) = &settled {
            let count = self.purchase.repeats.settled(settlement.price);
            if let Some(price) = settlement.price {
                self.gateway.metrics.repeats_avoided(price, count);
            }
        }
        if let (Some(mut permit), Some(state)) = (self.permit.take(), state) {
            permit.settled(state);
        }
        if let Some(version) = &gathered.receipt.route_version
            && answered
        {
            self.gateway.metrics.route_version(version);
        }
        if let Err(error) = &settled {
            tracing::error!(entry = %self.purchase.entry.0, %error, "an outcome could not be written");
        }
        settled
    }

    fn outcome(&self, gathered: &Gathered, end: EntryEnd) -> Outcome {
        let measured = end.measured;
        Outcome {
            attempts: end.attempts,
            receipt: gathered.receipt.clone(),
            broken_billed: end.broken_billed,
            usage: gathered.usage,
            audio_ms: gathered.audio_ms,
            request_id: gathered.request_id.clone(),
            run_id: gathered.run_id.clone(),
            cut_by: end.cut_by,
            closed: end.closed,
            delivery: end.delivery,
            drained: end.drained,
            response_bytes: gathered.response_bytes,
            service_detail: end.service_detail,
            timings: Timings {
                queue_ms: millis(measured.queue),
                first_byte_ms: measured.first_byte.map(millis),
                total_ms: millis(measured.total),
                own_us: u64::try_from(measured.own.as_micros()).unwrap_or(u64::MAX),
            },
            ..Outcome::new(self.purchase.entry, self.gateway.clock.wall_ms())
        }
    }

    pub fn purchase(&self) -> &Arc<Purchase> {
        &self.purchase
    }

    /// Caps have room for it.
    pub fn reserves(&mut self, permit: Permit) {
        self.permit = Some(permit);
    }

    /// Its intent is written.
    pub fn intended(&mut self) {
        self.progress = Progress::Intended;
    }

    /// No attempt was made: nothing was billed. Where its intent is written, so is that.
    pub async fn nothing_sent(&mut self, measured: Measured) {
        if self.progress == Progress::Claimed {
            return self.withdraw();
        }
        let end = EntryEnd::without_answer(Delivery::Missed, measured);
        let settled = self.settle(&Gathered::default(), end, None).await;
        if let Err(error) = settled {
            tracing::error!(%error, "an outcome could not be written");
        }
        self.close(self.purchase.fate_unsent(true));
    }

    /// The ledger has never heard of it.
    fn withdraw(&mut self) {
        if let Some(mut permit) = self.permit.take() {
            permit.unsent();
        }
        self.close(self.purchase.fate_unsent(false));
    }

    /// Reports to the table of undelivered requests how this one ended.
    pub fn close(&mut self, fate: Fate) {
        self.progress = Progress::Closed;
        self.gateway.note_delivery(&self.purchase, fate.into());
        self.gateway.claims.finish(&self.purchase, fate);
    }
}

impl Drop for EntryGuard {
    fn drop(&mut self) {
        // Only a panic comes here with an entry that is not closed.
        match self.progress {
            Progress::Closed => return,
            Progress::Claimed => return self.withdraw(),
            // What it interrupted may have run.
            Progress::Intended | Progress::Settled => {
                self.gateway
                    .claims
                    .finish(&self.purchase, Fate::Undelivered);
            }
        }
        if self.progress == Progress::Settled {
            return;
        }
        // The request may have run, so its amount is in doubt.
        let delivery = self.purchase.delivery_if_missed();
        let end = EntryEnd {
            cut_by: Some(InDoubt::Crash),
            ..EntryEnd::without_answer(delivery, Measured::default())
        };
        let outcome = self.outcome(&Gathered::default(), end);
        let (gateway, purchase) = (Arc::clone(&self.gateway), Arc::clone(&self.purchase));
        let permit = self.permit.take();
        gateway.clone().life.spawn(async move {
            let _permit = permit;
            if let Err(error) = write(&gateway, &purchase, outcome).await {
                tracing::error!(%error, "the outcome of a failed task could not be written");
            }
        });
    }
}

/// A ledger that cannot be written re-opens itself about once a second; an outcome is worth waiting
/// for, because its request was paid. Sending it twice is safe. When the request cannot wait any
/// longer, the ledger keeps the outcome until it can be written.
async fn write(
    gateway: &Gateway,
    purchase: &Purchase,
    outcome: Outcome,
) -> Result<Settlement, LedgerError> {
    // What is offered again is copied only when its time changes while the ledger has it still.
    let mut outcome = Arc::new(outcome);
    for _ in 0..SETTLE_RETRIES {
        // A start after a kill asks how long before the journal's end an answer was settled.
        Arc::make_mut(&mut outcome).at_ms = gateway.clock.wall_ms();
        match gateway.ledger.settle(Arc::clone(&outcome)).await {
            Err(error) if error.is_passing() => tokio::time::sleep(SETTLE_PAUSE).await,
            written => return written,
        }
    }
    Arc::make_mut(&mut outcome).at_ms = gateway.clock.wall_ms();
    let settled = gateway.ledger.settle(Arc::clone(&outcome)).await;
    if outcome.delivery == Delivery::Pending {
        // Without its receipt on the disk the answer is not given (rule I2), or not to its end.
        Arc::make_mut(&mut outcome).delivery = purchase.delivery_if_missed();
    }
    if let Err(error) = &settled
        && error.is_passing()
        && let Err(error) = gateway.ledger.settle_later(outcome)
    {
        tracing::error!(%error, "an outcome has no place to wait");
    }
    settled
}

// === impl EntryEnd ===

impl EntryEnd {
    /// No attempt is known.
    fn without_answer(delivery: Delivery, measured: Measured) -> Self {
        Self {
            attempts: Vec::new(),
            broken_billed: None,
            service_detail: None,
            cut_by: None,
            closed: Vec::new(),
            delivery,
            drained: false,
            measured,
        }
    }
}

// === impl Gathered ===

impl Gathered {
    /// Of an entry that got no whole answer.
    pub fn from_broken(receipt: Receipt) -> Self {
        Self {
            receipt,
            ..Self::default()
        }
    }

    /// What an answer's head contains.
    pub fn from_head(settings: &Settings, headers: &HeaderMap) -> Self {
        let headers = &*heads::without_key(headers, &settings.key);
        Self {
            receipt: Receipt::from_headers(&settings.names, headers),
            request_id: headers
                .get(X_REQUEST_ID)
                .and_then(|id| id.to_str().ok())
                // A tab is the one control character that a header may hold.
                .filter(|id| !id.contains('\t'))
                .map(|id| id.chars().take(REQUEST_ID_CHARS_MAX).collect()),
            ..Self::default()
        }
    }

    /// Adds what a whole JSON body contains.
    pub fn absorb_body(&mut self, settings: &Settings, route: &Route, body: &Bytes) -> AnswerPeek {
        let peek = AnswerPeek::read(body);
        self.response_bytes = u64::try_from(body.len()).unwrap_or(u64::MAX);
        self.absorb_peek(settings, route, &peek);
        peek
    }

    /// Adds what was read of a JSON body, by the route's column of the table.
    pub fn absorb_peek(&mut self, settings: &Settings, route: &Route, peek: &AnswerPeek) {
        self.usage = peek.usage;
        match route.receipt {
            ReceiptFrom::BodyCost => self.absorb_body_cost(peek.cost_micro_usd),
            ReceiptFrom::BodyDuration => self.audio_ms = peek.audio_ms,
            // An id that holds the key names no run.
            ReceiptFrom::RunLater => {
                let is_clean = |run_id: &&String| !settings.key.occurs_in(run_id.as_bytes());
                self.run_id = peek.run_id.as_ref().filter(is_clean).cloned();
            }
            ReceiptFrom::HeadersAndComments | ReceiptFrom::TerminalRun | ReceiptFrom::Nothing => {}
        }
    }

    fn absorb_body_cost(&mut self, cost: Reported<MicroUsd>) {
        self.receipt = std::mem::take(&mut self.receipt).with_body_cost(cost);
        match cost {
            Reported::Value(cost) => {
                let line = format!("body cost_micro_usd: {}", cost.get());
                self.lines.push(&[line.as_bytes()]);
            }
            Reported::Malformed => self.lines.push(&[b"body cost_micro_usd: not an amount"]),
            Reported::Absent => {}
        }
    }

    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// Receipt lines that came behind the head, as they came.
    pub fn lines(&self) -> &ReceiptLines {
        &self.lines
    }

    /// Bytes of the body have passed.
    pub fn passed(&mut self, bytes: usize) {
        let count = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.response_bytes = self.response_bytes.saturating_add(count);
    }

    /// The end mark has passed, with so many bytes of the body up to it.
    pub fn ended_after(&mut self, bytes: u64) {
        self.response_bytes = bytes;
    }

    /// What was used, as a stream says it; its last word counts.
    pub fn absorb_usage(&mut self, usage: Usage) {
        self.usage = usage;
    }

    /// See [`Receipt::without_early_zero`].
    pub fn forget_early_zero(&mut self) {
        self.receipt = std::mem::take(&mut self.receipt).without_early_zero();
    }

    /// Takes one comment line of a stream, from which the key was struck out as it came.
    pub fn absorb_comment(&mut self, settings: &Settings, name: &[u8], value: &[u8]) {
        let receipt = std::mem::take(&mut self.receipt);
        self.receipt = receipt.with_comment(&settings.names, name, value);
        self.lines.take_comment(&settings.names, name, value);
    }

    /// The service named an amount, of any size, and not only as a 0 in the head of a stream.
    pub fn is_priced(&self) -> bool {
        matches!(self.receipt.billed, Reported::Value(_)) && !self.receipt.is_early_zero()
    }
}
