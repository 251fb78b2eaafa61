//! One line of the journal: how a record is written and how it is read back. A line is a flat JSON
//! object, so that `jq` and `grep` read the ledger; its last member is a checksum of all before it.
//!
//! Promise: what decodes was written whole by this format; a line that does not is never guessed
//! at. A sound line of an unknown kind is kept and ignored, so that an older bursar can read on.

use std::sync::Arc;

use memchr::memmem;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ledger::delivery::{Handover, Undelivered};
use crate::ledger::entry::{Anomaly, Intent, Labels, Outcome, State};
use crate::ledger::id::EntryId;
use crate::ledger::rollup::Rollup;
use crate::money::MicroUsd;
use crate::protocol::{Reported, ServedBy};

/// The format of a segment of entries.
pub const FORMAT: u32 = 1;

/// The format of the compacted segment, and the newest that is read. A bursar that knows only 1 would
/// pass over its lines and show sums that lack them, so it must refuse; a ledger that was never
/// compacted stays readable for it.
pub const FORMAT_COMPACTED: u32 = 2;

/// Number of the compacted segment: the one before all others.
pub const COMPACTED: u32 = 0;

/// Longest line that is read as a record. A line of ours has a few kilobytes.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Where a line lies: segment number, byte offset and length without the newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub segment: u32,
    pub offset: u64,
    pub bytes: u64,
}

/// The first line of a segment. It has no sequence number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentHeader {
    pub format: u32,
    pub ledger: String,
    pub segment: u32,
    /// Sequence number of the first record of this segment.
    pub first_seq: u64,
    /// When the segment was begun: shows which segments the last 24 h lie in.
    pub at_ms: u64,
    /// Only in the compacted segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<StandsFor>,
}

/// What a compacted segment took the place of: everything up to here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandsFor {
    /// Number of the last segment.
    pub segment: u32,
    /// Its last sequence number.
    pub seq: u64,
    /// The newest moment in it, Unix milliseconds.
    pub until_ms: u64,
}

/// What the fold made of an outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub state: State,
    /// What this line adds to the sum of billed money.
    pub adds_micro_usd: MicroUsd,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anomalies: Vec<Anomaly>,
}

/// An entry that ended without an outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedEntry {
    pub id: EntryId,
    pub at_ms: u64,
    pub state: State,
}

/// Evidence came for an entry that was in doubt or unreported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub id: EntryId,
    pub at_ms: u64,
    pub was: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_by: Option<ServedBy>,
    pub adds_micro_usd: MicroUsd,
    pub how: How,
}

/// Where the evidence came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The key's amount stands on this other entry.
    Key { entry: EntryId },
    /// The terminal poll of this eval run reported the amount.
    Run { run_id: String },
}

/// A record, without its sequence number.
#[derive(Clone, Debug)]
pub enum Record {
    Intent(Arc<Intent>),
    Outcome(Arc<Outcome>, Labels, Verdict),
    /// Found open at start-up: the process died. `in_doubt(crash)`, `in_doubt(damaged)` when its end
    /// may lie in damaged lines, or `replayed` when the key's amount stands on another entry.
    Crashed(EndedEntry, Labels),
    /// Its intent reached the disk in a commit that failed, so it was never sent: `failed`.
    Withdrawn(EndedEntry, Labels),
    Reconciled(Evidence, Labels),
    /// What became of an answer, where its outcome could not know it.
    Delivery(Box<Undelivered>, Handover),
    /// The sums of entries that were compacted.
    Rollup(Box<Rollup>),
    /// Written by a newer bursar.
    Unknown,
}

/// What a sealed line is, without reading its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glance {
    Header,
    Record { seq: u64 },
}

/// A decoded line.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a segment has one header; a record in a box would be an allocation for each line"
)]
pub enum Line {
    Header(SegmentHeader),
    Record { seq: u64, record: Record },
}

const HEADER_START: &[u8] = br#"{"kind":"segment""#;
const SEQ_START: &[u8] = br#"{"seq":"#;
const KIND_START: &[u8] = br#","kind":""#;
/// The first members of [`Labels`] and of [`Outcome`]; no part before them has a member of that name.
const LABELS_START: &[u8] = br#","started_ms":"#;
const OUTCOME_START: &[u8] = br#","id":"#;
const CRC_START: &[u8] = br#","crc":""#;
const CRC_END: &[u8] = br#""}"#;
const CRC_DIGITS: usize = 8;

// === impl Record ===

