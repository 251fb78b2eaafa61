//! The ledger's nouns: what is written before a request leaves (`Intent`), what is written when it
//! has ended (`Outcome`), and what the ledger makes of both (`State`, `Settlement`).
//!
//! Promise: no prompt or answer text, ever; amounts are integers or not known; every closed set is
//! spelled here once and is the same word in the journal, in metrics and in print.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::clock::{BootId, Clock};
pub use crate::ledger::fingerprint::Fingerprint;
pub use crate::ledger::id::EntryId;
use crate::ledger::kept_key::KeptKey;
pub use crate::ledger::kept_key::{EntryKey, KeyOrigin};
pub use crate::ledger::leases::{LeaseId, Leases};
use crate::ledger::marks::{self, Marks, Session};
use crate::ledger::shared_text;
use crate::money::MicroUsd;
use crate::protocol::receipt::Receipt;
use crate::protocol::trace::TraceId;
use crate::protocol::translate::Dropped;
use crate::protocol::{Dialect, Lane, Operation, ServedBy, Usage, closed_set};

/// When a key was first sent, by both clocks. Whether it may be sent again is the proxy's to judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstSent {
    /// Wall time, Unix milliseconds.
    pub at_ms: u64,
    /// Monotonic time of that boot. Stands still while the machine sleeps.
    pub up_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<BootId>,
}

/// What the requests that a key is passed on to know of those before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyUse {
    /// By the first of them.
    pub first_sent: FirstSent,
    /// How often the key was taken over, the last time included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub adoptions: u32,
}

/// How an answer stood with its app when its receipt was settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// The app had what counts as delivered, or an older bursar wrote the line.
    #[default]
    Given,
    /// Settled first (rule I2); the answer, or the end of a stream, was to be written next.
    Pending,
    /// The app had gone, or was to get an error.
    Missed,
}

/// Written, and durable, before a metered request leaves (rule I1).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Intent {
    pub id: EntryId,
    /// Unix milliseconds.
    pub at_ms: u64,
    #[serde(with = "shared_text")]
    pub app: Arc<str>,
    pub lane: Lane,
    pub operation: Operation,
    /// The model the app asked for, cut to 128 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub stream: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeptKey>,
    pub fingerprint: Fingerprint,
    pub request_bytes: u64,
    /// The run of `bursar exec` that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The leases that it spends. Absent where no shared cap is obeyed, and on lines of an older bursar.
    #[serde(default, skip_serializing_if = "Leases::is_empty")]
    pub leases: Leases,
    /// Absent without a key that is passed on, and on lines of an older bursar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_use: Option<KeyUse>,
    /// What is held of the caps while the price is not known. An estimate, never billed money. Absent
    /// on lines of an older bursar.
    #[serde(
        default,
        rename = "reserved_micro_usd",
        skip_serializing_if = "Option::is_none"
    )]
    pub reserved: Option<MicroUsd>,
    /// The trace that the app's `traceparent` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<TraceId>,
    /// What the app's request was written in.
    #[serde(default, skip_serializing_if = "Dialect::is_chat")]
    pub spoken: Dialect,
    /// What the translation of it left out.
    #[serde(default, skip_serializing_if = "Dropped::is_empty")]
    pub dropped: Dropped,
    /// What the app says of it for its own accounts. Absent where it says nothing.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "marks::shared"
    )]
    pub marks: Option<Arc<Marks>>,
}

closed_set! {
    /// How one attempt ended.
    AttemptEnd {
        /// Fewer than all request bytes were handed to the kernel (or the stream was refused): the
        /// service cannot have run it.
        NotSent => "not_sent",
        /// Sent, or possibly sent, and no response head came.
        NoHead => "no_head",
        /// An answer whose status is not 2xx. Its head decides: "A request or turn that fails bills
        /// nothing", however slow or broken the body is that follows.
        Refused => "refused",
        /// A 502/504 without a JSON body on an unkeyed metered route: it may come from a hop after the
        /// work was done.
        Gateway => "gateway",
        /// A 2xx answer, complete.
        Answered => "answered",
        /// A 2xx head whose body broke.
        Broken => "broken",
    }
}

/// One try to get a request served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub end: AttemptEnd,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Wait before this attempt started.
    pub wait_ms: u64,
    pub took_ms: u64,
    /// A short word for a failure: `connect`, `dns`, `tls`, `reset`, `timeout`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The receipt lines of its answer, as they came, bounded
    /// ([`crate::protocol::receipt::lines`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipt_lines: Vec<String>,
}

closed_set! {
    /// A side of an exchange.
    Side {
        App => "app",
        Service => "service",
        Bursar => "bursar",
    }
}

closed_set! {
    /// How far the answer was.
    Stage {
        /// No head had come.
        Waiting => "waiting",
        /// A whole answer was being read or written.
        Answering => "answering",
        /// The answer flowed.
        Streaming => "streaming",
    }
}

