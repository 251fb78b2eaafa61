//! Which entries a question is about, found without holding the others. Read backward, the first
//! line met of an entry is its last one and tells whether it is listed; read forward, an entry is
//! listed at the last line it has.
//!
//! Promise: held are the entries listed, at most `limit`; going forward those in flight at the
//! place being read, too. Of all others no more than the id (16 bytes) is kept, and only between
//! two lines of theirs: of an entry in flight, or of one whose amount came later.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::ledger::entry::State;
use crate::ledger::error::LedgerError;
use crate::ledger::id::EntryId;
use crate::ledger::journal::reader::{JournalReader, Place, steadily};
use crate::ledger::journal::segments::Segment;
use crate::ledger::read::filter::{Filter, Listing, Said};
use crate::ledger::read::views::{EntryView, Views};
use crate::ledger::record::{Line, Record};

/// Entries held at once where all are asked for.
pub(super) const PAGE: usize = 1000;

/// What a question took; the measure of its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub lines: u64,
    /// Most entries held at once.
    pub held_max: usize,
}

/// The lines of one entry that is listed.
struct Piece {
    id: EntryId,
    /// Of the last line.
    seq: u64,
    started_ms: u64,
    /// In whatever order they were met.
    lines: Vec<(u64, Record)>,
}

/// Reads backward until the newest entries are found, and all their lines.
struct Gathering<'a> {
    filter: &'a Filter,
    limit: usize,
    pieces: Vec<Piece>,
    /// Entries with lines further back, the listed ones with their index.
    awaited: HashMap<EntryId, Option<usize>>,
    last_seq: Option<u64>,
    work: Work,
}

/// Reads forward, page by page, on one state of the journal.
pub struct Pages<'a> {
    reader: &'a JournalReader,
    filter: &'a Filter,
    /// Entries whose evidence lies behind the place where this was first asked for.
    reconciled: Option<HashSet<EntryId>>,
    work: Work,
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
    let (listing, work) = steadily(|| list_on(&JournalReader::open(state_dir)?, filter))?;
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
    let reader = steadily(|| JournalReader::open(state_dir))?;
    if filter.limit.is_some() || (filter.id.is_some() && filter.after_seq.is_none()) {
        let (listing, _) = list_on(&reader, filter)?;
        return listing.entries.into_iter().try_for_each(visit);
    }
    let mut pages = Pages::new(&reader, filter);
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

pub(super) fn list_on(
    reader: &JournalReader,
    filter: &Filter,
) -> Result<(Listing, Work), LedgerError> {
    let limit = filter.limit.unwrap_or(PAGE);
    match filter.after_seq {
        None => newest(
            reader,
            filter,
            if filter.id.is_some() {
                limit.min(1)
            } else {
                limit
            },
        ),
        Some(mark) => {
            let mut pages = Pages::new(reader, filter);
            let listing = pages.page(mark, limit)?;
            Ok((listing, pages.work()))
        }
    }
}

/// Everything before this moment was compacted: of entries that began before it only sums may be
/// left. Unix milliseconds; `None` when nothing was.
pub fn compacted_until_ms(state_dir: &Path) -> Result<Option<u64>, LedgerError> {
    let reader = steadily(|| JournalReader::open(state_dir))?;
    let stands_for = reader.segments.first().and_then(Segment::stands_for);
    Ok(stands_for.map(|stands_for| stands_for.until_ms))
}

/// The newest `limit` entries.
pub fn newest(
    reader: &JournalReader,
    filter: &Filter,
    limit: usize,
) -> Result<(Listing, Work), LedgerError> {
    let mut gathering = Gathering {
        filter,
        limit,
        pieces: Vec::new(),
        awaited: HashMap::new(),
        last_seq: None,
        work: Work::default(),
    };
    gathering.read_back(reader, None)?;
    let work = gathering.work;
    let listing = Listing {
        last_seq: gathering.last_seq,
        entries: views(gathering.pieces),
    };
    Ok((listing, work))
}

