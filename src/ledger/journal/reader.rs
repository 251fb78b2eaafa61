//! The journal as queries read it: from any place, forward or backward, up to where it ended when
//! it was opened. What the daemon appends meanwhile is not there, so that several looks agree.
//!
//! Promise: reads only. Memory is bounded by one line and one block; bytes that are no record are
//! passed over (scans and `ledger verify` report them).

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Take};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::ledger::error::LedgerError;
use crate::ledger::journal::high_water::HighWater;
use crate::ledger::journal::lines::Lines;
use crate::ledger::journal::segments::{Segment, segment_name, segments};
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::record::{LINE_BYTES_MAX, Line, Record};

/// How often a question is asked of a journal that is compacted meanwhile. Once would do: a
/// compaction takes longer than most questions.
const ASKED_MAX: usize = 5;

/// How far a clock may have been set back within a segment before a query by time misses a line.
const CLOCK_SLACK_MS: u64 = 25 * 60 * 60 * 1000;

/// A search for a sequence number ends this near to it.
const NEAR_BYTES: u64 = 64 << 10;

/// Bytes that are read at once when reading backward.
const BLOCK_BYTES: usize = 64 << 10;

/// The journal's segments, as they were when this was opened.
pub struct JournalReader {
    pub journal: Directory,
    pub mark: HighWater,
    pub segments: Vec<Segment>,
}

/// Before a line, or at a segment's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Index into [`JournalReader::segments`].
    pub segment: usize,
    pub offset: u64,
}

/// Reads on from a place, through all segments.
pub struct Forward<'a> {
    reader: &'a JournalReader,
    place: Place,
    lines: Option<Lines<Take<File>>>,
}

/// Reads one file's lines from the last to the first.
pub struct Backward {
    file: File,
    block_bytes: usize,
    /// Where `held` begins in the file.
    start: u64,
    /// Bytes that were read and not handed out; ends behind a newline once `is_cut`.
    held: Vec<u8>,
    /// What stands behind the last newline was cut off.
    is_cut: bool,
    /// The line at the end of `held` is longer than any record: only its newline is kept.
    is_oversized: bool,
}

/// A last record whose newline is missing or is another byte: it counts, as a start would have it.
fn whole(line: &[u8]) -> Option<&[u8]> {
    let shorter = line.split_last().map(|(_, shorter)| shorter);
    let mut texts = [Some(line), shorter].into_iter().flatten();
    texts.find(|text| Line::glance(text).is_some())
}

/// Asks again when the journal was compacted while it was read.
pub fn steadily<T>(mut ask: impl FnMut() -> Result<T, LedgerError>) -> Result<T, LedgerError> {
    for _ in 1..ASKED_MAX {
        match ask() {
            Err(LedgerError::Compacted) => {}
            answer => return answer,
        }
    }
    ask()
}

// === impl JournalReader ===

impl JournalReader {
    pub fn open(state_dir: &Path) -> Result<Self, LedgerError> {
        let journal = Directory::open_to_read(&state_dir.join("journal"))?;
        let mark = HighWater::read(&journal)?;
        let segments = segments(&journal, None)?;
        Ok(Self {
            journal,
            mark,
            segments,
        })
    }

    /// The first segment with a line of an entry begun at or after `since_ms`: a segment ends where
    /// the next one begins.
    pub fn first_since(&self, since_ms: Option<u64>) -> usize {
        let Some(since_ms) = since_ms else {
            return 0;
        };
        // Under another segment's name a file may hold any time.
        if self.segments.iter().any(Segment::is_misplaced) {
            return 0;
        }
        let is_needed = |index: usize| {
            let next = self.segments.get(index + 1);
            let header = next.and_then(|next| next.header.as_ref());
            header.is_none_or(|next| next.at_ms.saturating_add(CLOCK_SLACK_MS) >= since_ms)
        };
        let mut all = 0..self.segments.len();
        all.find(|index| is_needed(*index)).unwrap_or(0)
    }

    /// A place with no record up to `seq` behind it that is not near.
    pub fn place_after(&self, seq: u64) -> Result<Place, LedgerError> {
        let first_seq = |segment: &Segment| segment.header.as_ref().map(|header| header.first_seq);
        let next = seq.saturating_add(1);
        let begins_before = |segment: &Segment| first_seq(segment).is_some_and(|at| at <= next);
        let segment = self.segments.iter().rposition(begins_before);
        let mut place = Place {
            segment: segment.unwrap_or(0),
            offset: 0,
        };
        let Some(found) = self.segments.get(place.segment) else {
            return Ok(place);
        };
        if first_seq(found).is_some_and(|at| at > seq) {
            return Ok(place);
        }
        // Within a segment the numbers rise: halving finds the place.
        let (mut low, mut high) = (0, found.bytes);
        while high.saturating_sub(low) > NEAR_BYTES {
            let offset = low + (high - low) / 2;
            let mut from = self.forward(Place { offset, ..place });
            match from.next_record()? {
                Some((known, _)) if known <= seq => low = offset,
                _ => high = offset,
            }
        }
        place.offset = low;
        Ok(place)
    }

