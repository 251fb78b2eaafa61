//! What can be compacted, and what was.

use std::collections::HashSet;
use std::path::Path;

use serde::Serialize;

use crate::ledger::error::LedgerError;
use crate::ledger::id::EntryId;
use crate::ledger::journal::reader::steadily;
use crate::ledger::journal::scan::scan;
use crate::ledger::journal::segments::{Segment, begins_late, segment_name, segments};
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::record::{COMPACTED, Record, StandsFor};

/// How much of the journal is compacted at once. What is held meanwhile grows with it.
pub const PASS_BYTES: u64 = 256 << 20;

/// How long entries are needed one by one, whatever the retention: a key's amount may come for 24 h
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
    pub old: Option<Segment>,
    pub segments: Vec<Segment>,
    /// What comes behind.
    pub rest: Vec<Segment>,
    pub stands_for: Option<StandsFor>,
    pub records: u64,
    pub bytes: u64,
    /// Why the rest stays although it is old enough.
    pub stopped_by: Option<String>,
}

/// A plan in the making, segment by segment.
struct Planning<'a> {
    journal: &'a Directory,
    wanted: &'a Wanted,
    /// The first record of the next segment, where that is known.
    expected: Option<u64>,
    plan: Plan,
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

/// Looks which segments can go, up to `bytes_max`. The last one is being written: it is looked at
/// only with `with_last`.
pub fn plan(
    journal: &Directory,
    wanted: &Wanted,
    with_last: bool,
    bytes_max: u64,
) -> Result<Plan, LedgerError> {
    let mut all = segments(journal, None)?;
    if let Some(begins_at) = begins_late(&all) {
        let why = format!("records before {begins_at} are missing");
        return Ok(Plan::stopped(why));
    }
    let mut planning = Planning {
        journal,
        wanted,
        expected: None,
        plan: Plan::default(),
    };
    if all.first().is_some_and(|first| first.number == COMPACTED) {
        let old = all.remove(0);
        let report = scan(journal, std::slice::from_ref(&old), &mut |_, _, _| {})?;
        let Some(stands_for) = old.stands_for().filter(|_| report.is_sound()) else {
            let why = format!("{} is damaged", segment_name(COMPACTED));
            return Ok(Plan::stopped(why));
        };
        if report.last_seq != Some(stands_for.seq) {
            let why = format!("{} has lost lines", segment_name(COMPACTED));
            return Ok(Plan::stopped(why));
        }
        planning.expected = Some(stands_for.seq.saturating_add(1));
        planning.plan.old = Some(old);
    }
    let movable = if with_last {
        all.len()
    } else {
        all.len().saturating_sub(1)
    };
    let mut taken = 0;
    for segment in all.iter().take(movable) {
        if planning.plan.bytes >= bytes_max || !planning.take(segment)? {
            break;
        }
        taken += 1;
    }
    Ok(Plan {
        rest: all.split_off(taken),
        segments: all,
        ..planning.plan
    })
}

/// Which segments the compaction of what is older than `before_ms` would take. Reads only.
pub fn compactable(state_dir: &Path, before_ms: u64) -> Result<CompactReport, LedgerError> {
    let journal = Directory::open_to_read(&state_dir.join("journal"))?;
    let wanted = Wanted {
        before_ms,
        before_seq: u64::MAX,
        ..Wanted::default()
    };
    let plan = steadily(|| plan(&journal, &wanted, true, u64::MAX))?;
    Ok(plan.report())
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

    /// Nothing can go.
    fn stopped(why: String) -> Self {
        Self {
            stopped_by: Some(why),
            ..Self::default()
        }
    }
}

// === impl Planning ===

impl Planning<'_> {
    fn stop(&mut self, why: String) {
        self.plan.stopped_by = Some(why);
    }

    /// Adds a segment when all of it can go.
    fn take(&mut self, segment: &Segment) -> Result<bool, LedgerError> {
        let name = segment_name(segment.number);
        let Some(header) = &segment.header else {
            self.stop(format!("{name} is damaged"));
            return Ok(false);
        };
        if header.at_ms >= self.wanted.before_ms {
            return Ok(false);
        }
        let mut newest_ms = header.at_ms;
        let only = std::slice::from_ref(segment);
        let report = scan(self.journal, only, &mut |_, _, record| {
            newest_ms = newest_ms.max(moment_ms(&record));
        })?;
        let wanted = self.wanted;
        let is_young = newest_ms >= wanted.before_ms || report.next_seq > wanted.before_seq;
        if is_young {
            return Ok(false);
        }
        if !report.is_sound() || report.torn_tail.is_some() {
            self.stop(format!("{name} is damaged, see `bursar ledger verify`"));
        } else if self
            .expected
            .is_some_and(|expected| expected != header.first_seq)
        {
            self.stop(format!("records before {name} are missing"));
        } else if report.unknown_kinds > 0 {
            self.stop(format!("a newer bursar wrote {name}; compact it with that"));
        } else {
            let plan = &mut self.plan;
            let until_ms = plan.stands_for.map_or(0, |so_far| so_far.until_ms);
            plan.stands_for = Some(StandsFor {
                segment: segment.number,
                seq: report.next_seq.saturating_sub(1),
                until_ms: newest_ms.max(until_ms),
            });
            plan.records += report.records;
            plan.bytes += segment.bytes;
            self.expected = Some(report.next_seq);
        }
        Ok(self.plan.stopped_by.is_none())
    }
}

/// The moment that a record is about; 0 where it has none.
fn moment_ms(record: &Record) -> u64 {
    match record {
        Record::Delivery(row, _) => row.at_ms,
        _ => record.at_ms().map_or(0, |at_ms| at_ms),
    }
}
