//! What the ledger knows of a stretch of time, to compare it with a figure of the service: the known
//! sum, and everything that is not in it.
//!
//! Promise: one pass over the journal's files; held are counters by reason and operation, what
//! entries in flight are filed under, and the numbers of entries that are in doubt.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crate::ledger::entry::{Anomaly, InDoubt, Labels, State};
use crate::ledger::error::LedgerError;
use crate::ledger::id::EntryId;
use crate::ledger::journal::reader::JournalReader;
use crate::ledger::journal::scan::scan;
use crate::ledger::kept_key::{KeptKey, KeyOrigin};
use crate::ledger::record::Record;
use crate::ledger::rollup::Rollup;
use crate::ledger::sums::MicroUsdSum;
use crate::money::MicroUsd;
use crate::protocol::Operation;

/// How far from the beginning an entry may lie and count on the other side with the service: its days
/// may begin at another hour, and it counts when the work ended, bursar when it began.
pub const SINCE_EDGE_MS: u64 = 24 * 60 * 60 * 1000;

/// The same at the end: its sums may lag a little, and two clocks differ.
pub const UNTIL_EDGE_MS: u64 = 15 * 60 * 1000;

/// Why an entry adds nothing to the known sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unknown {
    InDoubt(InDoubt),
    Unreported,
    /// In flight, or cut off by a crash that no start has seen yet.
    Open,
}

/// Entries begun in `[since_ms, until_ms)`, and the amounts just beside both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Period {
    pub since_ms: u64,
    pub until_ms: u64,
    pub billed: MicroUsdSum,
    /// Entries with a known amount.
    pub priced: u64,
    pub failed: u64,
    pub replayed: u64,
    pub unknown: BTreeMap<(Unknown, Operation), u64>,
    /// Those of `unknown` that took over the key of another one that is still unknown: one purchase.
    pub same_purchase: BTreeMap<(Unknown, Operation), u64>,
    /// The most that an answer of the operation is known to come to: the largest amount that one was billed, or that a
    /// frontier model would have cost for one by the service's estimate. Absent where no amount is known.
    pub dearest: BTreeMap<Operation, MicroUsd>,
    pub anomalies: BTreeMap<Anomaly, u64>,
    /// Amounts that contradicted one that stands, and were not added.
    pub not_added: MicroUsdSum,
    /// Damaged ranges and gaps: what was in them is missing.
    pub damaged: u64,
    /// Billed to entries begun in the edge before the window, and in its first edge.
    pub before_since: MicroUsdSum,
    pub after_since: MicroUsdSum,
    /// Billed to entries begun in the window's last edge, and in the edge behind it.
    pub before_until: MicroUsdSum,
    pub after_until: MicroUsdSum,
}

/// Reads the window from the journal below `state_dir`.
pub fn window(state_dir: &Path, since_ms: u64, until_ms: u64) -> Result<Period, LedgerError> {
    let reader = JournalReader::open(state_dir)?;
    let mut reading = Reading {
        window: Period {
            since_ms,
            until_ms,
            ..Period::default()
        },
        open: HashMap::new(),
        doubts: HashMap::new(),
    };
    let first = reader.first_since(Some(since_ms.saturating_sub(SINCE_EDGE_MS)));
    let part = reader.segments.get(first..).unwrap_or_default();
    let report = scan(&reader.journal, part, &mut |_, _, record| {
        reading.apply(&record);
    })?;
    let report = report.extended_to(reader.mark.known());
    let Reading {
        mut window, open, ..
    } = reading;
    for begun in open.into_values() {
        *window
            .unknown
            .entry((Unknown::Open, begun.operation))
            .or_default() += 1;
    }
    window.unknown.retain(|_, count| *count > 0);
    window.same_purchase.retain(|_, count| *count > 0);
    window.damaged = report.bad_count.saturating_add(report.gap_count);
    Ok(window)
}

struct Reading {
    window: Period,
    /// Entries in flight that lie in the window.
    open: HashMap<EntryId, Begun>,
    /// Entries in doubt in the window, and whether another one stands for the same purchase.
    doubts: HashMap<EntryId, bool>,
}

#[derive(Clone, Copy)]
struct Begun {
    operation: Operation,
    /// Whose key it took over.
    adopted: Option<EntryId>,
}

// === impl Period ===

impl Period {
    pub fn covers(&self, at_ms: u64) -> bool {
        (self.since_ms..self.until_ms).contains(&at_ms)
    }
}

// === impl Reading ===

impl Reading {
    fn apply(&mut self, record: &Record) {
        match record {
            Record::Intent(intent) => {
                if self.window.covers(intent.at_ms) {
                    let begun = Begun {
                        operation: intent.operation,
                        adopted: adopted_from(intent.key.as_ref()),
                    };
                    self.open.insert(intent.id, begun);
                }
            }
            Record::Outcome(outcome, labels, verdict) => {
                let begun = self.open.remove(&outcome.id);
                self.end(labels, verdict.state);
                if let Some(frontier) = outcome.receipt.would_have_cost.value() {
                    self.estimate(labels, frontier);
                }
                self.doubt(outcome.id, begun, labels, verdict.state);
                if self.window.covers(labels.started_ms) {
                    for anomaly in &verdict.anomalies {
                        *self.window.anomalies.entry(*anomaly).or_default() += 1;
                    }
                    let reported = outcome.receipt.billed.value().filter(|_| {
                        !verdict.anomalies.is_empty() && verdict.adds_micro_usd.is_zero()
                    });
                    if let Some(reported) = reported {
                        self.window.not_added.add(reported);
                    }
                }
            }
            Record::Crashed(ended, labels) | Record::Withdrawn(ended, labels) => {
                let begun = self.open.remove(&ended.id);
                self.end(labels, ended.state);
                self.doubt(ended.id, begun, labels, ended.state);
            }
            Record::Reconciled(evidence, labels) => {
                self.leave(labels, evidence.was);
                let is_known = self.doubts.remove(&evidence.id);
                if let (Some(true), State::InDoubt { reason }) = (is_known, evidence.was) {
                    let kind = (Unknown::InDoubt(reason), labels.operation);
                    if let Some(count) = self.window.same_purchase.get_mut(&kind) {
                        *count = count.saturating_sub(1);
                    }
                }
                let billed = evidence.adds_micro_usd;
                self.end(labels, State::Reconciled { billed });
            }
            Record::Rollup(rollup) => self.add(rollup),
            Record::Delivery(..) | Record::Unknown => {}
        }
    }

