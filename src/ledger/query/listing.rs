//! Which entries a question is about, found without holding the others. Read backward, the first
//! line met of an entry is its last one and tells whether it is listed; read forward, an entry is
//! listed at the last line it has.
//!
//! Promise: held are the entries listed, at most `limit`; going forward those in flight at the
//! place being read, too. Of all others no more than the id (16 bytes) is kept, and only between
//! two lines of theirs: of an entry in flight, or of one whose amount came later.

use std::collections::{HashMap, HashSet};

use super::tape::{Place, Tape};
use super::{EntryView, Filter, Listing, Said};
use crate::ledger::entry::{EntryId, State};
use crate::ledger::entry_view::Views;
use crate::ledger::error::LedgerError;
use crate::ledger::record::{Line, Record};

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
    tape: &'a Tape,
    filter: &'a Filter,
    /// Entries whose evidence lies behind the place where this was first asked for.
    reconciled: Option<HashSet<EntryId>>,
    work: Work,
}

/// The newest `limit` entries.
pub fn newest(tape: &Tape, filter: &Filter, limit: usize) -> Result<(Listing, Work), LedgerError> {
    let mut gathering = Gathering {
        filter,
        limit,
        pieces: Vec::new(),
        awaited: HashMap::new(),
        last_seq: None,
        work: Work::default(),
    };
    gathering.read_back(tape, None)?;
    let work = gathering.work;
    let listing = Listing {
        last_seq: gathering.last_seq,
        entries: views(gathering.pieces),
    };
    Ok((listing, work))
}

/// The entries that evidence comes for behind a place.
pub fn reconciled_after(tape: &Tape, from: Place) -> Result<HashSet<EntryId>, LedgerError> {
    let mut found = HashSet::new();
    let mut forward = tape.forward(from);
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
    fn read_back(&mut self, tape: &Tape, from: Option<Place>) -> Result<(), LedgerError> {
        let last = tape.segments.len().checked_sub(1);
        let Some(last) = from.map_or(last, |from| last.map(|last| last.min(from.segment))) else {
            return Ok(());
        };
        for segment in (0..=last).rev() {
            if self.is_done() || segment < self.floor(tape) {
                return Ok(());
            }
            let offset = from
                .filter(|from| from.segment == segment)
                .map(|from| from.offset);
            let mut backward = tape.backward(segment, offset)?;
            while let Some((seq, record)) = backward
                .next_record()
                .map_err(|error| tape.error(segment, error))?
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
    fn floor(&self, tape: &Tape) -> usize {
        let asked = tape.first_since(self.filter.since_ms);
        if self.pieces.len() < self.limit {
            return asked;
        }
        let awaited = self.awaited.values().flatten();
        let pieces = awaited.filter_map(|index| self.pieces.get(*index));
        let oldest = pieces.map(|piece| piece.started_ms).min();
        tape.first_since(oldest).max(asked)
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
    pub fn new(tape: &'a Tape, filter: &'a Filter) -> Self {
        Self {
            tape,
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
            segment: self.tape.first_since(self.filter.since_ms),
            offset: 0,
        };
        let mut forward = self.tape.forward(self.tape.place_after(mark)?.max(floor));
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
        gathering.read_back(self.tape, Some(from))?;
        self.work = gathering.work;
        Ok(gathering.pieces)
    }

    fn reconciled(&mut self, from: Place) -> Result<&HashSet<EntryId>, LedgerError> {
        let known = match self.reconciled.take() {
            Some(known) => known,
            None => reconciled_after(self.tape, from)?,
        };
        Ok(self.reconciled.insert(known))
    }
}

/// Evidence may still come for what a line left an entry as.
fn may_change(record: &Record, said: &Said<'_>) -> bool {
    !matches!(record, Record::Reconciled(..)) && said.state.is_unresolved()
}
