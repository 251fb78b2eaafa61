//! Usage read from the journal's files, beside a daemon or without one: all of it, or what one run of
//! `bursar exec` was charged, of which a daemon that was restarted knows the name alone.
//!
//! Promise: reads only. The same records make the same sums as the updates of them. Entries that are
//! under way, or were when the process died, count as held.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use memchr::memmem::Finder;

use crate::ledger::entry::Labels;
use crate::ledger::error::LedgerError;
use crate::ledger::fold::charge::Charge;
use crate::ledger::fold::leases::LeaseSums;
use crate::ledger::fold::sessions::SessionSums;
use crate::ledger::fold::usage::{CapUsage, Charged, KEPT_MS};
use crate::ledger::id::EntryId;
use crate::ledger::index::usage_file::UsageFile;
use crate::ledger::journal::reader::{JournalReader, LinePosition};
use crate::ledger::kept_key::KeyOrigin;
use crate::ledger::record::{Line, Record};
use crate::ledger::sums::HeldSums;
use crate::money::MicroUsd;

/// What counts against caps now. Reads the journal of the last five weeks.
pub fn read(state_dir: &Path, now_ms: u64) -> Result<CapUsage, LedgerError> {
    let (mut usage, open) = fold(state_dir, now_ms)?;
    for (id, (labels, bytes)) in open {
        let held = usage.raised(&labels, bytes);
        usage.add(&Charged::under_way(id, &labels, held));
    }
    usage.prune();
    Ok(usage)
}

/// A file of usage with what an older bursar did not write into it.
pub(crate) fn completed(
    kept: UsageFile,
    state_dir: &Path,
    now_ms: u64,
) -> Result<UsageFile, LedgerError> {
    kept.with_sessions(|last_seq| read_sessions(state_dir, now_ms, last_seq))?
        .with_leases(|last_seq| read_leases(state_dir, now_ms, last_seq))
}

/// What sessions came to up to a record, where a file of usage says nothing of them: an older bursar wrote it. Reads
/// the lines that name a session.
fn read_sessions(state_dir: &Path, now_ms: u64, last_seq: u64) -> Result<SessionSums, LedgerError> {
    let mut sessions = SessionSums::default();
    let naming = r#""session":{"hash":"#;
    read_naming(state_dir, now_ms, last_seq, naming, &mut |charged| {
        if let Some(session) = charged.session {
            let (app, at_ms) = (&charged.app, charged.at_ms);
            sessions.add(app, session, at_ms, charged.charge, charged.requests);
        }
    })?;
    sessions.prune();
    Ok(sessions)
}

/// The same of leases.
fn read_leases(state_dir: &Path, now_ms: u64, last_seq: u64) -> Result<LeaseSums, LedgerError> {
    let mut leases = LeaseSums::default();
    let naming = r#""leases":["#;
    read_naming(state_dir, now_ms, last_seq, naming, &mut |charged| {
        leases.add(&charged.leases, charged.at_ms, charged.charge);
    })?;
    leases.prune();
    Ok(leases)
}

/// Hands out what the lines up to a record charge that hold a text.
fn read_naming(
    state_dir: &Path,
    now_ms: u64,
    last_seq: u64,
    naming: &str,
    visit: &mut dyn FnMut(&Charged),
) -> Result<(), LedgerError> {
    let reader = JournalReader::open(state_dir)?;
    let first = reader.first_since(Some(now_ms.saturating_sub(KEPT_MS)));
    let finder = [Finder::new(naming)];
    for segment in first..reader.segments.len() {
        reader.holding(segment, 0, &finder, &mut |line| {
            let Some(Line::Record { seq, record }) = Line::decode(line) else {
                return;
            };
            let charged = Charged::of(&record, 0).filter(|_| seq <= last_seq);
            if let Some(charged) = charged {
                visit(&charged);
            }
        })?;
    }
    Ok(())
}

/// What [`read`] reads without the entries that have no end: for a start, which writes one.
pub(crate) fn read_ended(state_dir: &Path, now_ms: u64) -> Result<CapUsage, LedgerError> {
    let (mut usage, _) = fold(state_dir, now_ms)?;
    usage.prune();
    Ok(usage)
}

/// Entries without an end, with the size of their requests.
type Open = HashMap<EntryId, (Labels, u64)>;

fn fold(state_dir: &Path, now_ms: u64) -> Result<(CapUsage, Open), LedgerError> {
    let reader = JournalReader::open(state_dir)?;
    let since_ms = now_ms.saturating_sub(KEPT_MS);
    let segment = reader.first_since(Some(since_ms));
    let mut forward = reader.forward(LinePosition { segment, offset: 0 });
    let mut usage = CapUsage::default();
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

/// A run as the journal records it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSoFar {
    pub charge: Charge,
    /// Its entries of which something is billed or held, in the order in which they began.
    pub entries: Vec<EntryId>,
}

/// What a run came to, from the journal since `since_ms`.
pub fn read_run(state_dir: &Path, run: &str, since_ms: u64) -> Result<RunSoFar, LedgerError> {
    let reader = JournalReader::open(state_dir)?;
    let segment = reader.first_since(Some(since_ms));
    let mut forward = reader.forward(LinePosition { segment, offset: 0 });
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
            so_far.charge += charged.charge;
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
        so_far.charge += Charge {
            held: HeldSums {
                came: reserved.into(),
                ..HeldSums::default()
            },
            ..Charge::default()
        };
    }
    Ok(so_far)
}
