//! What `bursar caps`, the status page and `/metrics` show of caps.
//!
//! Promise: amounts are integers of micro-USD; what is billed, what is held and what is reserved stand
//! apart, and only the first is billed money.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::engine::Engine;
use super::orders::{Frozen, Orders};
use super::rules::Rules;
use super::{Caps, Period};
use crate::ledger::LedgerError;
use crate::ledger::totals::MicroUsdSum;
use crate::ledger::usage::{self, News};
use crate::money::MicroUsd;

/// One cap in its window of now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CapView {
    /// The app's name, or `all`.
    pub scope: String,
    pub period: Period,
    #[serde(rename = "limit_micro_usd")]
    pub limit: MicroUsd,
    /// As it is configured: another one while it is raised.
    #[serde(rename = "configured_micro_usd")]
    pub configured: MicroUsd,
    #[serde(rename = "spent_micro_usd")]
    pub spent: MicroUsdSum,
    /// Reserved for entries that are in doubt or unreported.
    #[serde(rename = "held_micro_usd")]
    pub held: MicroUsdSum,
    /// Reserved for what is under way.
    #[serde(rename = "reserved_micro_usd")]
    pub reserved: MicroUsdSum,
    pub under_way: usize,
    #[serde(rename = "left_micro_usd")]
    pub left: MicroUsdSum,
    /// The most that the service's books can show for this window: the limit, or what counts already,
    /// and the dearest request known. `None`: no price is known yet; then it is one request of any price.
    #[serde(rename = "worst_case_micro_usd")]
    pub worst_case: Option<MicroUsdSum>,
    pub since_ms: u64,
    pub resets_at_ms: u64,
    /// Requests that were refused by it, since the daemon's start.
    pub refusals: u64,
}

/// One freeze.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenView {
    /// `None`: all apps.
    pub app: Option<String>,
    pub since_ms: u64,
    pub by: String,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CapsView {
    pub time_zone: Option<String>,
    pub caps: Vec<CapView>,
    pub frozen: Vec<FrozenView>,
    /// Requests that wait for room below a cap.
    pub waiting: usize,
}

// === impl Caps ===

impl Caps {
    /// As it is now.
    pub fn view(&self) -> CapsView {
        let now_ms = self.clock.wall_ms();
        self.engine.lock().view(now_ms)
    }
}

/// The same from the files of a ledger that no daemon has open. Reads five weeks of the journal.
pub fn read(state_dir: &Path, rules: Rules, now_ms: u64) -> Result<CapsView, LedgerError> {
    let orders = Orders::read(state_dir, now_ms);
    let mut engine = Engine::new(rules, orders);
    engine.tell(&News::All {
        usage: usage::read(state_dir, now_ms)?,
        ended: Vec::new(),
    });
    Ok(engine.view(now_ms))
}

// === impl FrozenView ===

impl FrozenView {
    /// Everybody who is frozen.
    pub fn list(orders: &Orders) -> Vec<Self> {
        let view = |(app, frozen): (Option<&str>, &Frozen)| Self {
            app: app.map(str::to_owned),
            since_ms: frozen.since_ms,
            by: frozen.by.clone(),
        };
        orders.frozen_by().map(view).collect()
    }
}

// === impl Engine ===

impl Engine {
    fn view(&mut self, now_ms: u64) -> CapsView {
        self.roll(now_ms);
        let caps = self.purses.iter().map(|(key, purse)| {
            let (scope, period) = key;
            let charge = self.counted(scope, purse);
            let under = self.under(scope);
            let counted = charge.billed.get().saturating_add(charge.held.now());
            let limit = u128::from(purse.limit.get());
            // A cap that was lowered while requests were under way does not stop them.
            let promised = limit.max(counted.saturating_add(under.reserved));
            let worst = self
                .dearest(scope)
                .map(|dearest| promised.saturating_add(u128::from(dearest.get())));
            let sum = MicroUsdSum::from_micro_usd;
            CapView {
                scope: scope.as_str().to_owned(),
                period: *period,
                limit: purse.limit,
                configured: purse.configured,
                spent: charge.billed,
                held: sum(charge.held.now()),
                reserved: sum(under.reserved),
                under_way: under.requests,
                left: sum(limit.saturating_sub(counted.saturating_add(under.reserved))),
                worst_case: worst.map(sum),
                since_ms: purse.window.since_ms,
                resets_at_ms: purse.window.until_ms,
                refusals: self.refusals.get(key).copied().unwrap_or(0),
            }
        });
        CapsView {
            time_zone: self.rules.zone.iana_name().map(str::to_owned),
            caps: caps.collect(),
            frozen: FrozenView::list(&self.orders),
            waiting: self.waiting(),
        }
    }
}
