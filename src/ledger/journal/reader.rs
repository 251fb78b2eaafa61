//! The journal as queries read it: from any place, forward or backward, up to where it ended when
//! it was opened. What the daemon appends meanwhile is not there, so that several looks agree.
//!
//! Promise: reads only. Memory is bounded by one line and one block; bytes that are no record are
//! passed over (scans and `ledger verify` report them).

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Take};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use memchr::memmem::Finder;

use crate::ledger::error::LedgerError;
use crate::ledger::journal::high_water::HighWater;
use crate::ledger::journal::lines::{Lines, whole};
use crate::ledger::journal::scan::survey;
use crate::ledger::journal::segments::{Segment, segment_name, segments};
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::record::{Glance, LINE_BYTES_MAX, Line, Record};

/// How often a question is asked of a journal that is compacted meanwhile. Once would do: a
/// compaction takes longer than most questions.
const ASKED_MAX: usize = 5;

/// How far a clock may have been set back within a segment before a query by time misses a line.
const CLOCK_SLACK_MS: u64 = 25 * 60 * 60 * 1000;

/// A search for a sequence number ends this near to it.
const NEAR_BYTES: u64 = 64 << 10;

/// Bytes that are read at once when reading backward.
const BLOCK_BYTES: usize = 64 << 10;

/// Bytes that are searched at once.
const SEARCH_BYTES: u64 = 1 << 20;

/// Bytes that are read at once for one line. Most lines are shorter.
const LINE_READ_BYTES: usize = 2 << 10;

/// The journal's segments, as they were when this was opened.
pub struct JournalReader {
    pub journal: Directory,
    pub mark: HighWater,
    pub segments: Vec<Segment>,
    /// What is read, in this order: each segment as it lies, or the stretches of
    /// [`JournalReader::in_order`].
    stretches: Vec<Stretch>,
    is_in_order: bool,
}

/// Lines of one segment that follow each other.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// Index into [`JournalReader::segments`].
    segment: usize,
    offset: u64,
    end: u64,
    first_seq: Option<u64>,
}

/// Before a line, or at the end of what is read at once: a segment, or a stretch of one in a journal that
/// is read in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinePosition {
    pub segment: usize,
    pub offset: u64,
}

/// Single lines of a segment.
pub struct LinesAt {
    file: File,
    bytes: u64,
}

/// Reads on from a place, through all segments.
pub struct ForwardReader<'a> {
    reader: &'a JournalReader,
    place: LinePosition,
    /// Where the line that was read last begins.
    began: LinePosition,
    lines: Option<Lines<Take<File>>>,
}

/// Reads one file's lines from the last to the first.
pub struct Backward {
    file: File,
    block_bytes: usize,
    /// Nothing before this is read.
    floor: u64,
    /// Where `held` begins in the file.
    start: u64,
    /// Bytes that were read and not handed out; ends behind a newline once `is_cut`.
    held: Vec<u8>,
    /// What stands behind the last newline was cut off.
    is_cut: bool,
    /// The line at the end of `held` is longer than any record: only its newline is kept.
    is_oversized: bool,
}

