//! Lines by number: a block names thousands of them. Of each app the first models are named, and the rest share
//! [`Model::Other`].
//!
//! Promise: a number that was given stands for its line as long as the index does. However many models apps ask
//! for, half of the numbers are left for lines that name none: each has one for all its models and one for the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::db::IndexError;
use crate::ledger::fold::models::{Model, ModelLine};

/// How many models of an app are named.
const MODELS_MAX: usize = 64;

/// Once there are so many lines, a new one names no model.
const NAMING_MAX: usize = 1 << 15;

/// The lines of an index.
#[derive(Debug, Default)]
pub struct LineNumbers {
    by_number: Vec<ModelLine>,
    numbers: BTreeMap<ModelLine, u16>,
    /// The models of each app that are named.
    models: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

// === impl LineNumbers ===

impl LineNumbers {
    pub fn len(&self) -> usize {
        self.by_number.len()
    }

    /// In the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &ModelLine> {
        self.by_number.iter()
    }

    pub fn get(&self, number: u16) -> Result<&ModelLine, IndexError> {
        let line = self.by_number.get(usize::from(number));
        line.ok_or(IndexError::Incomplete)
    }

    /// The number of a line, or of the one in its place, and whether it is new.
    pub fn number(&mut self, line: &ModelLine) -> Result<(u16, bool), IndexError> {
        if let Some(number) = self.numbers.get(line) {
            return Ok((*number, false));
        }
        let mut line = line.clone();
        if let Model::Named(name) = &line.model
            && !self.names(&line.line.app, name)
        {
            line.model = Model::Other;
            if let Some(number) = self.numbers.get(&line) {
                return Ok((*number, false));
            }
        }
        let number = u16::try_from(self.by_number.len());
        let number = number.map_err(|_| IndexError::TooManyLines)?;
        self.by_number.push(line.clone());
        self.numbers.insert(line, number);
        Ok((number, true))
    }

    /// A new line of an app names this model.
    fn names(&mut self, app: &Arc<str>, name: &Arc<str>) -> bool {
        if self.by_number.len() >= NAMING_MAX {
            return false;
        }
        let models = self.models.entry(Arc::clone(app)).or_default();
        let is_named = models.len() < MODELS_MAX || models.contains(name);
        if is_named {
            models.insert(Arc::clone(name));
        }
        is_named
    }
}

#[cfg(test)]
mod tests;
