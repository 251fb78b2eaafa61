//! What a stretch of records changes in the sums by quarter hour, line and state: what `spend` is answered
//! from.
//!
//! An entry is filed under the state it came to, with all its lines. While its price is not known it is
//! filed as unresolved; when evidence comes, what it added moves to `reconciled`.
//!
//! Promise: pure. Sums by quarter hour that these changes are made to equal those of the journal's lines.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::ledger::entry::{Labels, State, StateWord};
use crate::ledger::fold::effect::Effect;
use crate::ledger::id::EntryId;
use crate::ledger::record::Record;
use crate::ledger::rollup::RollupAt;
use crate::ledger::sums::LineSums;

/// The changes of some records.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    added: BTreeMap<RollupAt, LineSums>,
    /// What left a state for another one.
    removed: BTreeMap<RollupAt, LineSums>,
    /// Entries whose price may still come, and what they added.
    unresolved: BTreeMap<EntryId, Filed>,
    evidence: Vec<Evidenced>,
    /// By quarter hour, Unix milliseconds: the numbers of the first and the last record that ended an entry
    /// which began then.
    ends: BTreeMap<u64, (u64, u64)>,
    /// Entries that evidence came for when it was not known any more what they had added.
    unmoved: u64,
}

/// What an entry added to the sums when it ended, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filed {
    pub at: RollupAt,
    pub row: LineSums,
    /// It is an eval run's, which may wait for its price for any time.
    pub is_of_run: bool,
}

/// Evidence for an entry: what it adds, and whether the entry was moved with it.
#[derive(Clone, Debug)]
pub struct Evidenced {
    pub id: EntryId,
    pub at: RollupAt,
    pub row: LineSums,
    /// `false`: its end lies before these records.
    pub is_moved: bool,
}

// === impl Changes ===

impl Changes {
    /// No sums: so many entries that evidence came for could not be moved.
    pub fn of_unmoved(unmoved: u64) -> Self {
        Self {
            unmoved,
            ..Self::default()
        }
    }

    /// Adds what a record changes. `effect`: what it adds to the sums.
    pub fn apply(&mut self, seq: u64, record: &Record, effect: &Effect) {
        let filed =
            |labels: &Labels, state| RollupAt::new(labels.started_ms, effect.line.clone(), state);
        match record {
            Record::Rollup(rollup) => self.add(rollup.at(), &effect.row),
            Record::Outcome(outcome, labels, verdict) => {
                let at = filed(labels, filed_under(record, verdict.state));
                let is_of_run = outcome.run_id.is_some();
                self.end(seq, outcome.id, at, verdict.state, effect, is_of_run);
            }
            Record::Crashed(ended, labels) | Record::Withdrawn(ended, labels) => {
                let at = filed(labels, filed_under(record, ended.state));
                self.end(seq, ended.id, at, ended.state, effect, false);
            }
            Record::Reconciled(evidence, labels) => {
                let at = filed(labels, StateWord::Reconciled);
                self.add(at.clone(), &effect.row);
                let is_moved = self.move_resolved(evidence.id);
                self.evidence.push(Evidenced {
                    id: evidence.id,
                    at,
                    row: effect.row.clone(),
                    is_moved,
                });
            }
            Record::Intent(_) | Record::Delivery(..) | Record::Unknown => {}
        }
    }

    /// Takes over what came after these.
    pub fn extend(&mut self, later: Self) {
        for (at, row) in later.added {
            self.add(at, &row);
        }
        for (at, row) in later.removed {
            merge(&mut self.removed, at, &row);
        }
        for mut evidenced in later.evidence {
            evidenced.is_moved = evidenced.is_moved || self.move_resolved(evidenced.id);
            self.evidence.push(evidenced);
        }
        self.unresolved.extend(later.unresolved);
        self.unmoved = self.unmoved.saturating_add(later.unmoved);
        for (quarter, (first, last)) in later.ends {
            self.note_end(quarter, first);
            self.note_end(quarter, last);
        }
    }

    /// How many sums are held: the measure of its memory.
    pub fn len(&self) -> usize {
        self.added.len() + self.unresolved.len() + self.evidence.len()
    }

    /// The sums that changed: where, by how much, and whether that was added there or left. What was added
    /// comes first.
    pub fn sums(&self) -> impl Iterator<Item = (&RollupAt, &LineSums, bool)> {
        let added = self.added.iter().map(|(at, row)| (at, row, true));
        let removed = self.removed.iter().map(|(at, row)| (at, row, false));
        added.chain(removed)
    }

    /// Entries whose price may still come, and what they added.
    pub fn unresolved(&self) -> impl Iterator<Item = (EntryId, &Filed)> {
        self.unresolved.iter().map(|(id, filed)| (*id, filed))
    }

    /// The numbers of the first and the last record that ended an entry which began in a quarter hour. Its
    /// beginning is in Unix milliseconds.
    pub fn ends(&self, quarter_ms: u64) -> Option<(u64, u64)> {
        self.ends.get(&quarter_ms).copied()
    }

    /// Entries that evidence came for when it was not known any more what they had added.
    pub fn unmoved(&self) -> u64 {
        self.unmoved
    }

    /// What evidence came for; whoever takes it moves what is not moved yet.
    pub fn take_evidence(&mut self) -> Vec<Evidenced> {
        std::mem::take(&mut self.evidence)
    }

    /// Moves what an entry added from its state to `reconciled`.
    pub fn move_filed(&mut self, filed: Filed) {
        let reconciled = RollupAt {
            state: StateWord::Reconciled,
            ..filed.at.clone()
        };
        self.add(reconciled, &filed.row);
        merge(&mut self.removed, filed.at, &filed.row);
    }

    fn end(
        &mut self,
        seq: u64,
        id: EntryId,
        at: RollupAt,
        state: State,
        effect: &Effect,
        is_of_run: bool,
    ) {
        self.note_end(at.at_ms, seq);
        self.add(at.clone(), &effect.row);
        if state.is_unresolved() {
            let row = effect.row.clone();
            self.unresolved.insert(id, Filed { at, row, is_of_run });
        }
    }

    fn move_resolved(&mut self, id: EntryId) -> bool {
        let filed = self.unresolved.remove(&id);
        filed.map(|filed| self.move_filed(filed)).is_some()
    }

    fn note_end(&mut self, quarter_ms: u64, seq: u64) {
        let (first, last) = self.ends.entry(quarter_ms).or_insert((seq, seq));
        *first = seq.min(*first);
        *last = seq.max(*last);
    }

    fn add(&mut self, at: RollupAt, row: &LineSums) {
        merge(&mut self.added, at, row);
    }
}

fn merge(rows: &mut BTreeMap<RollupAt, LineSums>, at: RollupAt, row: &LineSums) {
    match rows.entry(at) {
        Entry::Occupied(sums) => *sums.into_mut() += row,
        Entry::Vacant(place) => drop(place.insert(row.clone())),
    }
}

/// The word that the line which ends an entry files it under, as long as no evidence came.
pub fn filed_under(record: &Record, state: State) -> StateWord {
    match record.is_malformed() {
        true => StateWord::Malformed,
        false => state.word(),
    }
}
