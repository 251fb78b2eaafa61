//! Reads backward: the first line met of an entry is its last one and says whether it is listed. In a segment with a
//! lookup file the file names the lines that may be such a last line.
//!
//! Promise: held are the entries listed, at most the limit. Of all others no more than the id (16 bytes) is kept:
//! of an entry in flight, or of one whose amount came later. With a model in the filter, entries whose intent was
//! not met yet are held, too: those in flight, and those that evidence came for.

use std::collections::{BTreeSet, HashMap};

use crate::ledger::id::EntryId;
use crate::ledger::journal::reader::{JournalReader, LinePosition, LinesAt};
use crate::ledger::read::filter::{Filter, Listing, Said};
use crate::ledger::read::lookup::{Detour, Lookups, Offsets, SegmentLookup, tail_needle};
use crate::ledger::read::views::{EntryView, Views};
use crate::ledger::record::Record;

/// What a question took; the measure of its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub lines: u64,
    /// Most entries held at once.
    pub held_max: usize,
}

/// The lines of one entry that is listed.
pub struct Piece {
    id: EntryId,
    /// Of the last line.
    seq: u64,
    started_ms: u64,
    /// Its model is the one asked for. `None`: its intent was not met yet.
    is_of_model: Option<bool>,
    /// In whatever order they were met.
    lines: Vec<(u64, Record)>,
}

/// Reads backward until the newest entries are found, and all their lines.
pub struct Gathering<'a> {
    filter: &'a Filter,
    limit: usize,
    pieces: Vec<Piece>,
    /// How many of them are listed, whatever their intents say.
    listed: usize,
    /// The number of the line that was read last; the next one is lower. At the start the number behind the journal's
    /// last one, or the highest there is where that is not known.
    before_seq: u64,
    /// Places whose lines are known to lie in the order of their numbers.
    in_order: BTreeSet<usize>,
    /// Entries with lines further back, the listed ones with their index.
    awaited: HashMap<EntryId, Option<usize>>,
    last_seq: Option<u64>,
    work: Work,
}

/// The lines of a segment that its lookup file names.
struct LookedUp<'a> {
    reader: &'a JournalReader,
    segment: usize,
    lookup: &'a SegmentLookup,
    /// Where its lines lie, and the segment.
    file: Option<(Offsets, LinesAt)>,
}

/// The newest `limit` entries.
pub fn newest(
    reader: &JournalReader,
    lookups: &Lookups,
    filter: &Filter,
    limit: usize,
) -> Result<(Listing, Work), Detour> {
    let mut gathering = Gathering {
        limit,
        ..Gathering::of(filter, Vec::new(), Work::default())
    };
    // What the journal's mark says of its last number: a line with a lower one may lie out of order.
    let ends_at = reader
        .mark
        .known()
        .map(|last_seq| last_seq.saturating_add(1));
    gathering.before_seq = ends_at.unwrap_or(u64::MAX);
    gathering.read_back(reader, lookups, None)?;
    // In the order in which they were met: the newest first.
    gathering
        .pieces
        .retain(|piece| piece.is_of_model == Some(true));
    gathering.pieces.truncate(limit);
    let work = gathering.work;
    let listing = Listing {
        last_seq: gathering.last_seq,
        entries: views(gathering.pieces),
    };
    Ok((listing, work))
}

pub fn views(mut pieces: Vec<Piece>) -> Vec<EntryView> {
    pieces.sort_unstable_by_key(|piece| piece.seq);
    pieces.into_iter().filter_map(Piece::view).collect()
}

// === impl Piece ===

impl Piece {
    pub fn new(seq: u64, said: &Said<'_>, filter: &Filter) -> Self {
        Self {
            id: said.id,
            seq,
            started_ms: said.started_ms,
            is_of_model: filter.admits_model(said),
            lines: Vec::new(),
        }
    }

    /// The number of its last line.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Its model is the one asked for. `None`: its intent was not met yet.
    pub fn is_of_model(&self) -> Option<bool> {
        self.is_of_model
    }

