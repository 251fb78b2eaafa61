//! Compaction: old segments are replaced by one that holds their sums ([`Rollup`]) and the few lines
//! that are still needed.
//!
//! The compacted segment has number 0, so it comes before all others, and its header says up to
//! which segment and record it stands for. It is written beside the journal, synced and renamed: the
//! rename is the moment at which it counts. From then on the segments it stands for are passed over,
//! whether they are still there or not. A second compaction reads the first one's segment, and puts a
//! new one in its place in the same way.
//!
//! Kept as lines are entries whose amount may still come ([`Wanted::awaited`]), those whose evidence
//! lies behind what is compacted, and those that end there. What is in doubt and cannot be resolved
//! any more is kept as a count.
//!
//! Promise: at any instant the files tell the same sums. Nothing is compacted that is damaged, that
//! this bursar does not understand, or whose sums come out different.
//!
//! [`Rollup`]: crate::ledger::rollup::Rollup

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::ledger::entry::EntryId;
use crate::ledger::error::LedgerError;
use crate::ledger::record::{Position, Record, StandsFor};
use crate::ledger::scan::{COMPACTED, Segment, begins_late, scan, segment_name, segments};
use crate::ledger::state_dir::Directory;

mod fold;
mod write;

use fold::{Folding, evidence_from};

/// Name of the compacted segment while it is being written.
const NEXT: &str = "00000000.jsonl.next";

/// How much of the journal is compacted at once. What is held meanwhile grows with it.
pub const PASS_BYTES: u64 = 256 << 20;

/// How long entries are needed one by one, whatever retention says: a key's amount may come for 24 h
/// after its first use, and as long again is left for clocks and slow answers.
pub const RETENTION_MS_MIN: u64 = 2 * 24 * 60 * 60 * 1000;

/// What may be compacted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only segments in which nothing is as late as this, Unix milliseconds.
    pub before_ms: u64,
    /// Only records before this number: the oldest entry in flight.
    pub before_seq: u64,
    /// Entries whose amount may still come.
    pub awaited: HashSet<EntryId>,
}

/// What will be compacted.
#[derive(Debug, Default)]
pub struct Plan {
    /// The compacted segment there is.
    old: Option<Segment>,
    segments: Vec<Segment>,
    /// What comes behind.
    rest: Vec<Segment>,
    stands_for: Option<StandsFor>,
    pub records: u64,
    pub bytes: u64,
    /// Why the rest stays although it is old enough.
    pub stopped_by: Option<String>,
}

/// A compacted segment that is written and does not count yet.
#[derive(Clone, Copy, Debug)]
pub struct Built {
    pub stands_for: StandsFor,
    /// Of all segments it takes the place of.
    pub bytes_before: u64,
    pub bytes_after: u64,
    /// Entries of which only the sums are left.
    pub entries: u64,
    /// Entries that it still lists.
    pub kept: u64,
}

/// What compaction did, or with `--dry-run` would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CompactReport {
    pub segments: u64,
    /// Of the segments that went, and the compacted one before.
    pub bytes_before: u64,
    /// Of the compacted one now. `None`: nothing was written.
    pub bytes_after: Option<u64>,
    /// Entries of which only the sums are left. `None` when it was not tried.
    pub entries: Option<u64>,
    /// Everything up to here is in sums now, Unix milliseconds.
    pub until_ms: Option<u64>,
    /// Why the rest stays although it is old enough.
    pub stopped_by: Option<String>,
}

/// Where the lines of an entry lie that a compacted segment still lists.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kept {
    pub intent: Option<Position>,
    pub end: Option<Position>,
}

/// Looks which segments can go, up to `bytes_max`. The last one is being written: it is looked at
/// only with `with_last`.
pub fn plan(
    journal: &Directory,
    wanted: &Wanted,
    with_last: bool,
    bytes_max: u64,
) -> Result<Plan, LedgerError> {
    let mut all = segments(journal, None)?;
    let mut plan = Plan::default();
    if let Some(begins_at) = begins_late(&all) {
        plan.stop(format!("records before {begins_at} are missing"));
        return Ok(plan);
    }
    let mut expected = None;
    if all.first().is_some_and(|first| first.number == COMPACTED) {
        let old = all.remove(0);
        let report = scan(journal, std::slice::from_ref(&old), &mut |_, _, _| {})?;
        let Some(stands_for) = old.stands_for().filter(|_| report.is_sound()) else {
            plan.stop(format!("{} is damaged", segment_name(COMPACTED)));
            return Ok(plan);
        };
        if report.last_seq != Some(stands_for.seq) {
            plan.stop(format!("{} has lost lines", segment_name(COMPACTED)));
            return Ok(plan);
        }
        expected = Some(stands_for.seq.saturating_add(1));
        plan.old = Some(old);
    }
    let movable = if with_last {
        all.len()
    } else {
        all.len().saturating_sub(1)
    };
    let mut taken = 0;
    for segment in all.iter().take(movable) {
        if plan.bytes >= bytes_max || !plan.take(journal, segment, wanted, &mut expected)? {
            break;
        }
        taken += 1;
    }
    plan.rest = all.split_off(taken);
    plan.segments = all;
    Ok(plan)
}

