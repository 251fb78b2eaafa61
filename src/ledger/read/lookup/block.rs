//! A lookup file as it lies on the disk: what it says of one segment, and sections of numbers.
//!
//! ```text
//! magic, which ends with the format · bytes of the contents · their CRC-32C · contents (JSON) · section · section · …
//! ```
//!
//! A section is a column of little-endian integers, one for each row, or a table of its own. It is read
//! whole and checked against its CRC-32C in the contents. [`Part::Needles`] alone is read by pages of
//! 4 KiB, each with its sum among [`Part::Fences`].
//!
//! Promise: what is damaged, of another ledger, of another format, or made of other bytes than the segment
//! has now is an [`Unfit`], never an answer.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::ledger::id::EntryId;
use crate::ledger::journal::segments::Segment;
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::kept_key::KeyForm;

const MAGIC_START: &[u8; 7] = b"bursarl";

/// Of another one the file is made anew.
const FORMAT: u8 = b'1';

/// Magic, length, sum.
const PROLOGUE_BYTES: usize = 16;

/// What is read at once of a file's beginning; most contents fit.
const HEAD_BYTES: usize = 4 << 10;

/// Longest contents: four dictionaries of words.
const CONTENTS_BYTES_MAX: usize = 16 << 20;

pub const PAGE_BYTES: usize = 4 << 10;

/// Bits of a needle that name the row; the others are its hash.
const ROW_BITS: u32 = 24;

/// Most rows of a block.
pub const ROWS_MAX: usize = 1 << ROW_BITS;

/// Rows whose ids' beginnings are noted together.
pub const HEAD_ROWS: usize = 256;

/// Words of a dictionary. Those beyond it are [`OTHER`].
pub const WORDS_MAX: usize = 1_000;

/// The code of an absent word; of a state: no line of the row says one.
pub const NONE: u16 = u16::MAX;
/// A word that found no room in the dictionary.
pub const OTHER: u16 = u16::MAX - 1;
/// The word stands in an earlier segment.
pub const ELSEWHERE: u16 = u16::MAX - 2;

/// Why a block is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("there is none")]
    Missing,
    #[error("it is damaged")]
    Damaged,
    #[error("another version of bursar made it")]
    OtherFormat,
    #[error("it belongs to another ledger or segment")]
    Foreign,
    #[error("its segment was changed since it was made")]
    Stale,
}

/// The sections, in their order in the file. A row is an entry with a line in this segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Where the row's last line begins that says its state; rows are in this order. u32.
    Last,
    /// Where the row's first line begins. u32.
    First,
    /// Further lines: row u32, offset u32.
    Further,
    /// When the entry began, Unix seconds. u32.
    Began,
    /// Codes of words. u16.
    App,
    Operation,
    State,
    Model,
    /// Rows whose state a later line may change: row u32, id.
    Unresolved,
    /// Entries that began in an earlier segment: id.
    Carried,
    /// The lowest and highest beginning of an id in each 256 rows: u32, u32.
    Heads,
    /// The first needle of each page, u64, and the page's sum, u32.
    Fences,
    /// Hashes of ids, keys and request ids with their row, sorted. u64.
    Needles,
}

const PARTS: usize = 13;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Section {
    bytes: u64,
    crc: u32,
}

/// What makes a segment this one, with these bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    bytes: u64,
    modified_ns: i64,
    first_seq: u64,
    at_ms: u64,
}

/// What a block says of its segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The numbers of its first and last record.
    pub first_seq: Option<u64>,
    pub last_seq: Option<u64>,
    /// Its lines lie in the order of their numbers. Of one in disorder there is nothing else.
    pub is_in_order: bool,
    pub rows: u32,
    /// When the first and the last of its entries began, Unix seconds.
    pub began_s: Option<(u32, u32)>,
    pub apps: Vec<String>,
    pub operations: Vec<String>,
    pub states: Vec<String>,
    pub models: Vec<String>,
}