/// The entries that evidence comes for behind a place.
pub fn reconciled_after(
    reader: &JournalReader,
    from: Place,
) -> Result<HashSet<EntryId>, LedgerError> {
    let mut found = HashSet::new();
    let mut forward = reader.forward(from);
    while let Some(line) = forward.next_line()? {
        if Line::looks_reconciled(line)
            && let Some(Line::Record { record, .. }) = Line::decode(line)
            && let Record::Reconciled(evidence, _) = record
        {
            found.insert(evidence.id);
        }
    }
    Ok(found)
}

fn views(mut pieces: Vec<Piece>) -> Vec<EntryView> {
    pieces.sort_unstable_by_key(|piece| piece.seq);
    pieces.into_iter().filter_map(Piece::view).collect()
}

// === impl Piece ===

impl Piece {
    fn new(seq: u64, said: &Said<'_>) -> Self {
        Self {
            id: said.id,
            seq,
            started_ms: said.started_ms,
            lines: Vec::new(),
        }
    }

    /// Takes a line, once.
    fn take(&mut self, seq: u64, record: Record) {
        if self.lines.iter().all(|(known, _)| *known != seq) {
            self.seq = self.seq.max(seq);
            self.lines.push((seq, record));
        }
    }

    /// Nothing of it lies further back.
    fn is_whole(&self) -> bool {
        let is_intent = |(_, record): &(u64, Record)| matches!(record, Record::Intent(_));
        self.lines.iter().any(is_intent)
    }

    fn view(mut self) -> Option<EntryView> {
        self.lines.sort_unstable_by_key(|(seq, _)| *seq);
        let mut views = Views::default();
        for (seq, record) in self.lines {
            views.apply(seq, record);
        }
        views.finish(|_| true).pop()
    }
}

// === impl Gathering ===

