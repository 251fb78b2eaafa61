//! Lookup files: for each sealed segment one small file that says where its entries lie, so that `explain` and
//! `receipts` read a few lines instead of the journal.
//!
//! A block (`lookup/NNNNNNNN.block`) is made by the daemon in the background when a segment is sealed; of the
//! segment that is being written one is made of its beginning, each time it has grown by some MiB. It holds
//! hashes of ids, keys and request ids, and columns for the filters of `receipts`. It holds what the segment's
//! own lines say: what a later line makes of an entry stands in the block of the later line, so the block of a sealed
//! segment stays as it is.
//!
//! Promise: the journal decides. Every line that is shown was read from the journal and looked at; a block that
//! is missing, damaged, of another format or of other bytes is not asked, and its segment is read as one without
//! a block. The answer is the same.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::ledger::error::LedgerError;
use crate::ledger::id::EntryId;
use crate::ledger::journal::reader::{JournalReader, steadily};
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::read::filter::Filter;
use crate::protocol::Operation;

mod block;
mod build;

use block::{Block, ELSEWHERE, HEAD_ROWS, NONE, OTHER, Part, WORDS_MAX, block_name, column};
pub use block::{Summary, Unfit, key_needle, request_needle, tail_needle};
pub use build::Growing;

/// Name of the directory below the state directory.
const DIRECTORY: &str = "lookup";

/// Bytes of the segment that is being written that may be read for an answer: some thousand entries.
pub const UNSEALED_BYTES: u64 = 6 << 20;

/// The blocks that this process found unfit, so that each is reported once.
static REPORTED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Most of them.
const REPORTED_MAX: usize = 10_000;

/// Why a question has to be asked in another way.
#[derive(Debug)]
pub enum Detour {
    Failed(LedgerError),
    /// The block of this segment, an index, is not to be believed.
    Unfit(usize, Unfit),
    /// Lines do not lie in the order of their numbers.
    Disorder,
}

/// The blocks beside a journal, as one question asks them.
#[derive(Debug)]
pub struct Lookups {
    /// `None`: there are none.
    directory: Option<Directory>,
    /// Segments whose block is not asked any more.
    distrusted: RefCell<BTreeSet<usize>>,
}

/// Where the lines of some rows begin.
#[derive(Debug)]
pub struct Offsets {
    last: Vec<u8>,
    first: Vec<u8>,
    further: HashMap<u32, Vec<u32>>,
}

/// How blocks are looked at.
#[derive(Clone, Copy, Debug)]
pub struct Refresh {
    /// Blocks are read whole; else only their contents are.
    pub is_thorough: bool,
    /// All are made.
    pub is_anew: bool,
    /// Bytes of the segment that is being written that no block stands for.
    pub unsealed_bytes: u64,
}

/// What a look at the blocks found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    pub made: u64,
    /// Files of segments that are gone.
    pub removed: u64,
}

/// A block of one segment in a question.
#[derive(Debug)]
pub struct SegmentLookup {
    block: Block,
    segment: usize,
}

/// Makes the blocks that are missing or unfit, and removes those of segments that are gone. A block of the last
/// segment, which is being written, stands for its beginning and is made anew when that has grown; `growing` is what
/// was taken of it before.
///
/// Memory: one segment's entries, and those of the last one in `growing`, which is empty after a look at a segment
/// that was just begun. A segment that was sealed meanwhile goes on from `growing`, too.
pub fn refresh(
    state_dir: &Path,
    wanted: &Refresh,
    growing: &mut Option<Growing>,
    cancel: &AtomicBool,
) -> Result<Refreshed, LedgerError> {
    let reader = steadily(|| JournalReader::open(state_dir))?;
    let directory = Directory::open(state_dir)?.child(DIRECTORY)?;
    let mut refreshed = Refreshed::default();
    let segments = reader.segments.iter();
    let kept: BTreeSet<String> = segments.map(|segment| block_name(segment.number)).collect();
    for name in directory.names()? {
        if !kept.contains(&name) {
            directory.remove(&name)?;
            refreshed.removed += 1;
        }
    }
    for (index, segment) in reader.segments.iter().enumerate() {
        let is_sealed = index + 1 < reader.segments.len();
        // A look at a file may read all of it.
        if cancel.load(Ordering::Relaxed) {
            return Ok(refreshed);
        }
        if wanted.is_made(&reader, &directory, index, is_sealed) {
            continue;
        }
        // A segment that was compacted meanwhile is looked at again when that is done.
        let built = match build::build(&reader, index, is_sealed, growing, cancel) {
            Err(LedgerError::Compacted) => continue,
            built => built?,
        };
        let Some(bytes) = built else { continue };
        let name = block_name(segment.number);
        directory.replace(&name, &bytes).inspect_err(|_| {
            // On a full disk the journal needs its room.
            if let Err(error) = directory.remove(&format!("{name}.next")) {
                tracing::warn!(%error, "what was begun of a lookup file could not be removed");
            }
        })?;
        refreshed.made += 1;
    }
    let last = reader.segments.last().map(|last| last.number);
    growing.take_if(|taken| Some(taken.segment()) != last);
    Ok(refreshed)
}

