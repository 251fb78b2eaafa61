//! What a killed process left: entries in flight, and answers of which it is not known whether their
//! apps have them.
//!
//! Promise: what a start assumes of the process before it is written down, so that every later start
//! finds the same.

use crate::ledger::delivery::{Handover, Undelivered};
use crate::ledger::fold::undelivered::Deliveries;
use crate::ledger::id::EntryId;
use crate::ledger::record::Record;

/// What no record reports yet.
#[derive(Debug, Default)]
pub struct Left {
    crashed: Vec<EntryId>,
    unclear: Vec<Undelivered>,
}

// === impl Left ===

impl Left {
    pub fn new(crashed: Vec<EntryId>, unclear: Vec<Undelivered>) -> Self {
        Self { crashed, unclear }
    }

    pub fn is_none(&self) -> bool {
        self.crashed.is_empty() && self.unclear.is_empty()
    }

    /// Entries that were in flight.
    pub fn crashed(&self) -> &[EntryId] {
        &self.crashed
    }

    pub fn add_crashed(&mut self, crashed: Vec<EntryId>) {
        self.crashed.extend(crashed);
    }

    pub fn crashed_are_written(&mut self) {
        self.crashed.clear();
    }

    /// The records that say what is assumed of answers.
    pub fn assumed(&self) -> impl Iterator<Item = Record> {
        self.unclear.iter().map(assumed)
    }

    pub fn assumed_are_written(&mut self) {
        self.unclear.clear();
    }

    /// What is undelivered, with what these will be when they are written down.
    pub fn rows(&self, deliveries: &Deliveries, now_ms: u64) -> Vec<Undelivered> {
        if self.is_none() {
            return deliveries.rows(now_ms);
        }
        let mut then = deliveries.clone();
        for record in self.assumed() {
            then.apply(0, &record);
        }
        for id in &self.crashed {
            then.end_unwritten(*id, now_ms);
        }
        then.rows(now_ms)
    }
}

/// The record that says what is assumed of an answer.
fn assumed(row: &Undelivered) -> Record {
    let handover = Handover {
        delivered: false,
        assumed: true,
    };
    Record::Delivery(Box::new(row.clone()), handover)
}
