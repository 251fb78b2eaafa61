//! A cap in its current window: what counts against its limit, and what the ledger has not counted yet.

use std::sync::Arc;

use super::flight::Flight;
use crate::caps::window::Window;
use crate::ledger::entry::Leases;
use crate::ledger::marks::SessionHash;
use crate::ledger::totals::Standing;
use crate::ledger::usage::{Charge, Charged, Price};
use crate::money::MicroUsd;
use crate::protocol::Operation;

/// One cap in its window of now.
#[derive(Clone, Debug)]
pub struct CapWindow {
    pub limit: MicroUsd,
    /// As it is configured.
    pub configured: MicroUsd,
    pub window: Window,
    pub charge: Charge,
    /// A refusal was logged in this window.
    pub is_logged: bool,
}

/// What a request came to that the ledger could not write yet.
#[derive(Debug)]
pub struct Unbooked {
    pub app: Arc<str>,
    /// Where sessions of the app have a limit.
    pub session: Option<SessionHash>,
    pub leases: Leases,
    pub at_ms: u64,
    pub charge: Charge,
}

// === impl Unbooked ===

impl Unbooked {
    pub fn of(flight: &Flight, charge: Charge) -> Self {
        Self {
            app: Arc::clone(&flight.ask.app),
            session: flight.ask.session.map(|session| session.hash),
            leases: flight.leases.clone(),
            at_ms: flight.at_ms,
            charge,
        }
    }

    /// As the ledger would report it, without its entry.
    pub fn charged(self, operation: Operation) -> Charged {
        Charged {
            entry: None,
            app: self.app,
            run: None,
            session: self.session,
            leases: self.leases,
            requests: 1,
            operation,
            at_ms: self.at_ms,
            charge: self.charge,
            doubts: Standing::default(),
            price: Price::Nothing,
        }
    }
}
