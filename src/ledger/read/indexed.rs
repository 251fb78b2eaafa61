//! Sums from the index: whole quarter hours from its blocks; of a quarter hour that a bound cuts, the few
//! entries from the journal, one by one; so too what is not in the index yet and what is in flight.
//!
//! The index is held only while its blocks are added up, and by state while what it lacks is looked through: the
//! writer waits for that, and not for the journal to be read, which takes long where an entry of a cut quarter hour
//! ended days later.
//!
//! Promise: the answer is the journal's, or comes from the journal. The index gives none where the journal is
//! not as the index knows it: files changed by another hand, numbers that do not follow each other, anything
//! damaged.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::ledger::entry::{Labels, StateWord};
use crate::ledger::error::LedgerError;
use crate::ledger::fold::models::ModelLine;
use crate::ledger::id::EntryId;
use crate::ledger::index::blocks::{Detail, Length};
use crate::ledger::index::copy::IndexCopy;
use crate::ledger::index::db::IndexError;
use crate::ledger::index::figures::Figures;
use crate::ledger::index::snapshot::{Edge, Grouped, Snapshot};
use crate::ledger::index::tree::Index;
use crate::ledger::journal::reader::{JournalReader, steadily};
use crate::ledger::journal::segments::Segment;
use crate::ledger::read::group_by::GroupBy;
use crate::ledger::read::spend::{Folding, OfEntry, ROWS_MAX, Reconciled, Spend, Sums};
use crate::ledger::record::Record;

/// Less of the journal than this is read as soon as the index is copied.
const WORTH_BYTES: u64 = 24 << 20;

/// Why a question is not answered from the index.
#[derive(Debug)]
enum NoAnswer {
    Index(IndexError),
    Ledger(LedgerError),
}

/// What the index has of an answer, and what the journal is to add.
struct Asking<'a, 'b> {
    sums: &'a Sums<'b>,
    /// Opened behind what the index has reached: all that it lacks is there.
    reader: JournalReader,
    /// The last record that is in the index.
    last_seq: u64,
    /// The first one that the journal is read from.
    from_seq: u64,
    /// The sums of whole quarter hours.
    grouped: Grouped,
    groups: Groups,
    days: Days,
    /// The quarter hours that a bound cuts, by their beginnings.
    edges: BTreeMap<u64, Edge>,
    /// Entries that evidence comes for behind what the index knows. Empty where it is not asked by state or model.
    reconciled: Reconciled,
}

/// Groups of lines and states, by number.
#[derive(Default)]
struct Groups {
    /// One line and state of each group.
    by_number: Vec<(ModelLine, StateWord)>,
    numbers: HashMap<Vec<String>, u32>,
}

/// Days and other parts of the calendar, by number, as blocks are placed in them.
#[derive(Default)]
struct Days {
    /// A moment of each.
    by_number: Vec<u64>,
    numbers: HashMap<Vec<String>, u64>,
}

/// What lies behind the last record that the index knows.
#[derive(Default)]
struct Tail {
    /// Entries that evidence comes for there.
    evidence: Vec<(EntryId, u64)>,
    /// Entries that end there.
    ended: HashSet<EntryId>,
}

/// Sums by group, over entries begun in `[since_ms, until_ms)`. Days are those of `time_zone`.
///
/// Memory: the rows of the answer, at most 100,000 (more is an error), and a few hundred bytes for
/// each entry in flight. From the journal, asked by state, also the ids of entries whose amount came later.
///
/// Answered from a copy of the index where no daemon has it, and where that is sooner.
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
    let copy = copied_index(&sums, state_dir);
    ask(&sums, state_dir, copy.as_ref().map(|copy| &copy.index))
}

/// From the index where it has the answer, else from the journal. It has no sums by what only lines say.
pub fn ask(sums: &Sums<'_>, state_dir: &Path, index: Option<&Index>) -> Result<Spend, LedgerError> {
    let index = index.filter(|_| !sums.is_of_lines());
    let indexed = index.map(|index| steadily(|| ask_index(sums, index, state_dir)));
    match indexed.transpose()?.flatten() {
        Some(spend) => Ok(spend),
        None => steadily(|| sums.of(&JournalReader::open(state_dir)?)),
    }
}

