//! Lines by number: a block names thousands of them.
//!
//! Promise: a number that was given stands for its line as long as the index does.

use std::collections::BTreeMap;

use super::db::IndexError;
use crate::ledger::sums::LineKey;

/// The lines of an index.
#[derive(Debug, Default)]
pub struct LineNumbers {
    by_number: Vec<LineKey>,
    numbers: BTreeMap<LineKey, u16>,
}

// === impl LineNumbers ===

impl LineNumbers {
    pub fn len(&self) -> usize {
        self.by_number.len()
    }

    pub fn get(&self, number: u16) -> Result<&LineKey, IndexError> {
        let line = self.by_number.get(usize::from(number));
        line.ok_or(IndexError::Incomplete)
    }

    /// The number of a line, and whether it is new.
    pub fn number(&mut self, line: &LineKey) -> Result<(u16, bool), IndexError> {
        if let Some(number) = self.numbers.get(line) {
            return Ok((*number, false));
        }
        let number = u16::try_from(self.by_number.len());
        let number = number.map_err(|_| IndexError::TooManyLines)?;
        self.by_number.push(line.clone());
        self.numbers.insert(line.clone(), number);
        Ok((number, true))
    }
}