impl Gathering<'_> {
    /// Reads from a place, or the end, back to where nothing more can be.
    fn read_back(
        &mut self,
        reader: &JournalReader,
        from: Option<Place>,
    ) -> Result<(), LedgerError> {
        let last = reader.segments.len().checked_sub(1);
        let Some(last) = from.map_or(last, |from| last.map(|last| last.min(from.segment))) else {
            return Ok(());
        };
        for segment in (0..=last).rev() {
            if self.is_done() || segment < self.floor(reader) {
                return Ok(());
            }
            let offset = from
                .filter(|from| from.segment == segment)
                .map(|from| from.offset);
            let mut backward = reader.backward(segment, offset)?;
            while let Some((seq, record)) = backward
                .next_record()
                .map_err(|error| reader.error(segment, error))?
            {
                self.take(seq, record);
                if self.is_done() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.pieces.len() >= self.limit && self.awaited.is_empty()
    }

    /// The first segment that still matters. A damaged intent would have it read to the beginning,
    /// but for the time that each line of its entry tells.
    fn floor(&self, reader: &JournalReader) -> usize {
        let asked = reader.first_since(self.filter.since_ms);
        if self.pieces.len() < self.limit {
            return asked;
        }
        let awaited = self.awaited.values().flatten();
        let pieces = awaited.filter_map(|index| self.pieces.get(*index));
        let oldest = pieces.map(|piece| piece.started_ms).min();
        reader.first_since(oldest).max(asked)
    }

    fn take(&mut self, seq: u64, record: Record) {
        self.work.lines += 1;
        self.last_seq = self.last_seq.max(Some(seq));
        let Some(said) = Said::of(&record) else {
            return;
        };
        let id = said.id;
        let is_intent = matches!(record, Record::Intent(_));
        let slot = match self.awaited.get(&id) {
            Some(slot) => *slot,
            // What is not awaited is met for the first time: this is its last line.
            None if self.pieces.len() >= self.limit => return,
            None => {
                let is_listed = self.filter.admits(seq, &said);
                let slot = is_listed.then_some(self.pieces.len());
                self.awaited.insert(id, slot);
                if is_listed {
                    self.pieces.push(Piece::new(seq, &said));
                    self.work.held_max = self.work.held_max.max(self.pieces.len());
                }
                if self.pieces.len() >= self.limit {
                    self.awaited.retain(|_, slot| slot.is_some());
                }
                slot
            }
        };
        if is_intent {
            self.awaited.remove(&id);
        }
        if let Some(piece) = slot.and_then(|index| self.pieces.get_mut(index)) {
            piece.take(seq, record);
        }
    }
}

// === impl Pages ===

impl<'a> Pages<'a> {
    pub fn new(reader: &'a JournalReader, filter: &'a Filter) -> Self {
        Self {
            reader,
            filter,
            reconciled: None,
            work: Work::default(),
        }
    }

    pub fn work(&self) -> Work {
        self.work
    }

    /// The oldest `limit` entries that changed last after `mark`. Fewer: there are no more.
    pub fn page(&mut self, mark: u64, limit: usize) -> Result<Listing, LedgerError> {
        let floor = Place {
            segment: self.reader.first_since(self.filter.since_ms),
            offset: 0,
        };
        let mut forward = self
            .reader
            .forward(self.reader.place_after(mark)?.max(floor));
        let mut open: HashMap<EntryId, Piece> = HashMap::new();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut read_to = mark;
        while pieces.len() < limit {
            let Some((seq, record)) = forward.next_record()? else {
                break;
            };
            self.work.lines += 1;
            read_to = read_to.max(seq);
            let Some(said) = Said::of(&record).filter(|_| seq > mark) else {
                continue;
            };
            if matches!(record, Record::Intent(_)) {
                if self.filter.admits_labels(&said) {
                    let piece = open.entry(said.id).or_insert(Piece::new(seq, &said));
                    piece.take(seq, record);
                }
            } else {
                let begun = open.remove(&said.id);
                // One that changes once more is told then.
                let is_last = !may_change(&record, &said)
                    || !self.reconciled(forward.place())?.contains(&said.id);
                if is_last && self.filter.admits(seq, &said) {
                    let mut piece = begun.unwrap_or(Piece::new(seq, &said));
                    piece.take(seq, record);
                    pieces.push(piece);
                }
            }
            self.work.held_max = self.work.held_max.max(pieces.len() + open.len());
        }

        let through = forward.place();
        let is_open = |state: &str| state == State::Open.word();
        if !self.filter.state.is_none_or(|word| is_open(word.as_str())) {
            open.clear();
        }
        // Those that end further on are told then.
        while !open.is_empty()
            && let Some((_, record)) = forward.next_record()?
        {
            self.work.lines += 1;
            if !matches!(record, Record::Intent(_))
                && let Some(said) = Said::of(&record)
            {
                open.remove(&said.id);
            }
        }
        pieces.extend(open.into_values());
        pieces.sort_unstable_by_key(|piece| piece.seq);
        let is_full = pieces.len() >= limit;
        pieces.truncate(limit);
        let last = pieces.last().map(|piece| piece.seq);
        let last_seq = last.filter(|_| is_full).unwrap_or(read_to);
        let entries = views(self.complete(pieces, through)?);
        Ok(Listing {
            entries,
            last_seq: Some(last_seq).filter(|seq| *seq > 0),
        })
    }

    /// Adds the lines that lie before the page, or before an entry's evidence.
    fn complete(&mut self, pieces: Vec<Piece>, from: Place) -> Result<Vec<Piece>, LedgerError> {
        let half = pieces.iter().enumerate();
        let half = half.filter(|(_, piece)| !piece.is_whole());
        let mut gathering = Gathering {
            filter: self.filter,
            limit: pieces.len(),
            awaited: half.map(|(index, piece)| (piece.id, Some(index))).collect(),
            pieces,
            last_seq: None,
            work: self.work,
        };
        gathering.read_back(self.reader, Some(from))?;
        self.work = gathering.work;
        Ok(gathering.pieces)
    }

    fn reconciled(&mut self, from: Place) -> Result<&HashSet<EntryId>, LedgerError> {
        let known = match self.reconciled.take() {
            Some(known) => known,
            None => reconciled_after(self.reader, from)?,
        };
        Ok(self.reconciled.insert(known))
    }
}

/// Evidence may still come for what a line left an entry as.
fn may_change(record: &Record, said: &Said<'_>) -> bool {
    !matches!(record, Record::Reconciled(..)) && said.state.is_unresolved()
}
