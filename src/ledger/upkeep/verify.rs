//! `ledger verify`: reads every line of the journal and reports what is not as it should be.
//!
//! Promise: nothing is modified. The index is opened only as a copy, because sled writes on opening.
//! Memory: nine bytes an entry (18 MB for a million), and what is in doubt or in flight.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::Serialize;

use crate::ledger::entry::State;
use crate::ledger::error::LedgerError;
use crate::ledger::fold::effect::Effect;
use crate::ledger::fold::totals::Totals;
use crate::ledger::id::EntryId;
use crate::ledger::index::copy::{CopyError, IndexCopy};
use crate::ledger::index::db::IndexError;
use crate::ledger::index::tree::Checkpoint;
use crate::ledger::index::usage_file::UsageFile;
use crate::ledger::journal::high_water::{HighWater, stopped_seq};
use crate::ledger::journal::quarantine::LOST;
use crate::ledger::journal::reader::{JournalReader, steadily};
use crate::ledger::journal::report::ScanReport;
use crate::ledger::journal::scan::scan;
use crate::ledger::journal::segments::segments;
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::read::lookup;
use crate::ledger::record::Record;
use crate::ledger::sums::MicroUsdSum;

mod damage;

pub use damage::{Damage, DamageKind};

/// How many contradictions are listed one by one; further ones are only counted.
const LISTED_MAX: usize = 1_000;

/// Whether the index equals the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "result", content = "why")]
pub enum IndexCheck {
    Agrees,
    /// It will be rebuilt at the next start.
    Differs(String),
    NotChecked(String),
}

/// What [`verify`] found.
#[derive(Clone, Debug, Serialize)]
pub struct VerifyReport {
    /// Nothing is wrong. A torn tail is nothing wrong: its write was never confirmed.
    pub ok: bool,
    pub ledger: Option<String>,
    /// Segments, records, damaged ranges, gaps, torn tail.
    pub journal: ScanReport,
    /// The same as sequence numbers: which records are lost, and where.
    pub damage: Vec<Damage>,
    /// Entries in flight whose end may be among what is lost: `in_doubt(damaged)` at the next start.
    pub may_have_lost_their_end: u64,
    /// `identity.json` is there and cannot be read.
    pub identity_damaged: bool,
    pub index: IndexCheck,
    /// Lookup files that cannot be used, each with the reason. Nothing is lost by one: the daemon makes it anew.
    pub unfit_lookups: Vec<String>,
    /// Notes in `quarantine/` of an earlier start that could not know where the journal ended:
    /// `lost-FIRST`. Remove a note to accept the loss.
    pub lost: Vec<String>,
    /// Lines that contradict others: an end without an intent, a second end, an amount that is not
    /// its state's.
    pub contradictions: Vec<String>,
    pub contradictions_count: u64,
    pub entries: u64,
    /// Begun and not ended: in flight, or the next start ends them as `in_doubt(crash)`.
    pub open: u64,
    pub billed_micro_usd: MicroUsdSum,
    pub in_doubt: u64,
    pub unreported: u64,
}

#[derive(Default)]
struct Check {
    /// With the number of the intent.
    open: HashMap<EntryId, u64>,
    /// Ids of entries that ended, by their random bits.
    ended: HashSet<u64>,
    /// What evidence may still come for.
    unresolved: HashMap<EntryId, State>,
    contradictions: Vec<String>,
    contradictions_count: u64,
    totals: Totals,
    /// The sums up to the record that the index has reached.
    indexed: Totals,
}

/// Verifies the ledger below `state_dir`.
pub fn verify(state_dir: &Path) -> Result<VerifyReport, LedgerError> {
    let directory = Directory::open_to_read(state_dir)?;
    let identity = directory.known_identity()?;
    let identity_damaged = matches!(identity, Some(None));
    let identity = identity.flatten();
    let journal = Directory::open_to_read(&state_dir.join("journal"))?;
    let ledger = identity.map(|identity| identity.ledger.to_string());
    // Before the segments are listed: what a daemon notes meanwhile is behind what is read here.
    let mark = HighWater::read(&journal)?.known();
    let stopped_seq = stopped_seq(&directory)?;
    let usage_seq = ledger
        .as_ref()
        .map(|ledger| UsageFile::read(&directory, ledger).last_seq);
    let all = segments(&journal, ledger.as_deref())?;
    let index = read_index(&directory, ledger.as_deref());

    let index_seq = index.as_ref().map_or(0, |kept| kept.last_seq);
    let mut check = Check::default();
    let mut report = scan(&journal, &all, &mut |seq, position, record| {
        check.apply(seq, position.segment, &record, seq <= index_seq);
    })?;
    let journal_seq = report.next_seq.saturating_sub(1);
    for known_seq in [mark, Some(index_seq), stopped_seq, usage_seq] {
        report = report.extended_to(known_seq);
    }
    // A daemon that runs has looked at its start.
    let is_end_known = mark.is_some()
        || index_seq > 0
        || report.records == 0
        || directory.is_locked().unwrap_or(false);
    let index = match index {
        Ok(kept) => check.compare(&kept, journal_seq),
        Err(check) => check,
    };
    let lost = lost_notes(state_dir)?;
    let is_sound = report.is_sound() && is_end_known && lost.is_empty() && !identity_damaged;
    let lost_up_to = report.missing.last().map_or(0, |missing| missing.last);
    let lost_ends = check.open.values().filter(|seq| **seq < lost_up_to).count();
    Ok(VerifyReport {
        ok: is_sound && check.contradictions_count == 0 && !matches!(index, IndexCheck::Differs(_)),
        ledger,
        damage: damage::list(&report, is_end_known, &lost),
        may_have_lost_their_end: u64::try_from(lost_ends).unwrap_or(u64::MAX),
        identity_damaged,
        index,
        unfit_lookups: unfit_lookups(state_dir)?,
        lost,
        entries: check.totals.requests(),
        open: u64::try_from(check.open.len()).unwrap_or(u64::MAX),
        billed_micro_usd: check.totals.billed(),
        in_doubt: check.totals.in_doubt().values().sum(),
        unreported: check.totals.unreported().values().sum(),
        contradictions: check.contradictions,
        contradictions_count: check.contradictions_count,
        journal: report,
    })
}