/// A side that ended its part before the answer was whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    pub by: Side,
    pub stage: Stage,
    /// Milliseconds since the request arrived.
    pub after_ms: u64,
    /// A short word: of the service how its connection ended, of bursar which bound was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

closed_set! {
    /// Why an entry's amount is not known.
    InDoubt {
        ClientGone => "client_gone",
        StreamDrop => "stream_drop",
        NoResponse => "no_response",
        Gateway => "gateway",
        Crash => "crash",
        Shutdown => "shutdown",
        Damaged => "damaged",
        ReplayLostAmount => "replay_lost_amount",
    }
}

/// What the proxy saw of one logical request, from its first attempt to its last byte. The ledger
/// folds it, with what it knows of the key, into a [`State`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub id: EntryId,
    pub at_ms: u64,
    pub attempts: Vec<Attempt>,
    /// What the answer that counts reported: the answered attempt's, else that of the last attempt
    /// that had a head.
    pub receipt: Receipt,
    /// The amount in the 2xx head of an *earlier* attempt whose body broke. The repeat of a
    /// stored answer shows 0, so without this field the price would be lost (rule I3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_billed: Option<MicroUsd>,
    #[serde(default)]
    pub usage: Usage,
    /// Seconds of audio, in milliseconds, where the body reports `duration_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio_ms: Option<u64>,
    /// `x-request-id` of the last answer, cut to 128 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Run id of an answered `POST /v1/eval-runs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Why reading ended before the service's answer did, when it was our side that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_by: Option<InDoubt>,
    /// The sides that left or broke off before the answer was settled, in that order. Empty where none did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<Closed>,
    #[serde(default, skip_serializing_if = "Delivery::is_given")]
    pub delivery: Delivery,
    /// No app was there to read the answer when it ended: what it cost was spent for its receipt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
    pub response_bytes: u64,
    pub timings: Timings,
    /// What the service said when it refused an attempt, the last one that it refused: 256 characters, without
    /// secrets and without what the request holds. Words of others, which stay on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_detail: Option<String>,
}

/// Where the time of a request went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timings {
    /// Waiting for a slot.
    pub queue_ms: u64,
    /// From the request's arrival to the first response byte of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<u64>,
    pub total_ms: u64,
    /// Total less queue, waits between attempts, the service's own time, and the app's. The log and the
    /// metrics have the same.
    pub own_us: u64,
}

/// What an entry is worth, folded over all its attempts and all that is known of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Written, not yet ended. Found so at start-up, it becomes `in_doubt(crash)`.
    Open,
    /// The service reported the amount.
    Settled { billed: MicroUsd },
    /// Nothing was billed: every attempt was not sent or got a complete non-2xx.
    Failed,
    /// The key's amount stands on another entry; this one adds 0.
    Replayed,
    /// Complete, but the interface gives no amount.
    Unreported,
    /// The amount exists perhaps and is not known.
    InDoubt { reason: InDoubt },
    /// Was in doubt or unreported; evidence came. `billed` is what this entry adds.
    Reconciled { billed: MicroUsd },
}

closed_set! {
    /// Entry states without their details. `malformed` is no state of its own: it is the part of
    /// `unreported` whose amount cannot be read, which is not the same as none (rule I5).
    StateWord {
        Open => "open",
        Settled => "settled",
        Failed => "failed",
        Replayed => "replayed",
        Unreported => "unreported",
        Malformed => "malformed",
        InDoubt => "in_doubt",
        Reconciled => "reconciled",
    }
}

/// What an entry is filed under. It stands in each line that ends or changes an entry, so that a
/// damaged intent line loses neither the amount nor where it belongs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// The intent's time: the day an entry counts for, whenever it ends.
    pub started_ms: u64,
    #[serde(with = "shared_text")]
    pub app: Arc<str>,
    pub lane: Lane,
    pub operation: Operation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeptKey>,
    /// As in the intent; of an entry whose price is not known it may be more, when a dearer one was seen
    /// meanwhile.
    #[serde(
        default,
        rename = "reserved_micro_usd",
        skip_serializing_if = "Option::is_none"
    )]
    pub reserved: Option<MicroUsd>,
    /// As in the intent; absent on lines of an older bursar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// As in the intent.
    #[serde(default, skip_serializing_if = "Leases::is_empty")]
    pub leases: Leases,
    /// As in the intent.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "marks::shared"
    )]
    pub marks: Option<Arc<Marks>>,
}

/// An entry that waits for evidence, with all that is needed to write what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unresolved {
    pub id: EntryId,
    pub was: State,
    pub served_by: Option<ServedBy>,
    pub labels: Labels,
}

/// What [`crate::ledger::Ledger::settle`] answers once the outcome is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    pub state: State,
    /// What its key came to, where that is known: on this entry, or for a replay on another.
    pub price: Option<MicroUsd>,
    /// What went wrong with receipts: words for `receipt_anomalies_total{kind}`.
    pub anomalies: Vec<Anomaly>,
}

