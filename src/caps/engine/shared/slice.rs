//! What this bursar has of a shared cap in one window: a lease, with the times that this machine's clock gives it.
//!
//! Promise: integers only. A slice begins no earlier and ends no later here than in the database, whatever is done to
//! the wall clock: times count on the clock that goes on while the machine sleeps, and a call's own duration is taken
//! off.

use crate::caps::leases::{GiveBackAnswer, Lease, LeaseTotals, LiveLease};
use crate::caps::window::Window;
use crate::ledger::entry::LeaseId;
use crate::ledger::totals::MicroUsdSum;
use crate::ledger::usage::Charge;
use crate::money::MicroUsd;

/// Times by two calls that differ by no more than this are one time.
const CALLS_DIFFER_MS: u64 = 1_000;

/// When a call to the database began and ended, milliseconds since the machine's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub began_up_ms: u64,
    pub ended_up_ms: u64,
}

/// A lease as it is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    pub lease: LeaseId,
    pub cap: String,
    /// By the database's clock.
    pub window: Window,
    /// Milliseconds since the machine's start.
    pub begins_up_ms: u64,
    pub ends_up_ms: u64,
    pub totals: LeaseTotals,
    /// A part that is on its way back, under the number that follows. It is not spent any more.
    pub giving: Option<MicroUsd>,
    /// What the database counted as billed when it was heard last.
    pub billed: MicroUsdSum,
}

// === impl Slice ===

impl Slice {
    pub fn of(live: &LiveLease, call: Call) -> Self {
        let begins_up_ms = match live.begins_in_ms {
            0 => 0,
            later => call.ended_up_ms.saturating_add(later),
        };
        Self {
            lease: LeaseId(live.lease.lease),
            cap: live.lease.cap.clone(),
            window: live.lease.window,
            begins_up_ms,
            ends_up_ms: call.began_up_ms.saturating_add(live.ends_in_ms),
            totals: live.lease.totals,
            giving: None,
            billed: live.billed,
        }
    }

    /// The same, where it is known already. A part on its way back stays that until its number was taken.
    pub fn after(self, before: &Self) -> Self {
        let is_taken = self.totals.give_back_number > before.totals.give_back_number;
        // Calls differ in their duration. The narrower times stay, so that nothing is written for that.
        let is_near = |narrower: u64, wider: u64| {
            wider
                .checked_sub(narrower)
                .is_some_and(|by| by <= CALLS_DIFFER_MS)
        };
        Self {
            giving: before.giving.filter(|_| !is_taken),
            begins_up_ms: match is_near(self.begins_up_ms, before.begins_up_ms) {
                true => before.begins_up_ms,
                false => self.begins_up_ms,
            },
            ends_up_ms: match is_near(before.ends_up_ms, self.ends_up_ms) {
                true => before.ends_up_ms,
                false => self.ends_up_ms,
            },
            ..self
        }
    }

    /// The same after a grant. A database that shows less than it granted before was restored from a backup: what it
    /// granted then stays, and is presented to it.
    pub fn granted_after(self, before: &Self) -> Self {
        let forgets = self.totals.granted < before.totals.granted;
        let totals = if forgets { before.totals } else { self.totals };
        Self {
            totals,
            ..self.after(before)
        }
    }

    pub fn given_back(mut self, answer: &GiveBackAnswer) -> Self {
        match answer {
            GiveBackAnswer::Taken(totals)
            | GiveBackAnswer::Known(totals)
            | GiveBackAnswer::TooMuch(totals) => {
                self.totals = *totals;
                self.giving = None;
            }
            GiveBackAnswer::Behind | GiveBackAnswer::Unknown => {}
        }
        self
    }

    /// What may be spent of it.
    pub fn limit(&self) -> MicroUsd {
        let giving = self.giving.unwrap_or(MicroUsd::ZERO);
        let gone = self.totals.given_back.get().saturating_add(giving.get());
        MicroUsd::new(self.totals.granted.get().saturating_sub(gone))
    }

    /// What counts against it. Where this ledger has forgotten something, the database has not.
    pub fn counted(&self, charge: Charge) -> Charge {
        Charge {
            billed: charge.billed.max(self.billed),
            ..charge
        }
    }

    pub const fn is_over(&self, up_ms: u64) -> bool {
        self.ends_up_ms <= up_ms
    }

    pub const fn is_current(&self, up_ms: u64) -> bool {
        self.begins_up_ms <= up_ms && !self.is_over(up_ms)
    }

    /// As it is presented to the database.
    pub fn presented(&self) -> Lease {
        Lease {
            lease: self.lease.0,
            cap: self.cap.clone(),
            window: self.window,
            totals: self.totals,
        }
    }
}
