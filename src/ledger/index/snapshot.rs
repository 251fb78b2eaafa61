//! The index as it stands at one moment, for questions.
//!
//! Promise: whatever is answered adds up: where single quarter hours are read, all sixteen are compared with
//! their block. What cannot be answered from sums says so ([`IndexError::Unfit`]).

use std::collections::BTreeMap;

use super::blocks::{Detail, Length, each_cell, state_byte};
use super::db::IndexError;
use super::figures::Figures;
use super::lines::LineNumbers;
use super::rows::{
    DAMAGED, EVIDENCE, FILES, MISSING, Meta, block_begins, block_key, decode, decode_entry,
    entry_key, entry_of, opened,
};
use super::write::filed;
use crate::ledger::entry::StateWord;
use crate::ledger::fold::models::ModelLine;
use crate::ledger::fold::quarters::Filed;
use crate::ledger::id::EntryId;
use crate::ledger::journal::segments::JournalFiles;
use crate::ledger::sums::LineSums;

/// The index while nothing is written to it.
pub struct Snapshot<'a> {
    db: &'a sled::Db,
    lines: &'a LineNumbers,
    meta: Meta,
    files: Option<JournalFiles>,
    is_journal_sound: bool,
}

/// Sums by whatever they are asked for: a stretch of time and a group, each by a number.
#[derive(Debug, Default)]
pub struct Grouped {
    rows: BTreeMap<(u64, u32), Figures>,
}

/// A quarter hour of which a part is asked for.
#[derive(Debug, Default)]
pub struct Edge {
    /// The numbers of the first and the last record that began or ended an entry begun in it which has ended.
    pub ends: Option<(u64, u64)>,
    /// How many of its entries have ended.
    pub requests: u128,
    /// What evidence for its entries added.
    pub evidence: Vec<(EntryId, ModelLine, LineSums)>,
}

/// Which stretch of time all of a block counts for; `None`: its parts count for different ones.
pub type Place<'a> = dyn FnMut(u64, u64) -> Option<u64> + 'a;

/// The group of a line and a state.
pub type Group<'a> = dyn FnMut(&ModelLine, StateWord) -> Result<u32, IndexError> + 'a;

// === impl Grouped ===

impl Grouped {
    pub fn rows(&self) -> &BTreeMap<(u64, u32), Figures> {
        &self.rows
    }

    pub fn add(&mut self, at: (u64, u32), figures: &Figures) {
        self.rows.entry(at).or_default().add(figures);
    }

    /// What is not there cannot be taken away: rows are lost.
    pub fn take_away(&mut self, at: (u64, u32), figures: &Figures) -> Result<(), IndexError> {
        let sums = self.rows.get_mut(&at).ok_or(IndexError::Incomplete)?;
        sums.take_away(figures).ok_or(IndexError::Incomplete)?;
        if sums.is_nothing() {
            self.rows.remove(&at);
        }
        Ok(())
    }
}

// === impl Snapshot ===

impl<'a> Snapshot<'a> {
    pub(super) fn new(
        db: &'a sled::Db,
        lines: &'a LineNumbers,
        meta: Meta,
    ) -> Result<Self, IndexError> {
        let files = db.get(FILES)?.map(|files| decode(&files)).transpose()?;
        Ok(Self {
            db,
            lines,
            meta,
            files,
            is_journal_sound: !db.contains_key(MISSING)? && !db.contains_key(DAMAGED)?,
        })
    }

    /// The last record that is in the sums.
    pub fn last_seq(&self) -> u64 {
        self.meta.last_seq
    }

    /// The first intent up to there without an end up to there.
    pub fn oldest_open_seq(&self) -> Option<u64> {
        self.meta.oldest_open_seq
    }

    /// Every entry is filed under the state that it came to, and all evidence under the model of its entry.
    pub fn is_filed_by_state(&self) -> bool {
        self.meta.unmoved == 0
    }

    /// The last record of the compacted segment that this was made from; 0: it was made from entries, one by one.
    pub fn compacted_seq(&self) -> u64 {
        self.meta.compacted_seq
    }

    /// Nothing is known to be damaged of the journal.
    pub fn is_journal_sound(&self) -> bool {
        self.is_journal_sound
    }

    /// The journal's files when it was last read or written in order.
    pub fn files(&self) -> Option<&JournalFiles> {
        self.files.as_ref()
    }

