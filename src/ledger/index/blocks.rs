//! The sums of a stretch of time as one row of the index: what was added by line and state. There are two
//! lengths: a quarter hour, and sixteen of them, of which long windows are made. Each stretch has two rows, one with
//! its sums by model too: where apps ask for many models it is several times as long, and most questions need none
//! of it.
//!
//! Promise: a block that decodes was written whole by this format. The sums of sixteen quarter hours are
//! those of their block, and whatever reads some of the sixteen compares. Over all time the rows of both kinds come to the
//! same for each line, which each start compares.

use std::collections::BTreeMap;

use super::db::IndexError;
use super::figures::{Figures, read_number, write_number};
use crate::ledger::entry::StateWord;
use crate::ledger::rollup::GRAIN_MS;

/// A line by its number in the index, and a state.
pub type Cell = (u16, StateWord);

/// How long a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Quarter,
    /// Four hours.
    Sixteen,
}

/// How finely the sums of a block are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    AllModels,
    ByModel,
}

/// The sums of a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeBlock {
    cells: BTreeMap<Cell, Figures>,
    /// Of a quarter hour, all models together: the numbers of the first and the last record that began or ended an entry begun in it
    /// which has ended.
    ends: Option<(u64, u64)>,
}

// === impl Length ===

impl Length {
    pub const ALL: [Self; 2] = [Self::Quarter, Self::Sixteen];

    pub const fn ms(self) -> u64 {
        match self {
            Self::Quarter => GRAIN_MS,
            Self::Sixteen => 16 * GRAIN_MS,
        }
    }

    /// The beginning of the block that a moment lies in.
    pub const fn floor(self, at_ms: u64) -> u64 {
        at_ms - at_ms % self.ms()
    }
}

// === impl Detail ===

impl Detail {
    pub const ALL: [Self; 2] = [Self::AllModels, Self::ByModel];
}

// === impl TimeBlock ===

impl TimeBlock {
    pub fn add(&mut self, cell: Cell, figures: &Figures) {
        self.cells.entry(cell).or_default().add(figures);
    }

    /// What is not there cannot be taken away: rows are lost.
    pub fn take_away(&mut self, cell: Cell, figures: &Figures) -> Result<(), IndexError> {
        let sums = self.cells.get_mut(&cell).ok_or(IndexError::Incomplete)?;
        sums.take_away(figures).ok_or(IndexError::Incomplete)?;
        if sums.is_nothing() {
            self.cells.remove(&cell);
        }
        Ok(())
    }

    /// Entries that began here and have ended did so between these records.
    pub fn note_ends(&mut self, (first, last): (u64, u64)) {
        let (so_far_first, so_far_last) = self.ends.unwrap_or((first, last));
        self.ends = Some((so_far_first.min(first), so_far_last.max(last)));
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (first, last) = self.ends.unwrap_or_default();
        write_number(u128::from(first), &mut bytes);
        write_number(u128::from(last), &mut bytes);
        for ((line, state), figures) in &self.cells {
            bytes.extend_from_slice(&line.to_be_bytes());
            bytes.push(state_byte(*state));
            figures.encode(&mut bytes);
        }
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, IndexError> {
        let mut block = Self::default();
        block.ends = each_cell(bytes, |cell, rest| {
            block.cells.entry(cell).or_default().add_encoded(rest)
        })?;
        Ok(block)
    }
}

/// Hands each cell of an encoded block to `add`, which reads its figures; answers between which records its
/// entries began and ended, where it has that.
pub fn each_cell(
    bytes: &[u8],
    mut add: impl FnMut(Cell, &mut &[u8]) -> Option<()>,
) -> Result<Option<(u64, u64)>, IndexError> {
    let mut rest = bytes;
    let mut read = || {
        let first = u64::try_from(read_number(&mut rest)?).ok()?;
        let last = u64::try_from(read_number(&mut rest)?).ok()?;
        while !rest.is_empty() {
            let (line, behind) = rest.split_first_chunk::<2>()?;
            let (state, behind) = behind.split_first()?;
            rest = behind;
            let state = *StateWord::ALL.get(usize::from(*state))?;
            add((u16::from_be_bytes(*line), state), &mut rest)?;
        }
        Some((last > 0).then_some((first, last)))
    };
    read().ok_or(IndexError::DamagedRow)
}

pub fn state_byte(state: StateWord) -> u8 {
    let at = StateWord::ALL.iter().position(|known| *known == state);
    at.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)
}