// === impl Check ===

impl Check {
    fn apply(&mut self, seq: u64, segment: u32, record: &Record, is_indexed: bool) {
        match record {
            Record::Intent(intent) => {
                let before = self.open.insert(intent.id, seq);
                if before.is_some() || self.ended.contains(&random_bits(intent.id)) {
                    self.contradict(format!("seq {seq}: entry {} begins twice", intent.id));
                }
            }
            Record::Outcome(outcome, _, verdict) => {
                if verdict.adds_micro_usd != verdict.state.adds() {
                    self.contradict(format!("seq {seq}: the amount is not that of its state"));
                }
                self.end(seq, outcome.id, verdict.state);
            }
            Record::Crashed(ended, _) | Record::Withdrawn(ended, _) => {
                self.end(seq, ended.id, ended.state);
            }
            Record::Reconciled(evidence, _) => {
                // The line that ended it is lost: the evidence does.
                self.open.remove(&evidence.id);
                if self.unresolved.remove(&evidence.id) != Some(evidence.was) {
                    let id = evidence.id;
                    self.contradict(format!(
                        "seq {seq}: entry {id} was not as its evidence says"
                    ));
                }
            }
            Record::Delivery(..) | Record::Rollup(_) | Record::Unknown => {}
        }
        if let Some(effect) = Effect::at(record, segment) {
            self.totals += &effect;
            if is_indexed {
                self.indexed += &effect;
            }
        }
    }

    fn end(&mut self, seq: u64, id: EntryId, state: State) {
        let is_new = self.ended.insert(random_bits(id));
        if self.open.remove(&id).is_none() {
            let what = if is_new {
                "ends and never began"
            } else {
                "ends twice"
            };
            self.contradict(format!("seq {seq}: entry {id} {what}"));
        }
        if state.is_unresolved() {
            self.unresolved.insert(id, state);
        }
    }

    fn contradict(&mut self, what: String) {
        self.contradictions_count += 1;
        if self.contradictions.len() < LISTED_MAX {
            self.contradictions.push(what);
        }
    }

    fn compare(&self, kept: &Checkpoint, journal_seq: u64) -> IndexCheck {
        if kept.last_seq > journal_seq {
            return IndexCheck::Differs(format!(
                "it knows records up to {}, and the journal ends at {journal_seq}",
                kept.last_seq
            ));
        }
        if kept.totals.lines != self.indexed.lines || kept.totals.globals != self.indexed.globals {
            return IndexCheck::Differs(format!(
                "its sums up to record {} are not the journal's: billed {} and {}",
                kept.last_seq,
                kept.totals.billed(),
                self.indexed.billed()
            ));
        }
        IndexCheck::Agrees
    }
}

/// The part of an id that no clock and no counter makes. Two of a million entries share it once in
/// ten million ledgers.
fn random_bits(id: EntryId) -> u64 {
    let (time, random) = id.0.as_u64_pair();
    time.rotate_left(17) ^ random
}

fn unfit_lookups(state_dir: &Path) -> Result<Vec<String>, LedgerError> {
    let reader = steadily(|| JournalReader::open(state_dir))?;
    let unfit = lookup::check(&reader).into_iter();
    Ok(unfit
        .map(|(number, why)| format!("lookup/{number:08}.block: {why}"))
        .collect())
}

fn lost_notes(state_dir: &Path) -> Result<Vec<String>, LedgerError> {
    let path = state_dir.join("quarantine");
    if !path.is_dir() {
        return Ok(Vec::new());
    }
    let mut names = Directory::open_to_read(&path)?.names()?;
    names.retain(|name| name.starts_with(LOST));
    Ok(names)
}

/// What the index keeps, read from a copy of it.
fn read_index(state: &Directory, ledger: Option<&str>) -> Result<Checkpoint, IndexCheck> {
    let not_checked = |why: &str| Err(IndexCheck::NotChecked(why.to_owned()));
    let from = state.path().join("index");
    let Some(ledger) = ledger else {
        return not_checked("the ledger's identity is lost");
    };
    if !from.is_dir() {
        return not_checked("there is none; the next start makes it");
    }
    match state.is_locked() {
        Ok(false) => {}
        Ok(true) => return not_checked("a daemon is using it; it was checked when that started"),
        Err(error) => return not_checked(&error.to_string()),
    }
    let copy = IndexCopy::of(&from, ledger).map_err(|error| match error {
        CopyError::Io(error) => {
            IndexCheck::NotChecked(format!("it cannot be copied for a look: {error}"))
        }
        CopyError::Index(error) => IndexCheck::Differs(error.to_string()),
    })?;
    match copy.index.check_quarters() {
        Ok(()) | Err(IndexError::Unfit) => Ok(copy.kept),
        Err(error) => Err(IndexCheck::Differs(error.to_string())),
    }
}

#[cfg(test)]
mod tests;