closed_set! {
    /// Receipts that contradict something.
    Anomaly {
        ConflictingAmounts => "conflicting_amounts",
        SecondAmountForKey => "second_amount_for_key",
        AmountOnReplay => "amount_on_replay",
        AmountOnFailure => "amount_on_failure",
        Malformed => "malformed",
        AboveCeiling => "above_ceiling",
    }
}

// === impl FirstSent ===

impl FirstSent {
    pub fn now(clock: &dyn Clock) -> Self {
        Self {
            at_ms: clock.wall_ms(),
            up_ms: u64::try_from(clock.monotonic().as_millis()).unwrap_or(u64::MAX),
            boot: clock.boot(),
        }
    }
}

// === impl Intent ===

impl Intent {
    /// Without a model, a key, a run and a body, for an answer that is no stream.
    pub fn new(
        id: EntryId,
        at_ms: u64,
        app: Arc<str>,
        lane: Lane,
        operation: Operation,
        fingerprint: Fingerprint,
    ) -> Self {
        Self {
            id,
            at_ms,
            app,
            lane,
            operation,
            model: None,
            stream: false,
            key: None,
            fingerprint,
            request_bytes: 0,
            run: None,
            leases: Leases::default(),
            key_use: None,
            reserved: None,
            trace_id: None,
            spoken: Dialect::Chat,
            dropped: Dropped::default(),
            marks: None,
        }
    }
}

// === impl Attempt ===

impl Attempt {
    /// Made at once, and ended in no time.
    pub const fn new(end: AttemptEnd, status: Option<u16>) -> Self {
        Self {
            end,
            status,
            wait_ms: 0,
            took_ms: 0,
            cause: None,
            receipt_lines: Vec::new(),
        }
    }
}

// === impl Outcome ===

impl Outcome {
    /// Of a request that no attempt was made for.
    pub fn new(id: EntryId, at_ms: u64) -> Self {
        Self {
            id,
            at_ms,
            attempts: Vec::new(),
            receipt: Receipt::default(),
            broken_billed: None,
            usage: Usage::default(),
            audio_ms: None,
            request_id: None,
            run_id: None,
            cut_by: None,
            closed: Vec::new(),
            delivery: Delivery::default(),
            drained: false,
            response_bytes: 0,
            timings: Timings::default(),
            service_detail: None,
        }
    }
}

// === impl Delivery ===

impl Delivery {
    pub fn is_given(&self) -> bool {
        *self == Self::Given
    }

    /// Whether the entry's key stays adoptable. Where nothing ran, nothing is to be passed on, but for
    /// an adopted key: the request that it was adopted from may have run.
    pub fn leaves_undelivered(self, state: State, adoptions: u32) -> bool {
        self == Self::Missed && (state != State::Failed || adoptions > 0)
    }
}

// === impl State ===

impl State {
    /// What this entry adds to the sum of billed money.
    pub const fn adds(self) -> MicroUsd {
        match self {
            Self::Settled { billed } | Self::Reconciled { billed } => billed,
            Self::Open
            | Self::Failed
            | Self::Replayed
            | Self::Unreported
            | Self::InDoubt { .. } => MicroUsd::ZERO,
        }
    }

    /// The amount as far as it is known: `None` is "not known", never zero (rule I5).
    pub const fn billed(self) -> Option<MicroUsd> {
        match self {
            Self::Settled { billed } | Self::Reconciled { billed } => Some(billed),
            Self::Failed | Self::Replayed => Some(MicroUsd::ZERO),
            Self::Open | Self::Unreported | Self::InDoubt { .. } => None,
        }
    }

    /// Waiting for evidence: a later attempt of the same key, or a run's end, may bring it.
    pub const fn is_unresolved(self) -> bool {
        matches!(self, Self::Unreported | Self::InDoubt { .. })
    }

    /// The state without its details, as it stands in filters and in print.
    pub const fn word(self) -> StateWord {
        match self {
            Self::Open => StateWord::Open,
            Self::Settled { .. } => StateWord::Settled,
            Self::Failed => StateWord::Failed,
            Self::Replayed => StateWord::Replayed,
            Self::Unreported => StateWord::Unreported,
            Self::InDoubt { .. } => StateWord::InDoubt,
            Self::Reconciled { .. } => StateWord::Reconciled,
        }
    }

    /// Why the amount is not known, of an entry in doubt.
    pub const fn reason(self) -> Option<InDoubt> {
        match self {
            Self::InDoubt { reason } => Some(reason),
            _ => None,
        }
    }
}

// === impl Labels ===

impl Labels {
    pub fn of_intent(intent: &Intent) -> Self {
        Self {
            started_ms: intent.at_ms,
            app: Arc::clone(&intent.app),
            lane: intent.lane,
            operation: intent.operation,
            key: intent.key.clone(),
            reserved: intent.reserved,
            run: intent.run.clone(),
            leases: intent.leases.clone(),
            marks: intent.marks.clone(),
        }
    }

    /// The session that it belongs to.
    pub fn session(&self) -> Option<Session> {
        self.marks.as_ref()?.session
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the shape that serde calls"
)]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