/// How far a block of the segment that is being written reaches: its last line there is the same as long as all
/// before it are, because lines are only appended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    pub bytes: u64,
    /// Where the last line begins.
    pub last_line: u64,
    /// CRC-32C of the last line.
    pub crc: u32,
}

#[derive(Serialize, Deserialize)]
struct Contents {
    ledger: String,
    segment: u32,
    stamp: Stamp,
    /// `None`: the segment is sealed, and this is all of it.
    reach: Option<Extent>,
    summary: Summary,
    sections: Vec<Section>,
}

/// An open block.
#[derive(Debug)]
pub struct Block {
    file: File,
    summary: Summary,
    reach: Option<Extent>,
    sections: Vec<Section>,
    /// Where the first section begins.
    base: u64,
}

/// The sections of a block in the making, little-endian.
#[derive(Debug, Default)]
pub struct Sections {
    all: [Vec<u8>; PARTS],
}

/// File name of a segment's block.
pub fn block_name(number: u32) -> String {
    format!("{number:08}.block")
}

/// The needle of an id's end.
pub fn tail_needle(tail: [u8; 4]) -> u64 {
    hash_of(b'i', &tail)
}

/// The needle of an Idempotency-Key.
pub fn key_needle(key: &KeyForm) -> u64 {
    match key {
        KeyForm::Text(text) => hash_of(b't', text.as_bytes()),
        KeyForm::Hash(hash) => hash_of(b'h', &hash.0),
    }
}

/// The needle of the service's `x-request-id`.
pub fn request_needle(request_id: &str) -> u64 {
    hash_of(b'r', request_id.as_bytes())
}

/// The first 8 digits of an id as a number.
pub fn head(id: EntryId) -> u32 {
    u32::try_from(id.0.as_u128() >> 96).unwrap_or(u32::MAX)
}

/// A needle of a kind of text. A collision costs a look at a line.
fn hash_of(kind: u8, text: &[u8]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(text);
    let mut number = [0; 8];
    let hash = hasher.finalize();
    number.copy_from_slice(hash.as_bytes().first_chunk::<8>().unwrap_or(&[0; 8]));
    u64::from_le_bytes(number) >> ROW_BITS
}

/// A needle and its row as one number.
pub fn cell(hash: u64, row: u32) -> u64 {
    (hash << ROW_BITS) | u64::from(row)
}

/// The bytes of a file. `None`: the segment has no header, or the contents do not fit.
pub fn encode(
    segment: &Segment,
    reach: Option<Extent>,
    summary: Summary,
    mut sections: Sections,
) -> Option<Vec<u8>> {
    let header = segment.header.as_ref()?;
    sections.fence();
    let contents = Contents {
        ledger: header.ledger.clone(),
        segment: segment.number,
        stamp: Stamp::of(segment)?,
        reach,
        summary,
        sections: sections
            .all
            .iter()
            .map(|bytes| Section::of(bytes))
            .collect(),
    };
    let contents = serde_json::to_vec(&contents).ok()?;
    let length = u32::try_from(contents.len()).ok()?;
    let mut bytes = Vec::with_capacity(PROLOGUE_BYTES + contents.len());
    bytes.extend_from_slice(MAGIC_START);
    bytes.push(FORMAT);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(&contents).to_le_bytes());
    bytes.extend_from_slice(&contents);
    sections
        .all
        .iter()
        .for_each(|section| bytes.extend_from_slice(section));
    Some(bytes)
}

/// The little-endian numbers of a column.
pub fn column<const N: usize>(bytes: &[u8]) -> impl DoubleEndedIterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}

// === impl Stamp ===

impl Stamp {
    fn of(segment: &Segment) -> Option<Self> {
        let header = segment.header.as_ref()?;
        Some(Self {
            bytes: segment.bytes,
            modified_ns: segment.modified_ns,
            first_seq: header.first_seq,
            at_ms: header.at_ms,
        })
    }

