//! The journal's segments by their names and first lines; and a listing of them against the files that
//! are there a moment later: compaction may have come in between.
//!
//! Promise: a header of another ledger or a newer format is refused; a file that took a listed one's name is never read in its stead.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::ledger::error::LedgerError;
use crate::ledger::journal::lines::Lines;
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::record::{
    COMPACTED, FORMAT_COMPACTED, LINE_BYTES_MAX, Line, SegmentHeader, StandsFor,
};

/// Enough for a segment's first line.
const HEADER_BUFFER_BYTES: usize = 4 << 10;

/// Bytes that are read at once where a file ends in room.
const ROOM_BUFFER_BYTES: u64 = 64 << 10;

/// Enough for most lines.
const LINE_BUFFER_BYTES: u64 = 4 << 10;

/// A segment file as far as it is known by its name and first line.
#[derive(Clone, Debug)]
pub struct Segment {
    pub number: u32,
    /// Without the room that was made behind its last line.
    pub bytes: u64,
    /// `None` when the first line is damaged or missing.
    pub header: Option<SegmentHeader>,
    /// None is older: the ledger begins here.
    pub is_oldest: bool,
    /// When the file was last written, nanoseconds since the Unix epoch.
    pub modified_ns: i64,
    /// The file itself, whatever its name will mean later.
    inode: u64,
}

/// The files of the journal at some moment: whether they are the same later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalFiles(Vec<FileState>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileState {
    number: u32,
    bytes: u64,
    modified_ns: i64,
    /// Of the compacted segment: up to which record it stands for.
    stands_for_seq: Option<u64>,
}

/// File name of a segment.
pub fn segment_name(number: u32) -> String {
    format!("{number:08}.jsonl")
}

/// Lists the segments, oldest first. A header of another ledger or a newer format is refused.
pub fn segments(journal: &Directory, ledger: Option<&str>) -> Result<Vec<Segment>, LedgerError> {
    let mut found = Vec::new();
    for name in journal.names()? {
        let number = name.strip_suffix(".jsonl").and_then(|n| n.parse().ok());
        let Some(number) = number.filter(|number| segment_name(*number) == name) else {
            continue;
        };
        let file = open_listed(journal, &name)?;
        let path = journal.path().join(&name);
        let metadata = file
            .metadata()
            .map_err(|error| LedgerError::io(&path, error))?;
        let bytes = end_of_lines(&file).map_err(|error| LedgerError::io(&path, error))?;
        let mut lines = Lines::with_buffer(HEADER_BUFFER_BYTES, file);
        let first = lines
            .next()
            .map_err(|error| LedgerError::io(&path, error))?;
        let header = match first.and_then(|raw| Line::decode(lines.text(&raw))) {
            Some(Line::Header(header)) => Some(header),
            _ => None,
        };
        if let Some(header) = &header {
            let why = if header.format > FORMAT_COMPACTED {
                Some(format!(
                    "its format is {}, and this bursar reads up to {FORMAT_COMPACTED}; install a newer one",
                    header.format
                ))
            } else if ledger.is_some_and(|ledger| ledger != header.ledger) {
                Some(format!(
                    "it belongs to ledger {}; move it out of this state directory",
                    header.ledger
                ))
            } else {
                None
            };
            if let Some(why) = why {
                return Err(LedgerError::ForeignFormat { path, why });
            }
        }
        found.push(Segment {
            is_oldest: found.is_empty(),
            number,
            bytes,
            header,
            modified_ns: metadata
                .mtime()
                .saturating_mul(1_000_000_000)
                .saturating_add(metadata.mtime_nsec()),
            inode: metadata.ino(),
        });
    }
    // What a compacted segment stands for may still lie there, when its removal was cut off.
    if let Some(stands_for) = found.first().and_then(Segment::stands_for) {
        found.retain(|segment| segment.number == COMPACTED || segment.number > stands_for.segment);
    }
    Ok(found)
}

// === impl JournalFiles ===

impl JournalFiles {
    pub fn of(segments: &[Segment]) -> Self {
        let state = |segment: &Segment| FileState {
            number: segment.number,
            bytes: segment.bytes,
            modified_ns: segment.modified_ns,
            stands_for_seq: segment.stands_for().map(|stands_for| stands_for.seq),
        };
        Self(segments.iter().map(state).collect())
    }

