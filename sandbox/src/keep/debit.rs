//! A debit, and the sums of all debits.
//!
//! Promise: plain data; two debits never share a row.

use crate::money::MicroUsd;
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
    /// The id of its row on disk. Sorts by the number that it was entered by; the request id keeps two debits
    /// apart whose number a kill made equal.
    pub fn row_id(&self, entered_as: u64) -> String {
        format!("{entered_as:020}-{}", self.request_id)
    }
}
