//! Questions to the ledger, answered from the journal's files: beside a running daemon or without
//! one, with no lock and no index.
//!
//! Promise: reads only. A line being written now is not there yet; everything else is as the daemon
//! sees it, and the sums are the same to the micro-dollar (rule I10).

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::ledger::entry::{EntryId, State};
pub use crate::ledger::entry_view::EntryView;
use crate::ledger::entry_view::Views;
use crate::ledger::error::LedgerError;
pub use crate::ledger::record::How;
use crate::ledger::record::{Labels, Record};
pub use crate::ledger::scan::{BadRange, Gap, ScanReport, TornTail};
use crate::ledger::scan::{Segment, scan, segments};
use crate::ledger::state_dir::Directory;
use crate::ledger::totals::{Effect, MicroUsdSum, RollupKey, Row};
pub use crate::ledger::verify::{IndexCheck, VerifyReport, verify};
use crate::protocol::closed_set;

/// How far a clock may have been set back within a segment before a query by time misses a line.
const CLOCK_SLACK_MS: u64 = 25 * 60 * 60 * 1000;

closed_set! {
    /// Entry states without their details.
    StateWord {
        Open => "open",
        Settled => "settled",
        Failed => "failed",
        Replayed => "replayed",
        Unreported => "unreported",
        InDoubt => "in_doubt",
        Reconciled => "reconciled",
    }
}

closed_set! {
    /// What sums are grouped by.
    GroupBy {
        App => "app",
        Lane => "lane",
        Operation => "operation",
        ServedBy => "served_by",
        Day => "day",
        State => "state",
    }
}

/// Which entries to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Begun at or after, Unix milliseconds.
    pub since_ms: Option<u64>,
    /// Begun before.
    pub until_ms: Option<u64>,
    pub app: Option<String>,
    pub state: Option<StateWord>,
    /// One entry.
    pub id: Option<EntryId>,
    /// Only entries that something happened to after this sequence number: for following.
    pub after_seq: Option<u64>,
    /// The newest so many.
    pub limit: Option<usize>,
}

/// The sums of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SpendRow {
    /// The words of the group, one for each thing grouped by. Empty for the total.
    #[serde(flatten)]
    pub labels: BTreeMap<GroupBy, String>,
    pub requests: u64,
    /// What is known. What is not known is counted beside it, never in it.
    pub billed_micro_usd: MicroUsdSum,
    pub would_have_cost_micro_usd: MicroUsdSum,
    pub settled: u64,
    pub reconciled: u64,
    pub in_doubt: u64,
    pub unreported: u64,
    pub failed: u64,
    pub replayed: u64,
    /// Begun and not ended: in flight, or cut off by a crash that no start has seen yet.
    pub open: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
}

/// The answer of [`spend`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spend {
    /// In the order of their labels.
    pub rows: Vec<SpendRow>,
    pub total: SpendRow,
    /// Damaged ranges and gaps in what was read: the sums lack what was in them.
    pub damaged: u64,
}

/// Lists entries, oldest change first.
pub fn entries(state_dir: &Path, filter: &Filter) -> Result<Vec<EntryView>, LedgerError> {
    let journal = open_journal(state_dir)?;
    let all = segments(&journal, None)?;
    let first = first_since(&all, filter.since_ms);

    // The newest few lie at the end: reading goes back only as far as it must.
    let mut from = match filter.limit {
        Some(_) => all.len().saturating_sub(1).max(first),
        None => first,
    };
    let mut step = 1;
    loop {
        let mut views = Views::default();
        let part = all.get(from..).unwrap_or_default();
        scan(&journal, part, &mut |seq, _, record| {
            views.apply(seq, record)
        })?;
        let mut found = views.finish(|view| filter.matches(view));
        let limit = filter.limit.unwrap_or(usize::MAX);
        let newest = found.split_off(found.len().saturating_sub(limit));
        let is_whole = newest.len() >= limit && newest.iter().all(|view| view.stream.is_some());
        if from <= first || is_whole {
            return Ok(newest);
        }
        from = from.saturating_sub(step).max(first);
        step *= 2;
    }
}

/// Sums by group, over entries begun in `[since_ms, until_ms)`. Days are those of `time_zone`.
pub fn spend(
    state_dir: &Path,
    since_ms: Option<u64>,
    until_ms: Option<u64>,
    group: &[GroupBy],
    time_zone: &TimeZone,
) -> Result<Spend, LedgerError> {
    let journal = open_journal(state_dir)?;
    let all = segments(&journal, None)?;
    let mut sums = Sums {
        since_ms,
        until_ms,
        group,
        time_zone,
        rows: BTreeMap::new(),
        open: HashMap::new(),
        unresolved: HashMap::new(),
    };
    let part = all.get(first_since(&all, since_ms)..).unwrap_or_default();
    let report = scan(&journal, part, &mut |_, _, record| sums.apply(&record))?;
    Ok(sums.finish(&report))
}

