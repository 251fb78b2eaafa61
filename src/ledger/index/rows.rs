//! What lies in the index: the rows, their keys, and how both are spelled.
//!
//! Promise: a row that decodes was written whole by this format.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::blocks::{Detail, Length, state_byte};
use super::db::IndexError;
use super::figures::Figures;
use crate::ledger::entry::StateWord;
use crate::ledger::id::EntryId;
use crate::ledger::sums::{Globals, MicroUsdSum};

pub const FORMAT: u32 = 8;

/// First byte of each value: how the rest is encoded.
const VALUE_VERSION: u8 = 1;

// First byte of each key: what the row is.
pub const META: &[u8] = b"m";
pub const RUN: u8 = b'u';
pub const MISSING: &[u8] = b"x";
/// Something of the journal is damaged or out of order.
pub const DAMAGED: &[u8] = b"d";
/// The journal's files as they were when they were last read whole or written.
pub const FILES: &[u8] = b"j";
/// A line and its number.
pub const LINE: u8 = b'l';
/// The sums of a stretch of time.
pub const BLOCK: u8 = b'q';
/// What an entry without a price added, for the day when its price comes; and the same of eval runs.
pub const FILED: u8 = b'e';
pub const FILED_OF_RUN: u8 = b'f';
/// What the evidence for an entry added.
pub const EVIDENCE: u8 = b'v';

/// The one row that says what all others amount to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Meta {
    pub format: u32,
    pub ledger: String,
    pub last_seq: u64,
    pub oldest_open_seq: Option<u64>,
    pub globals: Globals,
    /// How many lines have a number.
    pub lines: u64,
    /// Entries that evidence came for when it was not known any more what they had added: they stay filed
    /// under the state that they had.
    pub unmoved: u64,
    /// Over all blocks of four hours, all models together: if they do not add up to these, rows are lost.
    pub requests: u64,
    pub billed: MicroUsdSum,
    /// Eval runs that wait for their price. An earlier format has none; its number shows it.
    #[serde(default)]
    pub runs: u64,
    /// The answers of the outcomes up to here were given to their apps, or noted.
    #[serde(default)]
    pub given_seq: u64,
    /// The last record of the compacted segment that this was made from; 0: it was made from entries, one by one.
    #[serde(default)]
    pub compacted_seq: u64,
}

pub fn text_key(kind: u8, text: &str) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend_from_slice(text.as_bytes());
    key
}

pub fn line_key(number: u16) -> Vec<u8> {
    let mut key = vec![LINE];
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// What the keys of all blocks of a kind begin with.
pub const fn block_prefix(length: Length, detail: Detail) -> [u8; 2] {
    let kind = match (length, detail) {
        (Length::Quarter, Detail::AllModels) => 0,
        (Length::Sixteen, Detail::AllModels) => 1,
        (Length::Quarter, Detail::ByModel) => 2,
        (Length::Sixteen, Detail::ByModel) => 3,
    };
    [BLOCK, kind]
}

pub fn block_key(length: Length, detail: Detail, at_ms: u64) -> Vec<u8> {
    let mut key = block_prefix(length, detail).to_vec();
    key.extend_from_slice(&at_ms.to_be_bytes());
    key
}

/// When the block begins that a key names.
pub fn block_begins(key: &[u8]) -> Result<u64, IndexError> {
    let at_ms = key.get(2..).and_then(|at_ms| at_ms.try_into().ok());
    at_ms.map(u64::from_be_bytes).ok_or(IndexError::DamagedRow)
}

/// Of a quarter hour, or of an entry that began in it.
pub fn entry_key(kind: u8, quarter_ms: u64, id: Option<EntryId>) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend_from_slice(&quarter_ms.to_be_bytes());
    if let Some(id) = id {
        key.extend_from_slice(id.0.as_bytes());
    }
    key
}

/// The entry that a key names.
pub fn entry_of(key: &[u8]) -> Result<EntryId, IndexError> {
    let id = key.get(9..).and_then(|id| uuid::Uuid::from_slice(id).ok());
    id.map(EntryId).ok_or(IndexError::DamagedRow)
}

/// What one entry added, by the number of its line.
pub fn encode_entry(line: u16, state: StateWord, figures: &Figures) -> Vec<u8> {
    let mut bytes = line.to_be_bytes().to_vec();
    bytes.push(state_byte(state));
    figures.encode(&mut bytes);
    sealed(&bytes)
}

/// The reverse of [`encode_entry`].
pub fn decode_entry(bytes: &[u8]) -> Result<(u16, StateWord, Figures), IndexError> {
    let (line, rest) = opened(bytes)?
        .split_first_chunk::<2>()
        .ok_or(IndexError::DamagedRow)?;
    let (state, mut rest) = rest.split_first().ok_or(IndexError::DamagedRow)?;
    let state = StateWord::ALL.get(usize::from(*state));
    let mut figures = Figures::default();
    figures
        .add_encoded(&mut rest)
        .ok_or(IndexError::DamagedRow)?;
    let state = *state.ok_or(IndexError::DamagedRow)?;
    Ok((u16::from_be_bytes(*line), state, figures))
}

/// Version, checksum, JSON.
pub fn encode(value: &impl Serialize) -> Result<Vec<u8>, IndexError> {
    Ok(sealed(&serde_json::to_vec(value)?))
}

pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, IndexError> {
    serde_json::from_slice(opened(bytes)?).map_err(|_| IndexError::DamagedRow)
}

/// Version, checksum, and the value.
pub fn sealed(value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![VALUE_VERSION];
    bytes.extend_from_slice(&crc32c::crc32c(value).to_be_bytes());
    bytes.extend_from_slice(value);
    bytes
}

/// The value that [`sealed`] wrote.
pub fn opened(bytes: &[u8]) -> Result<&[u8], IndexError> {
    let parts = bytes.split_first().and_then(|(version, rest)| {
        let (crc, value) = rest.split_at_checked(4)?;
        let is_sound =
            *version == VALUE_VERSION && crc == crc32c::crc32c(value).to_be_bytes().as_slice();
        is_sound.then_some(value)
    });
    parts.ok_or(IndexError::DamagedRow)
}
