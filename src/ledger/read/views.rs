//! One entry as people and programs read it: its lines in the journal put together.
//!
//! Promise: every field is what a line said. An amount that is not known is absent, never 0.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ledger::delivery::Handover;
use crate::ledger::entry::{
    Anomaly, Attempt, Closed, Delivery, Intent, Labels, Outcome, State, Timings,
};
use crate::ledger::fingerprint::Fingerprint;
use crate::ledger::id::EntryId;
use crate::ledger::kept_key::{KeptKey, KeyOrigin};
use crate::ledger::marks::Session;
use crate::ledger::record::{Evidence, How, Record, Verdict};
use crate::ledger::shared_text;
use crate::money::MicroUsd;
use crate::protocol::receipt::ReceiptSource;
use crate::protocol::tags::Tags;
use crate::protocol::trace::TraceId;
use crate::protocol::translate::Dropped;
use crate::protocol::{Dialect, Escalated, Lane, Operation, Reported, ServedBy, Usage, closed_set};

/// An entry with everything the ledger keeps of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EntryView {
    pub id: EntryId,
    /// Sequence number of the last line that changed it.
    pub seq: u64,
    /// When it began, Unix milliseconds.
    pub at_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    #[serde(with = "shared_text")]
    pub app: Arc<str>,
    pub lane: Lane,
    pub operation: Operation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `None` when the intent line is damaged.
    pub stream: Option<bool>,
    pub state: State,
    /// `null`: not known.
    pub billed_micro_usd: Option<MicroUsd>,
    /// What the service said of the amount, whatever became of it.
    pub receipt: ReceiptWord,
    pub would_have_cost_micro_usd: Option<MicroUsd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt_source: Option<ReceiptSource>,
    pub served_by: Option<ServedBy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub specialist: Option<String>,
    pub escalated: Escalated,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_required: Option<String>,
    pub replayed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Of a key that is longer than what is kept as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_hash: Option<Fingerprint>,
    /// What the two are made of.
    #[serde(skip)]
    pub kept_key: Option<KeptKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_origin: Option<KeyOrigin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    pub usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_ms: Option<u64>,
    pub attempts: Vec<Attempt>,
    /// The side that left or broke off before the answer was settled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<Closed>,
    /// What an earlier attempt's head reported before its body broke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken_billed_micro_usd: Option<MicroUsd>,
    pub anomalies: Vec<Anomaly>,
    /// Where the evidence of a reconciled entry came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconciled_by: Option<How>,
    /// When it came, Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconciled_ms: Option<u64>,
    /// The state that the evidence found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<State>,
    /// Its app had left when the answer ended, and no other request followed it.
    pub drained: bool,
    /// What became of the answer, where it did not go straight to the app that asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliveryWord>,
    /// The run of `bursar exec` that it belongs to; `run_id` is an eval run of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    pub request_bytes: Option<u64>,
    pub response_bytes: Option<u64>,
    pub timings: Option<Timings>,
    /// The trace that the app's `traceparent` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<TraceId>,
    /// What the app's request was written in.
    #[serde(default)]
    pub spoken: Dialect,
    /// What the translation of it left out, each with how often.
    #[serde(default, skip_serializing_if = "Dropped::is_empty")]
    pub dropped: Dropped,
    /// The app's session, its user and its tags, as the app named them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// What the service said when it last refused an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_detail: Option<String>,
}

closed_set! {
    /// The three kinds of nothing and something (rule I5): no amount, one that cannot be read, and
    /// one that was reported, which may be 0.
    ReceiptWord {
        Absent => "absent",
        Malformed => "malformed",
        Reported => "told",
    }
}

closed_set! {
    /// An answer that took another way, or none.
    DeliveryWord {
        // The app had gone, or got an error: its next equal request belongs to this purchase.
        Missed => "missed",
        // bursar was killed before that could be noted; it counts as missed.
        AssumedMissed => "assumed_missed",
        // An equal request was given it later.
        Late => "late",
    }
}

/// Puts lines together, in the journal's order.
#[derive(Debug, Default)]
pub struct Views {
    by_id: HashMap<EntryId, GrowingView>,
}

/// An entry of which more lines may come.
#[derive(Debug)]
struct GrowingView {
    view: EntryView,
}

// === impl EntryView ===

impl EntryView {
    fn new(id: EntryId, labels: &Labels) -> Self {
        let kept_key = labels.key.as_ref();
        let marks = labels.marks.as_deref();
        Self {
            id,
            seq: 0,
            at_ms: labels.started_ms,
            ended_ms: None,
            app: Arc::clone(&labels.app),
            lane: labels.lane,
            operation: labels.operation,
            model: None,
            stream: None,
            state: State::Open,
            billed_micro_usd: None,
            receipt: ReceiptWord::Absent,
            would_have_cost_micro_usd: None,
            receipt_source: None,
            served_by: None,
            specialist: None,
            escalated: Escalated::Unknown,
            route_version: None,
            input_required: None,
            replayed: false,
            key: kept_key.and_then(|key| Some(key.form.text()?.to_string())),
            key_hash: kept_key.and_then(|key| key.form.hash()),
            kept_key: labels.key.clone(),
            key_origin: kept_key.map(|key| key.origin),
            request_id: None,
            run_id: None,
            usage: Usage::default(),
            audio_ms: None,
            attempts: Vec::new(),
            closed: Vec::new(),
            broken_billed_micro_usd: None,
            anomalies: Vec::new(),
            reconciled_by: None,
            reconciled_ms: None,
            was: None,
            drained: false,
            delivery: None,
            run: None,
            request_bytes: None,
            response_bytes: None,
            timings: None,
            trace_id: None,
            spoken: Dialect::Chat,
            dropped: Dropped::default(),
            session: labels.session(),
            user: marks.and_then(|marks| marks.user.clone()),
            tags: marks.map(|marks| marks.tags.clone()).unwrap_or_default(),
            service_detail: None,
        }
    }
}

