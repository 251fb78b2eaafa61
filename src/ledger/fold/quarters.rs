//! What a stretch of records changes in the sums by quarter hour, line, model and state: what `spend` is
//! answered from.
//!
//! An entry is filed under the state it came to, with all its lines. While its price is not known it is
//! filed as unresolved; when evidence comes, what it added moves to `reconciled`.
//!
//! Promise: pure. Sums by quarter hour that these changes are made to equal those of the journal's lines.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::ledger::entry::{Labels, State, StateWord};
use crate::ledger::fold::effect::Effect;
use crate::ledger::fold::models::{Model, SumsAt};
use crate::ledger::id::EntryId;
use crate::ledger::record::Record;
use crate::ledger::rollup::RollupAt;
use crate::ledger::sums::LineSums;

/// The changes of some records.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    added: BTreeMap<SumsAt, LineSums>,
    /// What left a state for another one.
    removed: BTreeMap<SumsAt, LineSums>,
    /// Entries whose price may still come, and what they added.
    unresolved: BTreeMap<EntryId, Filed>,
    evidence: Vec<Evidenced>,
    /// By quarter hour, Unix milliseconds: the numbers of the first and the last record that began or ended an
    /// entry which began then and has ended.
    ends: BTreeMap<u64, (u64, u64)>,
    /// Entries that evidence came for when it was not known any more what they had added.
    unmoved: u64,
    /// The last record of the compacted segment; 0 for none.
    compacted_seq: u64,
}

/// What the first line of an entry said that ends now.
#[derive(Clone, Debug)]
pub struct Begun {
    pub seq: u64,
    pub model: Model,
}

/// What an entry added to the sums when it ended, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filed {
    pub at: SumsAt,
    pub row: LineSums,
    /// It is an eval run's, which may wait for its price for any time.
    pub is_of_run: bool,
}

/// Evidence for an entry, and what it adds.
#[derive(Clone, Debug)]
pub struct Evidenced {
    pub id: EntryId,
    pub at: RollupAt,
    pub row: LineSums,
    /// `None`: the entry's end lies before these records. What the evidence adds is not in the sums yet, and the
    /// entry was not moved.
    pub model: Option<Model>,
}

// === impl Changes ===

impl Changes {
    /// These without their sums, which were written.
    pub fn without_sums(self) -> Self {
        Self {
            unmoved: self.unmoved,
            compacted_seq: self.compacted_seq,
            ..Self::default()
        }
    }

