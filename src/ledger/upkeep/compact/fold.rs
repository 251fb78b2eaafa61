//! Sorts the lines that are compacted into sums and into lines that are kept.
//!
//! Promise: every line goes one way or the other, and the sums of both are those of all lines read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;

use crate::ledger::entry::{Labels, State, StateWord};
use crate::ledger::error::LedgerError;
use crate::ledger::fold::effect::Effect;
use crate::ledger::fold::quarters::filed_under;
use crate::ledger::fold::totals::Totals;
use crate::ledger::id::EntryId;
use crate::ledger::journal::lines::Lines;
use crate::ledger::journal::segments::Segment;
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::record::{Line, Position, Record};
use crate::ledger::rollup::RollupAt;
use crate::ledger::sums::{Globals, LineSums};
use crate::ledger::tallies::{DayValues, Tallies};

/// Takes the lines one by one.
pub struct Sorting<'a> {
    evidenced: HashSet<EntryId>,
    awaited: &'a HashSet<EntryId>,
    /// Entries that did not come to their last state yet.
    held: HashMap<EntryId, Vec<(u64, Record)>>,
    values: DayValues,
    made: Replacement,
}

/// What was made of the lines.
#[derive(Default)]
pub struct Replacement {
    /// The new sums. Those of the compacted segment there is are added when it is written.
    pub rows: BTreeMap<RollupAt, (LineSums, Tallies)>,
    pub globals: Globals,
    /// Of all lines read: what the new segment must add up to.
    pub totals: Totals,
    /// Entries of which only the sums are left.
    pub entries: u64,
    /// The lines that are kept, in their order.
    pub kept_lines: Vec<Record>,
    /// How many entries they belong to.
    pub kept: u64,
}

/// The entries that evidence comes for, anywhere from the first of `segments` to the end.
pub fn evidence_from(
    journal: &Directory,
    segments: &[Segment],
    rest: &[Segment],
) -> Result<HashSet<EntryId>, LedgerError> {
    let mut found = HashSet::new();
    for segment in segments.iter().chain(rest) {
        let file = segment.open(journal)?.take(segment.bytes);
        let mut lines = Lines::new(file);
        while let Some(raw) = lines
            .next()
            .map_err(|error| LedgerError::io(journal.path(), error))?
        {
            let line = lines.text(&raw);
            if Line::looks_reconciled(line)
                && let Some(Line::Record { record, .. }) = Line::decode(line)
                && let Record::Reconciled(evidence, _) = record
            {
                found.insert(evidence.id);
            }
        }
    }
    Ok(found)
}

// === impl Sorting ===

impl<'a> Sorting<'a> {
    pub fn new(evidenced: HashSet<EntryId>, awaited: &'a HashSet<EntryId>) -> Self {
        Self {
            evidenced,
            awaited,
            held: HashMap::new(),
            values: DayValues::default(),
            made: Replacement::default(),
        }
    }

    pub fn apply(&mut self, seq: u64, position: Position, record: Record) {
        if let Some(effect) = Effect::at(&record, position.segment) {
            self.made.totals += &effect;
            if let Some(globals) = &effect.globals {
                self.made.globals += globals;
            }
        }
        let (id, state) = match &record {
            Record::Intent(intent) => (intent.id, State::Open),
            Record::Outcome(outcome, _, verdict) => (outcome.id, verdict.state),
            Record::Crashed(ended, _) | Record::Withdrawn(ended, _) => (ended.id, ended.state),
            Record::Reconciled(evidence, _) => {
                let billed = evidence.adds_micro_usd;
                (evidence.id, State::Reconciled { billed })
            }
            // Of use for a day only, and adds to no sum.
            Record::Delivery(..) | Record::Rollup(_) | Record::Unknown => return,
        };
        let may_change = match state {
            State::Open => true,
            state if state.is_unresolved() => {
                self.evidenced.contains(&id) || self.awaited.contains(&id)
            }
            _ => false,
        };
        if may_change {
            self.held.entry(id).or_default().push((seq, record));
            return;
        }
        // An entry is filed under the state it came to, with all its lines.
        let word = filed_under(&record, state);
        for (_, earlier) in self.held.remove(&id).unwrap_or_default() {
            self.fold(&earlier, word);
        }
        self.fold(&record, word);
        self.made.entries += 1;
    }

    fn fold(&mut self, record: &Record, state: StateWord) {
        let (Some(effect), Some(labels)) = (Effect::of(record), labels(record)) else {
            return;
        };
        let (at_ms, row) = (labels.started_ms, &effect.row);
        let tallies = labels
            .marks
            .as_ref()
            .map(|marks| Tallies::of(marks, &labels.app, at_ms, row, &mut self.values));
        let at = RollupAt::new(at_ms, effect.line, state);
        let (sums, by_mark) = self.made.rows.entry(at).or_default();
        *sums += &effect.row;
        if let Some(tallies) = tallies {
            by_mark.merge(&tallies);
        }
    }

    /// After the last line.
    pub fn finish(self) -> Replacement {
        let kept = u64::try_from(self.held.len()).unwrap_or(u64::MAX);
        let mut lines: Vec<(u64, Record)> = self.held.into_values().flatten().collect();
        lines.sort_unstable_by_key(|(seq, _)| *seq);
        Replacement {
            kept_lines: lines.into_iter().map(|(_, record)| record).collect(),
            kept,
            ..self.made
        }
    }
}

/// What the entry of a line is filed under.
fn labels(record: &Record) -> Option<&Labels> {
    match record {
        Record::Outcome(_, labels, _)
        | Record::Crashed(_, labels)
        | Record::Withdrawn(_, labels)
        | Record::Reconciled(_, labels) => Some(labels),
        Record::Intent(_) | Record::Delivery(..) | Record::Rollup(_) | Record::Unknown => None,
    }
}
