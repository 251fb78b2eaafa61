//! Reads the journal's segments in order. Used by the daemon at start, by queries beside a running
//! daemon, and by `ledger verify`; all three see the same records and the same damage.
//!
//! Promise: reads only. Whatever the bytes are, nothing panics, memory is bounded by one line, and
//! every byte that is not a record is reported with the sequence numbers on both sides of it.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;

use serde::Serialize;

use crate::ledger::error::LedgerError;
use crate::ledger::record::{
    FORMAT_COMPACTED, LINE_BYTES_MAX, Line, Position, Record, SegmentHeader,
};
use crate::ledger::state_dir::Directory;

mod listed;

pub use listed::missing_before;
use listed::open_listed;

const READ_BUFFER_BYTES: usize = 256 << 10;

/// How many damaged ranges a report lists one by one; further ones are only counted.
const RANGES_MAX: usize = 10_000;

/// Number of the compacted segment: the one before all others.
pub const COMPACTED: u32 = 0;

/// A range of bytes that are no records, merged over neighbouring lines of one segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BadRange {
    pub segment: u32,
    pub offset: u64,
    pub bytes: u64,
    /// Lines in it that end with a newline.
    pub lines: u64,
    /// The last sound record before it.
    pub after_seq: Option<u64>,
    /// The first sound record after it.
    pub before_seq: Option<u64>,
}

/// A jump between two sound records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    pub after_seq: u64,
    pub before_seq: u64,
}

/// The unfinished line at the end of the last segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TornTail {
    pub segment: u32,
    pub offset: u64,
    pub bytes: u64,
}

/// What a scan found besides records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScanReport {
    pub segments: u64,
    pub records: u64,
    pub bytes: u64,
    pub unknown_kinds: u64,
    pub bad: Vec<BadRange>,
    pub bad_count: u64,
    pub gaps: Vec<Gap>,
    pub gap_count: u64,
    pub torn_tail: Option<TornTail>,
    pub last_seq: Option<u64>,
    /// The record before the first line that was read, as a segment's header tells it.
    #[serde(skip)]
    pub before_first_seq: Option<u64>,
    /// Where the next record goes: after the last sound one and after each damaged line behind it.
    pub next_seq: u64,
    /// Number of the last segment, and how much of it counts.
    pub last_segment: Option<u32>,
    pub last_segment_bytes: u64,
    /// Its last record is whole and lacks its newline.
    #[serde(skip)]
    pub lacks_newline: bool,
}

/// A segment file as far as its name and first line tell.
#[derive(Clone, Debug)]
pub struct Segment {
    pub number: u32,
    pub bytes: u64,
    /// `None` when the first line is damaged or missing.
    pub header: Option<SegmentHeader>,
    /// The file itself, whatever its name will mean later.
    inode: u64,
}

struct Scan<'a> {
    report: ScanReport,
    /// The damaged range being extended.
    open: Option<BadRange>,
    expected: Option<u64>,
    visit: &'a mut dyn FnMut(u64, Position, Record),
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
        let mut lines = Lines::new(file);
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
            number,
            bytes: metadata.len(),
            header,
            inode: metadata.ino(),
        });
    }
    // What a compacted segment stands for may still lie there, when its removal was cut off.
    if let Some(stands_for) = found.first().and_then(Segment::stands_for) {
        found.retain(|segment| segment.number == COMPACTED || segment.number > stands_for.segment);
    }
    Ok(found)
}

/// Reads `segments` in order and hands each record to `visit` with its sequence number. What was
/// appended after they were listed is not read.
pub fn scan(
    journal: &Directory,
    segments: &[Segment],
    visit: &mut dyn FnMut(u64, Position, Record),
) -> Result<ScanReport, LedgerError> {
    let mut scan = Scan {
        report: ScanReport {
            next_seq: 1,
            ..ScanReport::default()
        },
        open: None,
        expected: None,
        visit,
    };
    for (index, segment) in segments.iter().enumerate() {
        let is_last = index + 1 == segments.len();
        scan.segment(journal, segment, is_last)?;
    }
    Ok(scan.report)
}