    fn end(&mut self, labels: &Labels, state: State) {
        let billed = state.adds();
        let at_ms = labels.started_ms;
        self.add_to_edges(at_ms, billed);
        if !self.window.covers(at_ms) {
            return;
        }
        let unknown = match state {
            State::Settled { .. } | State::Reconciled { .. } => {
                self.window.priced += 1;
                self.window.billed.add(billed);
                if !billed.is_zero() {
                    let dearest = self
                        .window
                        .dearest
                        .entry(labels.operation)
                        .or_insert(billed);
                    *dearest = billed.max(*dearest);
                }
                return;
            }
            State::Failed => {
                self.window.failed += 1;
                return;
            }
            State::Replayed => {
                self.window.replayed += 1;
                return;
            }
            State::Unreported => Unknown::Unreported,
            State::InDoubt { reason } => Unknown::InDoubt(reason),
            State::Open => Unknown::Open,
        };
        let key = (unknown, labels.operation);
        *self.window.unknown.entry(key).or_default() += 1;
    }

    /// An answer that is not known may have been escalated, however cheap those that are known were.
    fn estimate(&mut self, labels: &Labels, frontier: MicroUsd) {
        if self.window.covers(labels.started_ms)
            && let Some(dearest) = self.window.dearest.get_mut(&labels.operation)
        {
            *dearest = frontier.max(*dearest);
        }
    }

    /// Entries that were compacted. What the dearest of them cost is not kept.
    fn add(&mut self, rollup: &Rollup) {
        let row = &rollup.row;
        self.add_to_edges(rollup.at_ms, row.billed);
        if !self.window.covers(rollup.at_ms) {
            return;
        }
        self.window.billed.merge(row.billed);
        self.window.priced += row.settled + row.reconciled;
        self.window.failed += row.failed;
        self.window.replayed += row.replayed;
        let operation = rollup.operation;
        let in_doubt = row
            .in_doubt
            .iter()
            .map(|(reason, standing)| (Unknown::InDoubt(*reason), *standing));
        for (unknown, standing) in in_doubt.chain([(Unknown::Unreported, row.unreported)]) {
            let now = standing.came.saturating_sub(standing.left);
            *self.window.unknown.entry((unknown, operation)).or_default() += now;
        }
    }

    /// Evidence came: the entry is not unknown any more.
    fn leave(&mut self, labels: &Labels, was: State) {
        let unknown = match was {
            State::Unreported => Unknown::Unreported,
            State::InDoubt { reason } => Unknown::InDoubt(reason),
            _ => return,
        };
        if self.window.covers(labels.started_ms)
            && let Some(count) = self.window.unknown.get_mut(&(unknown, labels.operation))
        {
            *count = count.saturating_sub(1);
        }
    }

    fn add_to_edges(&mut self, at_ms: u64, billed: impl Into<MicroUsdSum>) {
        let billed = billed.into();
        let (since, until) = (self.window.since_ms, self.window.until_ms);
        if (since.saturating_sub(SINCE_EDGE_MS)..since).contains(&at_ms) {
            self.window.before_since.merge(billed);
        }
        if !self.window.covers(at_ms) {
            if (until..until.saturating_add(UNTIL_EDGE_MS)).contains(&at_ms) {
                self.window.after_until.merge(billed);
            }
            return;
        }
        // An amount of a short window lies in one edge only, so that it explains once.
        if at_ms >= until.saturating_sub(UNTIL_EDGE_MS) {
            self.window.before_until.merge(billed);
        } else if at_ms < since.saturating_add(SINCE_EDGE_MS) {
            self.window.after_since.merge(billed);
        }
    }

    /// An app's retry took over the key of a request in doubt and is in doubt itself: "one key adds at
    /// most one amount", so both together are one purchase.
    fn doubt(&mut self, id: EntryId, begun: Option<Begun>, labels: &Labels, state: State) {
        let (Some(begun), State::InDoubt { reason }) = (begun, state) else {
            return;
        };
        let is_same = begun
            .adopted
            .is_some_and(|from| self.doubts.contains_key(&from));
        self.doubts.insert(id, is_same);
        if is_same {
            let kind = (Unknown::InDoubt(reason), labels.operation);
            *self.window.same_purchase.entry(kind).or_default() += 1;
        }
    }
}

fn adopted_from(key: Option<&KeptKey>) -> Option<EntryId> {
    match key?.origin {
        KeyOrigin::Adopted { from } => Some(from),
        KeyOrigin::Minted | KeyOrigin::App => None,
    }
}

#[cfg(test)]
mod tests;
