//! A change on its way to the disk.
//!
//! Promise: an amount that does not fit is an error, and then nothing of the transaction is written; no
//! balance is invented for an organization that has none.

use super::{Change, DEBITS, KEYS, ORGANIZATIONS, PINS, SINGLES, TOTALS, Totals, debit_id};
use crate::{
    books::Debit,
    store::{Batch, StoreError},
};

// === impl Change ===

impl Change {
    pub(super) fn apply(&self, batch: &mut Batch<'_>) -> Result<(), StoreError> {
        match self {
            Self::Debit { debit, dropped, .. } => {
                let mut totals = totals(batch)?;
                totals.debit(debit)?;
                batch.put(SINGLES, TOTALS, &totals)?;
                if let Some(dropped) = dropped {
                    batch.remove(DEBITS, dropped)?;
                }
                batch.put(DEBITS, &debit_id(debit), debit)
            }
            Self::Withdrawn { debit, dropped } => {
                if let Some(dropped) = dropped {
                    batch.remove(DEBITS, dropped)?;
                }
                let id = debit_id(debit);
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

// === impl Totals ===

impl Totals {
    fn debit(&mut self, debit: &Debit) -> Result<(), StoreError> {
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

    fn withdraw(&mut self, debit: &Debit) -> Result<(), StoreError> {
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

#[cfg(test)]
mod tests;