impl Record {
    fn kind(&self) -> &'static str {
        match self {
            Self::Intent(_) => "intent",
            Self::Outcome(..) => "outcome",
            Self::Crashed(..) => "crashed",
            Self::Withdrawn(..) => "withdrawn",
            Self::Reconciled(..) => "reconciled",
            Self::Delivery(..) => "delivery",
            Self::Rollup(_) => "rollup",
            Self::Unknown => "unknown",
        }
    }

    /// The entry that it is a line of. `None` for one of a newer bursar.
    pub fn entry(&self) -> Option<EntryId> {
        match self {
            Self::Intent(intent) => Some(intent.id),
            Self::Outcome(outcome, ..) => Some(outcome.id),
            Self::Crashed(ended, _) | Self::Withdrawn(ended, _) => Some(ended.id),
            Self::Reconciled(evidence, _) => Some(evidence.id),
            Self::Delivery(row, _) => Some(row.id),
            Self::Rollup(_) | Self::Unknown => None,
        }
    }

    /// When what it is a line of happened, Unix milliseconds. `None`: it has no time of its own.
    pub fn at_ms(&self) -> Option<u64> {
        match self {
            Self::Intent(intent) => Some(intent.at_ms),
            Self::Outcome(outcome, ..) => Some(outcome.at_ms),
            Self::Crashed(ended, _) | Self::Withdrawn(ended, _) => Some(ended.at_ms),
            Self::Reconciled(evidence, _) => Some(evidence.at_ms),
            Self::Delivery(..) | Self::Rollup(_) | Self::Unknown => None,
        }
    }

    /// The service reported an amount that cannot be read, and the entry is unreported for it.
    pub fn is_malformed(&self) -> bool {
        match self {
            Self::Outcome(outcome, _, verdict) => {
                verdict.state == State::Unreported && outcome.receipt.billed == Reported::Malformed
            }
            _ => false,
        }
    }

    /// Appends the line of this record, newline included.
    pub fn encode(&self, seq: u64, to: &mut Vec<u8>) -> serde_json::Result<()> {
        let start = to.len();
        to.extend_from_slice(SEQ_START);
        write_number(seq, to);
        to.extend_from_slice(KIND_START);
        to.extend_from_slice(self.kind().as_bytes());
        to.push(b'"');
        let members = match self {
            Self::Intent(intent) => members(&**intent, to),
            Self::Outcome(outcome, labels, verdict) => members(verdict, to)
                .and_then(|()| members(labels, to))
                .and_then(|()| members(&**outcome, to)),
            Self::Crashed(ended, labels) | Self::Withdrawn(ended, labels) => {
                members(ended, to).and_then(|()| members(labels, to))
            }
            Self::Reconciled(evidence, labels) => {
                members(evidence, to).and_then(|()| members(labels, to))
            }
            Self::Delivery(row, handover) => members(row, to).and_then(|()| members(handover, to)),
            Self::Rollup(rollup) => members(rollup, to),
            Self::Unknown => Ok(()),
        };
        if members.is_err() {
            to.truncate(start);
        } else {
            seal(start, to);
        }
        members
    }
}

// === impl SegmentHeader ===

impl SegmentHeader {
    pub fn new(ledger: Uuid, segment: u32, first_seq: u64, at_ms: u64) -> Self {
        Self {
            format: FORMAT,
            ledger: ledger.to_string(),
            segment,
            first_seq,
            at_ms,
            stands_for: None,
        }
    }

    pub fn encode(&self, to: &mut Vec<u8>) -> serde_json::Result<()> {
        let start = to.len();
        to.extend_from_slice(HEADER_START);
        if let Err(error) = members(self, to) {
            to.truncate(start);
            return Err(error);
        }
        seal(start, to);
        Ok(())
    }
}

// === impl Line ===

impl Line {
    /// Decodes a line without its newline. `None`: damaged, torn, or no line of ours.
    pub fn decode(line: &[u8]) -> Option<Self> {
        if !is_sealed(line) {
            return None;
        }
        if line.starts_with(HEADER_START) {
            return part(line).map(Self::Header);
        }
        let (seq, kind) = start(line)?;
        let seq = std::str::from_utf8(seq).ok()?.parse().ok()?;
        let record = match kind {
            b"intent" => Record::Intent(Arc::new(part(line)?)),
            b"outcome" => outcome(line).or_else(|| {
                let outcome = Arc::new(part(line)?);
                Some(Record::Outcome(outcome, part(line)?, part(line)?))
            })?,
            b"crashed" => Record::Crashed(part(line)?, part(line)?),
            b"withdrawn" => Record::Withdrawn(part(line)?, part(line)?),
            b"reconciled" => Record::Reconciled(part(line)?, part(line)?),
            b"delivery" => Record::Delivery(part(line)?, part(line)?),
            b"rollup" => Record::Rollup(part(line)?),
            _ => Record::Unknown,
        };
        Some(Self::Record { seq, record })
    }

    /// What a line is, by its checksum and its first members. Cheaper than [`Self::decode`]. `None`: damaged, torn, or no line of ours.
    pub fn glance(line: &[u8]) -> Option<Glance> {
        if !is_sealed(line) {
            return None;
        }
        if line.starts_with(HEADER_START) {
            return Some(Glance::Header);
        }
        let (seq, _) = start(line)?;
        let seq = std::str::from_utf8(seq).ok()?.parse().ok()?;
        Some(Glance::Record { seq })
    }