/// A copy of the index, where no daemon has it and the journal would take longer.
fn copied_index(sums: &Sums<'_>, state_dir: &Path) -> Option<IndexCopy> {
    if sums.is_of_lines() {
        return None;
    }
    let reader = JournalReader::open(state_dir).ok()?;
    let first = reader.first_since(sums.since_ms);
    let part = reader.segments.get(first..).unwrap_or_default();
    let bytes: u64 = part.iter().map(|segment| segment.bytes).sum();
    (bytes > WORTH_BYTES)
        .then(|| IndexCopy::of_idle(state_dir))
        .flatten()
}

/// Answers from the index; `None` where the journal has to.
fn ask_index(
    sums: &Sums<'_>,
    index: &Index,
    state_dir: &Path,
) -> Result<Option<Spend>, LedgerError> {
    let asked = index.ask(|snapshot| Asking::of(sums, snapshot, state_dir));
    match asked.and_then(Asking::finish) {
        Ok(spend) => Ok(Some(spend)),
        Err(NoAnswer::Ledger(error)) => Err(error),
        Err(NoAnswer::Index(IndexError::Unfit)) => Ok(None),
        Err(NoAnswer::Index(error)) => {
            tracing::error!(%error, "the index is damaged; the journal answers, and the next start rebuilds it");
            index.doubt();
            Ok(None)
        }
    }
}

/// The words of a line's sums. [`IndexError::Unfit`]: it is asked by model, and these have none of their own.
fn words(
    sums: &Sums<'_>,
    at_ms: Option<u64>,
    line: &ModelLine,
    state: StateWord,
) -> Result<Vec<String>, IndexError> {
    let of = OfEntry::of_sum(sums, &line.model).ok_or(IndexError::Unfit)?;
    Ok(sums.words(at_ms, &line.line, state, of))
}

// === impl Asking ===

impl<'a, 'b> Asking<'a, 'b> {
    /// Takes from the index all that it has.
    fn of(sums: &'a Sums<'b>, snapshot: &Snapshot<'_>, state_dir: &Path) -> Result<Self, NoAnswer> {
        let is_by_evidence = sums.is_by_evidence();
        if !snapshot.is_journal_sound() || (is_by_evidence && !snapshot.is_filed_by_state()) {
            return Err(IndexError::Unfit.into());
        }
        let reader = JournalReader::open(state_dir)?;
        let stands_for = reader.segments.first().and_then(Segment::stands_for);
        let compacted_seq = stands_for.map_or(0, |stands_for| stands_for.seq);
        // The index still has the models of what was compacted since it was made, and the journal has none.
        let is_named = stands_for.is_some_and(|stands_for| {
            stands_for.seq > snapshot.compacted_seq()
                && sums.since_ms.unwrap_or(0) <= stands_for.until_ms
        });
        if is_named && sums.is_by(GroupBy::Model) {
            return Err(IndexError::Unfit.into());
        }
        let files = snapshot.files().ok_or(IndexError::Unfit)?;
        let is_misplaced = reader.segments.iter().any(Segment::is_misplaced);
        let last_seq = snapshot.last_seq();
        let open_seq = snapshot.oldest_open_seq().unwrap_or(u64::MAX);
        let from_seq = open_seq.min(last_seq.saturating_add(1));
        if from_seq <= compacted_seq || is_misplaced || !files.still_hold(&reader.segments) {
            return Err(IndexError::Unfit.into());
        }
        let mut asking = Self {
            sums,
            reader,
            last_seq,
            from_seq,
            grouped: Grouped::default(),
            groups: Groups::default(),
            days: Days::default(),
            edges: BTreeMap::new(),
            reconciled: Reconciled::new(),
        };
        let quarter = Length::Quarter;
        let bounds = [sums.since_ms, sums.until_ms];
        let is_cut = |at_ms: &u64| !at_ms.is_multiple_of(quarter.ms());
        for cut in bounds.into_iter().flatten().filter(is_cut) {
            let edge = snapshot.edge(quarter.floor(cut))?;
            if edge.ends.is_some_and(|(first, _)| first <= compacted_seq) {
                return Err(IndexError::Unfit.into());
            }
            asking.edges.insert(quarter.floor(cut), edge);
        }
        let since_ms = sums.since_ms.unwrap_or(0);
        let since_ms = since_ms.checked_next_multiple_of(quarter.ms());
        let since_ms = since_ms.unwrap_or(u64::MAX);
        let until_ms = quarter.floor(sums.until_ms.unwrap_or(u64::MAX));
        asking.add_quarters(snapshot, since_ms, until_ms)?;
        if is_by_evidence {
            asking.move_resolved(snapshot, since_ms..until_ms)?;
        }
        Ok(asking)
    }

