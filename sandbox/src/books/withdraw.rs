//! A debit that could not be written.
//!
//! Interface, Metering: "A request or turn that fails bills nothing": one whose debit is on no disk is
//! answered with an error, so its debit must not stay in memory either.
//! Promise: after it the books are what they would be without that debit; lines keep their order and their
//! numbers have no gap.

use super::Books;
use crate::{idempotency::Keys, keep::TakenBack, money::MicroUsd};

// === impl Books ===

impl Books {
    /// Takes back the debit of this request, with what it made of its key. Only where
    /// [`crate::keep::Keep::take_back`] may be called.
    pub fn withdraw(&self, request_id: &str, keys: &Keys) {
        let mut guard = self.inner.lock();
        let inner = &mut *guard;
        let Some(taken) = self.keep.take_back(request_id) else {
            return;
        };
        if taken.is_cleared {
            return;
        }
        let TakenBack { debit, key, .. } = &taken;
        let amount = debit.amount_micro_usd;
        if !taken.is_balance_set
            && let Some(balance) = inner.balances.get_mut(&debit.org)
        {
            give_back(balance, MicroUsd::checked_add, amount);
        }
        give_back(&mut inner.debited, MicroUsd::checked_sub, amount);
        inner.debits_made = inner.debits_made.saturating_sub(1);
        if let Ok(at) = debit.at.parse() {
            inner.rollup.remove_debit(&debit.org, at, amount);
            self.unsaved.notify_one();
        }
        let mut lines = inner.debits.iter();
        if let Some(at) = lines.rposition(|line| line.request_id == request_id) {
            inner.debits.remove(at);
            inner.debit_ids.remove(at);
            for later in inner.debits.iter_mut().skip(at) {
                later.n = later.n.saturating_sub(1);
            }
        }
        if let Some(key) = key {
            keys.unbind(key);
        }
        tracing::warn!(%request_id, billed_micro_usd = amount.get(), "a debit was taken back: it could not be written");
    }
}

/// The sum was there before the debit, so it fits; if it does not, the log tells and the amount stays.
fn give_back(
    amount: &mut MicroUsd,
    with: impl FnOnce(MicroUsd, MicroUsd) -> Option<MicroUsd>,
    other: MicroUsd,
) {
    match with(*amount, other) {
        Some(sum) => *amount = sum,
        None => tracing::error!("the books cannot hold a debit that was taken back"),
    }
}

#[cfg(test)]
mod tests;
