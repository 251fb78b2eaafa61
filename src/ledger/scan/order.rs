//! The order of the records, whatever order their lines lie in: stretches of lines whose numbers
//! rise by one, sorted by number. Swapped lines are read where they belong, a line that is there
//! twice is read once, and what no stretch holds is missing.
//!
//! Promise: each sequence number is handed out at most once, in rising order. A sound journal is one
//! stretch a segment; memory is bounded by [`RUNS_MAX`].

use std::collections::HashSet;

use serde::Serialize;

use super::{Gap, Position, RANGES_MAX, ScanReport};

/// Most stretches: forty megabytes. Lines beyond count as damaged.
const RUNS_MAX: usize = 1_000_000;

/// Sequence numbers that no sound line holds, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize)]
pub struct Missing {
    pub first: u64,
    pub last: u64,
}

/// Sound lines that are not where they belong: swapped, or there for a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Misplaced {
    pub segment: u32,
    pub offset: u64,
    /// The records that lie there. `None`: the whole segment says that it is another one.
    pub first_seq: Option<u64>,
    pub last_seq: Option<u64>,
}

/// Lines that follow each other in a segment, numbered one by one.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Index into the segments that are read.
    pub segment: usize,
    /// File number of that segment.
    pub number: u32,
    pub offset: u64,
    pub end: u64,
    pub first_seq: u64,
    pub last_seq: u64,
}

/// All stretches, first as they lie, then as they count.
#[derive(Debug, Default)]
pub struct Runs {
    all: Vec<Run>,
}

// === impl Missing ===

impl Missing {
    pub fn count(self) -> u64 {
        self.last.saturating_sub(self.first).saturating_add(1)
    }
}

// === impl Runs ===

impl Runs {
    /// Takes the next line in the order of the files. False: there are too many stretches.
    pub fn push(&mut self, segment: usize, at: Position, end: u64, seq: u64) -> bool {
        if let Some(run) = self.all.last_mut()
            && run.segment == segment
            && run.end == at.offset
            && run.last_seq.checked_add(1) == Some(seq)
        {
            run.end = end;
            run.last_seq = seq;
            return true;
        }
        if self.all.len() >= RUNS_MAX {
            return false;
        }
        self.all.push(Run {
            segment,
            number: at.segment,
            offset: at.offset,
            end,
            first_seq: seq,
            last_seq: seq,
        });
        true
    }

    /// Sorts by number, and tells the report what is misplaced and what is missing. `begins_at` is
    /// the first number there has to be, when that is known.
    pub fn arrange(mut self, begins_at: Option<u64>, report: &mut ScanReport) -> Vec<Run> {
        let mut highest = 0;
        for run in &self.all {
            if run.first_seq <= highest {
                report.misplace(Misplaced {
                    segment: run.number,
                    offset: run.offset,
                    first_seq: Some(run.first_seq),
                    last_seq: Some(run.last_seq),
                });
            }
            highest = highest.max(run.last_seq);
        }
        // Stable: of two lines with one number the first that lies there counts.
        self.all.sort_by_key(|run| run.first_seq);
        let mut expected = begins_at;
        for run in &self.all {
            if let Some(expected) = expected
                && run.first_seq > expected
            {
                report.miss(expected, run.first_seq - 1);
            }
            let next = run.last_seq.saturating_add(1);
            expected = Some(expected.map_or(next, |expected| expected.max(next)));
        }
        if let Some(end) = report.next_seq.checked_sub(1)
            && let Some(expected) = expected
            && expected <= end
        {
            report.miss(expected, end);
        }
        report.find_gaps();
        self.all
    }
}

// === impl ScanReport ===

impl ScanReport {
    /// The journal reached at least to `known_seq`, as the mark or the index says: what is not there
    /// is missing, and its numbers are not given out again.
    pub fn extend_to(&mut self, known_seq: Option<u64>) {
        let Some(known_seq) = known_seq.filter(|known| *known >= self.next_seq) else {
            return;
        };
        let first = self.next_seq;
        self.next_seq = known_seq.saturating_add(1);
        match self.missing.last_mut() {
            // The damaged lines at the end are part of it.
            Some(missing) if missing.last.saturating_add(1) == first => {
                self.missing_records += known_seq - missing.last;
                missing.last = known_seq;
            }
            _ => self.miss(first, known_seq),
        }
        self.find_gaps();
    }

    /// Nothing is damaged, missing or misplaced. A torn tail is no damage.
    pub fn is_sound(&self) -> bool {
        self.bad_count == 0
            && self.gap_count == 0
            && self.misplaced_count == 0
            && self.missing_records == 0
    }

    pub(super) fn misplace(&mut self, what: Misplaced) {
        self.misplaced_count += 1;
        if self.misplaced.len() < RANGES_MAX {
            self.misplaced.push(what);
        }
    }

    pub(super) fn miss(&mut self, first: u64, last: u64) {
        let missing = Missing { first, last };
        self.missing_records = self.missing_records.saturating_add(missing.count());
        if self.missing.len() < RANGES_MAX {
            self.missing.push(missing);
        } else if let Some(listed) = self.missing.last_mut() {
            // One range too many names more than is missing, and never less.
            listed.last = listed.last.max(last);
        }
    }

    /// A jump over a damaged range is part of that range. The others are gaps of their own.
    fn find_gaps(&mut self) {
        let before: HashSet<u64> = self.bad.iter().filter_map(|bad| bad.before_seq).collect();
        let after: HashSet<u64> = self
            .bad
            .iter()
            .map(|bad| bad.after_seq.unwrap_or(0))
            .collect();
        let gaps = self.missing.iter().map(|missing| Gap {
            after_seq: missing.first.saturating_sub(1),
            before_seq: missing.last.saturating_add(1),
        });
        self.gaps = gaps
            .filter(|gap| !after.contains(&gap.after_seq) && !before.contains(&gap.before_seq))
            .collect();
        self.gap_count = u64::try_from(self.gaps.len()).unwrap_or(u64::MAX);
    }
}
