//! What a start finds in the state directory.
//!
//! Promise: a document that cannot be read ends the start with an error that names its table; nothing is
//! guessed and nothing is dropped in silence.

use super::{
    CLOCK, COUNTERS, DEBITS, KEYS, LIMITS, ORGANIZATIONS, PINS, SETTINGS, SINGLES, STEPS, TOTALS,
};
use crate::{
    auth::KeptOrganization,
    books::{Counters, Debit},
    clock::Clock,
    idempotency::KeptBinding,
    money::MicroUsd,
    pins::KeptPin,
    settings::Settings,
    steps::Progress,
    store::{Store, StoreError},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// Sums of the books, kept beside the lines because old lines are dropped.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    pub balances: BTreeMap<String, MicroUsd>,
    pub debited: MicroUsd,
    pub debits_made: u64,
}

/// A movable clock must not go back over a restart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeptClock {
    pub offset: Duration,
    pub elapsed: Duration,
    /// Wall time, as text.
    pub now: String,
}

/// Everything the state directory holds of this file's concern.
#[derive(Default)]
pub struct Kept {
    pub totals: Option<Totals>,
    pub debits: Vec<Debit>,
    pub counters: Option<Counters>,
    pub keys: Vec<KeptBinding>,
    pub pins: Vec<KeptPin>,
    pub clock: Option<KeptClock>,
    pub limits: Option<(usize, u32)>,
    pub settings: Option<Settings>,
    pub organizations: Vec<KeptOrganization>,
    pub progress: Progress,
}

// === impl Kept ===

impl Kept {
    pub fn read(store: &Store) -> Result<Self, StoreError> {
        let debits = store.all(DEBITS)?;
        let keys = store.all(KEYS)?;
        let pins = store.all(PINS)?;
        let organizations = store.all(ORGANIZATIONS)?;
        Ok(Self {
            totals: store.get(SINGLES, TOTALS)?,
            debits: debits.into_iter().map(|(_, debit)| debit).collect(),
            counters: store.get(SINGLES, COUNTERS)?,
            keys: keys.into_iter().map(|(_, key)| key).collect(),
            pins: pins.into_iter().map(|(_, pin)| pin).collect(),
            clock: store.get(SINGLES, CLOCK)?,
            limits: store.get(SINGLES, LIMITS)?,
            settings: store.get(SINGLES, SETTINGS)?,
            organizations: organizations.into_iter().map(|(_, org)| org).collect(),
            progress: store.get(SINGLES, STEPS)?.unwrap_or_default(),
        })
    }
}

// === impl KeptClock ===

impl KeptClock {
    pub fn of(clock: &Clock) -> Self {
        Self {
            offset: clock.offset(),
            elapsed: clock.elapsed(),
            now: clock.now().to_string(),
        }
    }

    /// Sets a clock forward to where this one was, and by the time that has passed since.
    pub fn resume(self, clock: &Clock) {
        clock.advance(self.offset.saturating_sub(clock.offset()));
        let was: Timestamp = self.now.parse().unwrap_or_else(|_| clock.now());
        let behind = was.duration_since(clock.now());
        if let Ok(behind) = Duration::try_from(behind) {
            clock.advance(behind);
        }
        let since = clock.now().duration_since(was);
        let since = Duration::try_from(since).unwrap_or(Duration::ZERO);
        clock.count_from(self.elapsed.saturating_add(since));
    }
}
