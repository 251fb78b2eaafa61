//! Integer money: micro-USD, 1,000,000 to the dollar.
//!
//! The interface bills in integers, so there is no float here and no way to make one.
//! Promise: a sum that does not fit is an error, never a wrapped or clamped amount.

use serde::{Deserialize, Serialize};
use std::fmt;

/// An amount in micro-USD. Negative only as a balance that its last request overdrew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroUsd(i64);

// === impl MicroUsd ===

impl MicroUsd {
    pub const ZERO: Self = Self(0);
    pub const MAX: Self = Self(i64::MAX);

    /// `None` if `amount` is beyond what the books can hold (9.2 trillion dollars).
    pub fn new(amount: u64) -> Option<Self> {
        i64::try_from(amount).ok().map(Self)
    }

    pub const fn get(self) -> i64 {
        self.0
    }

    pub fn is_positive(self) -> bool {
        self.0 > 0
    }

    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }
}

impl fmt::Display for MicroUsd {
    /// The bare integer, as headers and comments carry it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A list price, in micro-USD per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    pub prompt_per_million: u64,
    pub completion_per_million: u64,
}

// === impl Price ===

impl Price {
    /// What these tokens cost: both sides summed, then rounded up once to a whole micro-USD.
    pub fn cost(self, prompt_tokens: u64, completion_tokens: u64) -> Option<MicroUsd> {
        let prompt = u128::from(self.prompt_per_million) * u128::from(prompt_tokens);
        let completion = u128::from(self.completion_per_million) * u128::from(completion_tokens);
        let micro = prompt.checked_add(completion)?.div_ceil(1_000_000);
        u64::try_from(micro).ok().and_then(MicroUsd::new)
    }
}

#[cfg(test)]
mod tests;
