//! From a plan to a compacted segment that counts.
//!
//! Promise: after an error either the old files count or the new one.

use std::sync::atomic::{AtomicBool, Ordering};

use super::fold::{Sorting, evidence_from};
use super::plan::{Plan, Wanted};
use super::write::{Built, NEXT, cannot, write};
use crate::ledger::error::LedgerError;
use crate::ledger::journal::scan::scan;
use crate::ledger::journal::segments::{Segment, segment_name, segments};
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::record::COMPACTED;

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
    let mut sorting = Sorting::new(evidenced, &wanted.awaited);
    for segment in plan.old.iter().chain(&plan.segments) {
        if cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // Checked one by one in `plan`; what was damaged since then shows in the sums.
        let report = scan(
            journal,
            std::slice::from_ref(segment),
            &mut |seq, position, record| sorting.apply(seq, position, record),
        )?;
        if !report.is_sound() || report.torn_tail.is_some() {
            return Err(cannot(format!(
                "{} was damaged meanwhile",
                segment_name(segment.number)
            )));
        }
    }
    let made = sorting.finish();
    if made.entries == 0 || cancel.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let header = first.header.as_ref();
    let header = plan.old.as_ref().map_or(header, |old| old.header.as_ref());
    let Some(header) = header else {
        return Ok(None);
    };
    let built = write(journal, plan, header, stands_for, &made).inspect_err(|_| {
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