    /// Adds what the journal alone has.
    fn finish(mut self) -> Result<Spend, NoAnswer> {
        let mut reconciled = std::mem::take(&mut self.reconciled);
        for edge in self.edges.values() {
            for (id, ..) in &edge.evidence {
                reconciled.entry(*id).or_default();
            }
        }
        let mut folding = Folding::new(self.sums, reconciled);
        for ((number, group), figures) in self.grouped.rows() {
            let (line, state) = self.groups.get(*group)?;
            let at_ms = self.days.get(*number);
            let words = words(self.sums, at_ms, line, *state)?;
            folding.add_words(words, &figures.row());
        }
        for (quarter_ms, edge) in &self.edges {
            self.read_edge(*quarter_ms, edge, &mut folding)?;
        }
        self.read_numbers(self.from_seq..=u64::MAX, &mut |seq, record| {
            if seq > self.last_seq {
                folding.apply(record);
            } else {
                folding.note(record);
            }
        })?;
        Ok(folding.finish(0)?)
    }

    /// Adds the whole quarter hours in `since_ms..until_ms`.
    fn add_quarters(
        &mut self,
        snapshot: &Snapshot<'_>,
        since_ms: u64,
        until_ms: u64,
    ) -> Result<(), NoAnswer> {
        if since_ms >= until_ms {
            return Ok(());
        }
        let (sums, groups, days) = (self.sums, &mut self.groups, &mut self.days);
        let detail = match sums.is_by(GroupBy::Model) {
            true => Detail::ByModel,
            false => Detail::AllModels,
        };
        self.grouped = snapshot.sums(
            detail,
            since_ms,
            until_ms,
            sums.rows_max,
            &mut |from_ms, until_ms| days.place(sums, from_ms, until_ms),
            &mut |line, state| groups.number(sums, line, state),
        )?;
        if self.grouped.rows().len() > sums.rows_max {
            let max = sums.rows_max;
            return Err(LedgerError::TooManyRows { max }.into());
        }
        Ok(())
    }

    /// An entry that evidence comes for behind what the index knows is filed under another state now, and the
    /// evidence under its model.
    fn move_resolved(
        &mut self,
        snapshot: &Snapshot<'_>,
        quarters: Range<u64>,
    ) -> Result<(), NoAnswer> {
        let tail = self.read_tail()?;
        for (id, started_ms) in &tail.evidence {
            self.reconciled.entry(*id).or_default();
            let quarter_ms = Length::Quarter.floor(*started_ms);
            if !quarters.contains(&quarter_ms) || tail.ended.contains(id) {
                continue;
            }
            let filed = snapshot.filed(*id, quarter_ms)?;
            let filed = filed.ok_or(IndexError::Unfit)?;
            let until_ms = quarter_ms.saturating_add(Length::Quarter.ms());
            let place = self.days.place(self.sums, quarter_ms, until_ms);
            let place = place.ok_or(IndexError::Unfit)?;
            let figures = Figures::of(&filed.row);
            let line = &filed.at.line;
            let was = self.groups.number(self.sums, line, filed.at.state)?;
            let is = self.groups.number(self.sums, line, StateWord::Reconciled)?;
            self.grouped.take_away((place, was), &figures)?;
            self.grouped.add((place, is), &figures);
            let of = OfEntry::of_sum(self.sums, &line.model).ok_or(IndexError::Unfit)?;
            self.reconciled.insert(*id, Some(of.model.into()));
        }
        Ok(())
    }

    /// A few thousand records at most: the index is held meanwhile.
    fn read_tail(&self) -> Result<Tail, NoAnswer> {
        let mut tail = Tail::default();
        let behind = self.last_seq.saturating_add(1);
        self.read_numbers(behind..=u64::MAX, &mut |_, record| match record {
            Record::Reconciled(evidence, labels) => {
                tail.evidence.push((evidence.id, labels.started_ms));
            }
            Record::Outcome(..) | Record::Crashed(..) | Record::Withdrawn(..) => {
                tail.ended.extend(record.entry());
            }
            _ => {}
        })?;
        Ok(tail)
    }

