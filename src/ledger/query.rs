//! Questions to the ledger, answered from the journal's files: beside a running daemon or without
//! one, with no lock and no index.
//!
//! Promise: reads only. A line being written now is not there yet; everything else is as the daemon
//! sees it, and the sums are the same to the micro-dollar (rule I10). What is held does not grow
//! with the journal (rule I11): see [`list`], [`for_each_entry`] and [`spend`].

use std::collections::BTreeMap;
use std::path::Path;

use jiff::tz::TimeZone;
use serde::Serialize;

pub use crate::ledger::compact::CompactReport;
use crate::ledger::compact::{Wanted, plan};
use crate::ledger::entry::{EntryId, InDoubt, State};
pub use crate::ledger::entry_view::{EntryView, ReceiptWord};
use crate::ledger::error::LedgerError;
pub use crate::ledger::record::How;
use crate::ledger::record::Record;
use crate::ledger::scan::Segment;
pub use crate::ledger::scan::{BadRange, Gap, Misplaced, Missing, ScanReport, TornTail};
use crate::ledger::state_dir::Directory;
use crate::ledger::totals::{MicroUsdSum, Row};
pub use crate::ledger::verify::{Damage, DamageKind, IndexCheck, VerifyReport, verify};
use crate::protocol::{Told, closed_set};

mod find;
mod listing;
mod sums;
pub(crate) mod tape;
mod window;

pub use find::{Found, FoundBy, PART_CHARS_MIN, TAIL_CHARS, find};
use listing::{Pages, Work, newest};
use sums::{ROWS_MAX, Sums};
use tape::Tape;
pub use window::{Unknown, Window, window};

/// Entries held at once where all are asked for.
const PAGE: usize = 1000;

/// How often a question is asked of a journal that is compacted meanwhile. Once would do: a
/// compaction takes longer than most questions.
const ASKED_MAX: usize = 5;

closed_set! {
    /// Entry states without their details. `malformed` is no state of its own: it is what of
    /// `unreported` told an amount that cannot be read, another matter than none told (rule I5).
    StateWord {
        Open => "open",
        Settled => "settled",
        Failed => "failed",
        Replayed => "replayed",
        Unreported => "unreported",
        Malformed => "malformed",
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
    /// In doubt for this reason.
    pub reason: Option<InDoubt>,
    /// One entry.
    pub id: Option<EntryId>,
    /// Only entries that something happened to after this sequence number: for following.
    pub after_seq: Option<u64>,
    /// The newest so many; with `after_seq` the oldest so many, so that none is passed over.
    pub limit: Option<usize>,
}

/// The answer of [`list`].
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Oldest change first.
    pub entries: Vec<EntryView>,
    /// Where to go on: up to here every line was looked at, and what matches was told. `None` for an
    /// empty journal.
    pub last_seq: Option<u64>,
}

/// What a line says of its entry. The last line decides whether the entry is listed.
struct Said<'a> {
    id: EntryId,
    started_ms: u64,
    app: &'a str,
    state: State,
    /// Unreported, because the amount that was told cannot be read.
    is_malformed: bool,
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
    /// Answers that told both prices, and the two sums over them: the only ones that can be compared.
    pub compared: u64,
    pub compared_billed_micro_usd: MicroUsdSum,
    pub compared_would_have_cost_micro_usd: MicroUsdSum,
    /// `None` where nothing can be compared, and where the frontier would have been the cheaper.
    pub saved_micro_usd: Option<MicroUsdSum>,
    /// The part of what was billed that went to answers whose app had left.
    pub drained_micro_usd: MicroUsdSum,
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
    /// Milliseconds of sound that the speech routes told, each answer's rounded by itself.
    pub audio_ms: u64,
    /// Answers of the speech routes that told no length.
    pub audio_untold: u64,
}

/// The answer of [`spend`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spend {
    /// In the order of their labels.
    pub rows: Vec<SpendRow>,
    pub total: SpendRow,
    /// Damaged ranges and gaps in what was read: the sums lack what was in them.
    pub damaged: u64,
    /// A bound lies within a quarter hour of which only the sums are left: that quarter hour counts
    /// for the moment it begins.
    pub is_rounded: bool,
}

