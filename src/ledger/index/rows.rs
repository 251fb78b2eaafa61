//! How the index spells its keys and values.
//!
//! Promise: a value that was not written whole by this format is an error.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{ENTRY, IndexError};
use crate::ledger::entry::EntryId;

/// First byte of each value: how the rest is encoded.
const VALUE_VERSION: u8 = 1;

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
