//! In place of the fleet where a build leaves it out (Cargo feature `fleet`): no ledger is in one, and a configuration
//! with `[fleet] url_file` is refused before.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;

use crate::caps::{Caps, Orders};
use crate::ceilings::Shared;
use crate::clock::SharedClock;
use crate::config::FleetTable;
use crate::ledger::{Copied, LedgerError};
use crate::telemetry::metrics::Metrics;

/// There is none.
pub enum Worker {}

/// Nothing is ordered.
pub enum FleetOrders {}

// === impl FleetOrders ===

impl FleetOrders {
    pub fn kept(
        _table: &FleetTable,
        _state_dir: &Path,
        _now_ms: u64,
    ) -> Result<Orders, LedgerError> {
        Ok(Orders::default())
    }
}

// === impl Worker ===

impl Worker {
    pub fn new(
        _table: &FleetTable,
        _state_dir: &Path,
        _clock: &SharedClock,
        _metrics: &Arc<Metrics>,
    ) -> Option<Arc<Self>> {
        None
    }

    pub fn copied(&self) -> Arc<Copied> {
        match *self {}
    }

    pub fn restore(&self, _caps: &Caps) -> Result<(), LedgerError> {
        match *self {}
    }

    pub async fn run(
        self: Arc<Self>,
        _caps: Arc<Caps>,
        _queue: Shared,
        _stop: watch::Receiver<bool>,
    ) {
        match *self {}
    }

    pub async fn flush(&self, _caps: &Caps, _leaves: bool) {
        match *self {}
    }
}
