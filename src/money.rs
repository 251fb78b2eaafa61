//! Integer money. Amounts are micro-USD (1_000_000 = 1 USD), the unit of the interface ("Amounts
//! are integers in micro-USD"). No float ever touches an amount; every sum is checked.
//!
//! Promise: a missing amount is `Option<MicroUsd>::None`, never zero. A zero is a fact.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount of micro-USD. Never negative: the service debits, it does not credit.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MicroUsd(u64);

/// Micro-USD in one USD.
const MICRO_PER_USD: u64 = 1_000_000;

// === impl MicroUsd ===

impl MicroUsd {
    pub const ZERO: Self = Self(0);

    pub const fn new(micro_usd: u64) -> Self {
        Self(micro_usd)
    }

    pub const fn get(self) -> u64 {
        self.0
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `None` on overflow: a sum that cannot be held is never wrapped or clamped.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// `None` when `other` is larger.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(rest) => Some(Self(rest)),
            None => None,
        }
    }

    /// Parses the interface's amount grammar `[0-9]{1,15}`: no sign, no space, no exponent.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.is_empty() || text.len() > 15 {
            return None;
        }
        text.iter()
            .try_fold(0u64, |sum, byte| {
                byte.is_ascii_digit()
                    .then(|| sum * 10 + u64::from(byte - b'0'))
            })
            .map(Self)
    }

    /// Parses an amount of USD as people write it, `123.456789` or `$12`: at most six digits behind
    /// the point, exact, no sign, no exponent.
    pub fn parse_usd(text: &str) -> Option<Self> {
        let text = text.strip_prefix('$').unwrap_or(text);
        let (whole, fraction) = match text.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (text, ""),
        };
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || fraction.len() > 6 || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let usd: u64 = whole.parse().ok()?;
        let micro: u64 = format!("{fraction:0<6}").parse().ok()?;
        usd.checked_mul(MICRO_PER_USD)?.checked_add(micro).map(Self)
    }

    /// The exact decimal in USD, six digits after the point: `0.001234`.
    pub fn to_usd(self) -> String {
        format!("{}.{:06}", self.0 / MICRO_PER_USD, self.0 % MICRO_PER_USD)
    }
}

impl fmt::Display for MicroUsd {
    /// `$0.001234`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("${}", self.to_usd()))
    }
}

#[cfg(test)]
mod tests;