    /// Adds what a record changes. `effect`: what it adds to the sums. `begun`: of the entry that it ends.
    pub fn apply(&mut self, seq: u64, record: &Record, effect: &Effect, begun: Option<Begun>) {
        let filed =
            |labels: &Labels, state| RollupAt::new(labels.started_ms, effect.line.clone(), state);
        let (first_seq, model) = match begun {
            Some(begun) => (begun.seq, begun.model),
            None => (seq, Model::NotKnown),
        };
        match record {
            Record::Rollup(rollup) => {
                self.add(SumsAt::of(rollup.at(), Model::Compacted), &effect.row)
            }
            Record::Outcome(outcome, labels, verdict) => {
                let at = filed(labels, filed_under(record, verdict.state));
                let at = SumsAt::of(at, model);
                self.note_ends(at.at_ms, (first_seq, seq));
                let is_of_run = outcome.run_id.is_some();
                self.end(outcome.id, at, verdict.state, effect, is_of_run);
            }
            Record::Crashed(ended, labels) | Record::Withdrawn(ended, labels) => {
                let at = filed(labels, filed_under(record, ended.state));
                let at = SumsAt::of(at, model);
                self.note_ends(at.at_ms, (first_seq, seq));
                self.end(ended.id, at, ended.state, effect, false);
            }
            Record::Reconciled(evidence, labels) => self.add_evidence(Evidenced {
                id: evidence.id,
                at: filed(labels, StateWord::Reconciled),
                row: effect.row.clone(),
                model: None,
            }),
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
        for evidenced in later.evidence {
            self.add_evidence(evidenced);
        }
        self.unresolved.extend(later.unresolved);
        self.unmoved = self.unmoved.saturating_add(later.unmoved);
        self.note_compacted(later.compacted_seq);
        for (quarter_ms, ends) in later.ends {
            self.note_ends(quarter_ms, ends);
        }
    }

    /// How many sums are held: the measure of its memory.
    pub fn len(&self) -> usize {
        self.added.len() + self.unresolved.len() + self.evidence.len()
    }

    /// The sums that changed: where, by how much, and whether that was added there or left. What was added
    /// comes first.
    pub fn sums(&self) -> impl Iterator<Item = (&SumsAt, &LineSums, bool)> {
        let added = self.added.iter().map(|(at, row)| (at, row, true));
        let removed = self.removed.iter().map(|(at, row)| (at, row, false));
        added.chain(removed)
    }

    /// Entries whose price may still come, and what they added.
    pub fn unresolved(&self) -> impl Iterator<Item = (EntryId, &Filed)> {
        self.unresolved.iter().map(|(id, filed)| (*id, filed))
    }

    /// The numbers of the first and the last record that began or ended an entry which began in a quarter hour and
    /// has ended. The quarter hour's beginning is in Unix milliseconds.
    pub fn ends(&self, quarter_ms: u64) -> Option<(u64, u64)> {
        self.ends.get(&quarter_ms).copied()
    }

    /// Entries that evidence came for when it was not known any more what they had added.
    pub fn unmoved(&self) -> u64 {
        self.unmoved
    }

    /// The last record of the compacted segment; 0 where these have none of it.
    pub fn compacted_seq(&self) -> u64 {
        self.compacted_seq
    }

    /// A record of the compacted segment is among these.
    pub fn note_compacted(&mut self, seq: u64) {
        self.compacted_seq = self.compacted_seq.max(seq);
    }

    /// What evidence came for. Its taker calls [`Self::resolve`] for what has no model yet.
    pub fn take_evidence(&mut self) -> Vec<Evidenced> {
        std::mem::take(&mut self.evidence)
    }

    /// Adds what evidence adds, and moves what its entry had added to `reconciled`. `filed`: where that is still
    /// known. Answers the entry's model.
    pub fn resolve(&mut self, evidenced: &Evidenced, filed: Option<Filed>) -> Model {
        let model = match filed {
            None => {
                self.unmoved = self.unmoved.saturating_add(1);
                Model::NotKnown
            }
            Some(filed) => {
                let model = filed.at.line.model.clone();
                let reconciled = SumsAt {
                    state: StateWord::Reconciled,
                    ..filed.at.clone()
                };
                self.add(reconciled, &filed.row);
                merge(&mut self.removed, filed.at, &filed.row);
                model
            }
        };
        let at = SumsAt::of(evidenced.at.clone(), model.clone());
        self.add(at, &evidenced.row);
        model
    }

    fn end(&mut self, id: EntryId, at: SumsAt, state: State, effect: &Effect, is_of_run: bool) {
        self.add(at.clone(), &effect.row);
        if state.is_unresolved() {
            let row = effect.row.clone();
            self.unresolved.insert(id, Filed { at, row, is_of_run });
        }
    }

    fn add_evidence(&mut self, mut evidenced: Evidenced) {
        if evidenced.model.is_none()
            && let Some(filed) = self.unresolved.remove(&evidenced.id)
        {
            evidenced.model = Some(self.resolve(&evidenced, Some(filed)));
        }
        self.evidence.push(evidenced);
    }

    fn note_ends(&mut self, quarter_ms: u64, (first, last): (u64, u64)) {
        let ends = self.ends.entry(quarter_ms).or_insert((first, last));
        *ends = (first.min(ends.0), last.max(ends.1));
    }

    fn add(&mut self, at: SumsAt, row: &LineSums) {
        merge(&mut self.added, at, row);
    }
}

fn merge(rows: &mut BTreeMap<SumsAt, LineSums>, at: SumsAt, row: &LineSums) {
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
