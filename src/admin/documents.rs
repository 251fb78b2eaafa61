//! The documents that the reading API answers and that `--json` prints. They are types, written here and read
//! back by the commands, so that asking the daemon and reading the journal give the same text.
//!
//! Promise: names and meanings stay put, fields are only ever added. An amount that is not known is
//! `null`, never 0; amounts are integers in micro-USD. A document that lacks a figure is refused, and never
//! read as one of 0.

use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::{Map, Value};

use crate::calendar;
use crate::ledger::entry::{InDoubt, State, StateWord};
use crate::ledger::query::{EntryView, GroupBy, Listing, Spend, SpendRow};
use crate::ledger::totals::Totals;
use crate::ledger::{LedgerHealth, MicroUsdSum};
use crate::money::MicroUsd;
use crate::telemetry::metrics::{FleetFigures, Traffic};

/// What `/api/spend` and `bursar spend` ask.
#[derive(Clone, Debug)]
pub struct SpendQuestion {
    pub since_ms: Option<u64>,
    pub until_ms: Option<u64>,
    pub by: Vec<GroupBy>,
    /// Whose midnights days begin at.
    pub zone: TimeZone,
}

/// The answer to a question about spend: the sums, then the same by group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpendDocument {
    /// RFC 3339, as `until`. `None`: no bound.
    pub since: Option<String>,
    pub until: Option<String>,
    pub time_zone: String,
    pub by: Vec<GroupBy>,
    #[serde(flatten, deserialize_with = "sums")]
    pub total: SpendRow,
    /// Damaged ranges and gaps: the sums lack what was in them.
    pub damaged: u64,
    /// A bound cut through a quarter hour that is kept in sums only: it counts for its beginning.
    pub rounded: bool,
    /// RFC 3339. By session: of what began before this moment only sums are left, which are by no session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions_since: Option<String>,
    pub rows: Vec<SpendRow>,
}

/// One entry. Its state is one word; the reason of a doubt stands beside it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct EntryDocument(pub EntryView);

/// A list of entries, and the sequence number to go on from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReceiptsDocument {
    pub receipts: Vec<EntryDocument>,
    pub last_seq: Option<u64>,
    /// What began before this moment was compacted: only its sums are left. `None`: nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted_until_ms: Option<u64>,
}

/// The daemon at this moment. A figure that a daemon of another release leaves out reads as none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusDocument {
    pub version: String,
    pub pid: u32,
    pub started: Option<String>,
    pub uptime_s: u64,
    pub draining: bool,
    pub in_flight: usize,
    /// Callers that are no app may spend.
    pub anonymous: bool,
    pub proxy: Vec<String>,
    pub upstream: String,
    pub key: KeyStatus,
    pub traffic: TrafficStatus,
    /// Its configuration file. `None`: there is none.
    pub config: Option<String>,
    /// Settings of the file that wait for a restart, `[listen] proxy`; what a reload could change is in force.
    pub waits_for_restart: Vec<String>,
    /// This and the next four: `None` while the journal is added up.
    pub billed_micro_usd: Option<MicroUsdSum>,
    pub drained_micro_usd: Option<MicroUsdSum>,
    pub requests: Option<u64>,
    pub in_doubt: Option<u64>,
    pub unreported: Option<u64>,
    pub ledger: LedgerStatus,
    /// `None`: it is in no fleet.
    pub fleet: Option<FleetStatus>,
}

/// What the fleet's database has of this ledger. Times are RFC 3339.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetStatus {
    /// `None`: it was not heard since the start.
    pub heard: Option<String>,
    /// When it last had every line.
    pub caught_up: Option<String>,
    /// Lines that it did not have at the last visit, or is not known to have. `None`: no visit since the start has shown it.
    pub lines_behind: Option<u64>,
    /// This machine's clock less the database's, when it was heard last.
    pub clock_ahead_ms: Option<i64>,
    /// Why it was not reached at the last visit, or gets no lines.
    pub trouble: Option<String>,
}

