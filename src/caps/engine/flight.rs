//! A request that asks to spend, and that request under way.

use std::sync::Arc;

use super::room::Share;
use crate::ledger::entry::{EntryId, Leases, State};
use crate::ledger::marks::Session;
use crate::ledger::usage::Charge;
use crate::money::MicroUsd;
use crate::protocol::Operation;

/// A request that wants to spend.
#[derive(Clone, Debug)]
pub struct Ask {
    pub entry: EntryId,
    pub app: Arc<str>,
    /// The run of `bursar exec` that spends.
    pub run: Option<Arc<str>>,
    /// The app's session that it belongs to.
    pub session: Option<Session>,
    pub operation: Operation,
    pub request_bytes: u64,
    pub repeats: Option<Repeats>,
}

/// A key that is charged: its request repeats what was bought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// In whose window the charge counts, Unix milliseconds.
    pub since_ms: u64,
    /// The entries that it is charged to, as far as they are known.
    pub from: Vec<EntryId>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlightEnd {
    /// It never had an intent.
    Unsent,
    Settled(State),
    /// Its end could not be written, or its task died.
    Unknown,
}

/// A request under way.
#[derive(Clone, Debug)]
pub struct Flight {
    pub ask: Ask,
    pub at_ms: u64,
    pub reserved: MicroUsd,
    pub share: Share,
    /// The leases that its intent names.
    pub leases: Leases,
    /// Its end is in the ledger.
    pub booked: bool,
    /// The ledger has reported its end in an event of its own, with its charge.
    pub is_reported: bool,
}

// === impl Flight ===

impl Flight {
    /// What an end of it is charged with.
    pub fn came_to(&self, end: FlightEnd) -> Charge {
        let mut charge = Charge::default();
        match end {
            FlightEnd::Unsent => {}
            FlightEnd::Settled(state) if !state.is_unresolved() => {
                charge.billed = state.adds().into()
            }
            FlightEnd::Settled(_) | FlightEnd::Unknown => charge.held.came = self.reserved.into(),
        }
        charge
    }
}
