//! Reads the journal's segments in order. Used by the daemon at start, by queries beside a running
//! daemon, and by `ledger verify`; all three see the same records and the same damage.
//!
//! It reads twice: a survey by checksums and numbers finds the damage and the order, then the
//! records are handed out. A sound journal is read from front to back both times.
//!
//! Promise: reads only. Whatever the bytes are, nothing panics, memory is bounded by one line and the
//! damage, every byte that is not a record is reported with the sequence numbers on both sides of
//! it, and each number is handed out once, in rising order.

use std::io::{Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ledger::error::LedgerError;
use crate::ledger::journal::lines::Lines;
use crate::ledger::journal::order::{SeqRun, SeqRuns};
use crate::ledger::journal::report::{BadRange, Misplaced, RANGES_MAX, ScanFindings, ScanReport};
use crate::ledger::journal::segments::{Segment, segment_name};
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::record::{Glance, Line, Position, Record};

/// The first reading.
#[derive(Default)]
struct Survey {
    report: ScanReport,
    /// The damaged range being extended.
    open: Option<BadRange>,
    runs: SeqRuns,
    /// The highest number that stands in a line or a header.
    known_seq: u64,
    /// Damaged lines behind it, each a record perhaps.
    lines_behind: u64,
}

/// Reads `segments` and hands each record to `visit`, by rising sequence number. What was appended
/// after they were listed is not read.
pub fn scan(
    journal: &Directory,
    segments: &[Segment],
    visit: &mut dyn FnMut(u64, Position, Record),
) -> Result<ScanReport, LedgerError> {
    scan_until(&AtomicBool::new(false), journal, segments, visit)
}

/// The same, which ends with [`LedgerError::Closed`] when `stop` is set.
pub fn scan_until(
    stop: &AtomicBool,
    journal: &Directory,
    segments: &[Segment],
    visit: &mut dyn FnMut(u64, Position, Record),
) -> Result<ScanReport, LedgerError> {
    let (runs, report) = survey(stop, journal, segments)?;
    let mut findings = ScanFindings::after(report);
    let mut next_seq = 0;
    for run in runs {
        if run.last_seq >= next_seq {
            let segment = segments.iter().find(|segment| segment.number == run.number);
            if let Some(segment) = segment {
                read_run(stop, journal, segment, &run, next_seq, &mut findings, visit)?;
            }
            next_seq = run.last_seq.saturating_add(1);
        }
    }
    Ok(findings.report())
}

/// The first reading: where which numbers lie, by rising number. Where numbers are there twice, stretches
/// overlap. Ends with [`LedgerError::Closed`] when `stop` is set.
pub fn survey(
    stop: &AtomicBool,
    journal: &Directory,
    segments: &[Segment],
) -> Result<(Vec<SeqRun>, ScanReport), LedgerError> {
    let mut survey = Survey::default();
    for (index, segment) in segments.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return Err(LedgerError::Closed);
        }
        let is_last = index + 1 == segments.len();
        survey.segment(journal, index, segment, is_last)?;
    }
    let mut report = survey.report;
    report.next_seq = survey
        .known_seq
        .saturating_add(1)
        .saturating_add(survey.lines_behind);
    let mut findings = ScanFindings::after(report);
    for segment in segments.iter().filter(|segment| segment.is_misplaced()) {
        findings.misplace(Misplaced {
            segment: segment.number,
            offset: 0,
            first_seq: None,
            last_seq: None,
        });
    }
    let begins_at = segments.first().and_then(Segment::begins_at);
    let runs = survey.runs.arrange(begins_at, &mut findings);
    Ok((runs, findings.report()))
}

