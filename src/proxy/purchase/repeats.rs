//! How many retries shared one purchase, until its price is known.
//!
//! Why: what bursar saved its apps is this count times that price, and either can come first: a retry joins what
//! is under way, or an answer that is settled and kept. Promise: each retry is counted once, with the price that
//! the ledger has.

use parking_lot::Mutex;

use crate::money::MicroUsd;

/// The retries of one purchase.
#[derive(Debug)]
pub struct AvoidedRepeats(Mutex<RepeatsState>);

#[derive(Clone, Copy, Debug)]
enum RepeatsState {
    /// So many have come; the price has not.
    Came(u32),
    /// `None`: nobody knows it.
    Price(Option<MicroUsd>),
}

// === impl AvoidedRepeats ===

impl AvoidedRepeats {
    /// `count`: retries already, by their key.
    pub fn new(count: u32) -> Self {
        Self(Mutex::new(RepeatsState::Came(count)))
    }

    /// One more has come. The price, where it is known already.
    pub fn joined(&self) -> Option<MicroUsd> {
        match &mut *self.0.lock() {
            RepeatsState::Came(count) => {
                *count = count.saturating_add(1);
                None
            }
            RepeatsState::Price(price) => *price,
        }
    }

    /// It is settled. How many came before, to be counted now.
    pub fn settled(&self, price: Option<MicroUsd>) -> u32 {
        match std::mem::replace(&mut *self.0.lock(), RepeatsState::Price(price)) {
            RepeatsState::Came(count) => count,
            RepeatsState::Price(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests;
