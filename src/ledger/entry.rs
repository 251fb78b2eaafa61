//! The ledger's nouns: what is written before a request leaves (`Intent`), what is written when it
//! has ended (`Outcome`), and what the ledger makes of both (`State`, `Settlement`).
//!
//! Promise: no prompt or answer text, ever; amounts are integers or not known; every closed set is
//! spelled here once and is the same word in the journal, in metrics and in print.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use uuid::Uuid;

use crate::ledger::kept_key::KeptKey;
use crate::ledger::undelivered::{Delivery, KeyUse};
use crate::money::MicroUsd;
use crate::protocol::receipt::Receipt;
use crate::protocol::{Lane, Operation, Usage, closed_set};

/// One logical request of an app, whatever number of attempts it took. UUIDv7: sorts by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub Uuid);

/// BLAKE3 of a request (method, path and query, body, `X-Service-Session`, `X-Service-RTE-Query`) or of
/// a long key, keyed with a secret of this ledger, so that the disk tells nothing about prompts.
/// Lower-case hex in the journal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// Who chose the Idempotency-Key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyOrigin {
    /// bursar minted it for this request.
    Minted,
    /// The app sent its own.
    App,
    /// Taken over from an undelivered equal request.
    Adopted { from: EntryId },
}

/// An Idempotency-Key as it goes to the service, and its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryKey {
    #[serde(with = "shared_text")]
    pub value: Arc<str>,
    pub origin: KeyOrigin,
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
}

/// How one attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// Fewer than all request bytes were handed to the kernel (or the stream was refused): the
    /// service cannot have run it.
    NotSent,
    /// Sent, or possibly sent, and no response head came.
    NoHead,
    /// An answer whose status is not 2xx. Its head decides: "A request or turn that fails bills
    /// nothing", however slow or broken the body is that follows.
    Refused,
    /// A 502/504 without a JSON body on an unkeyed metered route: it may come from a hop after the
    /// work was done.
    Gateway,
    /// A 2xx answer, complete.
    Answered,
    /// A 2xx head whose body broke.
    Broken,
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
    /// What the answer that counts told: the answered attempt's, else that of the last attempt
    /// that had a head.
    pub receipt: Receipt,
    /// The amount that an *earlier* attempt's 2xx head told before its body broke. The repeat of a
    /// stored answer shows 0, so without this field the price would be lost (rule I3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_billed: Option<MicroUsd>,
    #[serde(default)]
    pub usage: Usage,
    /// Seconds of audio, in milliseconds, where the body told `duration_s`.
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
    /// Who left or broke off before the answer was settled, in that order. Empty where nobody did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<Closed>,
    #[serde(default, skip_serializing_if = "Delivery::is_given")]
    pub delivery: Delivery,
    /// Nobody was there to read the answer when it ended: what it cost was spent for its receipt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
    pub response_bytes: u64,
    pub timings: Timings,
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
    /// The service told the amount.
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

/// What [`crate::ledger::Ledger::settle`] answers once the outcome is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    pub state: State,
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

/// `Arc<str>` as a JSON string, without serde's `rc` feature.
pub(crate) mod shared_text {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(text)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
        String::deserialize(from).map(Arc::from)
    }
}

// === impl EntryId ===

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for EntryId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::try_parse(text).map(Self)
    }
}

impl Serialize for EntryId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.hyphenated().encode_lower(&mut Uuid::encode_buffer()))
    }
}

impl<'de> Deserialize<'de> for EntryId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?
            .parse()
            .map_err(|_| de::Error::custom("not a UUID"))
    }
}

// === impl Fingerprint ===

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        unhex(&text)
            .map(Self)
            .ok_or_else(|| de::Error::custom("not 64 hex digits"))
    }
}

/// 64 hex digits, either case, as 32 bytes.
pub(crate) fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
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
    pub const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Settled { .. } => "settled",
            Self::Failed => "failed",
            Self::Replayed => "replayed",
            Self::Unreported => "unreported",
            Self::InDoubt { .. } => "in_doubt",
            Self::Reconciled { .. } => "reconciled",
        }
    }
}
