//! What a start does with damage: it is copied to `quarantine/` and logged.
//!
//! Promise: a damaged range stays in the journal and is copied once; nothing is skipped in silence.

use std::io::{Read, Seek, SeekFrom, Write};

use rustix::fs::OFlags;

use crate::ledger::error::LedgerError;
use crate::ledger::journal::report::{BadRange, ScanReport};
use crate::ledger::journal::segments::segment_name;
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::record::Position;

/// Name of a note in `quarantine/`: nothing recorded how far the journal reached, so that records from
/// this number on may be lost.
pub const LOST: &str = "lost-";

/// A damaged range is copied up to this size. It stays in the journal in any case.
const QUARANTINE_BYTES_MAX: u64 = 64 << 20;

/// Copies damaged ranges to `quarantine/`, once each, and logs it. Returns how many lie there.
pub fn set_aside(
    state: &Directory,
    journal: &Directory,
    report: &ScanReport,
) -> Result<u64, LedgerError> {
    if let Some(torn) = &report.torn_tail {
        tracing::warn!(
            segment = torn.segment,
            offset = torn.offset,
            bytes = torn.bytes,
            "dropped an unfinished line at the journal's end; its write was never confirmed"
        );
    }
    for misplaced in &report.misplaced {
        tracing::error!(
            segment = misplaced.segment,
            offset = misplaced.offset,
            "journal records are out of order; they count once, see `bursar ledger verify`"
        );
    }
    for gap in &report.gaps {
        tracing::error!(
            after_seq = gap.after_seq,
            before_seq = gap.before_seq,
            "journal records are missing; see `bursar ledger verify`"
        );
    }
    let quarantine = state.child("quarantine")?;
    for range in &report.bad {
        tracing::error!(
            segment = range.segment,
            offset = range.offset,
            bytes = range.bytes,
            after_seq = range.after_seq,
            before_seq = range.before_seq,
            "journal records are damaged; copied to quarantine/, see `bursar ledger verify`"
        );
        copy_range(journal, &quarantine, range)?;
    }
    if let Some(range) = report.torn_tail.and_then(|torn| torn_range(report, torn)) {
        copy_range(journal, &quarantine, &range)?;
    }
    Ok(u64::try_from(quarantine.names()?.len()).unwrap_or(u64::MAX))
}

/// Leaves a note that the journal's end was not known. `ledger verify` reports it until somebody has
/// looked and removed it.
pub fn note_lost(state: &Directory, first: u64) -> Result<(), LedgerError> {
    let name = format!("{LOST}{first}");
    let note = format!(
        "Nothing recorded how far the journal reached: records from {first} on may have been lost.\n"
    );
    match state.child("quarantine")?.replace(&name, note.as_bytes()) {
        Err(error) if !error.is_full() => Err(error),
        _ => Ok(()),
    }
}

/// What is cut off at the journal's end held records that were acknowledged: it is kept for a look.
fn torn_range(report: &ScanReport, torn: Position) -> Option<BadRange> {
    let missing = report.missing.last()?;
    let is_lost = missing.last.saturating_add(1) == report.next_seq;
    is_lost.then_some(BadRange {
        segment: torn.segment,
        offset: torn.offset,
        bytes: torn.bytes,
        lines: 0,
        after_seq: report.last_seq,
        before_seq: None,
    })
}

fn copy_range(
    journal: &Directory,
    quarantine: &Directory,
    range: &BadRange,
) -> Result<(), LedgerError> {
    let name = format!("{:08}-{}-{}", range.segment, range.offset, range.bytes);
    let path = quarantine.path().join(&name);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut to = match quarantine.open_file(&name, flags) {
        Ok(file) => file,
        Err(LedgerError::Io { source, .. })
            if source.kind() == std::io::ErrorKind::AlreadyExists =>
        {
            return Ok(());
        }
        Err(error) if error.is_full() => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut from = journal.open_file(&segment_name(range.segment), OFlags::RDONLY)?;
    let copied = from.seek(SeekFrom::Start(range.offset)).and_then(|_| {
        let mut bytes = from.take(range.bytes.min(QUARANTINE_BYTES_MAX));
        std::io::copy(&mut bytes, &mut to)?;
        to.flush()
    });
    match copied.map_err(|error| LedgerError::io(&path, error)) {
        Err(error) if !error.is_full() => Err(error),
        // On a full disk the copy waits for the next start; the range itself is where it was.
        Err(_) => quarantine.remove(&name),
        Ok(()) => Ok(()),
    }
}
