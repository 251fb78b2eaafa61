//! Writes the compacted segment, and reads it back before it counts.
//!
//! Its lines carry the last numbers of the range it stands for, so that the numbers go on without a
//! jump from it to the next segment and a line that is lost shows as a gap. There are enough: each of
//! its lines stands for a line of the range.
//!
//! Promise: what is written adds up to what was read, or it is an error. Memory is bounded by the new
//! sums; those of the compacted segment there is are merged as they are read.

use std::fs::File;
use std::io::{BufWriter, Read, Take, Write};

use rustix::fs::OFlags;

use super::fold::Replacement;
use super::plan::Plan;
use crate::ledger::error::LedgerError;
use crate::ledger::fold::effect::Effect;
use crate::ledger::fold::totals::Totals;
use crate::ledger::journal::lines::Lines;
use crate::ledger::journal::segments::Segment;
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::record::{COMPACTED, FORMAT_COMPACTED, Line, Record, SegmentHeader, StandsFor};
use crate::ledger::rollup::Rollup;

/// Name of the compacted segment while it is being written.
pub const NEXT: &str = "00000000.jsonl.next";

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

/// The rollups of the compacted segment there is, in their order.
struct OldRollups<'a> {
    journal: &'a Directory,
    lines: Option<Lines<Take<File>>>,
}

pub fn write(
    journal: &Directory,
    plan: &Plan,
    like: &SegmentHeader,
    stands_for: StandsFor,
    made: &Replacement,
) -> Result<Built, LedgerError> {
    let mut count = u64::try_from(made.kept_lines.len()).unwrap_or(u64::MAX);
    merged(journal, plan, made, |_| {
        count += 1;
        Ok(())
    })?;
    let Some(before_first) = stands_for.seq.checked_sub(count) else {
        return Err(cannot(format!(
            "{count} lines do not fit into {} numbers",
            stands_for.seq
        )));
    };

    let until_ms = plan.old.as_ref().and_then(Segment::stands_for);
    let until_ms = until_ms.map_or(0, |old| old.until_ms);
    let stands_for = StandsFor {
        until_ms: stands_for.until_ms.max(until_ms),
        ..stands_for
    };
    let header = SegmentHeader {
        format: FORMAT_COMPACTED,
        segment: COMPACTED,
        first_seq: before_first + 1,
        stands_for: Some(stands_for),
        ..like.clone()
    };
    let path = journal.path().join(NEXT);
    let failed = |error: std::io::Error| LedgerError::io(&path, error);
    let encoded = |error: serde_json::Error| failed(error.into());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let mut out = BufWriter::new(journal.open_file(NEXT, flags)?);
    let mut line = Vec::new();
    header.encode(&mut line).map_err(encoded)?;
    out.write_all(&line).map_err(failed)?;
    #[cfg(test)]
    crate::ledger::journal::faults::fail_write(&path, out.get_mut(), &line).map_err(failed)?;

    let mut seq = before_first;
    let mut globals = Some(made.globals.clone());
    let mut bytes_after = u64::try_from(line.len()).unwrap_or(u64::MAX);
    let mut put = |record: &Record| {
        seq += 1;
        line.clear();
        record.encode(seq, &mut line).map_err(encoded)?;
        bytes_after += u64::try_from(line.len()).unwrap_or(u64::MAX);
        out.write_all(&line).map_err(failed)
    };
    merged(journal, plan, made, |mut rollup| {
        rollup.globals = globals.take();
        put(&Record::Rollup(Box::new(rollup)))
    })?;
    made.kept_lines.iter().try_for_each(&mut put)?;
    let file = out
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;

    check(journal, &made.totals, before_first, stands_for.seq)?;
    Ok(Built {
        stands_for,
        bytes_before: plan.bytes + plan.old.as_ref().map_or(0, |old| old.bytes),
        bytes_after,
        entries: made.entries,
        kept: made.kept,
    })
}

pub fn cannot(why: String) -> LedgerError {
    LedgerError::CannotCompact { why }
}

/// The old sums and the new ones as one, in order.
fn merged(
    journal: &Directory,
    plan: &Plan,
    made: &Replacement,
    mut visit: impl FnMut(Rollup) -> Result<(), LedgerError>,
) -> Result<(), LedgerError> {
    let mut old = OldRollups::open(journal, plan.old.as_ref())?;
    let mut next_old = old.next()?;
    let mut new = made.rows.iter().peekable();
    loop {
        match (next_old.take(), new.peek()) {
            (None, None) => return Ok(()),
            (Some(mut rollup), Some((at, (row, tallies)))) if rollup.at() == **at => {
                rollup.row += row;
                rollup.tallies.merge(tallies);
                new.next();
                visit(rollup)?;
                next_old = old.next()?;
            }
            (Some(rollup), Some((at, _))) if rollup.at() > **at => {
                if let Some((at, (row, tallies))) = new.next() {
                    visit(Rollup::new(at.clone(), row.clone(), tallies.clone()))?;
                }
                next_old = Some(rollup);
            }
            (Some(rollup), _) => {
                visit(rollup)?;
                next_old = old.next()?;
            }
            (None, Some(_)) => {
                if let Some((at, (row, tallies))) = new.next() {
                    visit(Rollup::new(at.clone(), row.clone(), tallies.clone()))?;
                }
            }
        }
    }
}

/// Reads what was written: as many lines with these numbers, and the same sums.
fn check(
    journal: &Directory,
    wanted: &Totals,
    before_first: u64,
    last: u64,
) -> Result<(), LedgerError> {
    let path = journal.path().join(NEXT);
    let mut lines = Lines::new(journal.open_file(NEXT, OFlags::RDONLY)?);
    let mut found = Totals::default();
    let mut reached = None;
    while let Some(raw) = lines
        .next()
        .map_err(|error| LedgerError::io(&path, error))?
    {
        match Line::decode(lines.text(&raw)) {
            Some(Line::Header(_)) if reached.is_none() => reached = Some(before_first),
            Some(Line::Record { seq, record })
                if reached.and_then(|r| r.checked_add(1)) == Some(seq) =>
            {
                reached = Some(seq);
                if let Some(effect) = Effect::at(&record, COMPACTED) {
                    found += &effect;
                }
            }
            _ => return Err(cannot("what was written cannot be read".to_owned())),
        }
    }
    if reached != Some(last) || found.lines != wanted.lines || found.globals != wanted.globals {
        return Err(cannot("the sums came out different".to_owned()));
    }
    Ok(())
}

// === impl OldRollups ===

impl<'a> OldRollups<'a> {
    fn open(journal: &'a Directory, old: Option<&Segment>) -> Result<Self, LedgerError> {
        let lines = match old {
            Some(old) => Some(Lines::new(old.open(journal)?.take(old.bytes))),
            None => None,
        };
        Ok(Self { journal, lines })
    }

    fn next(&mut self) -> Result<Option<Rollup>, LedgerError> {
        let Some(lines) = &mut self.lines else {
            return Ok(None);
        };
        while let Some(raw) = lines
            .next()
            .map_err(|error| LedgerError::io(self.journal.path(), error))?
        {
            let line = lines.text(&raw);
            if Line::looks_rolled_up(line)
                && let Some(Line::Record { record, .. }) = Line::decode(line)
                && let Record::Rollup(rollup) = record
            {
                return Ok(Some(*rollup));
            }
        }
        Ok(None)
    }
}