/// What the service's answers showed of the organization's key since the start, or since a reload brought another
/// one. Times are RFC 3339; `None`: there was no such answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyStatus {
    /// The newest answer, whatever it was.
    pub answered: Option<String>,
    /// The newest that is given only to a key the service knows: 2xx or 402.
    pub accepted: Option<String>,
    /// The newest 401 since then.
    pub refused: Option<String>,
    /// The newest 402 that no paid success followed.
    pub balance_empty: Option<String>,
}

/// What holds requests back on their way to the service.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TrafficStatus {
    pub waiting: i64,
    pub at_service: i64,
    /// `None`, here and in the next: bursar sets no limit.
    pub in_flight_limit: Option<i64>,
    pub per_minute_limit: Option<i64>,
    pub held_back_by: Vec<String>,
}

/// How well the ledger is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LedgerStatus {
    pub state_dir: String,
    pub writable: bool,
    pub unavailable: Option<String>,
    pub last_commit: Option<String>,
    pub commits: u64,
    pub journal_bytes: u64,
    pub index_lag_records: u64,
    pub adding_up: bool,
    pub quarantined: u64,
    pub unwritten_waiting: usize,
    pub unwritten_dropped: u64,
}

/// Why a question was not answered, or a change not made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorDocument {
    pub detail: String,
}

// === impl SpendDocument ===

impl SpendDocument {
    pub fn new(asked: &SpendQuestion, spend: Spend) -> Self {
        let at = |ms: Option<u64>| ms.and_then(calendar::rfc3339);
        Self {
            since: at(asked.since_ms),
            until: at(asked.until_ms),
            time_zone: asked.zone.iana_name().unwrap_or("local").to_owned(),
            by: asked.by.clone(),
            total: spend.total,
            damaged: spend.damaged,
            rounded: spend.is_rounded,
            sessions_since: at(spend.listed_since_ms),
            rows: spend.rows,
        }
    }
}

/// serde hands flattened members on without their 128 bits.
fn sums<'de, D: Deserializer<'de>>(from: D) -> Result<SpendRow, D::Error> {
    let members = Map::deserialize(from)?;
    serde_json::from_value(Value::Object(members)).map_err(de::Error::custom)
}

// === impl EntryDocument ===

impl EntryDocument {
    /// As other users of this machine may read it: with a key, any of them could fetch its answer again, which
    /// another app has paid for.
    #[must_use]
    pub fn without_key(mut self) -> Self {
        self.0.key = None;
        self.0.key_hash = None;
        self
    }
}

/// The members of an entry's document.
pub(super) fn members_of(entry: &EntryView) -> serde_json::Result<Map<String, Value>> {
    let mut members = object(entry)?;
    members.insert("at".to_owned(), calendar::rfc3339(entry.at_ms).into());
    members.insert("state".to_owned(), entry.state.word().as_str().into());
    if let Some(reason) = entry.state.reason() {
        members.insert("reason".to_owned(), reason.as_str().into());
    }
    Ok(members)
}

/// The members of a document that is an object.
pub(super) fn object(document: &impl Serialize) -> serde_json::Result<Map<String, Value>> {
    match serde_json::to_value(document)? {
        Value::Object(members) => Ok(members),
        other => serde_json::from_value(other),
    }
}

/// A word with what stands beside it, as one state again.
pub(super) fn state(
    word: StateWord,
    billed: Option<MicroUsd>,
    reason: Option<InDoubt>,
) -> serde_json::Result<State> {
    let lacks = |what| de::Error::custom(format_args!("{word} without {what}"));
    Ok(match word {
        StateWord::Open => State::Open,
        StateWord::Failed => State::Failed,
        StateWord::Replayed => State::Replayed,
        StateWord::Unreported | StateWord::Malformed => State::Unreported,
        StateWord::Settled => State::Settled {
            billed: billed.ok_or_else(|| lacks("an amount"))?,
        },
        StateWord::Reconciled => State::Reconciled {
            billed: billed.ok_or_else(|| lacks("an amount"))?,
        },
        StateWord::InDoubt => State::InDoubt {
            reason: reason.ok_or_else(|| lacks("a reason"))?,
        },
    })
}