    /// Sums over entries begun in `[since_ms, until_ms)`, both at the beginning of a quarter hour. Where there are
    /// more rows than `rows_max`, these are some of them.
    pub fn sums(
        &self,
        detail: Detail,
        since_ms: u64,
        until_ms: u64,
        rows_max: usize,
        place: &mut Place<'_>,
        group: &mut Group<'_>,
    ) -> Result<Grouped, IndexError> {
        let mut grouped = Grouped::default();
        let mut groups: Vec<Option<u32>> = Vec::new();
        groups.resize(self.lines.len() * StateWord::ALL.len(), None);
        // Returns how many rows there are.
        let mut add = |stretch: u64, block: &[u8]| -> Result<usize, IndexError> {
            let mut failed = None;
            let read = each_cell(opened(block)?, |(line, state), rest| {
                let place = usize::from(line) * StateWord::ALL.len();
                let known = groups.get_mut(place + usize::from(state_byte(state)))?;
                let number = match *known {
                    Some(number) => number,
                    None => {
                        let line = self.lines.get(line);
                        let number = line.and_then(|line| group(line, state));
                        *known.insert(number.map_err(|error| failed = Some(error)).ok()?)
                    }
                };
                let sums = grouped.rows.entry((stretch, number)).or_default();
                sums.add_encoded(rest)
            });
            read.map_err(|error| failed.unwrap_or(error))?;
            Ok(grouped.rows.len())
        };
        let (whole, quarter) = (Length::Sixteen, Length::Quarter);
        let from = block_key(whole, detail, whole.floor(since_ms));
        for pair in self.db.range(from..block_key(whole, detail, until_ms)) {
            let (key, block) = pair?;
            let begins_ms = block_begins(&key)?;
            let ends_ms = begins_ms.saturating_add(whole.ms());
            let is_inside = since_ms <= begins_ms && ends_ms <= until_ms;
            if let Some(stretch) = is_inside.then(|| place(begins_ms, ends_ms)).flatten() {
                if add(stretch, &block)? > rows_max {
                    return Ok(grouped);
                }
                continue;
            }
            for (at_ms, block) in self.quarters(detail, begins_ms)? {
                if (since_ms..until_ms).contains(&at_ms) {
                    let stretch = place(at_ms, at_ms.saturating_add(quarter.ms()));
                    if add(stretch.ok_or(IndexError::Unfit)?, &block)? > rows_max {
                        return Ok(grouped);
                    }
                }
            }
        }
        Ok(grouped)
    }

    /// The quarter hours of a block, by their beginnings, which together come to it.
    fn quarters(
        &self,
        detail: Detail,
        begins_ms: u64,
    ) -> Result<Vec<(u64, sled::IVec)>, IndexError> {
        let ends_ms = begins_ms.saturating_add(Length::Sixteen.ms());
        let (mut found, mut sum) = (Figures::default(), Figures::default());
        let mut quarters = Vec::new();
        let from = block_key(Length::Quarter, detail, begins_ms);
        for pair in self
            .db
            .range(from..block_key(Length::Quarter, detail, ends_ms))
        {
            let (key, block) = pair?;
            each_cell(opened(&block)?, |_, rest| found.add_encoded(rest))?;
            quarters.push((block_begins(&key)?, block));
        }
        if let Some(whole) = self.db.get(block_key(Length::Sixteen, detail, begins_ms))? {
            each_cell(opened(&whole)?, |_, rest| sum.add_encoded(rest))?;
        }
        match found == sum {
            true => Ok(quarters),
            false => Err(IndexError::Incomplete),
        }
    }

    /// What is needed to read the entries of a quarter hour one by one from the journal.
    pub fn edge(&self, quarter_ms: u64) -> Result<Edge, IndexError> {
        let mut edge = Edge::default();
        let mut reconciled = 0;
        let quarters = self.quarters(Detail::AllModels, Length::Sixteen.floor(quarter_ms))?;
        if let Some((_, value)) = quarters.iter().find(|(at_ms, _)| *at_ms == quarter_ms) {
            let ends = each_cell(opened(value)?, |_, rest| {
                let mut figures = Figures::default();
                figures.add_encoded(rest)?;
                reconciled += figures.reconciled();
                edge.requests += figures.requests();
                Some(())
            })?;
            edge.ends = ends;
        }
        for pair in self.db.scan_prefix(entry_key(EVIDENCE, quarter_ms, None)) {
            let (key, value) = pair?;
            let (line, _, figures) = decode_entry(&value)?;
            let line = self.lines.get(line)?.clone();
            edge.evidence.push((entry_of(&key)?, line, figures.row()));
        }
        // Of compacted entries the evidence is not there one by one.
        if u128::try_from(edge.evidence.len()) == Ok(reconciled) {
            Ok(edge)
        } else {
            Err(IndexError::Unfit)
        }
    }

    /// What an entry added when it ended and its price was not known.
    pub fn filed(&self, id: EntryId, quarter_ms: u64) -> Result<Option<Filed>, IndexError> {
        Ok(filed(self.db, self.lines, id, quarter_ms)?.map(|(_, filed)| filed))
    }
}
