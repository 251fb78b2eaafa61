//! The order of the records, whatever order their lines lie in: stretches of lines whose numbers
//! rise by one, sorted by number. Swapped lines are read where they belong, a line that is there
//! twice is read once, and what no stretch holds is missing.
//!
//! Promise: each sequence number is handed out at most once, in rising order. A sound journal is one
//! stretch a segment; memory is bounded by [`RUNS_MAX`].

use super::report::{Misplaced, ScanFindings};
use crate::ledger::record::Position;

/// Most stretches: forty megabytes. Lines beyond count as damaged.
const RUNS_MAX: usize = 1_000_000;

/// Lines that follow each other in a segment, numbered one by one.
#[derive(Clone, Copy, Debug)]
pub struct SeqRun {
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
pub struct SeqRuns {
    all: Vec<SeqRun>,
}

// === impl SeqRuns ===

impl SeqRuns {
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
        self.all.push(SeqRun {
            segment,
            number: at.segment,
            offset: at.offset,
            end,
            first_seq: seq,
            last_seq: seq,
        });
        true
    }

    /// Sorts by number, and reports what is misplaced and what is missing. `begins_at` is
    /// the first number there has to be, when that is known.
    pub fn arrange(mut self, begins_at: Option<u64>, findings: &mut ScanFindings) -> Vec<SeqRun> {
        let mut highest = 0;
        for run in &self.all {
            if run.first_seq <= highest {
                findings.misplace(Misplaced {
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
                findings.miss(expected, run.first_seq - 1);
            }
            let next = run.last_seq.saturating_add(1);
            expected = Some(expected.map_or(next, |expected| expected.max(next)));
        }
        if let Some(end) = findings.next_seq().checked_sub(1)
            && let Some(expected) = expected
            && expected <= end
        {
            findings.miss(expected, end);
        }
        findings.find_gaps();
        self.all
    }
}