/// The lines among these that hold one of the texts, in order, each once.
fn each_holding(lines: &[u8], finders: &[Finder<'_>], visit: &mut dyn FnMut(&[u8])) {
    let next = |finder: &Finder<'_>, from: usize| {
        let found = lines.get(from..).and_then(|rest| finder.find(rest));
        found.map_or(usize::MAX, |found| from + found)
    };
    let mut hits: Vec<usize> = finders.iter().map(|finder| next(finder, 0)).collect();
    while let Some(hit) = hits.iter().min().copied().filter(|hit| *hit < lines.len()) {
        let (before, behind) = lines.split_at(hit);
        let begins = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        let ends = memchr::memchr(b'\n', behind).map_or(lines.len(), |newline| hit + newline);
        if let Some(line) = lines.get(begins..ends)
            && line.len() <= LINE_BYTES_MAX
        {
            visit(line);
        }
        for (known, finder) in hits.iter_mut().zip(finders) {
            if *known < ends {
                *known = next(finder, ends);
            }
        }
    }
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
        let stretches = segments.iter().enumerate();
        let stretches = stretches.map(|(segment, known)| Stretch {
            segment,
            offset: 0,
            end: known.bytes,
            first_seq: known.header.as_ref().map(|header| header.first_seq),
        });
        Ok(Self {
            stretches: stretches.collect(),
            journal,
            mark,
            segments,
            is_in_order: false,
        })
    }

    /// The same journal, read in the order of the numbers, each once: for one whose lines lie in another
    /// order or are there twice. Reads every line once for its checksum.
    pub fn in_order(mut self) -> Result<Self, LedgerError> {
        let (runs, _) = survey(&AtomicBool::new(false), &self.journal, &self.segments)?;
        let mut stretches: Vec<Stretch> = Vec::new();
        let mut next_seq = 0;
        for run in runs {
            if run.last_seq < next_seq {
                continue;
            }
            let passed_over = next_seq.saturating_sub(run.first_seq);
            stretches.push(Stretch {
                segment: run.segment,
                offset: self.behind_lines(run.segment, run.offset, passed_over)?,
                end: run.end,
                first_seq: Some(run.first_seq.max(next_seq)),
            });
            next_seq = run.last_seq.saturating_add(1);
        }
        self.stretches = stretches;
        self.is_in_order = true;
        Ok(self)
    }

    /// Whether the lines at a [`LinePosition`] lie in the order of their numbers. Reads each for its checksum.
    pub fn lies_in_order(&self, place: usize) -> Result<bool, LedgerError> {
        if self.is_in_order {
            return Ok(true);
        }
        let first = |place: usize| self.stretches.get(place).and_then(|known| known.first_seq);
        let next = first(place.saturating_add(1)).unwrap_or(u64::MAX);
        let mut floor = first(place).unwrap_or(0);
        let mut forward = self.forward(LinePosition {
            segment: place,
            offset: 0,
        });
        while let Some(line) = forward.next_line()? {
            let glance = Line::glance(line);
            if forward.began().segment != place {
                return Ok(true);
            }
            if let Some(Glance::Record { seq }) = glance {
                if seq < floor || seq >= next {
                    return Ok(false);
                }
                floor = seq.saturating_add(1);
            }
        }
        Ok(true)
    }

    /// What can be read, from the first to the last.
    pub fn stretches(&self) -> usize {
        self.stretches.len()
    }

    /// The offset behind so many lines.
    fn behind_lines(
        &self,
        segment: usize,
        mut offset: u64,
        count: u64,
    ) -> Result<u64, LedgerError> {
        if count == 0 {
            return Ok(offset);
        }
        let (mut file, bytes) = self.file(segment)?;
        let failed = |error| self.file_error(segment, error);
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        let mut lines = Lines::new(file.take(bytes.saturating_sub(offset)));
        for _ in 0..count {
            let raw = lines.next().map_err(failed)?;
            offset += raw.map_or(0, |raw| raw.bytes + u64::from(raw.ended));
        }
        Ok(offset)
    }

    /// The first segment with a line of an entry begun at or after `since_ms`: a segment ends where
    /// the next one begins.
    pub fn first_since(&self, since_ms: Option<u64>) -> usize {
        let Some(since_ms) = since_ms else {
            return 0;
        };
        // Under another segment's name a file may hold any time.
        if self.is_in_order || self.segments.iter().any(Segment::is_misplaced) {
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
    pub fn place_after(&self, seq: u64) -> Result<LinePosition, LedgerError> {
        let next = seq.saturating_add(1);
        let begins_before = |stretch: &Stretch| stretch.first_seq.is_some_and(|at| at <= next);
        let segment = self.stretches.iter().rposition(begins_before);
        let mut place = LinePosition {
            segment: segment.unwrap_or(0),
            offset: 0,
        };
        let Some(found) = self.stretches.get(place.segment) else {
            return Ok(place);
        };
        if found.first_seq.is_some_and(|at| at > seq) {
            return Ok(place);
        }
        // Within a segment the numbers rise: halving finds the place.
        let (mut low, mut high) = (found.offset, found.end);
        while high.saturating_sub(low) > NEAR_BYTES {
            let offset = low + (high - low) / 2;
            let mut from = self.forward(LinePosition { offset, ..place });
            match from.next_record()? {
                Some((known, _)) if known <= seq => low = offset,
                _ => high = offset,
            }
        }
        place.offset = low;
        Ok(place)
    }

    /// Reads on from a place. One within a line passes over the rest of that line.
    pub fn forward(&self, place: LinePosition) -> ForwardReader<'_> {
        ForwardReader {
            reader: self,
            place,
            began: place,
            lines: None,
        }
    }

    /// Reads a segment backward, from an offset or its end, back to one at which a line begins.
    pub fn backward(
        &self,
        segment: usize,
        floor: u64,
        from: Option<u64>,
    ) -> Result<Backward, LedgerError> {
        let stretch = self.stretch(segment)?;
        let (file, _) = self.file(stretch.segment)?;
        let end = from.map_or(stretch.end, |from| from.min(stretch.end));
        let floor = stretch.offset.max(floor);
        Ok(Backward::new(file, floor, end, BLOCK_BYTES))
    }

    /// Single lines of a segment, an index into [`Self::segments`].
    pub fn lines_at(&self, segment: usize) -> Result<LinesAt, LedgerError> {
        let (file, bytes) = self.file(segment)?;
        Ok(LinesAt { file, bytes })
    }

    /// CRC-32C of some bytes of a segment, an index into [`Self::segments`]: of one line at most.
    pub fn sum_of(&self, segment: usize, from: u64, to: u64) -> Result<u32, LedgerError> {
        let (mut file, bytes) = self.file(segment)?;
        let failed = |error| self.file_error(segment, error);
        let line_bytes_max = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        let length = to.min(bytes).saturating_sub(from).min(line_bytes_max);
        let mut held = Vec::new();
        file.seek(SeekFrom::Start(from)).map_err(failed)?;
        file.take(length).read_to_end(&mut held).map_err(failed)?;
        Ok(crc32c::crc32c(&held))
    }

    /// Hands out the whole lines of a segment, an index into [`Self::segments`], from an offset on, that hold one of the texts,
    /// as `grep` would: blocks are searched, not lines. No text holds a newline.
    pub fn holding(
        &self,
        segment: usize,
        from: u64,
        finders: &[Finder<'_>],
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), LedgerError> {
        let (mut file, bytes) = self.file(segment)?;
        file.seek(SeekFrom::Start(from))
            .map_err(|error| self.file_error(segment, error))?;
        let mut rest = file.take(bytes.saturating_sub(from));
        let mut held: Vec<u8> = Vec::new();
        let mut is_oversized = false;
        loop {
            let read = Read::by_ref(&mut rest)
                .take(SEARCH_BYTES)
                .read_to_end(&mut held)
                .map_err(|error| self.file_error(segment, error))?;
            let is_end = u64::try_from(read).unwrap_or(u64::MAX) < SEARCH_BYTES;
            if is_oversized && let Some(newline) = memchr::memchr(b'\n', &held) {
                held.drain(..=newline);
                is_oversized = false;
            }
            let whole_lines = memchr::memrchr(b'\n', &held).map_or(0, |newline| newline + 1);
            let (lines, last) = held.split_at(whole_lines);
            each_holding(lines, finders, visit);
            if is_end {
                if let Some(line) = whole(last).filter(|_| !is_oversized) {
                    each_holding(line, finders, visit);
                }
                return Ok(());
            }
            held.drain(..whole_lines);
            if held.len() > LINE_BYTES_MAX {
                is_oversized = true;
                held.clear();
            }
        }
    }

    fn lines(&self, from: LinePosition) -> Result<Lines<Take<File>>, LedgerError> {
        let stretch = self.stretch(from.segment)?;
        let (mut file, _) = self.file(stretch.segment)?;
        file.seek(SeekFrom::Start(from.offset))
            .map_err(|error| self.error(from.segment, error))?;
        Ok(Lines::new(
            file.take(stretch.end.saturating_sub(from.offset)),
        ))
    }

    fn stretch(&self, index: usize) -> Result<Stretch, LedgerError> {
        let stretch = self.stretches.get(index).copied();
        stretch.ok_or(LedgerError::Compacted)
    }

    fn file(&self, segment: usize) -> Result<(File, u64), LedgerError> {
        let known = self.segments.get(segment).ok_or(LedgerError::Compacted)?;
        Ok((known.open(&self.journal)?, known.bytes))
    }

    /// An error of what is read at a [`LinePosition`].
    pub fn error(&self, place: usize, error: std::io::Error) -> LedgerError {
        let segment = self.stretches.get(place).map_or(0, |known| known.segment);
        self.file_error(segment, error)
    }

    /// An error of a segment, an index into [`Self::segments`].
    pub fn file_error(&self, segment: usize, error: std::io::Error) -> LedgerError {
        let number = self.segments.get(segment).map_or(0, |known| known.number);
        LedgerError::io(&self.journal.path().join(segment_name(number)), error)
    }
}

// === impl ForwardReader ===

impl ForwardReader<'_> {
    /// Behind the line that was read last.
    pub fn place(&self) -> LinePosition {
        self.place
    }

    /// Before the line that was read last.
    pub fn began(&self) -> LinePosition {
        self.began
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

    /// The next line that is whole, of whatever kind.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, LedgerError> {
        let raw = loop {
            let segment = self.place.segment;
            let Some(stretch) = self.reader.stretches.get(segment) else {
                return Ok(None);
            };
            let lines = match &mut self.lines {
                Some(lines) => lines,
                none => {
                    self.place.offset = self.place.offset.max(stretch.offset);
                    none.insert(self.reader.lines(self.place)?)
                }
            };
            let read = lines.next();
            match read.map_err(|error| self.reader.error(segment, error))? {
                Some(raw) => {
                    let end = raw.bytes.saturating_add(u64::from(raw.ended));
                    self.began = self.place;
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

// === impl LinesAt ===

impl LinesAt {
    /// The record whose line begins there; `None` where none does.
    pub fn record(&self, offset: u64) -> std::io::Result<Option<(u64, Record)>> {
        let mut held = Vec::new();
        loop {
            let from = offset.saturating_add(u64::try_from(held.len()).unwrap_or(u64::MAX));
            let left = usize::try_from(self.bytes.saturating_sub(from)).unwrap_or(usize::MAX);
            let wanted = LINE_READ_BYTES.max(held.len()).min(left);
            let known = held.len();
            held.resize(known + wanted, 0);
            let read = match held.get_mut(known..) {
                Some(room) if !room.is_empty() => match self.file.read_at(room, from) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                        held.truncate(known);
                        continue;
                    }
                    read => read?,
                },
                _ => 0,
            };
            held.truncate(known + read);
            let newline = held.get(known..).and_then(|new| memchr::memchr(b'\n', new));
            let line = match newline {
                Some(newline) => held.get(..known + newline),
                None if read == 0 => whole(&held),
                None if held.len() > LINE_BYTES_MAX => None,
                None => continue,
            };
            return Ok(match line.and_then(Line::decode) {
                Some(Line::Record { seq, record }) => Some((seq, record)),
                _ => None,
            });
        }
    }
}

// === impl Backward ===

impl Backward {
    fn new(file: File, floor: u64, end: u64, block_bytes: usize) -> Self {
        Self {
            file,
            block_bytes,
            floor,
            start: end.max(floor),
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
                None if self.start == self.floor => 0,
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
        let wanted = usize::try_from(self.start - self.floor).unwrap_or(usize::MAX);
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
