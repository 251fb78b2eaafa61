//! What lies in the index: the rows, their keys, and how both are spelled.
//!
//! Promise: a row that decodes was written whole by this format.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::db::IndexError;
use crate::ledger::sums::{Globals, MicroUsdSum};

pub const FORMAT: u32 = 5;

/// First byte of each value: how the rest is encoded.
const VALUE_VERSION: u8 = 1;

// First byte of each key: what the row is.
pub const META: &[u8] = b"m";
pub const RUN: u8 = b'u';
pub const ROLLUP: u8 = b'r';
pub const MISSING: &[u8] = b"x";

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
    /// Eval runs that wait for their price. An earlier format has none, and is told by its number.
    #[serde(default)]
    pub runs: u64,
    /// The answers of the outcomes up to here were given to their apps, or noted.
    #[serde(default)]
    pub given_seq: u64,
}

pub fn text_key(kind: u8, text: &str) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend_from_slice(text.as_bytes());
    key
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
