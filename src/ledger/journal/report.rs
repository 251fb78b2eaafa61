//! What a scan finds besides records: damage, what is missing, and where the journal ends.
//!
//! Promise: every byte that is no record, and every number without a sound line, is in it or counted.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::ledger::record::{Position, Record};

/// How many damaged ranges a report lists one by one; further ones are only counted.
pub(super) const RANGES_MAX: usize = 10_000;

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

/// A jump between two sound records that no damaged range explains; or what is missing at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    pub after_seq: u64,
    pub before_seq: u64,
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
    /// Sequence numbers without a sound line, rising: in damaged ranges, in gaps, at the end.
    pub missing: Vec<Missing>,
    pub missing_records: u64,
    /// Sound lines that lie elsewhere than they belong, or twice. They count, once.
    pub misplaced: Vec<Misplaced>,
    pub misplaced_count: u64,
    /// The unfinished line at the end of the last segment.
    pub torn_tail: Option<Position>,
    pub last_seq: Option<u64>,
    /// Where the next record goes: after the last sound one and after each damaged line behind it.
    pub next_seq: u64,
    /// Number of the last segment, and how much of it counts.
    pub last_segment: Option<u32>,
    pub last_segment_bytes: u64,
    /// Its last record is whole and lacks its newline.
    #[serde(skip)]
    pub lacks_newline: bool,
}

/// A report to which a scan still adds.
#[derive(Debug)]
pub(super) struct ScanFindings {
    report: ScanReport,
}

/// Sequence numbers that no sound line holds, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Missing {
    pub first: u64,
    pub last: u64,
}

/// Sound lines that are not where they belong: swapped, or there for a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Misplaced {
    pub segment: u32,
    pub offset: u64,
    /// The records that lie there. `None`: the whole segment has the number of another one.
    pub first_seq: Option<u64>,
    pub last_seq: Option<u64>,
}

// === impl Missing ===

impl Missing {
    pub fn count(self) -> u64 {
        self.last.saturating_sub(self.first).saturating_add(1)
    }
}

// === impl ScanReport ===

impl ScanReport {
    /// The journal reached at least to `known_seq`, as the mark or the index says: what is not there
    /// is missing, and its numbers are not given out again.
    #[must_use]
    pub fn extended_to(self, known_seq: Option<u64>) -> Self {
        match known_seq.filter(|known| *known >= self.next_seq) {
            Some(known_seq) => ScanFindings::after(self).extended_to(known_seq),
            None => self,
        }
    }

    /// Nothing is damaged, missing or misplaced. A torn tail is no damage.
    pub fn is_sound(&self) -> bool {
        self.bad_count == 0
            && self.gap_count == 0
            && self.misplaced_count == 0
            && self.missing_records == 0
    }
}

// === impl ScanFindings ===

impl ScanFindings {
    /// Goes on from what was found so far.
    pub fn after(report: ScanReport) -> Self {
        Self { report }
    }

    pub fn report(self) -> ScanReport {
        self.report
    }

    /// Where the next record goes.
    pub fn next_seq(&self) -> u64 {
        self.report.next_seq
    }

    /// A line is a record.
    pub fn read(&mut self, record: &Record) {
        self.report.records += 1;
        self.report.unknown_kinds += u64::from(matches!(record, Record::Unknown));
    }

    /// A sealed line is no record that this bursar knows.
    pub fn unreadable(&mut self, position: Position, seq: u64) {
        let report = &mut self.report;
        report.bad_count += 1;
        if report.bad.len() < RANGES_MAX {
            report.bad.push(BadRange {
                segment: position.segment,
                offset: position.offset,
                bytes: position.bytes.saturating_add(1),
                lines: 1,
                after_seq: seq.checked_sub(1),
                before_seq: seq.checked_add(1),
            });
        }
        self.miss(seq, seq);
        self.report.missing.sort_unstable();
    }

    fn extended_to(mut self, known_seq: u64) -> ScanReport {
        let report = &mut self.report;
        let first = report.next_seq;
        report.next_seq = known_seq.saturating_add(1);
        match report.missing.last_mut() {
            // The damaged lines at the end are part of it.
            Some(missing) if missing.last.saturating_add(1) == first => {
                report.missing_records += known_seq - missing.last;
                missing.last = known_seq;
            }
            _ => self.miss(first, known_seq),
        }
        self.find_gaps();
        self.report
    }

    pub fn misplace(&mut self, what: Misplaced) {
        self.report.misplaced_count += 1;
        if self.report.misplaced.len() < RANGES_MAX {
            self.report.misplaced.push(what);
        }
    }

    pub fn miss(&mut self, first: u64, last: u64) {
        let (report, missing) = (&mut self.report, Missing { first, last });
        report.missing_records = report.missing_records.saturating_add(missing.count());
        if report.missing.len() < RANGES_MAX {
            report.missing.push(missing);
        } else if let Some(listed) = report.missing.last_mut() {
            // One range too many names more than is missing, and never less.
            listed.last = listed.last.max(last);
        }
    }

    /// A jump over a damaged range is part of that range. The others are gaps of their own.
    pub fn find_gaps(&mut self) {
        let report = &mut self.report;
        let before: HashSet<u64> = report.bad.iter().filter_map(|bad| bad.before_seq).collect();
        let after: HashSet<u64> = report
            .bad
            .iter()
            .map(|bad| bad.after_seq.unwrap_or(0))
            .collect();
        let gaps = report.missing.iter().map(|missing| Gap {
            after_seq: missing.first.saturating_sub(1),
            before_seq: missing.last.saturating_add(1),
        });
        report.gaps = gaps
            .filter(|gap| !after.contains(&gap.after_seq) && !before.contains(&gap.before_seq))
            .collect();
        report.gap_count = u64::try_from(report.gaps.len()).unwrap_or(u64::MAX);
    }
}
