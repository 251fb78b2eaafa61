//! Reads forward: an entry is listed at the last line it has.
//!
//! Promise: held are the entries of a page and those in flight at the place being read. Of all others no more
//! than the id (16 bytes) is kept: of those that evidence comes for further on, and, with a model in the filter, of
//! those in flight.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::gathering::{Gathering, Piece, Work, views};
use crate::ledger::entry::State;
use crate::ledger::error::LedgerError;
use crate::ledger::id::EntryId;
use crate::ledger::journal::reader::{ForwardReader, JournalReader, LinePosition};
use crate::ledger::read::filter::{Filter, Listing, Said};
use crate::ledger::read::lookup::{Detour, Lookups};
use crate::ledger::record::{Line, Record};

/// Reads forward, page by page, on one state of the journal.
pub struct Pages<'a> {
    reader: &'a JournalReader,
    filter: &'a Filter,
    /// Entries whose evidence lies behind the place where this was first asked for.
    reconciled: Option<HashSet<EntryId>>,
    /// Places whose lines are known to lie in the order of their numbers.
    in_order: BTreeSet<usize>,
    work: Work,
}

/// The entries that evidence comes for behind a place.
pub fn reconciled_after(
    reader: &JournalReader,
    from: LinePosition,
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

// === impl Pages ===

impl<'a> Pages<'a> {
    pub fn new(reader: &'a JournalReader, filter: &'a Filter) -> Self {
        Self {
            reader,
            filter,
            reconciled: None,
            in_order: BTreeSet::new(),
            work: Work::default(),
        }
    }

    pub fn work(&self) -> Work {
        self.work
    }

    /// The oldest `limit` entries that changed last after `mark`. Fewer: there are no more.
    pub fn page(&mut self, mark: u64, limit: usize) -> Result<Listing, Detour> {
        let floor = LinePosition {
            segment: self.reader.first_since(self.filter.since_ms),
            offset: 0,
        };
        let mut forward = self
            .reader
            .forward(self.reader.place_after(mark)?.max(floor));
        // `None`: of another model than the one asked for.
        let mut open: HashMap<EntryId, Option<Piece>> = HashMap::new();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut read_to = mark;
        let mut behind_seq = 0;
        while pieces.len() < limit {
            let Some((seq, record)) = forward.next_record()? else {
                break;
            };
            self.work.lines += 1;
            self.rises(forward.began().segment, &mut behind_seq, seq)?;
            read_to = read_to.max(seq);
            let Some(said) = Said::of(&record).filter(|_| seq > mark) else {
                continue;
            };
            if matches!(record, Record::Intent(_)) {
                if self.filter.admits_labels(&said) {
                    let mut piece = Piece::new(seq, &said, self.filter);
                    let is_of_model = piece.is_of_model() == Some(true);
                    let id = said.id;
                    piece.take(seq, record);
                    open.insert(id, is_of_model.then_some(piece));
                }
            } else {
                let begun = open.remove(&said.id);
                // One that changes once more is listed then.
                let is_last = !may_change(&record, &said)
                    || !self.reconciled(forward.place())?.contains(&said.id);
                if is_last && self.filter.admits(seq, &said) {
                    let piece = match begun {
                        Some(begun) => begun,
                        None => self.begun_before(Piece::new(seq, &said, self.filter), &forward)?,
                    };
                    if let Some(mut piece) = piece {
                        piece.take(seq, record);
                        pieces.push(piece);
                    }
                }
            }
            self.work.held_max = self.work.held_max.max(pieces.len() + open.len());
        }

        let through = forward.place();
        if !self.filter.admits_state(State::Open, false) {
            open.clear();
        }
        open.retain(|_, piece| piece.is_some());
        // Those that end further on are listed then.
        while !open.is_empty()
            && let Some((seq, record)) = forward.next_record()?
        {
            self.work.lines += 1;
            self.rises(forward.began().segment, &mut behind_seq, seq)?;
            if !matches!(record, Record::Intent(_))
                && let Some(said) = Said::of(&record)
            {
                open.remove(&said.id);
            }
        }
        pieces.extend(open.into_values().flatten());
        pieces.sort_unstable_by_key(Piece::seq);
        let is_full = pieces.len() >= limit;
        pieces.truncate(limit);
        let last = pieces.last().map(Piece::seq);
        let last_seq = last.filter(|_| is_full).unwrap_or(read_to);
        let entries = views(self.complete(pieces, through)?);
        Ok(Listing {
            entries,
            last_seq: Some(last_seq).filter(|seq| *seq > 0),
        })
    }

    /// Adds the lines that lie before the page, or before an entry's evidence.
    fn complete(&mut self, pieces: Vec<Piece>, from: LinePosition) -> Result<Vec<Piece>, Detour> {
        let mut gathering = Gathering::of(self.filter, pieces, self.work);
        gathering.read_back(self.reader, &Lookups::none(), Some(from))?;
        let (pieces, work) = gathering.finish();
        self.work = work;
        Ok(pieces)
    }

    /// An entry whose intent lies before what was read. With a model in the filter the intent decides.
    fn begun_before(
        &mut self,
        piece: Piece,
        forward: &ForwardReader<'_>,
    ) -> Result<Option<Piece>, Detour> {
        if piece.is_of_model().is_some() {
            return Ok(Some(piece));
        }
        let piece = self.complete(vec![piece], forward.place())?.pop();
        Ok(piece.filter(|piece| piece.is_of_model() == Some(true)))
    }

    /// Checks that a line is the one behind those that were read. Where numbers are missing between them, lines
    /// may be lost or lie elsewhere.
    fn rises(&mut self, place: usize, behind_seq: &mut u64, seq: u64) -> Result<(), Detour> {
        let is_next = *behind_seq == 0 || seq == behind_seq.saturating_add(1);
        if !is_next && self.in_order.insert(place) {
            let is_in_order = self.reader.lies_in_order(place)?;
            if !is_in_order {
                return Err(Detour::Disorder);
            }
        }
        if seq <= *behind_seq {
            return Err(Detour::Disorder);
        }
        *behind_seq = seq;
        Ok(())
    }

    fn reconciled(&mut self, from: LinePosition) -> Result<&HashSet<EntryId>, LedgerError> {
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