/// The second reading, of one stretch of sound lines from `next_seq` on.
fn read_run(
    stop: &AtomicBool,
    journal: &Directory,
    segment: &Segment,
    run: &SeqRun,
    next_seq: u64,
    findings: &mut ScanFindings,
    visit: &mut dyn FnMut(u64, Position, Record),
) -> Result<(), LedgerError> {
    let name = segment_name(run.number);
    let path = journal.path().join(&name);
    let failed = |error| LedgerError::io(&path, error);
    let mut file = segment.open(journal)?;
    file.seek(SeekFrom::Start(run.offset)).map_err(failed)?;
    let mut lines = Lines::new(file.take(run.end.saturating_sub(run.offset)));
    let mut offset = run.offset;
    for seq in run.first_seq..=run.last_seq {
        if stop.load(Ordering::Relaxed) {
            return Err(LedgerError::Closed);
        }
        let Some(raw) = lines.next().map_err(failed)? else {
            break;
        };
        let position = Position {
            segment: run.number,
            offset,
            bytes: raw.bytes,
        };
        offset += raw.bytes + u64::from(raw.ended);
        if seq < next_seq {
            continue;
        }
        match Line::decode(lines.text(&raw)) {
            Some(Line::Record { record, .. }) => {
                findings.read(&record);
                visit(seq, position, record);
            }
            // Sealed, and not as this bursar knows it.
            _ => findings.unreadable(position, seq),
        }
    }
    Ok(())
}

// === impl Survey ===

impl Survey {
    fn segment(
        &mut self,
        journal: &Directory,
        index: usize,
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

        if let Some(header) = &segment.header {
            self.know(header.first_seq.saturating_sub(1));
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
            let mut line = Line::glance(text);
            if line.is_none()
                && !raw.ended
                && let Some((_, whole)) = text.split_last()
            {
                line = Line::glance(whole);
                position.bytes -= u64::from(line.is_some());
            }
            match line {
                Some(Glance::Record { seq }) if self.takes(index, position, raw.ended, seq) => {
                    if !raw.ended {
                        lacks_newline = true;
                        sound_bytes = position.offset + position.bytes;
                        let odd = Position {
                            offset: sound_bytes,
                            bytes: offset - sound_bytes,
                            ..position
                        };
                        if odd.bytes > 0 && is_last {
                            torn = Some(odd);
                        } else if odd.bytes > 0 {
                            self.damaged(odd, false);
                        }
                        break;
                    }
                }
                Some(Glance::Header)
                    if position.offset == 0 && raw.ended && segment.header.is_some() => {}
                _ if is_last && !raw.ended => {
                    position.bytes = raw.bytes;
                    // Only room that was not overwritten lies before it: part of the same unfinished write.
                    if let Some(room) = self.open.take_if(|range| {
                        range.segment == segment.number
                            && range.offset > 0
                            && range.bytes == range.lines
                    }) {
                        position.offset = room.offset;
                        position.bytes += room.bytes;
                        sound_bytes = room.offset;
                    }
                    torn = Some(position);
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
            self.know(stands_for.seq);
        }
        Ok(())
    }

    /// Takes a sound line. False: it has to count as damaged.
    fn takes(&mut self, index: usize, position: Position, ended: bool, seq: u64) -> bool {
        let end = position.offset + position.bytes + u64::from(ended);
        if seq == 0 || !self.runs.push(index, position, end, seq) {
            return false;
        }
        self.close_range(Some(seq));
        if let Some(range) = self.report.bad.last_mut() {
            range.before_seq.get_or_insert(seq);
        }
        self.know(seq);
        self.report.last_seq = self.report.last_seq.max(Some(seq));
        true
    }

    /// There were records up to this one.
    fn know(&mut self, seq: u64) {
        if seq > self.known_seq {
            self.known_seq = seq;
            self.lines_behind = 0;
        }
    }

    fn damaged(&mut self, position: Position, ended: bool) {
        let bytes = position.bytes + u64::from(ended);
        // A segment's first line is its header, which has no sequence number.
        // An empty one is room that was made and never used.
        if position.offset > 0 && position.bytes > 0 {
            self.lines_behind += u64::from(ended);
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
        self.report.bad_count += 1;
        if self.report.bad.len() < RANGES_MAX {
            self.report.bad.push(range);
        }
    }
}

#[cfg(test)]
mod tests;
