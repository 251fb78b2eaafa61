//! An index made from a whole journal at once. Rows that come in the order of time are written as
//! they come; keys are random, so their rows are gathered and written in their own order, which
//! spares the tree from being rewritten for each of them.
//!
//! Promise: the row that makes an index believed is written last. One that was not made to its end
//! is begun anew at the next start. Memory: a few ten megabytes, however long the journal is.

use std::collections::BTreeMap;

use super::db::IndexError;
use super::rows::{
    BY_REQUEST, FORMAT, META, Meta, ROLLUP, RUN, RowCounts, StoredEntry, by_key, encode, entry_key,
    lookup_key, text_key,
};
use super::tree::Index;
use crate::ledger::entry::Unresolved;
use crate::ledger::fold::books::Pending;
use crate::ledger::fold::totals::Totals;
use crate::ledger::sums::{RollupKey, Row};

/// Rows of lookups that are sorted together.
const SORTED_ROWS: usize = 250_000;

/// An index that is being made.
#[derive(Debug)]
pub struct Bulk {
    index: Index,
    lookups: Vec<Vec<u8>>,
    rollups: BTreeMap<RollupKey, Row>,
    runs: BTreeMap<String, Unresolved>,
    rows: RowCounts,
}

// === impl Bulk ===

impl Bulk {
    /// `index` is empty.
    pub fn new(index: Index) -> Self {
        Self {
            index,
            lookups: Vec::new(),
            rollups: BTreeMap::new(),
            runs: BTreeMap::new(),
            rows: RowCounts::default(),
        }
    }

    pub fn add(&mut self, pending: Pending) -> Result<(), IndexError> {
        for ended in pending.entries {
            let row = StoredEntry {
                state: ended.state,
                intent: ended.intent,
                end: ended.end,
                evidence: None,
            };
            let is_new = self.insert(&entry_key(ended.id), &encode(&row)?)?;
            self.rows.entries += u64::from(is_new);
            if let Some(key) = &ended.key {
                self.rows.keys += u64::from(is_new);
                self.lookups.push(by_key(key, ended.id));
            }
            if let Some(request_id) = &ended.request_id {
                self.rows.requests += u64::from(is_new);
                self.lookups
                    .push(lookup_key(BY_REQUEST, request_id, ended.id));
            }
        }
        for (id, state, position) in pending.changed {
            if let Some(mut row) = self.index.entry(id)? {
                row.state = state;
                row.evidence = Some(position);
                self.insert(&entry_key(id), &encode(&row)?)?;
            }
        }
        for (key, delta) in pending.rollups {
            self.rollups.entry(key).or_default().merge(&delta);
        }
        self.runs.extend(pending.runs_begun);
        for run_id in &pending.runs_ended {
            self.runs.remove(run_id);
        }
        if self.lookups.len() >= SORTED_ROWS {
            self.write_lookups()?;
        }
        Ok(())
    }

    /// Writes the rest, and last what it all amounts to.
    pub fn finish(
        mut self,
        ledger: &str,
        last_seq: u64,
        oldest_open_seq: Option<u64>,
        totals: &Totals,
    ) -> Result<(), IndexError> {
        self.write_lookups()?;
        for (key, row) in &self.rollups {
            let mut at = vec![ROLLUP];
            at.extend(serde_json::to_vec(key)?);
            self.insert(&at, &encode(row)?)?;
        }
        for (run_id, waiting) in &self.runs {
            self.insert(&text_key(RUN, run_id), &encode(waiting)?)?;
        }
        if last_seq == 0 {
            return Ok(());
        }
        let meta = Meta {
            format: FORMAT,
            ledger: ledger.to_owned(),
            last_seq,
            oldest_open_seq,
            globals: totals.globals.clone(),
            requests: totals.requests(),
            billed: totals.billed(),
            rows: self.rows,
            given_seq: 0,
        };
        self.insert(META, &encode(&meta)?).map(drop)
    }

    fn write_lookups(&mut self) -> Result<(), IndexError> {
        let mut lookups = std::mem::take(&mut self.lookups);
        lookups.sort_unstable();
        lookups
            .iter()
            .try_for_each(|key| self.insert(key, &[]).map(drop))
    }

    /// Whether the row is a new one.
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, IndexError> {
        self.index.insert(key, value)
    }
}
