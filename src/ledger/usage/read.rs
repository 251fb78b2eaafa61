//! Usage read from the journal's files, beside a daemon or without one.
//!
//! Promise: reads only. Entries that are under way, or were when the process died, count as held.

use std::collections::HashMap;
use std::path::Path;

use super::{Charge, Charged, KEPT_MS, Usage};
use crate::ledger::entry::EntryId;
use crate::ledger::error::LedgerError;
use crate::ledger::query::tape::{Place, Tape};
use crate::ledger::record::{Labels, Record};
use crate::ledger::totals::Held;

/// What counts against caps now. Reads the journal of the last five weeks.
pub fn read(state_dir: &Path, now_ms: u64) -> Result<Usage, LedgerError> {
    let (mut usage, open) = fold(state_dir, now_ms)?;
    for (labels, bytes) in open.into_values() {
        let came = usage.raised(&labels, bytes);
        let apps = usage.quarters.entry(super::quarter_of(labels.started_ms));
        let charge = apps.or_default().entry(labels.app).or_default();
        let mut held = Held::default();
        if let Some(came) = came {
            held.came = came.into();
        }
        charge.merge(Charge {
            held,
            ..Charge::default()
        });
    }
    usage.prune();
    Ok(usage)
}

/// The same without the entries that have no end: for a start, which writes one.
pub(crate) fn read_ended(state_dir: &Path, now_ms: u64) -> Result<Usage, LedgerError> {
    let (mut usage, _) = fold(state_dir, now_ms)?;
    usage.prune();
    Ok(usage)
}

/// Entries without an end, with the size of their requests.
type Open = HashMap<EntryId, (Labels, u64)>;

fn fold(state_dir: &Path, now_ms: u64) -> Result<(Usage, Open), LedgerError> {
    let tape = Tape::open(state_dir)?;
    let since_ms = now_ms.saturating_sub(KEPT_MS);
    let segment = tape.first_since(Some(since_ms));
    let mut forward = tape.forward(Place { segment, offset: 0 });
    let mut usage = Usage::default();
    let mut open = Open::new();
    while let Some((_, record)) = forward.next_record()? {
        let mut bytes = 0;
        match &record {
            Record::Intent(intent) => {
                open.insert(intent.id, (Labels::of_intent(intent), intent.request_bytes));
            }
            Record::Delivery(..) => {}
            other => {
                if let Some((_, size)) = other.entry().and_then(|id| open.remove(&id)) {
                    bytes = size;
                }
            }
        }
        if let Some(charged) = Charged::of(&record, bytes) {
            usage.add(&charged);
        }
    }
    Ok((usage, open))
}