/// Opens the block of a segment, an index into the reader's.
fn open(directory: &Directory, reader: &JournalReader, segment: usize) -> Result<Block, Unfit> {
    let known = reader.segments.get(segment).ok_or(Unfit::Missing)?;
    let block = Block::open(directory, known)?;
    if let Some(reach) = block.reach() {
        let sum = reader.sum_of(segment, reach.last_line, reach.bytes);
        if sum.map_err(|_| Unfit::Missing)? != reach.crc {
            return Err(Unfit::Stale);
        }
    }
    Ok(block)
}

/// What is wrong with the blocks; each is read whole. Missing ones are not wrong.
pub fn check(reader: &JournalReader) -> Vec<(u32, Unfit)> {
    let lookups = Lookups::beside(reader);
    let Some(directory) = &lookups.directory else {
        return Vec::new();
    };
    let segments = reader.segments.iter().enumerate();
    segments
        .filter_map(|(index, segment)| {
            let checked = open(directory, reader, index).and_then(|block| block.check());
            let why = checked.err().filter(|why| *why != Unfit::Missing)?;
            Some((segment.number, why))
        })
        .collect()
}

/// Logs an unfit block, once in this process.
fn report(directory: &Directory, number: u32, why: Unfit) {
    let path = directory.path().join(block_name(number));
    let mut reported = REPORTED.lock();
    if reported.len() < REPORTED_MAX && reported.insert(path.clone()) {
        tracing::warn!(
            file = %path.display(),
            %why,
            "a lookup file cannot be used; its segment is read instead, and the daemon makes the file anew"
        );
    }
}