// === impl TornTail ===

impl TornTail {
    fn at(position: Position) -> Self {
        Self {
            segment: position.segment,
            offset: position.offset,
            bytes: position.bytes,
        }
    }
}

// === impl Scan ===

impl Scan<'_> {
    fn segment(
        &mut self,
        journal: &Directory,
        segment: &Segment,
        is_last: bool,
    ) -> Result<(), LedgerError> {
        let name = segment_name(segment.number);
        let path = journal.path().join(&name);
        let file = segment.open(journal)?;
        let mut lines = Lines::new(file.take(segment.bytes));
        // Nothing is ever appended to a compacted segment: all of it was durable.
        let stands_for = segment.stands_for();
        let is_last = is_last && stands_for.is_none();
        let mut offset = 0;
        // Up to here the segment counts; behind it lies at most a torn tail.
        let mut sound_bytes = 0;
        let mut torn = None;
        let mut lacks_newline = false;

        if let Some(header) = &segment.header
            && self.expected.is_none()
        {
            self.expected = Some(header.first_seq);
            self.report.next_seq = header.first_seq;
            if self.report.last_seq.is_none() {
                self.report.before_first_seq = header.first_seq.checked_sub(1);
            }
        }
        while let Some(raw) = lines
            .next()
            .map_err(|error| LedgerError::io(&path, error))?
        {
            let mut position = Position {
                segment: segment.number,
                offset,
                bytes: raw.bytes,
            };
            offset += raw.bytes + u64::from(raw.ended);
            let text = lines.text(&raw);
            // The checksum decides, not the newline: it may be missing, or be another byte.
            let mut line = Line::decode(text);
            if line.is_none()
                && !raw.ended
                && let Some((_, whole)) = text.split_last()
            {
                line = Line::decode(whole);
                position.bytes -= u64::from(line.is_some());
            }
            match line {
                Some(Line::Record { seq, record }) => {
                    self.close_range(Some(seq));
                    self.record(seq, position, record);
                    if !raw.ended {
                        lacks_newline = true;
                        sound_bytes = position.offset + position.bytes;
                        let odd = Position {
                            offset: sound_bytes,
                            bytes: offset - sound_bytes,
                            ..position
                        };
                        if odd.bytes > 0 && is_last {
                            torn = Some(TornTail::at(odd));
                        } else if odd.bytes > 0 {
                            self.damaged(odd, false);
                        }
                        break;
                    }
                }
                Some(Line::Header(_)) if position.offset == 0 && raw.ended => {}
                _ if is_last && !raw.ended => {
                    position.bytes = raw.bytes;
                    torn = Some(TornTail::at(position));
                    break;
                }
                _ => {
                    position.bytes = raw.bytes;
                    self.damaged(position, raw.ended);
                }
            }
            sound_bytes = offset;
        }
        self.close_range(None);

        self.report.segments += 1;
        self.report.bytes += sound_bytes;
        self.report.torn_tail = torn;
        self.report.last_segment = Some(segment.number);
        self.report.last_segment_bytes = sound_bytes;
        self.report.lacks_newline = lacks_newline;
        if let Some(stands_for) = stands_for {
            // What comes next goes into the segment behind it.
            self.report.last_segment = Some(stands_for.segment.saturating_add(1));
            self.report.last_segment_bytes = 0;
            self.report.lacks_newline = false;
            let next_seq = stands_for.seq.saturating_add(1);
            if let Some(lost_seq) = self.expected.filter(|expected| *expected != next_seq) {
                self.gap(lost_seq, next_seq);
            }
            self.report.next_seq = next_seq;
            self.expected = Some(next_seq);
        }
        Ok(())
    }

    fn record(&mut self, seq: u64, position: Position, record: Record) {
        if let Some(expected) = self.expected
            && seq != expected
        {
            self.gap(expected, seq);
        }
        if let Some(range) = self.report.bad.last_mut() {
            range.before_seq.get_or_insert(seq);
        }
        self.report.records += 1;
        if matches!(record, Record::Unknown) {
            self.report.unknown_kinds += 1;
        }
        self.expected = Some(seq.saturating_add(1));
        self.report.last_seq = Some(self.report.last_seq.unwrap_or(0).max(seq));
        self.report.next_seq = self.report.next_seq.max(seq.saturating_add(1));
        (self.visit)(seq, position, record);
    }

    fn gap(&mut self, expected: u64, before_seq: u64) {
        self.report.gap_count += 1;
        if self.report.gaps.len() < RANGES_MAX {
            let last_seq = self.report.last_seq;
            self.report.gaps.push(Gap {
                after_seq: last_seq.unwrap_or(expected.saturating_sub(1)),
                before_seq,
            });
        }
    }

    fn damaged(&mut self, position: Position, ended: bool) {
        let bytes = position.bytes + u64::from(ended);
        // A segment's first line is its header, which has no sequence number.
        if position.offset > 0 {
            self.report.next_seq += u64::from(ended);
        }
        match &mut self.open {
            Some(range) => {
                range.bytes += bytes;
                range.lines += u64::from(ended);
            }
            None => {
                self.open = Some(BadRange {
                    segment: position.segment,
                    offset: position.offset,
                    bytes,
                    lines: u64::from(ended),
                    after_seq: self.report.last_seq,
                    before_seq: None,
                });
            }
        }
    }

    /// Ends the damaged range. The jump over it is part of the range, not a gap of its own.
    fn close_range(&mut self, before_seq: Option<u64>) {
        let Some(mut range) = self.open.take() else {
            return;
        };
        range.before_seq = before_seq;
        if before_seq.is_some_and(|seq| self.expected.is_some_and(|expected| seq >= expected)) {
            self.expected = before_seq;
        } else if before_seq.is_none() {
            // The next segment goes on behind the damaged lines, how many they may have been.
            self.expected = None;
        }
        self.report.bad_count += 1;
        if self.report.bad.len() < RANGES_MAX {
            self.report.bad.push(range);
        }
    }
}