/// Lists entries as [`list`] does. Without a limit all that match are held: for tests and tools with
/// small ledgers.
pub fn entries(state_dir: &Path, filter: &Filter) -> Result<Vec<EntryView>, LedgerError> {
    if filter.limit.is_some() {
        return Ok(list(state_dir, filter)?.entries);
    }
    let mut all = Vec::new();
    for_each_entry(state_dir, filter, |view| {
        all.push(view);
        Ok::<_, LedgerError>(())
    })?;
    Ok(all)
}

/// Lists the newest `limit` entries, read backward from the journal's end; with `after_seq` the
/// oldest `limit` that changed since, read forward from there. Without a limit, 1000.
///
/// An entry is listed once, by its last line, as it is now: evidence that comes for an old entry
/// makes it appear again behind a mark that it lay before.
///
/// Memory: `limit` entries of a few kilobytes. With `after_seq` also those that were in flight at
/// one moment, and the ids of those that evidence came for after the mark. Time: the lines back to
/// the oldest entry listed; with `after_seq` those of the page, and what `grep` would take for the
/// rest.
pub fn list(state_dir: &Path, filter: &Filter) -> Result<Listing, LedgerError> {
    let (listing, work) = steadily(|| list_on(&Tape::open(state_dir)?, filter))?;
    tracing::debug!(
        lines = work.lines,
        held_max = work.held_max,
        "entries were listed"
    );
    Ok(listing)
}

/// Hands out every entry that matches, oldest change first, on the journal as it is at the call. With
/// a limit only those that [`list`] gives.
///
/// Memory: as [`list`] with a limit of 1000, however long the journal is.
pub fn for_each_entry<E: From<LedgerError>>(
    state_dir: &Path,
    filter: &Filter,
    mut visit: impl FnMut(EntryView) -> Result<(), E>,
) -> Result<(), E> {
    let tape = steadily(|| Tape::open(state_dir))?;
    if filter.limit.is_some() || (filter.id.is_some() && filter.after_seq.is_none()) {
        let (listing, _) = list_on(&tape, filter)?;
        return listing.entries.into_iter().try_for_each(visit);
    }
    let mut pages = Pages::new(&tape, filter);
    let mut mark = filter.after_seq.unwrap_or(0);
    loop {
        let page = pages.page(mark, PAGE)?;
        let is_last = page.entries.len() < PAGE;
        page.entries.into_iter().try_for_each(&mut visit)?;
        match page.last_seq {
            Some(last_seq) if !is_last && last_seq > mark => mark = last_seq,
            _ => return Ok(()),
        }
    }
}

fn list_on(tape: &Tape, filter: &Filter) -> Result<(Listing, Work), LedgerError> {
    let limit = filter.limit.unwrap_or(PAGE);
    match filter.after_seq {
        None => newest(
            tape,
            filter,
            if filter.id.is_some() {
                limit.min(1)
            } else {
                limit
            },
        ),
        Some(mark) => {
            let mut pages = Pages::new(tape, filter);
            let listing = pages.page(mark, limit)?;
            Ok((listing, pages.work()))
        }
    }
}

/// Sums by group, over entries begun in `[since_ms, until_ms)`. Days are those of `time_zone`.
///
/// Memory: the rows of the answer, at most 100,000 (more is an error), and a few hundred bytes for
/// each entry in flight. Asked by state, also the ids of entries whose amount came later.
pub fn spend(
    state_dir: &Path,
    since_ms: Option<u64>,
    until_ms: Option<u64>,
    group: &[GroupBy],
    time_zone: &TimeZone,
) -> Result<Spend, LedgerError> {
    let sums = Sums {
        since_ms,
        until_ms,
        group,
        time_zone,
        rows_max: ROWS_MAX,
    };
    steadily(|| sums.of(&Tape::open(state_dir)?))
}

