//! A debit, and the sums of all debits as they are on disk.
//!
//! Promise: an amount that does not fit is an error; no balance is invented for an organization without one.

use crate::{money::MicroUsd, store::StoreError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One debit: money that left an organization's balance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Debit {
    pub n: u64,
    pub org: String,
    /// The Idempotency-Key, as received.
    pub key: Option<String>,
    pub route: String,
    pub amount_micro_usd: MicroUsd,
    pub request_id: String,
    pub at: String,
    pub stream: bool,
    /// SHA-256 of the canonical request (endpoint, body, session, RTE query).
    pub body_fingerprint: String,
}

/// Sums of the books, kept beside the lines because old lines are dropped.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    pub balances: BTreeMap<String, MicroUsd>,
    pub debited: MicroUsd,
    pub debits_made: u64,
}

// === impl Debit ===

impl Debit {
    /// The id of its row on disk. Sorts by number; the request id keeps two debits apart whose number a kill made equal.
    pub fn row_id(&self) -> String {
        format!("{:020}-{}", self.n, self.request_id)
    }
}

// === impl Totals ===

impl Totals {
    pub fn debit(&mut self, debit: &Debit) -> Result<(), StoreError> {
        let amount = debit.amount_micro_usd;
        let balance = self.balances.get_mut(&debit.org).ok_or(StoreError::Books(
            "a debit of an organization without a balance",
        ))?;
        let left = balance.checked_sub(amount);
        let debited = self.debited.checked_add(amount);
        let made = self.debits_made.checked_add(1);
        let (Some(left), Some(debited), Some(made)) = (left, debited, made) else {
            return Err(StoreError::Books("a debit that does not fit"));
        };
        *balance = left;
        self.debited = debited;
        self.debits_made = made;
        Ok(())
    }

    pub fn withdraw(&mut self, debit: &Debit) -> Result<(), StoreError> {
        let amount = debit.amount_micro_usd;
        let balance = self.balances.get_mut(&debit.org).ok_or(StoreError::Books(
            "a debit of an organization without a balance",
        ))?;
        let before = balance.checked_add(amount);
        let debited = self.debited.checked_sub(amount);
        let made = self.debits_made.checked_sub(1);
        let (Some(before), Some(debited), Some(made)) = (before, debited, made) else {
            return Err(StoreError::Books("a debit that cannot be taken back"));
        };
        *balance = before;
        self.debited = debited;
        self.debits_made = made;
        Ok(())
    }
}