/// Lines of a file, none of them held longer than it is looked at, none longer than the cap.
pub struct Lines<R> {
    reader: BufReader<R>,
    text: Vec<u8>,
}

/// One line as it lies in the file.
pub struct RawLine {
    /// Without the newline.
    pub bytes: u64,
    /// It ends with a newline.
    pub ended: bool,
    /// It is longer than any record: its text was not kept.
    oversized: bool,
}

// === impl Lines ===

impl<R: Read> Lines<R> {
    pub fn new(from: R) -> Self {
        Self {
            reader: BufReader::with_capacity(READ_BUFFER_BYTES, from),
            text: Vec::new(),
        }
    }

    pub fn next(&mut self) -> std::io::Result<Option<RawLine>> {
        self.text.clear();
        let mut raw = RawLine {
            bytes: 0,
            ended: false,
            oversized: false,
        };
        loop {
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                return Ok((raw.bytes > 0).then_some(raw));
            }
            let newline = memchr::memchr(b'\n', chunk);
            let taken = chunk.get(..newline.unwrap_or(chunk.len())).unwrap_or(chunk);
            raw.bytes += u64::try_from(taken.len()).unwrap_or(u64::MAX);
            if self.text.len().saturating_add(taken.len()) > LINE_BYTES_MAX {
                raw.oversized = true;
            } else {
                self.text.extend_from_slice(taken);
            }
            let consumed = taken.len() + usize::from(newline.is_some());
            self.reader.consume(consumed);
            if newline.is_some() {
                raw.ended = true;
                return Ok(Some(raw));
            }
        }
    }

    pub fn text(&self, raw: &RawLine) -> &[u8] {
        if raw.oversized { b"" } else { &self.text }
    }
}

#[cfg(test)]
mod tests;
