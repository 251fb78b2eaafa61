//! One thing to write to the state directory, and its effect there.
//!
//! Promise: an amount that does not fit is an error, and then nothing of the transaction is written.

use super::debit::{Debit, Totals};
use crate::{
    key_id::KeyId,
    money::MicroUsd,
    store::{Batch, StoreError, Table},
};
use serde::Serialize;

pub const DEBITS: Table = Table("debits");
pub const KEYS: Table = Table("idempotency-keys");
pub const PINS: Table = Table("pins");
/// One document each: the totals of the books, the clock, the limits, the settings, the steps done.
pub const SINGLES: Table = Table("service");
pub const ORGANIZATIONS: Table = Table("organizations");
pub const TOTALS: &str = "totals";
pub const CLOCK: &str = "clock";
pub const LIMITS: &str = "limits";
pub const SETTINGS: &str = "settings";
pub const COUNTERS: &str = "counters";
pub const STEPS: &str = "steps";

/// One thing to write; what concerns money is queued in the order in which the books changed.
#[derive(Debug)]
pub enum Mutation {
    /// A debit's line, its amount off the balance, and the oldest line when there are too many.
    Debit {
        debit: Box<Debit>,
        dropped: Option<String>,
        /// What it paid for.
        key: Option<KeyId>,
    },
    /// A debit whose write failed. A failed write may have reached the disk: then it is undone there.
    Withdrawn {
        debit: Box<Debit>,
        dropped: Option<String>,
    },
    /// A balance that was set, by organization.
    Balance(String, MicroUsd),
    /// Everything that is kept is removed.
    Clear,
    Put(Table, String, Vec<u8>),
    Remove(Table, String),
}

// === impl Mutation ===

impl Mutation {
    /// A document to write. One that is not JSON cannot be written, and the log says so.
    pub fn put(table: Table, id: impl Into<String>, document: &impl Serialize) -> Option<Self> {
        match serde_json::to_vec(document) {
            Ok(bytes) => Some(Self::Put(table, id.into(), bytes)),
            Err(error) => {
                tracing::error!(%error, table = table.0, "a document cannot be written");
                None
            }
        }
    }

    pub(super) fn apply(&self, batch: &mut Batch<'_>) -> Result<(), StoreError> {
        match self {
            Self::Debit { debit, dropped, .. } => {
                let mut totals = totals(batch)?;
                totals.debit(debit)?;
                batch.put(SINGLES, TOTALS, &totals)?;
                if let Some(dropped) = dropped {
                    batch.remove(DEBITS, dropped)?;
                }
                batch.put(DEBITS, &debit.row_id(), debit)
            }
            Self::Withdrawn { debit, dropped } => {
                if let Some(dropped) = dropped {
                    batch.remove(DEBITS, dropped)?;
                }
                let id = debit.row_id();
                if batch.get::<Debit>(DEBITS, &id)?.is_none() {
                    return Ok(());
                }
                let mut totals = totals(batch)?;
                totals.withdraw(debit)?;
                batch.put(SINGLES, TOTALS, &totals)?;
                batch.remove(DEBITS, &id)
            }
            Self::Balance(org, amount) => {
                let mut totals = totals(batch)?;
                totals.balances.insert(org.clone(), *amount);
                batch.put(SINGLES, TOTALS, &totals)
            }
            Self::Clear => {
                let mut all = [DEBITS, KEYS, PINS, SINGLES, ORGANIZATIONS].into_iter();
                all.try_for_each(|table| batch.clear(table))
            }
            Self::Put(table, id, bytes) => batch.put_bytes(*table, id, bytes),
            Self::Remove(table, id) => batch.remove(*table, id),
        }
    }
}

fn totals(batch: &Batch<'_>) -> Result<Totals, StoreError> {
    Ok(batch.get(SINGLES, TOTALS)?.unwrap_or_default())
}

#[cfg(test)]
mod tests;
