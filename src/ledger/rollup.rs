//! What is left of entries that were compacted: their sums by quarter hour, line and state.
//!
//! A day begins at midnight of whatever time zone is asked for. All zones of today lie whole quarter
//! hours from UTC, so sums by quarter hour add up to the days of each of them.
//!
//! Promise: a rollup adds to every sum exactly what the lines of its entries added.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ledger::entry::{Labels, Leases, StateWord};
use crate::ledger::shared_text;
use crate::ledger::sums::{Globals, LineKey, LineSums};
use crate::ledger::tallies::Tallies;
use crate::protocol::{Lane, Operation, ServedBy};

/// How long a time one rollup is about.
pub const GRAIN_MS: u64 = 15 * 60 * 1000;

/// The sums of some entries: one line of the compacted segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollup {
    /// When the quarter hour begins that its entries began in, Unix milliseconds.
    pub at_ms: u64,
    #[serde(with = "shared_text")]
    pub app: Arc<str>,
    pub lane: Lane,
    pub operation: Operation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_by: Option<ServedBy>,
    /// What its entries came to.
    pub state: StateWord,
    pub row: LineSums,
    /// Of its entries that have a user or a tag, the same by those. An older bursar passes over it.
    #[serde(default, skip_serializing_if = "Tallies::is_empty")]
    pub tallies: Tallies,
    /// The counters kept by no line, of all entries that the segment stands for and of those it
    /// still lists. On its first rollup only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub globals: Option<Globals>,
}

/// What a rollup is kept by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RollupAt<L = LineKey> {
    pub at_ms: u64,
    pub line: L,
    pub state: StateWord,
}

// === impl Rollup ===

impl Rollup {
    pub fn new(at: RollupAt, row: LineSums, tallies: Tallies) -> Self {
        Self {
            at_ms: at.at_ms,
            app: at.line.app,
            lane: at.line.lane,
            operation: at.line.operation,
            served_by: at.line.served_by,
            state: at.state,
            row,
            tallies,
            globals: None,
        }
    }

    pub fn at(&self) -> RollupAt {
        RollupAt {
            at_ms: self.at_ms,
            line: LineKey {
                app: Arc::clone(&self.app),
                lane: self.lane,
                operation: self.operation,
                served_by: self.served_by,
            },
            state: self.state,
        }
    }

    pub fn labels(&self) -> Labels {
        Labels {
            started_ms: self.at_ms,
            app: Arc::clone(&self.app),
            lane: self.lane,
            operation: self.operation,
            key: None,
            reserved: None,
            run: None,
            leases: Leases::default(),
            marks: None,
        }
    }
}

// === impl RollupAt ===

impl<L> RollupAt<L> {
    /// Where an effect on an entry that began then goes.
    pub fn new(started_ms: u64, line: L, state: StateWord) -> Self {
        Self {
            at_ms: started_ms - started_ms % GRAIN_MS,
            line,
            state,
        }
    }
}