struct Sums<'a> {
    since_ms: Option<u64>,
    until_ms: Option<u64>,
    group: &'a [GroupBy],
    time_zone: &'a TimeZone,
    /// By the words of the group; with the count of open entries.
    rows: BTreeMap<Vec<String>, (Row, u64)>,
    open: HashMap<EntryId, Labels>,
    /// Entries whose state may still change, with what they were filed under.
    unresolved: HashMap<EntryId, (Labels, Effect, &'static str)>,
}

// === impl Filter ===

impl Filter {
    fn matches(&self, view: &EntryView) -> bool {
        self.since_ms.is_none_or(|since| view.at_ms >= since)
            && self.until_ms.is_none_or(|until| view.at_ms < until)
            && self.after_seq.is_none_or(|seq| view.seq > seq)
            && self.id.is_none_or(|id| view.id == id)
            && self.app.as_ref().is_none_or(|app| **app == *view.app)
            && self
                .state
                .is_none_or(|word| view.state.word() == word.as_str())
    }
}

// === impl SpendRow ===

impl SpendRow {
    fn new(labels: BTreeMap<GroupBy, String>, row: &Row, open: u64) -> Self {
        Self {
            labels,
            requests: row.requests.saturating_add(open),
            billed_micro_usd: row.billed,
            would_have_cost_micro_usd: row.would_have_cost,
            settled: row.settled,
            reconciled: row.reconciled,
            in_doubt: row.in_doubt_now(),
            unreported: row.unreported.now(),
            failed: row.failed,
            replayed: row.replayed,
            open,
            prompt_tokens: row.prompt_tokens,
            completion_tokens: row.completion_tokens,
            total_tokens: row.total_tokens,
        }
    }
}

// === impl Sums ===

impl Sums<'_> {
    fn apply(&mut self, record: &Record) {
        let (id, labels, state) = match record {
            Record::Intent(intent) => {
                self.open.insert(intent.id, Labels::of_intent(intent));
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
            Record::Unknown => return,
        };
        self.open.remove(&id);
        let Some(mut effect) = Effect::of(record).filter(|_| self.covers(labels)) else {
            return;
        };
        if let Some((_, before, _)) = self.unresolved.remove(&id) {
            effect.row.merge(&before.row);
        }
        if state.is_unresolved() {
            let held = (labels.clone(), effect, state.word());
            self.unresolved.insert(id, held);
        } else {
            self.file(labels, &effect, state.word());
        }
    }

    fn covers(&self, labels: &Labels) -> bool {
        self.since_ms.is_none_or(|since| labels.started_ms >= since)
            && self.until_ms.is_none_or(|until| labels.started_ms < until)
    }

    fn file(&mut self, labels: &Labels, effect: &Effect, state: &'static str) {
        let words = self.words(labels, &effect.key, state);
        self.rows.entry(words).or_default().0.merge(&effect.row);
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

    fn finish(mut self, report: &ScanReport) -> Spend {
        for (labels, effect, state) in std::mem::take(&mut self.unresolved).into_values() {
            self.file(&labels, &effect, state);
        }
        for labels in std::mem::take(&mut self.open).into_values() {
            if self.covers(&labels) {
                let words = self.words(&labels, &RollupKey::new(&labels, None), "open");
                self.rows.entry(words).or_default().1 += 1;
            }
        }
        let mut total = (Row::default(), 0);
        let mut rows = Vec::with_capacity(self.rows.len());
        for (words, (row, open)) in &self.rows {
            total.0.merge(row);
            total.1 += open;
            let labels = self.group.iter().copied().zip(words.iter().cloned());
            rows.push(SpendRow::new(labels.collect(), row, *open));
        }
        Spend {
            rows,
            total: SpendRow::new(BTreeMap::new(), &total.0, total.1),
            damaged: report.bad_count.saturating_add(report.gap_count),
        }
    }
}

fn open_journal(state_dir: &Path) -> Result<Directory, LedgerError> {
    Directory::open_to_read(&state_dir.join("journal"))
}

/// The first segment with a line of an entry begun at or after `since_ms`: a segment ends where
/// the next one begins.
fn first_since(all: &[Segment], since_ms: Option<u64>) -> usize {
    let Some(since_ms) = since_ms else {
        return 0;
    };
    let is_needed = |index: usize| {
        let next = all.get(index + 1).and_then(|next| next.header.as_ref());
        next.is_none_or(|next| next.at_ms.saturating_add(CLOCK_SLACK_MS) >= since_ms)
    };
    (0..all.len()).find(|index| is_needed(*index)).unwrap_or(0)
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

#[cfg(test)]
mod tests;