    /// The entries of a quarter hour that a bound cuts, one by one.
    fn read_edge(
        &self,
        quarter_ms: u64,
        edge: &Edge,
        folding: &mut Folding<'_>,
    ) -> Result<(), NoAnswer> {
        let mut ended = 0;
        let until_ms = quarter_ms.saturating_add(Length::Quarter.ms());
        let is_of_it = |labels: &Labels| (quarter_ms..until_ms).contains(&labels.started_ms);
        // When the entries began that evidence may have come for.
        let mut begun: HashMap<EntryId, u64> = HashMap::new();
        let mut read = |_, record: &Record| {
            if let Record::Intent(intent) = record
                && is_of_it(&Labels::of_intent(intent))
            {
                // Whatever has not ended is read again from the first of those that were in flight.
                folding.note(record);
            }
            let (Record::Outcome(_, labels, _)
            | Record::Crashed(_, labels)
            | Record::Withdrawn(_, labels)) = record
            else {
                return;
            };
            if is_of_it(labels) {
                ended += 1;
                begun.extend(record.entry().map(|id| (id, labels.started_ms)));
                folding.apply(record);
            }
        };
        if let Some((first, last)) = edge.ends {
            self.read_numbers(first..=last, &mut read)?;
        }
        // The others were compacted.
        if edge.requests != ended {
            return Err(IndexError::Unfit.into());
        }
        for (id, line, row) in &edge.evidence {
            let started_ms = begun.get(id).ok_or(IndexError::Unfit)?;
            if self.sums.covers_moment(*started_ms) {
                let words = words(self.sums, Some(*started_ms), line, StateWord::Reconciled)?;
                folding.add_words(words, row);
            }
        }
        Ok(())
    }

    /// Hands out records by their numbers. Every number has to be there, up to the journal's end or the last
    /// one asked for.
    fn read_numbers(
        &self,
        numbers: RangeInclusive<u64>,
        visit: &mut dyn FnMut(u64, &Record),
    ) -> Result<(), NoAnswer> {
        let (first, last) = numbers.into_inner();
        let mut expected = first;
        let place = self.reader.place_after(first.saturating_sub(1))?;
        let mut forward = self.reader.forward(place);
        while expected <= last {
            let Some((seq, record)) = forward.next_record()? else {
                break;
            };
            if seq < first {
                continue;
            }
            if seq != expected {
                return Err(IndexError::Unfit.into());
            }
            expected = seq.saturating_add(1);
            visit(seq, &record);
        }
        let end = self.reader.mark.known().unwrap_or(0);
        if expected <= last.min(end) {
            return Err(IndexError::Unfit.into());
        }
        Ok(())
    }
}

// === impl Groups ===

impl Groups {
    fn number(
        &mut self,
        sums: &Sums<'_>,
        line: &ModelLine,
        state: StateWord,
    ) -> Result<u32, IndexError> {
        let words = words(sums, None, line, state)?;
        if let Some(number) = self.numbers.get(&words) {
            return Ok(*number);
        }
        let number = u32::try_from(self.by_number.len()).unwrap_or(u32::MAX);
        self.by_number.push((line.clone(), state));
        self.numbers.insert(words, number);
        Ok(number)
    }

    fn get(&self, number: u32) -> Result<&(ModelLine, StateWord), IndexError> {
        let found = usize::try_from(number).ok();
        let found = found.and_then(|number| self.by_number.get(number));
        found.ok_or(IndexError::Unfit)
    }
}

// === impl Days ===

impl Days {
    /// The number of the day, or what else is asked for, that all of a stretch of time lies in. `None`: it lies in
    /// several, or the clocks are set within it.
    fn place(&mut self, sums: &Sums<'_>, from_ms: u64, until_ms: u64) -> Option<u64> {
        let first = sums.calendar_words(from_ms);
        if first.is_empty() {
            return Some(0);
        }
        if first != sums.calendar_words(until_ms.saturating_sub(1)) {
            return None;
        }
        let at = |at_ms| Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok();
        if let (Some(from), Some(until)) = (at(from_ms), at(until_ms)) {
            let mut set = sums.time_zone.following(from);
            if set.next().is_some_and(|set| set.timestamp() < until) {
                return None;
            }
        }
        let next = u64::try_from(self.by_number.len()).ok()?;
        let number = *self.numbers.entry(first).or_insert(next);
        if number == next {
            self.by_number.push(from_ms);
        }
        Some(number)
    }

    fn get(&self, number: u64) -> Option<u64> {
        let number = usize::try_from(number).ok()?;
        self.by_number.get(number).copied()
    }
}

// === impl NoAnswer ===

impl From<IndexError> for NoAnswer {
    fn from(error: IndexError) -> Self {
        Self::Index(error)
    }
}

impl From<LedgerError> for NoAnswer {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

#[cfg(test)]
mod tests;
