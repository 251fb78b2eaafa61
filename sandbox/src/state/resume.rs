//! What a start finds in the state directory.
//!
//! Promise: a document that cannot be read ends the start with an error that names its table; nothing is
//! guessed or dropped without an error.

use crate::{
    auth::KeptOrganization,
    books::Counters,
    idempotency::KeptBinding,
    keep::{
        CLOCK, COUNTERS, DEBITS, Debit, KEYS, KeptClock, LIMITS, ORGANIZATIONS, PINS, SETTINGS,
        SINGLES, STEPS, TOTALS, Totals,
    },
    pins::KeptPin,
    settings::Settings,
    steps::Progress,
    store::{Store, StoreError},
};

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
