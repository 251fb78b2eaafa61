//! Opening: from a directory to books that are right. The journal is read, damage is set aside,
//! the index is checked, and what it lacks is replayed.
//!
//! Promise: the journal decides. An index that disagrees is rebuilt, never believed; a damaged range
//! is copied to `quarantine/` and reported, never skipped in silence. What a replay holds besides the
//! index is what a running ledger holds, however long the journal is.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::AtomicBool;

use crate::ledger::delivery::Undelivered;
use crate::ledger::entry::{InDoubt, Settlement};
use crate::ledger::error::LedgerError;
use crate::ledger::fold::books::{Books, RUNS_MAX};
use crate::ledger::fold::usage::KEPT_MS;
use crate::ledger::id::EntryId;
use crate::ledger::index::db::IndexError;
use crate::ledger::index::tree::{Index, IndexedUpTo, Opened};
use crate::ledger::index::usage_file::UsageFile;
use crate::ledger::journal::append::Journal;
use crate::ledger::journal::high_water::{HighWater, stopped_seq};
use crate::ledger::journal::quarantine::{note_lost, set_aside};
use crate::ledger::journal::reader::JournalReader;
use crate::ledger::journal::report::{Missing, ScanReport};
use crate::ledger::journal::scan::{scan, scan_until};
use crate::ledger::journal::segments::{Segment, segments};
use crate::ledger::journal::state_dir::{Directory, Identity};
use crate::ledger::kept_key::EPOCH_MS;
use crate::ledger::options::LedgerOptions;
use crate::ledger::read::usage::{completed, read_ended};
use crate::ledger::record::{Position, Record};
use crate::ledger::upkeep::compact::clear;
use crate::ledger::upkeep::indexing::IndexUpkeep;
use crate::ledger::write::rebuild::{Rebuild, Rebuilt};
use crate::money::MicroUsd;

/// Sums that wait for the index while the journal is read: about ten megabytes.
const SUMS_MAX: usize = 20_000;

/// Records between two looks at what is too old to be kept in memory, or too much.
const PRUNE_RECORDS: u64 = 1_000;

/// Everything the writer works with.
#[derive(Debug)]
pub struct Loaded {
    pub journal: Journal,
    pub books: Books,
    pub index: Option<Index>,
    pub indexing: IndexUpkeep,
    /// The index had to be made anew from the journal.
    pub rebuilt: bool,
    /// Damaged ranges that lie in `quarantine/`.
    pub quarantined: u64,
    /// Settled answers that the process before this one may not have given to their apps.
    pub unclear: Vec<Undelivered>,
    pub given_seq: u64,
    pub coverage: Coverage,
    /// The last record that is known to be lost; 0 for none.
    lost_up_to: u64,
}

/// Of what the books have the sums.
#[derive(Debug)]
pub enum Coverage {
    /// Of the whole journal.
    Whole,
    /// Of the records of this process alone. The others are added up beside the writer, from the records before
    /// the first of this process.
    BeingAdded(Adding),
    /// Of the records of this process alone: the others could not be added up. The next start tries again.
    Partial,
}

/// What is added up beside the writer.
#[derive(Debug)]
pub struct Adding {
    pub rebuild: Rebuild,
    /// What was in flight when it began.
    pub open: HashSet<EntryId>,
    /// Prices of eval runs that are not known before it is whole.
    pub prices: BTreeMap<String, MicroUsd>,
}

/// What this process has of a ledger that it opens again.
#[derive(Debug, Default)]
pub struct CarriedOver {
    /// Where it is open.
    pub index: Option<Index>,
    /// The last record that it knows to be durable.
    pub last_seq: Option<u64>,
}

