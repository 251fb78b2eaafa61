//! What entries of some app and time, of a session or of a run come to for their caps.
//!
//! Promise: billed money and estimates stand apart (rule I12).

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::ledger::sums::{HeldSums, MicroUsdSum};

/// Billed, and held for entries whose price is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    pub billed: MicroUsdSum,
    pub held: HeldSums,
}

// === impl Charge ===

impl Charge {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for Charge {
    fn add_assign(&mut self, other: Self) {
        self.billed.merge(other.billed);
        self.held += other.held;
    }
}
