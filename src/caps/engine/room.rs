//! What requests under way take of the room below a limit, and whether one more fits.
//!
//! Promise: integers only; what was added is taken away by the same share.

use crate::ledger::usage::Charge;
use crate::money::MicroUsd;

/// What a request takes of the room below a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// It counts as under way. A repeat does not: it is charged already.
    pub counts: bool,
    pub reserved: u128,
    /// Below the limits of its app and of its run.
    pub own: Take,
    /// Below the limits of all apps.
    pub all: Take,
}

/// What it may cost, for those beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Take {
    pub room: u128,
    /// No price is known for it.
    pub unknown: bool,
}

/// Requests under way, together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Under {
    requests: usize,
    reserved: u128,
    room: u128,
    unknown: usize,
    /// Repeats of what is charged: their evidence may make room.
    repeats: usize,
}

/// Whether a request fits below a limit now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Enough,
    /// What is under way has to end first.
    Taken,
    /// Nothing is left.
    Reached,
}

// === impl Under ===

impl Under {
    pub fn add(&mut self, share: Share, take: Take) {
        if !share.counts {
            self.repeats += 1;
            return;
        }
        self.requests += 1;
        self.reserved = self.reserved.saturating_add(share.reserved);
        self.room = self.room.saturating_add(take.room);
        self.unknown += usize::from(take.unknown);
    }

    pub fn remove(&mut self, share: Share, take: Take) {
        if !share.counts {
            self.repeats = self.repeats.saturating_sub(1);
            return;
        }
        self.requests = self.requests.saturating_sub(1);
        self.reserved = self.reserved.saturating_sub(share.reserved);
        self.room = self.room.saturating_sub(take.room);
        self.unknown = self.unknown.saturating_sub(usize::from(take.unknown));
    }

    /// How many they are. Repeats of what is charged are not among them.
    pub fn requests(&self) -> usize {
        self.requests
    }

    /// What is held for them while their prices are not known, in micro-USD.
    pub fn reserved(&self) -> u128 {
        self.reserved
    }

    /// Together with those of another one.
    pub fn merge(&mut self, other: Self) {
        self.requests += other.requests;
        self.reserved = self.reserved.saturating_add(other.reserved);
        self.room = self.room.saturating_add(other.room);
        self.unknown += other.unknown;
        self.repeats += other.repeats;
    }

    /// The least limit below which one more goes beside these.
    pub fn needed(&self, charge: Charge, take: Take) -> u128 {
        sum(charge)
            .saturating_add(self.room)
            .saturating_add(take.room)
    }

    /// One goes beside these below a limit that is high enough. Where a price is not known, none does.
    pub fn may_share(&self, take: Take) -> bool {
        self.unknown == 0 && !take.unknown
    }

    /// The rule of [`super`], for one limit.
    pub fn room(&self, charge: Charge, limit: MicroUsd, take: Take) -> Room {
        let counted = sum(charge);
        let limit = u128::from(limit.get());
        if counted >= limit {
            // What is held for the request that a repeat repeats may turn out not to be owed.
            let may_free = charge.billed.get() < limit && self.repeats > 0;
            return if may_free { Room::Taken } else { Room::Reached };
        }
        let needed = self.needed(charge, take);
        let goes_beside = self.may_share(take) && needed <= limit;
        if self.requests == 0 || goes_beside {
            Room::Enough
        } else {
            Room::Taken
        }
    }
}

/// Billed and held, in micro-USD.
pub fn sum(charge: Charge) -> u128 {
    charge.billed.get().saturating_add(charge.held.now())
}