/// Writes the compacted segment beside the journal. `None`: there is nothing to gain, or `cancel` was
/// set.
pub fn build(
    journal: &Directory,
    plan: &Plan,
    wanted: &Wanted,
    cancel: &AtomicBool,
) -> Result<Option<Built>, LedgerError> {
    let (Some(stands_for), Some(first)) = (plan.stands_for, plan.segments.first()) else {
        return Ok(None);
    };
    let evidenced = evidence_from(journal, &plan.segments, &plan.rest)?;
    let mut folding = Folding::new(evidenced, &wanted.awaited);
    for segment in plan.old.iter().chain(&plan.segments) {
        if cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // Checked one by one in `plan`; what was damaged since then shows in the sums.
        let report = scan(
            journal,
            std::slice::from_ref(segment),
            &mut |seq, position, record| folding.apply(seq, position, record),
        )?;
        if !report.is_sound() || report.torn_tail.is_some() {
            return Err(cannot(format!(
                "{} was damaged meanwhile",
                segment_name(segment.number)
            )));
        }
    }
    if folding.entries == 0 || cancel.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let header = first.header.as_ref();
    let header = plan.old.as_ref().map_or(header, |old| old.header.as_ref());
    let Some(header) = header else {
        return Ok(None);
    };
    let built = write::write(journal, plan, header, stands_for, folding).inspect_err(|_| {
        // On a full disk the journal needs its room.
        if let Err(error) = journal.remove(NEXT) {
            tracing::warn!(%error, "what was begun could not be removed");
        }
    })?;
    Ok(Some(built))
}

/// Makes a built segment count. After an error either the old files count or the new one.
pub fn commit(journal: &Directory) -> Result<(), LedgerError> {
    journal.rename(NEXT, &segment_name(COMPACTED))?;
    journal.sync()
}

/// Removes what a compacted segment stands for, and what was never finished.
pub fn clear(journal: &Directory) -> Result<(), LedgerError> {
    journal.remove(NEXT)?;
    let all = segments(journal, None)?;
    let Some(stands_for) = all.first().and_then(Segment::stands_for) else {
        return Ok(());
    };
    // A name that a power cut may take back must not be the only one.
    journal.sync()?;
    for name in journal.names()? {
        let number = name.strip_suffix(".jsonl").and_then(|n| n.parse().ok());
        if number.is_some_and(|number: u32| {
            number != COMPACTED && number <= stands_for.segment && segment_name(number) == name
        }) {
            journal.remove(&name)?;
        }
    }
    journal.sync()
}

/// The entries that the compacted segment still lists.
pub fn kept(
    journal: &Directory,
    compacted: &Segment,
) -> Result<HashMap<EntryId, Kept>, LedgerError> {
    let mut found: HashMap<EntryId, Kept> = HashMap::new();
    let only = std::slice::from_ref(compacted);
    scan(journal, only, &mut |_, position, record| match &record {
        Record::Intent(intent) => {
            found.entry(intent.id).or_default().intent = Some(position);
        }
        Record::Outcome(outcome, ..) => {
            found.entry(outcome.id).or_default().end = Some(position);
        }
        Record::Crashed(ended, _) | Record::Withdrawn(ended, _) => {
            found.entry(ended.id).or_default().end = Some(position);
        }
        Record::Reconciled(..) | Record::Delivery(..) | Record::Rollup(_) | Record::Unknown => {}
    })?;
    Ok(found)
}

fn cannot(why: String) -> LedgerError {
    LedgerError::CannotCompact { why }
}

// === impl Plan ===

impl Plan {
    /// As far as it is known before anything is written.
    pub fn report(&self) -> CompactReport {
        CompactReport {
            segments: u64::try_from(self.segments.len()).unwrap_or(u64::MAX),
            bytes_before: self.bytes,
            bytes_after: None,
            entries: None,
            until_ms: self.stands_for.map(|stands_for| stands_for.until_ms),
            stopped_by: self.stopped_by.clone(),
        }
    }

    fn stop(&mut self, why: String) {
        self.stopped_by = Some(why);
    }

    /// Adds a segment when all of it can go.
    fn take(
        &mut self,
        journal: &Directory,
        segment: &Segment,
        wanted: &Wanted,
        expected: &mut Option<u64>,
    ) -> Result<bool, LedgerError> {
        let name = segment_name(segment.number);
        let Some(header) = &segment.header else {
            self.stop(format!("{name} is damaged"));
            return Ok(false);
        };
        if header.at_ms >= wanted.before_ms {
            return Ok(false);
        }
        let mut newest_ms = header.at_ms;
        let only = std::slice::from_ref(segment);
        let report = scan(journal, only, &mut |_, _, record| {
            newest_ms = newest_ms.max(told_ms(&record));
        })?;
        let is_young = newest_ms >= wanted.before_ms || report.next_seq > wanted.before_seq;
        if is_young {
            return Ok(false);
        }
        if !report.is_sound() || report.torn_tail.is_some() {
            self.stop(format!("{name} is damaged, see `bursar ledger verify`"));
        } else if expected.is_some_and(|expected| expected != header.first_seq) {
            self.stop(format!("records before {name} are missing"));
        } else if report.unknown_kinds > 0 {
            self.stop(format!("a newer bursar wrote {name}; compact it with that"));
        } else {
            let until_ms = self.stands_for.map_or(0, |so_far| so_far.until_ms);
            self.stands_for = Some(StandsFor {
                segment: segment.number,
                seq: report.next_seq.saturating_sub(1),
                until_ms: newest_ms.max(until_ms),
            });
            *expected = Some(report.next_seq);
            self.records += report.records;
            self.bytes += segment.bytes;
        }
        Ok(self.stopped_by.is_none())
    }
}

/// The moment a record tells of.
fn told_ms(record: &Record) -> u64 {
    match record {
        Record::Intent(intent) => intent.at_ms,
        Record::Outcome(outcome, ..) => outcome.at_ms,
        Record::Crashed(ended, _) | Record::Withdrawn(ended, _) => ended.at_ms,
        Record::Reconciled(evidence, _) => evidence.at_ms,
        Record::Delivery(row, _) => row.at_ms,
        Record::Rollup(_) | Record::Unknown => 0,
    }
}

#[cfg(test)]
mod tests;
