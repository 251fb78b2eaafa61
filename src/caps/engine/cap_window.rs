//! A cap in its current window: what counts against its limit, and what the ledger has not counted yet.

use std::sync::Arc;

use crate::caps::window::Window;
use crate::ledger::usage::Charge;
use crate::money::MicroUsd;

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
    pub at_ms: u64,
    pub charge: Charge,
}