    /// Takes a line, once.
    pub fn take(&mut self, seq: u64, record: Record) {
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

impl<'a> Gathering<'a> {
    /// To complete entries that are listed.
    pub fn of(filter: &'a Filter, pieces: Vec<Piece>, work: Work) -> Self {
        let half = pieces.iter().enumerate();
        let half = half.filter(|(_, piece)| !piece.is_whole());
        Self {
            filter,
            limit: pieces.len(),
            listed: pieces.len(),
            before_seq: u64::MAX,
            in_order: BTreeSet::new(),
            awaited: half.map(|(index, piece)| (piece.id, Some(index))).collect(),
            pieces,
            last_seq: None,
            work,
        }
    }

    /// The entries, in the order in which they were met.
    pub fn finish(self) -> (Vec<Piece>, Work) {
        (self.pieces, self.work)
    }

    /// Reads from a place, or the end, back to where nothing more can be.
    pub fn read_back(
        &mut self,
        reader: &JournalReader,
        lookups: &Lookups,
        from: Option<LinePosition>,
    ) -> Result<(), Detour> {
        let last = reader.stretches().checked_sub(1);
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
            let lookup = match offset {
                Some(_) => None,
                None => lookups.of(reader, segment),
            };
            // What a lookup file does not reach is read.
            let floor = match &lookup {
                None => 0,
                Some(lookup) => lookup.ends_at().unwrap_or(u64::MAX),
            };
            let mut backward = reader.backward(segment, floor, offset)?;
            while let Some((seq, record)) = backward
                .next_record()
                .map_err(|error| reader.error(segment, error))?
            {
                self.follows(reader, segment, seq)?;
                self.take(seq, record);
                if self.is_done() {
                    return Ok(());
                }
            }
            if let Some(lookup) = &lookup {
                self.look_up(reader, segment, lookup)?;
            }
        }
        Ok(())
    }

    /// Checks that a line is the one before those that were met. Where numbers are missing between them, lines
    /// may be lost or lie elsewhere.
    fn follows(&mut self, reader: &JournalReader, place: usize, seq: u64) -> Result<(), Detour> {
        // Of what comes behind the first line that is read, nothing may be known.
        let is_next = self.before_seq == u64::MAX || seq.checked_add(1) == Some(self.before_seq);
        // A mark may be behind the journal.
        let is_first = self.last_seq.is_none();
        if !is_next && !self.in_order.contains(&place) && seq < self.before_seq {
            if !reader.lies_in_order(place)? {
                return Err(Detour::Disorder);
            }
            self.in_order.insert(place);
        }
        if seq >= self.before_seq && !is_first {
            return Err(Detour::Disorder);
        }
        self.before_seq = seq;
        Ok(())
    }

    /// Takes what a segment holds by its lookup file. Its lines are all older than those that were met.
    fn look_up(
        &mut self,
        reader: &JournalReader,
        segment: usize,
        lookup: &SegmentLookup,
    ) -> Result<(), Detour> {
        let summary = lookup.summary();
        // A mark may be behind the journal.
        let is_first = self.last_seq.is_none();
        let is_behind = |last: u64| last < self.before_seq || is_first;
        if !summary.is_in_order || !summary.last_seq.is_none_or(is_behind) {
            return Err(Detour::Disorder);
        }
        self.last_seq = self.last_seq.max(summary.last_seq);
        let mut lines = LookedUp {
            reader,
            segment,
            lookup,
            file: None,
        };
        let listed = self.awaited.iter();
        let listed: Vec<(EntryId, usize)> = listed
            .filter_map(|(id, slot)| Some((*id, (*slot)?)))
            .collect();
        // First: an entry that is whole is not awaited any more, and its rows would be taken for another's.
        if !self.is_full() {
            self.take_matching(&mut lines)?;
        }
        self.take_awaited(&listed, &mut lines)?;
        if !self.is_full() {
            // What was decided here is not decided again further back.
            for id in lookup.carried()? {
                self.awaited.entry(id).or_insert(None);
            }
        }
        self.before_seq = summary.first_seq.unwrap_or(self.before_seq);
        Ok(())
    }

    /// The other lines of entries that are listed.
    fn take_awaited(
        &mut self,
        listed: &[(EntryId, usize)],
        lines: &mut LookedUp<'_>,
    ) -> Result<(), Detour> {
        for (id, index) in listed.iter().copied() {
            for row in lines.lookup.rows_with(&[tail_needle(id.tail())])? {
                for (seq, record) in lines.all(row)? {
                    self.work.lines += 1;
                    if Said::of(&record).is_some_and(|said| said.id == id) {
                        self.add(index, id, seq, record);
                    }
                }
            }
        }
        Ok(())
    }

    /// The entries whose last line lies here.
    fn take_matching(&mut self, lines: &mut LookedUp<'_>) -> Result<(), Detour> {
        let rows = lines.lookup.matching(self.filter)?;
        if rows.is_empty() {
            return Ok(());
        }
        let unresolved = lines.lookup.unresolved()?;
        for row in rows.into_iter().rev() {
            if self.is_full() {
                return Ok(());
            }
            let is_decided = |id: &EntryId| self.awaited.contains_key(id);
            if unresolved.get(&row).is_some_and(is_decided) {
                continue;
            }
            let (seq, record) = lines.last(row)?;
            self.work.lines += 1;
            let said = Said::of(&record).ok_or_else(|| lines.lookup.contradicted())?;
            let id = said.id;
            if is_decided(&id) || !self.filter.admits(seq, &said) {
                continue;
            }
            let index = self.meet(seq, &said);
            let Some(index) = index else { continue };
            self.add(index, id, seq, record);
            for (seq, record) in lines.all(row)? {
                self.work.lines += 1;
                if Said::of(&record).is_some_and(|said| said.id == id) {
                    self.add(index, id, seq, record);
                }
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.is_full() && self.awaited.is_empty()
    }

    fn is_full(&self) -> bool {
        self.listed >= self.limit
    }

    /// The first segment that still matters. A damaged intent would make the reading go on to the beginning, if each
    /// line of its entry did not carry the entry's time.
    fn floor(&self, reader: &JournalReader) -> usize {
        let asked = reader.first_since(self.filter.since_ms);
        if !self.is_full() {
            return asked;
        }
        let awaited = self.awaited.values().flatten();
        let pieces = awaited.filter_map(|index| self.pieces.get(*index));
        let oldest = pieces.map(|piece| piece.started_ms).min();
        reader.first_since(oldest).max(asked)
    }

    /// Takes the line before those that were met.
    fn take(&mut self, seq: u64, record: Record) {
        self.work.lines += 1;
        self.last_seq = self.last_seq.max(Some(seq));
        let Some(said) = Said::of(&record) else {
            return;
        };
        let id = said.id;
        let slot = match self.awaited.get(&id) {
            Some(slot) => *slot,
            // What is not awaited is met for the first time: this is its last line.
            None if self.is_full() => None,
            None if self.filter.admits(seq, &said) => self.meet(seq, &said),
            None => {
                self.awaited.insert(id, None);
                None
            }
        };
        if let Some(index) = slot {
            self.add(index, id, seq, record);
        } else if matches!(record, Record::Intent(_)) {
            self.awaited.remove(&id);
        }
    }

    /// Begins to list an entry that the filter admits, its model apart. `None`: its line says another model.
    fn meet(&mut self, seq: u64, said: &Said<'_>) -> Option<usize> {
        let index = self.pieces.len();
        let piece = Piece::new(seq, said, self.filter);
        let slot = (piece.is_of_model != Some(false)).then_some(index);
        self.awaited.insert(said.id, slot);
        if slot.is_some() {
            let is_listed = piece.is_of_model == Some(true);
            self.pieces.push(piece);
            self.work.held_max = self.work.held_max.max(self.pieces.len());
            self.count(is_listed);
        }
        slot
    }

    /// Adds a line to an entry.
    fn add(&mut self, index: usize, id: EntryId, seq: u64, record: Record) {
        let Some(piece) = self.pieces.get_mut(index) else {
            return;
        };
        let mut is_listed = false;
        if let Record::Intent(_) = &record {
            self.awaited.remove(&id);
            if piece.is_of_model.is_none()
                && let Some(said) = Said::of(&record)
            {
                piece.is_of_model = self.filter.admits_model(&said);
                is_listed = piece.is_of_model == Some(true);
            }
        }
        piece.take(seq, record);
        self.count(is_listed);
    }

    fn count(&mut self, is_listed: bool) {
        self.listed += usize::from(is_listed);
        if is_listed && self.is_full() {
            self.awaited.retain(|_, slot| slot.is_some());
        }
    }
}

// === impl LookedUp ===

impl LookedUp<'_> {
    /// The line that says a row's state.
    fn last(&mut self, row: u32) -> Result<(u64, Record), Detour> {
        let (offsets, _) = self.open()?;
        let offset = offsets.last(row);
        self.record(offset)
    }

    /// All lines of a row.
    fn all(&mut self, row: u32) -> Result<Vec<(u64, Record)>, Detour> {
        let (offsets, _) = self.open()?;
        let all = offsets.all(row).into_iter();
        all.map(|offset| self.record(Some(offset))).collect()
    }

    fn record(&mut self, offset: Option<u32>) -> Result<(u64, Record), Detour> {
        let contradicted = || self.lookup.contradicted();
        let offset = u64::from(offset.ok_or_else(contradicted)?);
        let (reader, segment) = (self.reader, self.segment);
        let (_, lines) = self.open()?;
        let read = lines.record(offset);
        let read = read.map_err(|error| reader.file_error(segment, error))?;
        read.ok_or_else(|| self.lookup.contradicted())
    }

    fn open(&mut self) -> Result<&(Offsets, LinesAt), Detour> {
        let opened = match self.file.take() {
            Some(opened) => opened,
            None => (self.lookup.offsets()?, self.reader.lines_at(self.segment)?),
        };
        Ok(self.file.insert(opened))
    }
}