/// Reads the ledger below `state`.
pub fn load(
    state: &Directory,
    identity: &Identity,
    options: &LedgerOptions,
    held: CarriedOver,
) -> Result<Loaded, LedgerError> {
    let now_ms = options.clock.wall_ms();
    let directory = state.child("journal")?;
    let ledger = identity.ledger.to_string();
    if let Err(error) = clear(&directory) {
        tracing::warn!(%error, "what was compacted could not be removed; the next start tries again");
    }
    let mark = HighWater::read(&directory)?.known().max(held.last_seq);
    let all = segments(&directory, Some(&ledger))?;

    let begun = all.iter().filter_map(|segment| segment.header.as_ref());
    let about = begun.map(|header| header.first_seq).max().max(mark);
    let about = about.unwrap_or(0);
    let on_record = |seq: u64| {
        if let Some(on_progress) = &options.rebuild {
            on_progress(seq, about.max(seq));
        }
    };

    // An index that is to be made anew is not read where the mark says what it would: reading one takes
    // half the memory that making one takes.
    let mut opened = if options.rebuild.is_some() && mark.is_some() {
        Index::reopen_empty(state.path(), now_ms)
    } else {
        match held.index {
            // Where it is not believed any more, questions may still hold it open.
            Some(index) => index
                .go_on(&ledger)
                .unwrap_or_else(|| Index::reopen_empty(state.path(), now_ms)),
            None => Index::open(state.path(), &ledger, now_ms),
        }
    };
    let compacted = all.first().filter(|first| first.stands_for().is_some());
    let compacted_seq = compacted.and_then(Segment::stands_for);
    let compacted_seq = compacted_seq.map_or(0, |stands_for| stands_for.seq);
    if !opened.is_new && opened.kept.last_seq < compacted_seq {
        tracing::warn!("the index is older than what was compacted; rebuilding it");
        drop(opened);
        opened = Index::reopen_empty(state.path(), now_ms);
    }
    if !opened.is_new && opened.are_files_others(&all) {
        tracing::warn!(
            "the journal's files were changed by another hand; rebuilding the index from them"
        );
        let known_seq = opened.kept.last_seq.max(mark.unwrap_or(0));
        opened = Opened::anew(opened.index, state, &directory, known_seq, now_ms);
    }
    let given_seq = opened.kept.given_seq;
    // The index may be the last that knows how far the journal reached.
    let mark = mark.max(Some(opened.kept.last_seq).filter(|seq| *seq > 0));
    let mut kept = UsageFile::read(state, &ledger);
    let kept_seq = kept.last_seq;
    // Sums of compacted lines cannot be added to what holds a part of them: the journal has all.
    if kept_seq < compacted_seq || options.rebuild.is_some() {
        kept = UsageFile::default();
    }
    kept = completed(kept, state.path(), now_ms)?;
    if options.rebuild.is_some() && !opened.is_new {
        opened = Opened::anew(opened.index, state, &directory, mark.unwrap_or(0), now_ms);
    }
    let bytes: u64 = all.iter().map(|segment| segment.bytes).sum();
    let from = StartingPoint {
        kept,
        // The clock may be ahead now, which makes no key older.
        now_ms: ended_ms(state, &all).map_or(now_ms, |ended_ms| ended_ms.min(now_ms)),
        secret: identity.fingerprint_secret,
        // Asked for, it is made before this returns.
        may_be_beside: options.rebuild.is_none() && bytes > options.rebuild_beside_bytes,
    };
    let (mut loaded, mut report) = replay(&directory, &ledger, &all, opened, &from, &on_record)?;
    let journal_next_seq = report.next_seq;
    // What is older than the mark knows no less when the mark is lost with the journal.
    let stopped_seq = stopped_seq(state)?;
    let known_seq = mark.max(stopped_seq).max(Some(kept_seq));
    report = report.extended_to(known_seq);
    let is_end_known = mark.is_some();
    if loaded.counts_what_is_lost(&report) {
        tracing::error!(
            journal_last_seq = report.last_seq,
            "the index counts records that the journal has lost; rebuilding it from the journal, \
             see `bursar ledger verify`"
        );
        let known_seq = report.next_seq.saturating_sub(1);
        // Its books go before others are made.
        let Replayed { index, books, .. } = loaded;
        drop(books);
        let opened = Opened::anew(index, state, &directory, known_seq, now_ms);
        (loaded, report) = replay(&directory, &ledger, &all, opened, &from, &on_record)?;
        report = report.extended_to(Some(known_seq));
    }
    if kept_seq >= journal_next_seq {
        // It contains records that are lost.
        tracing::warn!("the file `usage` reaches beyond the journal; the journal decides");
        let usage = read_ended(state.path(), now_ms)?;
        let last_seq = report.next_seq.saturating_sub(1);
        loaded.books = loaded.books.with_usage(usage, last_seq);
    }
    loaded.know_missing(&report);

    // What a process wrote that ended in order was given to its apps, or noted.
    let deliveries = loaded.books.deliveries();
    let unclear = deliveries.unclear(given_seq.max(stopped_seq.unwrap_or(0)));
    let mut lost_up_to = report.missing.last().map_or(0, |missing| missing.last);
    if !is_end_known && report.last_seq.is_some() {
        tracing::error!(
            after_seq = report.last_seq,
            "neither the journal's mark nor the index shows how far the journal reached; see \
             `bursar ledger verify`"
        );
        note_lost(state, report.next_seq)?;
        lost_up_to = u64::MAX;
    }
    let quarantined = set_aside(state, &directory, &report)?;
    let earlier = |segment: &&Segment| Some(segment.number) != report.last_segment;
    let earlier = all.iter().filter(earlier);
    let earlier_bytes = earlier.map(|segment| segment.bytes).sum();
    let journal = Journal::open(directory, identity.ledger, options, &report, earlier_bytes)?;
    let coverage = match loaded.beside.take() {
        Some(index) => Coverage::BeingAdded(Adding {
            open: loaded.books.open_ids().into_iter().collect(),
            rebuild: begin_rebuild(state, &ledger, index, &from, report.next_seq)?,
            prices: BTreeMap::new(),
        }),
        None => Coverage::Whole,
    };
    let mut loaded = Loaded {
        coverage,
        journal,
        books: loaded.books,
        index: loaded.index,
        indexing: IndexUpkeep::default(),
        rebuilt: loaded.rebuilt,
        quarantined,
        unclear,
        given_seq,
        lost_up_to,
    };
    // The clock may be ahead now.
    let last_ms = loaded.books.deliveries().last_ms();
    loaded.books.prune(last_ms.min(now_ms));
    Ok(loaded)
}

