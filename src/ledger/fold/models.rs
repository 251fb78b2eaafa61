//! The model as one of the words that the index keeps sums by. An entry's first line alone names it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ledger::rollup::RollupAt;
use crate::ledger::shared_text;
use crate::ledger::sums::LineKey;

/// The model that the app asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Model {
    Named(#[serde(with = "shared_text")] Arc<str>),
    /// All models together.
    Any,
    /// The app named none.
    Unnamed,
    /// Of entries of which only sums are left.
    Compacted,
    /// The entry's first line is lost.
    NotKnown,
    /// One of those that the index does not name.
    Other,
}

/// What the index keeps a row of sums by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ModelLine {
    pub line: LineKey,
    pub model: Model,
}

/// Where sums go in the index.
pub type SumsAt = RollupAt<ModelLine>;

// === impl Model ===

impl Model {
    pub fn of(asked_for: Option<&str>) -> Self {
        asked_for.map_or(Self::Unnamed, |name| Self::Named(name.into()))
    }
}

// === impl ModelLine ===

impl ModelLine {
    /// The line of all models together.
    pub fn of_any(&self) -> Self {
        Self {
            line: self.line.clone(),
            model: Model::Any,
        }
    }
}

// === impl SumsAt ===

impl SumsAt {
    pub fn of(at: RollupAt, model: Model) -> Self {
        Self {
            at_ms: at.at_ms,
            line: ModelLine {
                line: at.line,
                model,
            },
            state: at.state,
        }
    }
}
