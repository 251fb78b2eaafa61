//! What lies in the index: the rows, their keys, and how both are spelled.
//!
//! Promise: a row that decodes was written whole by this format.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::db::IndexError;
use crate::ledger::entry::State;
use crate::ledger::id::EntryId;
use crate::ledger::kept_key::KeyForm;
use crate::ledger::record::Position;
use crate::ledger::sums::{Globals, MicroUsdSum};

pub const FORMAT: u32 = 4;

/// First byte of each value: how the rest is encoded.
const VALUE_VERSION: u8 = 1;

// First byte of each key: what the row is.
pub const META: &[u8] = b"m";
pub const ENTRY: u8 = b'e';
pub const BY_KEY: u8 = b'k';
/// Of a long key, in hex.
pub const BY_KEY_HASH: u8 = b'h';
pub const BY_REQUEST: u8 = b'q';
pub const RUN: u8 = b'u';
pub const ROLLUP: u8 = b'r';
pub const MISSING: &[u8] = b"x";

/// Up to which segment the index was swept.
pub const SWEPT: &[u8] = b"c";

const ID_BYTES: usize = 16;

/// An entry that ended: where its lines are, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "EntryRow", into = "EntryRow")]
pub struct StoredEntry {
    pub state: State,
    pub intent: Option<Position>,
    pub end: Position,
    /// The line that brought evidence, when one did.
    pub evidence: Option<Position>,
}

/// Segment, offset, bytes: without names a row has a quarter of the length.
type Place = (u32, u64, u64);

/// An entry's row as it is spelled.
#[derive(Serialize, Deserialize)]
struct EntryRow(State, Option<Place>, Place, Option<Place>);

/// Where the lines of an entry lie that a compacted segment still lists.
#[derive(Clone, Copy, Debug, Default)]
pub struct StillListed {
    pub intent: Option<Position>,
    pub end: Option<Position>,
}

/// How many rows lookups have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowCounts {
    pub entries: u64,
    pub keys: u64,
    pub requests: u64,
}

/// The one row that says what all others amount to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Meta {
    pub format: u32,
    pub ledger: String,
    pub last_seq: u64,
    pub oldest_open_seq: Option<u64>,
    pub globals: Globals,
    /// Over all rollups: if they do not add up to these, rows are lost.
    pub requests: u64,
    pub billed: MicroUsdSum,
    /// Rows of lookups there are.
    pub rows: RowCounts,
    /// The answers of the outcomes up to here were given to their apps, or noted.
    #[serde(default)]
    pub given_seq: u64,
}

// === impl RowCounts ===

impl RowCounts {
    /// Rows of a kind were removed.
    pub fn remove(&mut self, kind: u8, removed: u64) {
        let count = match kind {
            ENTRY => &mut self.entries,
            BY_KEY | BY_KEY_HASH => &mut self.keys,
            BY_REQUEST => &mut self.requests,
            _ => return,
        };
        *count = count.saturating_sub(removed);
    }
}

// === impl StoredEntry ===

impl From<EntryRow> for StoredEntry {
    fn from(EntryRow(state, intent, end, evidence): EntryRow) -> Self {
        Self {
            state,
            intent: intent.map(position),
            end: position(end),
            evidence: evidence.map(position),
        }
    }
}

impl From<StoredEntry> for EntryRow {
    fn from(entry: StoredEntry) -> Self {
        let place = |at: Position| (at.segment, at.offset, at.bytes);
        Self(
            entry.state,
            entry.intent.map(place),
            place(entry.end),
            entry.evidence.map(place),
        )
    }
}

fn position((segment, offset, bytes): Place) -> Position {
    Position {
        segment,
        offset,
        bytes,
    }
}

pub fn entry_key(id: EntryId) -> Vec<u8> {
    let mut key = vec![ENTRY];
    key.extend_from_slice(id.0.as_bytes());
    key
}

pub fn text_key(kind: u8, text: &str) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend_from_slice(text.as_bytes());
    key
}

/// Header values hold no NUL, so it ends the text.
pub fn lookup_key(kind: u8, text: &str, id: EntryId) -> Vec<u8> {
    let mut key = text_key(kind, text);
    key.push(0);
    key.extend_from_slice(id.0.as_bytes());
    key
}

/// The row that a key is found by.
pub fn by_key(key: &KeyForm, id: EntryId) -> Vec<u8> {
    match key {
        KeyForm::Text(text) => lookup_key(BY_KEY, text, id),
        KeyForm::Hash(hash) => lookup_key(BY_KEY_HASH, &hash.to_string(), id),
    }
}

/// Version, checksum, JSON.
pub fn encode(value: &impl Serialize) -> Result<Vec<u8>, IndexError> {
    let json = serde_json::to_vec(value)?;
    let mut bytes = vec![VALUE_VERSION];
    bytes.extend_from_slice(&crc32c::crc32c(&json).to_be_bytes());
    bytes.extend_from_slice(&json);
    Ok(bytes)
}

pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, IndexError> {
    let parts = bytes.split_first().and_then(|(version, rest)| {
        let (crc, json) = rest.split_at_checked(4)?;
        let is_sound =
            *version == VALUE_VERSION && crc == crc32c::crc32c(json).to_be_bytes().as_slice();
        is_sound.then_some(json)
    });
    let json = parts.ok_or(IndexError::DamagedRow)?;
    serde_json::from_slice(json).map_err(|_| IndexError::DamagedRow)
}

/// What becomes of a row.
pub enum Moved {
    Stays,
    To(StoredEntry),
    Gone,
}

pub fn moved(row: StoredEntry, segment: u32, kept: Option<&StillListed>) -> Moved {
    let is_old = |position: Position| position.segment <= segment;
    if !is_old(row.end) && !row.intent.is_some_and(is_old) {
        return Moved::Stays;
    }
    let kept = kept.copied().unwrap_or_default();
    let end = match kept.end {
        Some(end) if is_old(row.end) => end,
        _ if !is_old(row.end) => row.end,
        _ => return Moved::Gone,
    };
    let intent = match row.intent {
        Some(intent) if !is_old(intent) => Some(intent),
        _ => kept.intent,
    };
    Moved::To(StoredEntry { intent, end, ..row })
}

/// Keys that belong to an entry end with its id.
pub fn id_of(key: &[u8]) -> Option<EntryId> {
    let id = key.get(key.len().checked_sub(ID_BYTES)?..)?;
    uuid::Uuid::from_slice(id).ok().map(EntryId)
}