    /// Reads on from a place. One within a line passes over the rest of that line.
    pub fn forward(&self, place: Place) -> Forward<'_> {
        Forward {
            reader: self,
            place,
            lines: None,
        }
    }

    /// Reads a segment backward, from an offset or its end.
    pub fn backward(&self, segment: usize, from: Option<u64>) -> Result<Backward, LedgerError> {
        let (file, bytes) = self.file(segment)?;
        let end = from.map_or(bytes, |from| from.min(bytes));
        Ok(Backward::new(file, end, BLOCK_BYTES))
    }

    fn lines(&self, from: Place) -> Result<Lines<Take<File>>, LedgerError> {
        let (mut file, bytes) = self.file(from.segment)?;
        file.seek(SeekFrom::Start(from.offset))
            .map_err(|error| self.error(from.segment, error))?;
        Ok(Lines::new(file.take(bytes.saturating_sub(from.offset))))
    }

    fn file(&self, segment: usize) -> Result<(File, u64), LedgerError> {
        let known = self.segments.get(segment).ok_or(LedgerError::Compacted)?;
        Ok((known.open(&self.journal)?, known.bytes))
    }

    pub fn error(&self, segment: usize, error: std::io::Error) -> LedgerError {
        let number = self.segments.get(segment).map_or(0, |known| known.number);
        LedgerError::io(&self.journal.path().join(segment_name(number)), error)
    }
}

// === impl Forward ===

impl Forward<'_> {
    /// Behind the line that was read last.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The next record.
    pub fn next_record(&mut self) -> Result<Option<(u64, Record)>, LedgerError> {
        while let Some(line) = self.next_line()? {
            if let Some(Line::Record { seq, record }) = Line::decode(line) {
                return Ok(Some((seq, record)));
            }
        }
        Ok(None)
    }

    /// The next line that is whole, whatever it says.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, LedgerError> {
        let raw = loop {
            let segment = self.place.segment;
            if segment >= self.reader.segments.len() {
                return Ok(None);
            }
            let lines = match &mut self.lines {
                Some(lines) => lines,
                none => none.insert(self.reader.lines(self.place)?),
            };
            let read = lines.next();
            match read.map_err(|error| self.reader.error(segment, error))? {
                Some(raw) => {
                    let end = raw.bytes.saturating_add(u64::from(raw.ended));
                    self.place.offset = self.place.offset.saturating_add(end);
                    if raw.ended || whole(lines.text(&raw)).is_some() {
                        break raw;
                    }
                }
                None => {
                    self.lines = None;
                    self.place.segment += 1;
                    self.place.offset = 0;
                }
            }
        };
        let text = self.lines.as_ref().map(|lines| lines.text(&raw));
        Ok(text.map(|text| {
            if raw.ended {
                text
            } else {
                whole(text).unwrap_or(text)
            }
        }))
    }
}

// === impl Backward ===

impl Backward {
    fn new(file: File, end: u64, block_bytes: usize) -> Self {
        Self {
            file,
            block_bytes,
            start: end,
            held: Vec::new(),
            is_cut: false,
            is_oversized: false,
        }
    }

    /// The record before.
    pub fn next_record(&mut self) -> std::io::Result<Option<(u64, Record)>> {
        while let Some(line) = self.next_line()? {
            if let Some(Line::Record { seq, record }) = Line::decode(&line) {
                return Ok(Some((seq, record)));
            }
        }
        Ok(None)
    }

    /// The line before; empty for one that is longer than any record.
    fn next_line(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        loop {
            // The newline at the end of `held` is the line's own.
            let own = usize::from(self.is_cut);
            let searched = self.held.len().saturating_sub(own);
            let before = self.held.get(..searched).unwrap_or_default();
            let begins = match memchr::memrchr(b'\n', before) {
                Some(newline) => newline + 1,
                None if self.start == 0 => 0,
                None => {
                    self.read_block()?;
                    continue;
                }
            };
            let was_cut = std::mem::replace(&mut self.is_cut, true);
            if was_cut && self.held.is_empty() {
                return Ok(None);
            }
            let mut line = self.held.split_off(begins);
            let is_oversized = std::mem::take(&mut self.is_oversized);
            if !was_cut
                && !is_oversized
                && let Some(line) = whole(&line)
            {
                return Ok(Some(line.to_vec()));
            }
            line.pop();
            if is_oversized || line.len() > LINE_BYTES_MAX {
                line.clear();
            }
            if was_cut {
                return Ok(Some(line));
            }
        }
    }

    fn read_block(&mut self) -> std::io::Result<()> {
        if self.held.len() > LINE_BYTES_MAX {
            self.is_oversized = true;
            self.held.clear();
            if self.is_cut {
                self.held.push(b'\n');
            }
        }
        let wanted = usize::try_from(self.start).unwrap_or(usize::MAX);
        let wanted = wanted.min(self.block_bytes);
        // A file that was cut meanwhile reads as zeros, which are no record.
        let mut block = vec![0; wanted];
        self.start -= u64::try_from(wanted).unwrap_or(self.start);
        let mut filled = 0;
        while let Some(rest) = block.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = self.start + u64::try_from(filled).unwrap_or(0);
            match self.file.read_at(rest, at) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        block.append(&mut self.held);
        self.held = block;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