// === impl GrowingView ===

impl GrowingView {
    fn begin(&mut self, intent: Intent) {
        let view = &mut self.view;
        view.model = intent.model;
        view.stream = Some(intent.stream);
        view.run = intent.run;
        view.request_bytes = Some(intent.request_bytes);
        view.trace_id = intent.trace_id;
        view.spoken = intent.spoken;
        view.dropped = intent.dropped;
    }

    fn end(&mut self, outcome: Outcome, verdict: Verdict) {
        let (state, receipt) = (verdict.state, outcome.receipt);
        self.stop(outcome.at_ms, state);
        let view = &mut self.view;
        view.anomalies = verdict.anomalies;
        view.receipt = match receipt.billed {
            Reported::Malformed => ReceiptWord::Malformed,
            Reported::Value(_) => ReceiptWord::Reported,
            // An earlier attempt reported it before its body broke.
            Reported::Absent if outcome.broken_billed.is_some() => ReceiptWord::Reported,
            Reported::Absent => ReceiptWord::Absent,
        };
        view.would_have_cost_micro_usd = receipt.would_have_cost.value();
        view.receipt_source = receipt.source;
        view.served_by = receipt.served_by;
        view.specialist = receipt.specialist;
        view.escalated = receipt.escalated;
        view.route_version = receipt.route_version;
        view.input_required = receipt.input_required;
        view.replayed = receipt.replayed;
        view.request_id = outcome.request_id;
        view.run_id = outcome.run_id;
        view.usage = outcome.usage;
        view.audio_ms = outcome.audio_ms;
        view.attempts = outcome.attempts;
        view.closed = outcome.closed;
        view.broken_billed_micro_usd = outcome.broken_billed;
        view.drained = outcome.drained;
        let is_missed = outcome.delivery == Delivery::Missed && state != State::Failed;
        view.delivery = is_missed.then_some(DeliveryWord::Missed);
        view.response_bytes = Some(outcome.response_bytes);
        view.timings = Some(outcome.timings);
        view.service_detail = outcome.service_detail;
    }

    /// It came to this state, with an outcome or without one.
    fn stop(&mut self, at_ms: u64, state: State) {
        self.view.ended_ms = Some(at_ms);
        self.become_state(state);
    }

    fn reconcile(&mut self, evidence: Evidence) {
        self.become_state(State::Reconciled {
            billed: evidence.adds_micro_usd,
        });
        let view = &mut self.view;
        view.reconciled_by = Some(evidence.how);
        view.reconciled_ms = Some(evidence.at_ms);
        view.was = Some(evidence.was);
    }

    /// It changes nothing of the entry's state, so the entry keeps its number.
    fn hand_over(&mut self, handover: Handover) {
        self.view.delivery = Some(match handover {
            Handover {
                delivered: true, ..
            } => DeliveryWord::Late,
            Handover { assumed: true, .. } => DeliveryWord::AssumedMissed,
            Handover { .. } => DeliveryWord::Missed,
        });
    }

    fn become_state(&mut self, state: State) {
        self.view.state = state;
        self.view.billed_micro_usd = state.billed();
    }
}

// === impl Views ===

impl Views {
    pub fn apply(&mut self, seq: u64, record: Record) {
        match record {
            Record::Intent(intent) => {
                let labels = Labels::of_intent(&intent);
                self.at(seq, intent.id, &labels)
                    .begin(Arc::unwrap_or_clone(intent));
            }
            Record::Outcome(outcome, labels, verdict) => {
                self.at(seq, outcome.id, &labels)
                    .end(Arc::unwrap_or_clone(outcome), verdict);
            }
            Record::Crashed(ended, labels) | Record::Withdrawn(ended, labels) => {
                self.at(seq, ended.id, &labels)
                    .stop(ended.at_ms, ended.state);
            }
            Record::Reconciled(evidence, labels) => {
                self.at(seq, evidence.id, &labels).reconcile(evidence);
            }
            Record::Delivery(row, handover) => {
                if let Some(growing) = self.by_id.get_mut(&row.id) {
                    growing.hand_over(handover);
                }
            }
            Record::Rollup(_) | Record::Unknown => {}
        }
    }

    /// The entries that match, oldest change first.
    pub fn finish(self, matches: impl Fn(&EntryView) -> bool) -> Vec<EntryView> {
        let views = self.by_id.into_values().map(|growing| growing.view);
        let mut views: Vec<_> = views.filter(matches).collect();
        views.sort_by_key(|view| view.seq);
        views
    }

    fn at(&mut self, seq: u64, id: EntryId, labels: &Labels) -> &mut GrowingView {
        let growing = self.by_id.entry(id).or_insert_with(|| GrowingView {
            view: EntryView::new(id, labels),
        });
        growing.view.seq = growing.view.seq.max(seq);
        growing
    }
}