impl Serialize for EntryDocument {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        members_of(&self.0)
            .map_err(ser::Error::custom)?
            .serialize(to)
    }
}

impl TryFrom<Map<String, Value>> for EntryDocument {
    type Error = serde_json::Error;

    fn try_from(mut members: Map<String, Value>) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct StateMembers {
            state: StateWord,
            billed_micro_usd: Option<MicroUsd>,
            reason: Option<InDoubt>,
        }
        let parts = StateMembers::deserialize(&members)?;
        let state = state(parts.state, parts.billed_micro_usd, parts.reason)?;
        members.insert("state".to_owned(), serde_json::to_value(state)?);
        serde_json::from_value(Value::Object(members)).map(Self)
    }
}

// === impl ReceiptsDocument ===

impl ReceiptsDocument {
    /// The same as other users of this machine may read it.
    #[must_use]
    pub fn without_keys(self) -> Self {
        let receipts = self.receipts.into_iter();
        Self {
            receipts: receipts.map(EntryDocument::without_key).collect(),
            ..self
        }
    }
}

impl From<Listing> for ReceiptsDocument {
    fn from(listing: Listing) -> Self {
        Self {
            receipts: listing.entries.into_iter().map(EntryDocument).collect(),
            last_seq: listing.last_seq,
            compacted_until_ms: None,
        }
    }
}

impl From<ReceiptsDocument> for Listing {
    fn from(document: ReceiptsDocument) -> Self {
        let receipts = document.receipts.into_iter();
        Self {
            entries: receipts.map(|EntryDocument(entry)| entry).collect(),
            last_seq: document.last_seq,
        }
    }
}

// === impl StatusDocument ===

impl StatusDocument {
    /// The same with the ledger's figures.
    #[must_use]
    pub fn with_totals(self, totals: &Totals, is_adding_up: bool) -> Self {
        // Not known while the journal is added up; never lower than it is.
        if is_adding_up {
            return self;
        }
        Self {
            billed_micro_usd: Some(totals.billed()),
            drained_micro_usd: Some(totals.drained()),
            requests: Some(totals.requests()),
            in_doubt: Some(totals.in_doubt().values().sum()),
            unreported: Some(totals.unreported().values().sum()),
            ..self
        }
    }
}

impl From<FleetFigures> for FleetStatus {
    fn from(figures: FleetFigures) -> Self {
        let at = |ms: Option<u64>| ms.and_then(calendar::rfc3339);
        Self {
            heard: at(figures.heard_ms),
            caught_up: at(figures.caught_up_ms),
            lines_behind: figures.lines_behind,
            clock_ahead_ms: figures.clock_ahead_ms,
            trouble: figures.troubles(),
        }
    }
}

impl From<Traffic> for TrafficStatus {
    fn from(traffic: Traffic) -> Self {
        let causes = traffic.breaking.into_iter();
        Self {
            waiting: traffic.waiting,
            at_service: traffic.in_flight,
            in_flight_limit: traffic.in_flight_limit,
            per_minute_limit: traffic.per_minute_limit,
            held_back_by: causes.map(str::to_owned).collect(),
        }
    }
}

// === impl LedgerStatus ===

impl LedgerStatus {
    pub fn new(state_dir: String, health: LedgerHealth) -> Self {
        Self {
            state_dir,
            writable: health.is_writable(),
            last_commit: health.last_commit_ms.and_then(calendar::rfc3339),
            unavailable: health.unavailable,
            commits: health.commits,
            journal_bytes: health.journal_bytes,
            index_lag_records: health.index_lag_records,
            adding_up: health.is_adding_up,
            quarantined: health.quarantined,
            unwritten_waiting: health.waiting,
            unwritten_dropped: health.dropped,
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::sample;