/// Makes books and index anew from all records before `next_seq`, on a thread of its own.
fn begin_rebuild(
    state: &Directory,
    ledger: &str,
    index: Option<Index>,
    begun: &StartingPoint,
    next_seq: u64,
) -> Result<Rebuild, LedgerError> {
    tracing::warn!(
        last_seq = next_seq.saturating_sub(1),
        "the totals and the index are rebuilt from the journal while requests are served; until \
         then they are not on /metrics, and the journal answers questions"
    );
    let directory = state.child("journal")?;
    // As they are now that the journal is open: without an unfinished line, and with nothing behind it.
    let all = segments(&directory, Some(ledger))?;
    let (ledger, now_ms) = (ledger.to_owned(), begun.now_ms);
    let work = move |stop: &AtomicBool| {
        let mut replayed = Replayed {
            books: Books::default(),
            index,
            beside: None,
            is_new: true,
            rebuilt: true,
            index_seq: 0,
            known_missing: Vec::new(),
            now_ms,
        };
        let report = scan_until(stop, &directory, &all, &mut |seq, position, record| {
            if seq < next_seq {
                replayed.apply(&ledger, seq, position, &record);
                if seq.is_multiple_of(PRUNE_RECORDS) {
                    // The books of this process hold the day's already.
                    replayed.books.forget_keys();
                }
            }
        })?;
        replayed.finish(&ledger);
        // What the journal lost at its end is missing as it was to the start.
        let report = report.extended_to(next_seq.checked_sub(1));
        replayed.know_missing(&report);
        let Replayed { books, index, .. } = replayed;
        Ok(Rebuilt {
            books,
            index,
            report,
        })
    };
    Rebuild::begin(work).map_err(|error| LedgerError::io(state.path(), error))
}

/// Books and index before the journal is open for writing.
struct Replayed {
    books: Books,
    index: Option<Index>,
    /// The empty index that is made beside the writer, where there is one: the books have no sums.
    beside: Option<Option<Index>>,
    is_new: bool,
    rebuilt: bool,
    index_seq: u64,
    /// What was missing already when the index was made.
    known_missing: Vec<Missing>,
    now_ms: u64,
}

/// What a replay goes on from.
struct StartingPoint {
    kept: UsageFile,
    now_ms: u64,
    /// The ledger's.
    secret: [u8; 32],
    /// The journal is too long to be added up before requests are served.
    may_be_beside: bool,
}