fn at(bytes: &[u8], row: u32) -> Option<u32> {
    let from = usize::try_from(row).ok()?.checked_mul(4)?;
    let bytes = bytes.get(from..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}

// === impl Refresh ===

impl Default for Refresh {
    fn default() -> Self {
        Self {
            is_thorough: false,
            is_anew: false,
            unsealed_bytes: UNSEALED_BYTES,
        }
    }
}

impl Refresh {
    /// Whether a segment's block is there and fit, or needs not be.
    fn is_made(
        &self,
        reader: &JournalReader,
        directory: &Directory,
        segment: usize,
        is_sealed: bool,
    ) -> bool {
        let Some(known) = reader.segments.get(segment) else {
            return true;
        };
        let grown_from = |bytes: u64| known.bytes < bytes.saturating_add(self.unsealed_bytes);
        let is_read = |block: &Block| !self.is_thorough || block.check().is_ok();
        match open(directory, reader, segment) {
            _ if self.is_anew && is_sealed => false,
            Ok(block) if is_read(&block) => match block.reach() {
                None => true,
                Some(reach) => !is_sealed && grown_from(reach.bytes),
            },
            Err(Unfit::Missing) => !is_sealed && grown_from(0),
            unfit => {
                report(
                    directory,
                    known.number,
                    unfit.err().unwrap_or(Unfit::Damaged),
                );
                false
            }
        }
    }
}

// === impl Detour ===

impl From<LedgerError> for Detour {
    fn from(error: LedgerError) -> Self {
        Self::Failed(error)
    }
}

// === impl Lookups ===

impl Lookups {
    /// Those that lie beside a journal.
    pub fn beside(reader: &JournalReader) -> Self {
        let state_dir = reader.journal.path().parent();
        let directory = state_dir
            .and_then(|state_dir| Directory::open_to_read(&state_dir.join(DIRECTORY)).ok());
        Self {
            directory,
            distrusted: RefCell::default(),
        }
    }

    /// None: for a journal that is read in another order than it lies in.
    pub fn none() -> Self {
        Self {
            directory: None,
            distrusted: RefCell::default(),
        }
    }

    /// The block of a segment, an index into the reader's. `None`: the segment is to be read.
    pub fn of(&self, reader: &JournalReader, segment: usize) -> Option<SegmentLookup> {
        let directory = self.directory.as_ref()?;
        if self.distrusted.borrow().contains(&segment) {
            return None;
        }
        match open(directory, reader, segment) {
            Ok(block) => Some(SegmentLookup { block, segment }),
            Err(Unfit::Missing) => None,
            Err(why) => {
                self.distrust(reader, segment, why);
                None
            }
        }
    }

    /// From now on the segment is read.
    pub fn distrust(&self, reader: &JournalReader, segment: usize, why: Unfit) {
        self.distrusted.borrow_mut().insert(segment);
        if let (Some(directory), Some(known)) = (&self.directory, reader.segments.get(segment)) {
            report(directory, known.number, why);
        }
    }
}

// === impl SegmentLookup ===

impl SegmentLookup {
    pub fn summary(&self) -> &Summary {
        self.block.summary()
    }

    /// Where it ends within its segment. `None`: it stands for all of it.
    pub fn ends_at(&self) -> Option<u64> {
        self.block.reach().map(|reach| reach.bytes)
    }

    /// Lines do not lie where the block says.
    pub fn contradicted(&self) -> Detour {
        Detour::Unfit(self.segment, Unfit::Stale)
    }

    /// The rows with one of these needles, and perhaps a few others.
    pub fn rows_with(&self, needles: &[u64]) -> Result<Vec<u32>, Detour> {
        let rows = self.block.rows_with(needles);
        rows.map_err(|why| self.unfit(why))
    }

    /// The rows with an id that begins with these 8 digits, and others beside them.
    pub fn rows_beginning(&self, head: u32) -> Result<Vec<u32>, Detour> {
        let heads = self.section(Part::Heads)?;
        let rows = self.summary().rows;
        let chunk = u32::try_from(HEAD_ROWS).unwrap_or(u32::MAX);
        let mut found = Vec::new();
        let mut from: u32 = 0;
        for bounds in heads.chunks_exact(8) {
            let (low, high) = (at(bounds, 0), at(bounds, 1));
            if low.is_some_and(|low| low <= head) && high.is_some_and(|high| head <= high) {
                found.extend(from..from.saturating_add(chunk).min(rows));
            }
            from = from.saturating_add(chunk);
        }
        Ok(found)
    }

    /// The rows that a filter may admit, rising: all that it admits, and those of which the block does not
    /// say.
    pub fn matching(&self, filter: &Filter) -> Result<Vec<u32>, Detour> {
        let summary = self.summary();
        let (since_s, until_s) = (
            filter.since_ms.map(|since| since / 1_000),
            filter.until_ms.map(|until| until / 1_000),
        );
        let Some((first, last)) = summary.began_s else {
            return Ok(Vec::new());
        };
        let is_late = |since: u64| u64::from(last) < since;
        let is_early = |until: u64| u64::from(first) > until;
        if since_s.is_some_and(is_late) || until_s.is_some_and(is_early) {
            return Ok(Vec::new());
        }
        let states: Vec<bool> = summary
            .states
            .iter()
            .map(|word| admits_word(filter, word))
            .collect();
        let is = |wanted: Option<&str>, words: &[String]| -> Option<Vec<bool>> {
            let wanted = wanted?;
            Some(words.iter().map(|word| word == wanted).collect())
        };
        let operation = filter.operation.map(Operation::as_str);
        let wanted = [
            (Part::State, Some(states)),
            (Part::App, is(filter.app.as_deref(), &summary.apps)),
            (Part::Operation, is(operation, &summary.operations)),
            (Part::Model, is(filter.model.as_deref(), &summary.models)),
        ];
        // Not of models: the intent that says one may lie in an earlier segment.
        let is_ruled_out = |(part, allowed): &(Part, Option<Vec<bool>>)| {
            let is_absent =
                |allowed: &Vec<bool>| allowed.len() < WORDS_MAX && !allowed.contains(&true);
            *part != Part::Model && allowed.as_ref().is_some_and(is_absent)
        };
        if wanted.iter().any(is_ruled_out) {
            return Ok(Vec::new());
        }
        let mut rows: Vec<u32> = match filter.id {
            Some(id) => self.rows_with(&[tail_needle(id.tail())])?,
            None => (0..summary.rows).collect(),
        };
        for (part, allowed) in wanted {
            if rows.is_empty() {
                return Ok(rows);
            }
            if let Some(allowed) = allowed {
                let codes = self.section(part)?;
                let codes = codes.as_chunks::<2>().0;
                let code = |row: &u32| codes.get(usize::try_from(*row).ok()?);
                rows.retain(|row| {
                    code(row).is_some_and(|code| match u16::from_le_bytes(*code) {
                        NONE => false,
                        OTHER | ELSEWHERE => true,
                        code => allowed.get(usize::from(code)) == Some(&true),
                    })
                });
            }
        }
        if !rows.is_empty() && (since_s.is_some() || until_s.is_some()) {
            let began = self.section(Part::Began)?;
            rows.retain(|row| {
                at(&began, *row).map(u64::from).is_some_and(|began| {
                    since_s.is_none_or(|since| began >= since)
                        && until_s.is_none_or(|until| began <= until)
                })
            });
        }
        Ok(rows)
    }

    /// The ids of rows whose state a later line may change.
    pub fn unresolved(&self) -> Result<HashMap<u32, EntryId>, Detour> {
        let bytes = self.section(Part::Unresolved)?;
        let row = |cell: [u8; 20]| {
            let row = at(&cell, 0)?;
            let id = cell.last_chunk::<16>()?;
            Some((row, EntryId(uuid::Uuid::from_bytes(*id))))
        };
        Ok(column::<20>(&bytes).filter_map(row).collect())
    }

    /// Entries with a line here that began in an earlier segment.
    pub fn carried(&self) -> Result<Vec<EntryId>, Detour> {
        let bytes = self.section(Part::Carried)?;
        let ids = column::<16>(&bytes);
        Ok(ids.map(|id| EntryId(uuid::Uuid::from_bytes(id))).collect())
    }

    pub fn offsets(&self) -> Result<Offsets, Detour> {
        let mut further: HashMap<u32, Vec<u32>> = HashMap::new();
        for cell in self.section(Part::Further)?.chunks_exact(8) {
            if let (Some(row), Some(offset)) = (at(cell, 0), at(cell, 1)) {
                further.entry(row).or_default().push(offset);
            }
        }
        Ok(Offsets {
            last: self.section(Part::Last)?,
            first: self.section(Part::First)?,
            further,
        })
    }

    fn section(&self, part: Part) -> Result<Vec<u8>, Detour> {
        self.block.section(part).map_err(|why| self.unfit(why))
    }

    fn unfit(&self, why: Unfit) -> Detour {
        Detour::Unfit(self.segment, why)
    }
}

/// Whether a filter admits entries in the state that a block has this word for.
fn admits_word(filter: &Filter, word: &str) -> bool {
    let mut states = build::all_states();
    states
        .find(|(known, ..)| known == word)
        .is_none_or(|(_, state, is_malformed)| filter.admits_state(state, is_malformed))
}

// === impl Offsets ===

impl Offsets {
    /// The line that says the row's state.
    pub fn last(&self, row: u32) -> Option<u32> {
        at(&self.last, row)
    }

    /// All lines of a row, rising.
    pub fn all(&self, row: u32) -> Vec<u32> {
        let ends = [at(&self.first, row), at(&self.last, row)];
        let further = self.further.get(&row).into_iter().flatten().copied();
        let mut all: Vec<u32> = ends.into_iter().flatten().chain(further).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests;