    fn is_begun_as(&self, other: &Self) -> bool {
        (self.first_seq, self.at_ms) == (other.first_seq, other.at_ms)
    }
}

// === impl Section ===

impl Section {
    fn of(bytes: &[u8]) -> Self {
        Self {
            bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            crc: crc32c::crc32c(bytes),
        }
    }
}

// === impl Sections ===

impl Sections {
    pub fn push(&mut self, part: Part, bytes: &[u8]) {
        if let Some(section) = self.all.get_mut(part as usize) {
            section.extend_from_slice(bytes);
        }
    }

    fn fence(&mut self) {
        let [.., fences, needles] = &mut self.all;
        for page in needles.chunks(PAGE_BYTES) {
            fences.extend(page.iter().take(8));
            fences.extend_from_slice(&crc32c::crc32c(page).to_le_bytes());
        }
    }
}

// === impl Block ===

impl Block {
    /// Opens the block of a segment.
    pub fn open(directory: &Directory, segment: &Segment) -> Result<Self, Unfit> {
        let (Some(header), Some(stamp)) = (&segment.header, Stamp::of(segment)) else {
            return Err(Unfit::Missing);
        };
        if segment.is_misplaced() {
            return Err(Unfit::Missing);
        }
        let file = directory
            .open_file(&block_name(segment.number), OFlags::RDONLY)
            .map_err(|_| Unfit::Missing)?;
        let mut head = vec![0; HEAD_BYTES];
        let read = read_up_to(&file, &mut head, 0);
        head.truncate(read);
        match head.strip_prefix(MAGIC_START).and_then(<[u8]>::first) {
            Some(&FORMAT) => {}
            Some(digit) if digit.is_ascii_digit() => return Err(Unfit::OtherFormat),
            _ => return Err(Unfit::Damaged),
        }
        let (length, crc) = number(&head, 8)
            .zip(number(&head, 12))
            .ok_or(Unfit::Damaged)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > CONTENTS_BYTES_MAX {
            return Err(Unfit::Damaged);
        }
        let ends = PROLOGUE_BYTES + length;
        if ends > head.len() {
            head = vec![0; ends];
            let read = read_up_to(&file, &mut head, 0);
            head.truncate(read);
        }
        let text = head.get(PROLOGUE_BYTES..ends).ok_or(Unfit::Damaged)?;
        if crc32c::crc32c(text) != crc {
            return Err(Unfit::Damaged);
        }
        let contents: Contents = serde_json::from_slice(text).map_err(|_| Unfit::OtherFormat)?;
        if contents.ledger != header.ledger || contents.segment != segment.number {
            return Err(Unfit::Foreign);
        }
        let is_same = contents.stamp.is_begun_as(&stamp);
        let reach = contents.reach.map(|reach| reach.bytes);
        if is_same && reach.unwrap_or(contents.stamp.bytes) > segment.bytes {
            // The daemon made it of a segment that has grown since it was listed here; or that was cut.
            return Err(Unfit::Missing);
        }
        if !is_same || (reach.is_none() && contents.stamp != stamp) {
            return Err(Unfit::Stale);
        }
        if contents.sections.len() != PARTS {
            return Err(Unfit::OtherFormat);
        }
        Ok(Self {
            file,
            summary: contents.summary,
            reach: contents.reach,
            sections: contents.sections,
            base: u64::try_from(ends).unwrap_or(u64::MAX),
        })
    }

    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Of a segment that was being written, how far it was. `None`: this stands for all of it.
    pub fn reach(&self) -> Option<Extent> {
        self.reach
    }

    /// A section, whole.
    pub fn section(&self, part: Part) -> Result<Vec<u8>, Unfit> {
        let index = part as usize;
        let section = self.sections.get(index).copied().unwrap_or_default();
        let bytes = self.read(self.start(part), section.bytes)?;
        if crc32c::crc32c(&bytes) == section.crc {
            Ok(bytes)
        } else {
            Err(Unfit::Damaged)
        }
    }