fn replay(
    directory: &Directory,
    ledger: &str,
    all: &[Segment],
    opened: Opened,
    begun: &StartingPoint,
    on_record: &dyn Fn(u64),
) -> Result<(Replayed, ScanReport), LedgerError> {
    // Rebuilt: the index was not empty for being new, it was lost.
    let rebuilt = opened.is_new && all.iter().any(|segment| segment.bytes > 0);
    let is_beside = rebuilt && begun.may_be_beside;
    // Beside the writer all is counted; here is read what money rests on.
    let index_seq = match is_beside {
        true => u64::MAX,
        false => opened.kept.last_seq,
    };
    let needed_seq = opened
        .kept
        .oldest_open_seq
        .unwrap_or(u64::MAX)
        .min(index_seq.saturating_add(1))
        .min(begun.needed_seq());
    let (index, beside) = match is_beside {
        true => (None, Some(opened.index)),
        false => (opened.index, None),
    };
    let mut replayed = Replayed {
        books: Books::from_index(opened.kept.totals, opened.kept.runs)
            .with_secret(begun.secret)
            .with_usage(begun.kept.usage.clone(), begun.kept.last_seq),
        index,
        beside,
        is_new: opened.is_new,
        rebuilt,
        index_seq,
        known_missing: opened.kept.missing,
        now_ms: begun.now_ms,
    };
    let from = first_needed(all, needed_seq, begun);
    let report = scan(
        directory,
        all.get(from..).unwrap_or_default(),
        &mut |seq, position, record| {
            replayed.apply(ledger, seq, position, &record);
            on_record(seq);
        },
    )?;
    // Before anything is written to the journal: where that fails, the index is gone on with.
    replayed.finish(ledger);
    Ok((replayed, report))
}

/// When the journal's last record was written, by the clock of then. `None`: that cannot be read.
fn ended_ms(state: &Directory, all: &[Segment]) -> Option<u64> {
    let last = all.last()?;
    let begun_ms = last.header.as_ref()?.at_ms;
    if last.stands_for().is_some() {
        return Some(begun_ms);
    }
    let reader = JournalReader::open(state.path()).ok()?;
    let last = reader.stretches().checked_sub(1)?;
    let mut backward = reader.backward(last, 0, None).ok()?;
    let mut written_ms = None;
    while written_ms.is_none()
        && let Some((_, record)) = backward.next_record().ok()?
    {
        written_ms = record.at_ms();
    }
    written_ms.max(Some(begun_ms))
}

/// The first segment that is needed: for a record that index or usage lack, for an entry in flight, or
/// for a key of the last 24 hours.
fn first_needed(all: &[Segment], needed_seq: u64, begun: &StartingPoint) -> usize {
    // Under another segment's name a file may hold any number.
    if all.iter().any(Segment::is_misplaced) {
        return 0;
    }
    let is_needed = |index: usize| {
        // A segment ends where the next one begins; one without a sound header is read.
        let next = all.get(index + 1);
        let Some(next) = next.and_then(|next| next.header.as_ref()) else {
            return true;
        };
        next.first_seq > needed_seq || begun.now_ms.saturating_sub(next.at_ms) < begun.age_ms()
    };
    let mut from = (0..all.len()).find(|index| is_needed(*index)).unwrap_or(0);
    // Numbering starts from a header, so reading does too.
    while from > 0
        && all
            .get(from)
            .is_some_and(|segment| segment.header.is_none())
    {
        from -= 1;
    }
    from
}

// === impl StartingPoint ===

impl StartingPoint {
    /// How old a segment may be that is needed for its time alone.
    fn age_ms(&self) -> u64 {
        if self.kept.last_seq == 0 {
            KEPT_MS
        } else {
            EPOCH_MS
        }
    }

    /// The first record that usage lacks.
    fn needed_seq(&self) -> u64 {
        match self.kept.last_seq {
            // What is too old to count is not needed for this.
            0 => u64::MAX,
            last_seq => last_seq.saturating_add(1),
        }
    }
}

// === impl Replayed ===

impl Replayed {
    /// Applies a record; writes to the index now and then, so that a rebuild needs no memory for all.
    fn apply(&mut self, ledger: &str, seq: u64, position: Position, record: &Record) {
        let counts = seq > self.index_seq;
        self.books.apply(seq, position, record, counts);
        if seq.is_multiple_of(PRUNE_RECORDS) {
            // As the writer did then, whose clock may have been ahead.
            let then_ms = self.books.deliveries().last_ms();
            self.books.prune(then_ms.min(self.now_ms));
            self.write_index(ledger, SUMS_MAX);
        }
    }

