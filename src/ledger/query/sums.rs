//! Sums by group, folded line by line.
//!
//! Promise: held are the rows of the answer, at most [`ROWS_MAX`], what entries in flight are filed
//! under, and, when it is asked by state, the ids of entries whose amount came later.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::listing::reconciled_after;
use super::tape::{Place, Tape};
use super::{GroupBy, Spend, SpendRow, StateWord, is_malformed};
use crate::ledger::entry::{EntryId, State};
use crate::ledger::error::LedgerError;
use crate::ledger::record::{Labels, Record};
use crate::ledger::rollup::{GRAIN_MS, Rollup};
use crate::ledger::scan::{ScanReport, scan};
use crate::ledger::totals::{Effect, RollupKey, Row};

/// Most rows of an answer: ten years of days for two dozen apps and operations.
pub const ROWS_MAX: usize = 100_000;

/// What is summed.
pub struct Sums<'a> {
    pub since_ms: Option<u64>,
    pub until_ms: Option<u64>,
    pub group: &'a [GroupBy],
    pub time_zone: &'a TimeZone,
    pub rows_max: usize,
}

struct Folding<'a> {
    asked: &'a Sums<'a>,
    /// By the words of the group; with the count of open entries.
    rows: BTreeMap<Vec<String>, (Row, u64)>,
    open: HashMap<EntryId, Labels>,
    /// Entries that evidence comes for. Filled only when it is asked by state.
    reconciled: HashSet<EntryId>,
    /// There were more rows than there may be.
    is_cut: bool,
    is_rounded: bool,
}

// === impl Sums ===

impl Sums<'_> {
    pub fn of(&self, tape: &Tape) -> Result<Spend, LedgerError> {
        let first = tape.first_since(self.since_ms);
        let reconciled = if self.group.contains(&GroupBy::State) {
            let segment = first;
            reconciled_after(tape, Place { segment, offset: 0 })?
        } else {
            HashSet::new()
        };
        let mut folding = Folding {
            asked: self,
            rows: BTreeMap::new(),
            open: HashMap::new(),
            reconciled,
            is_cut: false,
            is_rounded: false,
        };
        let part = tape.segments.get(first..).unwrap_or_default();
        let mut report = scan(&tape.journal, part, &mut |_, _, record| {
            folding.apply(&record);
        })?;
        report.extend_to(tape.mark.known());
        folding.finish(&report)
    }

    fn covers(&self, labels: &Labels) -> bool {
        self.since_ms.is_none_or(|since| labels.started_ms >= since)
            && self.until_ms.is_none_or(|until| labels.started_ms < until)
    }

    fn words(&self, labels: &Labels, key: &RollupKey, state: &'static str) -> Vec<String> {
        let word = |by: &GroupBy| match by {
            GroupBy::App => labels.app.to_string(),
            GroupBy::Lane => labels.lane.to_string(),
            GroupBy::Operation => labels.operation.to_string(),
            GroupBy::ServedBy => key.line.served_by_word().to_owned(),
            GroupBy::Day => day(labels.started_ms, self.time_zone),
            GroupBy::State => state.to_owned(),
        };
        self.group.iter().map(word).collect()
    }
}

// === impl Folding ===

impl Folding<'_> {
    fn apply(&mut self, record: &Record) {
        let (id, labels, state) = match record {
            Record::Intent(intent) => {
                let labels = Labels::of_intent(intent);
                if self.asked.covers(&labels) {
                    self.open.insert(intent.id, labels);
                }
                return;
            }
            Record::Outcome(outcome, labels, verdict) => (outcome.id, labels, verdict.state),
            Record::Crashed(ended, labels) | Record::Withdrawn(ended, labels) => {
                (ended.id, labels, ended.state)
            }
            Record::Reconciled(evidence, labels) => {
                let state = State::Reconciled {
                    billed: evidence.adds_micro_usd,
                };
                (evidence.id, labels, state)
            }
            Record::Rollup(rollup) => return self.rollup(rollup),
            Record::Delivery(..) | Record::Unknown => return,
        };
        self.open.remove(&id);
        if !self.asked.covers(labels) {
            return;
        }
        // An entry is filed under the state it came to, with all its lines.
        let state = if state.is_unresolved() && self.reconciled.contains(&id) {
            StateWord::Reconciled.as_str()
        } else if is_malformed(record) {
            StateWord::Malformed.as_str()
        } else {
            state.word()
        };
        if let Some(effect) = Effect::of(record)
            && let Some((row, _)) = self.row(self.asked.words(labels, &effect.key, state))
        {
            row.merge(&effect.row);
        }
    }

    /// Sums of a quarter hour count for the moment it begins.
    fn rollup(&mut self, rollup: &Rollup) {
        let within = rollup.at_ms + 1..rollup.at_ms.saturating_add(GRAIN_MS);
        let bounds = [self.asked.since_ms, self.asked.until_ms];
        self.is_rounded |= bounds.iter().flatten().any(|bound| within.contains(bound));
        let labels = rollup.labels();
        if !self.asked.covers(&labels) {
            return;
        }
        let effect = rollup.effect();
        let words = self
            .asked
            .words(&labels, &effect.key, rollup.state.as_str());
        if let Some((row, _)) = self.row(words) {
            row.merge(&effect.row);
        }
    }

    fn row(&mut self, words: Vec<String>) -> Option<&mut (Row, u64)> {
        if self.rows.len() >= self.asked.rows_max && !self.rows.contains_key(&words) {
            self.is_cut = true;
            return None;
        }
        Some(self.rows.entry(words).or_default())
    }

    fn finish(mut self, report: &ScanReport) -> Result<Spend, LedgerError> {
        for labels in std::mem::take(&mut self.open).into_values() {
            let key = RollupKey::new(&labels, None);
            let words = self.asked.words(&labels, &key, StateWord::Open.as_str());
            if let Some((_, open)) = self.row(words) {
                *open += 1;
            }
        }
        if self.is_cut {
            let max = self.asked.rows_max;
            return Err(LedgerError::TooManyRows { max });
        }
        let mut total = (Row::default(), 0);
        let mut rows = Vec::with_capacity(self.rows.len());
        for (words, (row, open)) in self.rows {
            total.0.merge(&row);
            total.1 += open;
            let labels = self.asked.group.iter().copied().zip(words);
            rows.push(SpendRow::new(labels.collect(), &row, open));
        }
        Ok(Spend {
            rows,
            total: SpendRow::new(BTreeMap::new(), &total.0, total.1),
            damaged: report.bad_count.saturating_add(report.gap_count),
            is_rounded: self.is_rounded,
        })
    }
}

/// The calendar day of an instant, `2026-05-09`.
fn day(at_ms: u64, time_zone: &TimeZone) -> String {
    i64::try_from(at_ms)
        .ok()
        .and_then(|at_ms| Timestamp::from_millisecond(at_ms).ok())
        .map_or_else(
            || "unknown".to_owned(),
            |at| at.to_zoned(time_zone.clone()).date().to_string(),
        )
}