/// Everything before this moment was compacted: of entries that began before it only sums may be
/// left. Unix milliseconds; `None` when nothing was.
pub fn compacted_until_ms(state_dir: &Path) -> Result<Option<u64>, LedgerError> {
    let tape = steadily(|| Tape::open(state_dir))?;
    let stands_for = tape.segments.first().and_then(Segment::stands_for);
    Ok(stands_for.map(|stands_for| stands_for.until_ms))
}

/// Which segments the compaction of what is older than `before_ms` would take. Reads only.
pub fn compactable(state_dir: &Path, before_ms: u64) -> Result<CompactReport, LedgerError> {
    let journal = Directory::open_to_read(&state_dir.join("journal"))?;
    let wanted = Wanted {
        before_ms,
        before_seq: u64::MAX,
        ..Wanted::default()
    };
    let plan = steadily(|| plan(&journal, &wanted, true, u64::MAX))?;
    Ok(plan.report())
}

/// Asks again when the journal was compacted while it was read.
fn steadily<T>(mut ask: impl FnMut() -> Result<T, LedgerError>) -> Result<T, LedgerError> {
    for _ in 1..ASKED_MAX {
        match ask() {
            Err(LedgerError::Compacted) => {}
            answer => return answer,
        }
    }
    ask()
}

// === impl Filter ===

impl Filter {
    /// Whether an entry whose last line is this is asked for.
    fn admits(&self, seq: u64, said: &Said<'_>) -> bool {
        self.admits_labels(said)
            && self.after_seq.is_none_or(|mark| seq > mark)
            && self.state.is_none_or(|word| said.is_in(word))
            && self
                .reason
                .is_none_or(|reason| said.state == State::InDoubt { reason })
    }

    /// The same for what every line of an entry tells alike.
    fn admits_labels(&self, said: &Said<'_>) -> bool {
        self.since_ms.is_none_or(|since| said.started_ms >= since)
            && self.until_ms.is_none_or(|until| said.started_ms < until)
            && self.id.is_none_or(|id| said.id == id)
            && self.app.as_ref().is_none_or(|app| app == said.app)
    }
}

// === impl Said ===

impl<'a> Said<'a> {
    /// `None` for a line that is about no single entry, or of a newer bursar.
    fn of(record: &'a Record) -> Option<Self> {
        let (id, labels, state) = match record {
            Record::Intent(intent) => {
                return Some(Self {
                    id: intent.id,
                    started_ms: intent.at_ms,
                    app: &intent.app,
                    state: State::Open,
                    is_malformed: false,
                });
            }
            Record::Outcome(outcome, labels, verdict) => (outcome.id, labels, verdict.state),
            Record::Crashed(ended, labels) | Record::Withdrawn(ended, labels) => {
                (ended.id, labels, ended.state)
            }
            Record::Reconciled(evidence, labels) => {
                let billed = evidence.adds_micro_usd;
                (evidence.id, labels, State::Reconciled { billed })
            }
            Record::Delivery(..) | Record::Rollup(_) | Record::Unknown => return None,
        };
        Some(Self {
            id,
            started_ms: labels.started_ms,
            app: &labels.app,
            state,
            is_malformed: is_malformed(record),
        })
    }

    fn is_in(&self, word: StateWord) -> bool {
        match word {
            StateWord::Malformed => self.is_malformed,
            word => self.state.word() == word.as_str(),
        }
    }
}

/// The service told an amount that cannot be read, and the entry is unreported for it.
pub(super) fn is_malformed(record: &Record) -> bool {
    match record {
        Record::Outcome(outcome, _, verdict) => {
            verdict.state == State::Unreported && outcome.receipt.billed == Told::Malformed
        }
        _ => false,
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
            compared: row.compared.answers,
            compared_billed_micro_usd: row.compared.billed,
            compared_would_have_cost_micro_usd: row.compared.frontier,
            saved_micro_usd: row.compared.saved(),
            drained_micro_usd: row.drained,
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
            audio_ms: row.audio_ms,
            audio_untold: row.audio_untold,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