    /// The rows that hold a needle, and perhaps others whose needle has the same hash.
    pub fn rows_with(&self, hashes: &[u64]) -> Result<Vec<u32>, Unfit> {
        let fences = self.section(Part::Fences)?;
        let fences: Vec<(u64, u32)> = column::<12>(&fences).map(fence).collect();
        let all = self.sections.get(Part::Needles as usize);
        let all = all.copied().unwrap_or_default().bytes;
        let mut found = Vec::new();
        for hash in hashes {
            let (low, high) = (cell(*hash, 0), cell(*hash, u32::MAX >> 8));
            let first = fences.partition_point(|(begins, _)| *begins <= low);
            let pages = fences.iter().enumerate().skip(first.saturating_sub(1));
            for (page, (_, crc)) in pages.take_while(|(_, (begins, _))| *begins <= high) {
                let at = u64::try_from(page * PAGE_BYTES).unwrap_or(u64::MAX);
                let page_bytes = u64::try_from(PAGE_BYTES).unwrap_or(u64::MAX);
                let wanted = all.saturating_sub(at).min(page_bytes);
                let bytes = self.read(self.start(Part::Needles).saturating_add(at), wanted)?;
                if crc32c::crc32c(&bytes) != *crc {
                    return Err(Unfit::Damaged);
                }
                let cells = column::<8>(&bytes).map(u64::from_le_bytes);
                let cells = cells.filter(|cell| (low..=high).contains(cell));
                found.extend(cells.filter_map(|cell| u32::try_from(cell - low).ok()));
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// All but the contents.
    #[cfg(test)]
    pub fn section_bytes(&self) -> u64 {
        self.sections.iter().map(|section| section.bytes).sum()
    }

    /// Reads every section.
    pub fn check(&self) -> Result<(), Unfit> {
        const ALL: [Part; PARTS] = [
            Part::Last,
            Part::First,
            Part::Further,
            Part::Began,
            Part::App,
            Part::Operation,
            Part::State,
            Part::Model,
            Part::Unresolved,
            Part::Carried,
            Part::Heads,
            Part::Fences,
            Part::Needles,
        ];
        ALL.iter()
            .try_for_each(|part| self.section(*part).map(|_| ()))
    }

    fn start(&self, part: Part) -> u64 {
        let before = self.sections.iter().take(part as usize);
        let before = before.fold(0_u64, |sum, section| sum.saturating_add(section.bytes));
        self.base.saturating_add(before)
    }

    fn read(&self, from: u64, bytes: u64) -> Result<Vec<u8>, Unfit> {
        let length = self.file.metadata().map_err(|_| Unfit::Damaged)?.len();
        // Before room is made for what a damaged file claims to hold.
        if from.saturating_add(bytes) > length {
            return Err(Unfit::Damaged);
        }
        let wanted = usize::try_from(bytes).map_err(|_| Unfit::Damaged)?;
        let mut held = vec![0; wanted];
        if read_up_to(&self.file, &mut held, from) == wanted {
            Ok(held)
        } else {
            Err(Unfit::Damaged)
        }
    }
}

fn fence(bytes: [u8; 12]) -> (u64, u32) {
    let first = bytes.first_chunk::<8>().copied().unwrap_or_default();
    let crc = bytes.last_chunk::<4>().copied().unwrap_or_default();
    (u64::from_le_bytes(first), u32::from_le_bytes(crc))
}

/// Reads until the room is full or the file, or the disk, ends. A file that cannot be read is as good as
/// cut off: its segment is read instead.
fn read_up_to(file: &File, room: &mut [u8], from: u64) -> usize {
    let mut filled = 0;
    while let Some(rest) = room.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let at = from.saturating_add(u64::try_from(filled).unwrap_or(u64::MAX));
        match file.read_at(rest, at) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    filled
}