    /// Writes to the index what it does not know yet, where that is more than so many sums. Of a new index that is
    /// a part, and what makes it trusted is written last.
    fn write_index(&mut self, ledger: &str, sums_max: usize) {
        let mut pending = self.books.take_pending();
        let Some(index) = &self.index else {
            return;
        };
        if self.is_new {
            // An empty index has no run to forget: of the past only those that wait are kept.
            pending.runs.retain(|_, run| run.is_some());
        }
        if pending.sums.len() <= sums_max {
            return self.books.give_back(pending);
        }
        let written = match self.is_new {
            true => index
                .write_part(std::mem::take(&mut pending.sums))
                .map(|left| {
                    pending.sums = left;
                    self.books.give_back(pending);
                }),
            false => index.write(&IndexedUpTo::of(&self.books, ledger), pending),
        };
        if let Err(error) = written {
            self.lose_index(&error);
        }
    }

    /// Writes to the index all that is left, which makes a new one trusted.
    fn finish(&mut self, ledger: &str) {
        let Some(index) = &self.index else {
            return;
        };
        let pending = self.books.take_pending();
        if pending.records > 0
            && let Err(error) = index.write(&IndexedUpTo::of(&self.books, ledger), pending)
        {
            self.lose_index(&error);
        }
    }

    fn lose_index(&mut self, error: &IndexError) {
        tracing::error!(%error, "the index failed; going on without it until the next start");
        self.index = None;
    }

    /// The index counts records that are missing now and were not when it was made. The journal
    /// decides: otherwise an entry whose end is lost would count twice.
    fn counts_what_is_lost(&self, report: &ScanReport) -> bool {
        self.index.is_some()
            && report.missing.iter().any(|missing| {
                missing.first <= self.index_seq && !self.known_missing.contains(missing)
            })
    }

    fn know_missing(&mut self, report: &ScanReport) {
        let Some(index) = &self.index else {
            return;
        };
        let mut known = Ok(());
        if !report.is_sound() {
            known = index.know_damaged();
        }
        if !report.missing.is_empty() && self.known_missing != report.missing {
            known = known.and_then(|()| index.know_missing(&report.missing));
        }
        if let Err(error) = known {
            self.lose_index(&error);
        }
    }
}

// === impl Coverage ===

impl Coverage {
    /// Keeps the price of a run that may be among those that are not known yet. A kill loses it, and no money:
    /// the journal holds the run as one that waits, and once the totals are whole its price is asked for again.
    pub fn keep_price(&mut self, run_id: &str, billed: MicroUsd) {
        if let Self::BeingAdded(adding) = self
            && adding.prices.len() < RUNS_MAX
        {
            adding.prices.entry(run_id.to_owned()).or_insert(billed);
        }
    }

    /// Lets go of what is made beside the writer, once it is finished.
    pub fn take_finished(&mut self) -> Option<Adding> {
        match std::mem::replace(self, Self::Partial) {
            Self::BeingAdded(adding) if adding.rebuild.is_finished() => Some(adding),
            other => {
                *self = other;
                None
            }
        }
    }
}

// === impl Loaded ===

impl Loaded {
    /// Entries whose process died: an intent and no end.
    pub fn crashed(&self) -> Vec<EntryId> {
        self.books.open_ids()
    }

    /// The sums of the whole journal are known.
    pub fn is_whole(&self) -> bool {
        matches!(self.coverage, Coverage::Whole)
    }

    /// With what was made anew beside the writer, of which so many damaged ranges were set aside. Answers also
    /// the entries that are in flight by what was read there alone: their process died long ago. `open`: what
    /// was in flight when that was begun.
    pub fn with_rebuilt(
        mut self,
        rebuilt: Rebuilt,
        quarantined: u64,
        open: &HashSet<EntryId>,
    ) -> (Self, Vec<EntryId>) {
        let crashed = self.books.take_over(rebuilt.books, open);
        let lost_up_to = rebuilt.report.missing.last().map_or(0, |lost| lost.last);
        let whole = Self {
            index: rebuilt.index,
            quarantined,
            lost_up_to: self.lost_up_to.max(lost_up_to),
            // The new index does not know that answers were given.
            given_seq: 0,
            coverage: Coverage::Whole,
            ..self
        };
        (whole, crashed)
    }

    /// Why an entry has no end: its line may be among those that are lost, or it was never written.
    pub fn why_open(&self, id: EntryId) -> InDoubt {
        match self.books.open_seq(id) {
            Some(seq) if seq < self.lost_up_to => InDoubt::Damaged,
            _ => InDoubt::Crash,
        }
    }

    /// How an entry ended, when that is not long ago.
    pub fn ended(&self, id: EntryId) -> Option<Settlement> {
        self.books.recent(id).cloned()
    }
}

#[cfg(test)]
mod tests;