    /// Whether a line begins as a rollup does: a cheap check before [`Self::decode`].
    pub fn looks_rolled_up(line: &[u8]) -> bool {
        start(line).is_some_and(|(_, kind)| kind == b"rollup")
    }

    /// Whether a line begins as evidence does: a cheap check before [`Self::decode`].
    pub fn looks_reconciled(line: &[u8]) -> bool {
        start(line).is_some_and(|(_, kind)| kind == b"reconciled")
    }
}

/// The sequence number and the kind that a record's line begins with, as text.
fn start(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_prefix(SEQ_START)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (seq, rest) = rest.split_at_checked(digits)?;
    let rest = rest.strip_prefix(KIND_START)?;
    let kind = rest.split(|byte| *byte == b'"').next()?;
    Some((seq, kind))
}

/// Reads the members of `T` and skips the others: a line is several structures side by side.
fn part<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}

/// Reads each part of an outcome's line where it stands: one pass, not one over the whole line for each. `None`: the
/// parts are not in the order in which [`Record::encode`] writes them.
fn outcome(line: &[u8]) -> Option<Record> {
    // A quote inside a string is escaped, so neither of the two can stand in one.
    let labels_at = memmem::find(line, LABELS_START)?;
    let outcome_at = labels_at + memmem::find(line.get(labels_at..)?, OUTCOME_START)?;
    let mut line = line.to_vec();
    // The comma between two parts ends the one, and then begins the other.
    *line.get_mut(labels_at)? = b'}';
    let verdict = part(line.get(..=labels_at)?)?;
    *line.get_mut(labels_at)? = b'{';
    *line.get_mut(outcome_at)? = b'}';
    let labels = part(line.get(labels_at..=outcome_at)?)?;
    *line.get_mut(outcome_at)? = b'{';
    let outcome = part(line.get(outcome_at..)?)?;
    Some(Record::Outcome(Arc::new(outcome), labels, verdict))
}

fn write_number(number: u64, to: &mut Vec<u8>) {
    let mut place = 1;
    while number / place >= 10 {
        place *= 10;
    }
    while place > 0 {
        to.push(b'0' + u8::try_from(number / place % 10).unwrap_or(0));
        place /= 10;
    }
}

/// Appends the members of `value`, each with a comma before it.
fn members(value: &impl Serialize, to: &mut Vec<u8>) -> serde_json::Result<()> {
    let start = to.len();
    serde_json::to_writer(&mut *to, value)?;
    debug_assert!(to.len() > start + 2, "every part of a line has a member");
    if let Some(brace) = to.get_mut(start) {
        *brace = b',';
    }
    to.pop();
    Ok(())
}

/// A small file: one line of `start`, the members of `body` and their checksum.
pub fn sealed(start: &[u8], body: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = start.to_vec();
    members(body, &mut line)?;
    seal(0, &mut line);
    Ok(line)
}

/// Reads such a line, with or without its newline. `None`: it begins otherwise, is damaged or has other
/// members.
pub fn unsealed<T: DeserializeOwned>(start: &[u8], line: &[u8]) -> Option<T> {
    let line = line.strip_suffix(b"\n").map_or(line, |line| line);
    let is_sound = line.starts_with(start) && is_sealed(line);
    is_sound.then(|| part(line)).flatten()
}

/// Appends checksum and newline.
pub fn seal(start: usize, to: &mut Vec<u8>) {
    let crc = crc32c::crc32c(to.get(start..).unwrap_or_default());
    to.extend_from_slice(CRC_START);
    for byte in crc.to_be_bytes() {
        to.extend_from_slice(&[hex_digit(byte >> 4), hex_digit(byte & 0xf)]);
    }
    to.extend_from_slice(CRC_END);
    to.push(b'\n');
}

/// Whether the checksum at the end of a line is that of the bytes before it.
fn is_sealed(line: &[u8]) -> bool {
    let seal_bytes = CRC_START.len() + CRC_DIGITS + CRC_END.len();
    let Some((body, seal)) = line
        .len()
        .checked_sub(seal_bytes)
        .and_then(|at| line.split_at_checked(at))
    else {
        return false;
    };
    let Some(digits) = seal
        .strip_prefix(CRC_START)
        .and_then(|rest| rest.strip_suffix(CRC_END))
    else {
        return false;
    };
    // Compared as text: an upper-case digit is a flipped bit, too.
    let crc = crc32c::crc32c(body).to_be_bytes();
    let pairs = digits.chunks_exact(2).zip(crc);
    pairs.fold(true, |is_same, (pair, byte)| {
        is_same && pair == [hex_digit(byte >> 4), hex_digit(byte & 0xf)]
    })
}

const fn hex_digit(nibble: u8) -> u8 {
    match nibble {
        0..=9 => b'0' + nibble,
        _ => b'a' + (nibble & 0xf) - 10,
    }
}

#[cfg(test)]
mod tests;