    /// Nothing but appending and compacting has happened to these files. Segments behind them are not
    /// looked at.
    pub fn still_hold(&self, now: &[Segment]) -> bool {
        let stands_for = now.first().and_then(Segment::stands_for);
        let (last, sealed) = match self.0.split_last() {
            Some((last, sealed)) => (Some(last), sealed),
            None => (None, self.0.as_slice()),
        };
        let now = Self::of(now);
        let find = |number: u32| now.0.iter().find(|state| state.number == number);
        let is_compacted = |state: &FileState| match stands_for {
            Some(up_to) if state.number == COMPACTED => Some(up_to.seq) > state.stands_for_seq,
            Some(up_to) => state.number <= up_to.segment,
            None => false,
        };
        let is_same = |state: &FileState| is_compacted(state) || find(state.number) == Some(state);
        let has_grown = |state: &FileState| {
            is_compacted(state)
                || find(state.number).is_some_and(|found| found.bytes >= state.bytes)
        };
        sealed.iter().all(is_same) && last.is_none_or(has_grown)
    }
}

// === impl Segment ===

impl Segment {
    /// The first number there has to be. A ledger begins with 1; a compacted segment stands for what
    /// came before its lines.
    pub(super) fn begins_at(&self) -> Option<u64> {
        if self.is_oldest && self.stands_for().is_none() {
            return Some(1);
        }
        self.header.as_ref().map(|header| header.first_seq)
    }

    /// The file has another segment's name.
    pub fn is_misplaced(&self) -> bool {
        let header = self.header.as_ref();
        header.is_some_and(|header| header.segment != self.number)
    }

    pub fn stands_for(&self) -> Option<StandsFor> {
        let header = self.header.as_ref()?;
        header.stands_for.filter(|_| self.number == COMPACTED)
    }

    /// Opens the file that was listed, and no other of that name.
    pub fn open(&self, journal: &Directory) -> Result<File, LedgerError> {
        let name = segment_name(self.number);
        let file = open_listed(journal, &name)?;
        let metadata = file.metadata();
        let metadata =
            metadata.map_err(|error| LedgerError::io(&journal.path().join(&name), error))?;
        if metadata.ino() == self.inode {
            Ok(file)
        } else {
            Err(LedgerError::Compacted)
        }
    }
}

/// The journal's first number, when records are missing before it. The numbers begin with 1, and a
/// compacted segment stands for those before it.
pub fn begins_late(all: &[Segment]) -> Option<u64> {
    let first = all.first()?;
    let begins_at = first.header.as_ref()?.first_seq;
    (begins_at > 1 && first.stands_for().is_none()).then_some(begins_at)
}

/// Where the lines of a file end. Behind them room may have been made: newlines. A last line that is torn, or being
/// written, ends without its own.
fn end_of_lines(file: &File) -> std::io::Result<u64> {
    let bytes = file.metadata()?.len();
    match without_room(file, bytes) {
        // An orderly stop came in between, and left none.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(file.metadata()?.len()),
        found => found,
    }
}

fn without_room(file: &File, bytes: u64) -> std::io::Result<u64> {
    let before = |end: u64, length: u64| {
        let from = end.saturating_sub(length);
        let mut held = vec![0; usize::try_from(end - from).unwrap_or(0)];
        file.read_exact_at(&mut held, from).map(|()| (from, held))
    };
    if before(bytes, 2)?.1 != b"\n\n" {
        return Ok(bytes);
    }
    let mut end = bytes;
    loop {
        let (from, held) = before(end, ROOM_BUFFER_BYTES)?;
        let last = held.iter().rposition(|byte| *byte != b'\n');
        let lines = last.map_or(0, |last| last + 1);
        end = from + u64::try_from(lines).unwrap_or(0);
        if lines > 0 || end == 0 {
            break;
        }
    }
    let line_bytes_max = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
    for length in [LINE_BUFFER_BYTES, line_bytes_max] {
        let (_, held) = before(end, length)?;
        let begins = memchr::memrchr(b'\n', &held).map_or(0, |newline| newline + 1);
        if Line::glance(held.get(begins..).unwrap_or_default()).is_some() {
            return Ok(end + 1);
        }
    }
    Ok(end)
}

/// Opens a file that a listing named. One that is gone meanwhile was compacted.
pub(super) fn open_listed(journal: &Directory, name: &str) -> Result<File, LedgerError> {
    match journal.open_file(name, OFlags::RDONLY) {
        Err(error) if error.is_missing() => Err(LedgerError::Compacted),
        opened => opened,
    }
}
