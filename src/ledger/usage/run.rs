//! What a run of `bursar exec` was charged, read from the journal's files: a daemon that was restarted
//! knows a run by its name alone.
//!
//! Promise: reads only. The same records make the same sums as the news of them. An entry without an
//! end counts as held.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::{Charge, Charged};
use crate::ledger::entry::{EntryId, KeyOrigin};
use crate::ledger::error::LedgerError;
use crate::ledger::query::tape::{Place, Tape};
use crate::ledger::record::{Labels, Record};
use crate::ledger::totals::Held;
use crate::money::MicroUsd;

/// A run as the journal tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSoFar {
    pub charge: Charge,
    /// Its entries of which something is billed or held, in the order in which they began.
    pub entries: Vec<EntryId>,
}

/// What a run came to, from the journal since `since_ms`.
pub fn read_run(state_dir: &Path, run: &str, since_ms: u64) -> Result<RunSoFar, LedgerError> {
    let tape = Tape::open(state_dir)?;
    let segment = tape.first_since(Some(since_ms));
    let mut forward = tape.forward(Place { segment, offset: 0 });
    let mut so_far = RunSoFar::default();
    // Of its entries what is held for them while they have no end.
    let mut open: HashMap<EntryId, Option<MicroUsd>> = HashMap::new();
    // Those that repeat what the run has bought.
    let mut covered: HashSet<EntryId> = HashSet::new();
    while let Some((_, record)) = forward.next_record()? {
        if let Record::Intent(intent) = &record {
            let labels = Labels::of_intent(intent);
            if labels.run.as_deref() == Some(run) {
                open.insert(intent.id, labels.reserved);
                let repeats = intent.key.as_ref().and_then(|key| match key.origin {
                    KeyOrigin::Adopted { from } => Some(from),
                    KeyOrigin::Minted | KeyOrigin::App => None,
                });
                if repeats.is_some_and(|from| so_far.entries.contains(&from)) {
                    covered.insert(intent.id);
                }
                so_far.entries.push(intent.id);
            }
            continue;
        }
        let Some(charged) = Charged::of(&record, 0) else {
            continue;
        };
        // An older bursar wrote the name on the intent alone.
        let known = charged.entry.and_then(|entry| open.get_mut(&entry));
        let is_of_run = known.is_some() || charged.run.as_deref() == Some(run);
        if let Some(reserved) = known {
            *reserved = None;
        }
        if is_of_run {
            so_far.charge.merge(charged.charge);
        }
        let is_free = charged.charge == Charge::default();
        if let Some(entry) = charged
            .entry
            .filter(|entry| is_free && !covered.contains(entry))
        {
            so_far.entries.retain(|other| *other != entry);
        }
    }
    for reserved in open.into_values().flatten() {
        so_far.charge.merge(Charge {
            held: Held {
                came: reserved.into(),
                ..Held::default()
            },
            ..Charge::default()
        });
    }
    Ok(so_far)
}
