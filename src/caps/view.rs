//! What `bursar caps`, the status page and `/metrics` show of caps.
//!
//! Promise: amounts are integers of micro-USD; what is billed, what is held and what is reserved stand
//! apart, and only the first is billed money.

use serde::{Deserialize, Serialize};

use super::orders::{Frozen, Orders};
use super::window::Period;
use crate::ledger::totals::MicroUsdSum;
use crate::money::MicroUsd;

/// One cap in its window of now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// It holds on every machine of the fleet, and only `bursar fleet thaw` ends it.
    #[serde(default)]
    pub fleet: bool,
}

/// All of it: the document of `/api/caps` and `bursar caps --json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapsView {
    pub time_zone: Option<String>,
    pub caps: Vec<CapView>,
    pub frozen: Vec<FrozenView>,
    /// Requests that wait for room below a cap.
    pub waiting: usize,
    /// Of each app whose sessions have a limit. Empty where no person asked.
    #[serde(default)]
    pub sessions: Vec<SessionCapsView>,
    /// Caps that many machines share, as far as this one holds of them ([fleet] shared_caps).
    #[serde(default)]
    pub shared: Vec<SharedCapView>,
}

/// One shared cap: what the fleet's database stated when it was heard last, and what is leased to this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedCapView {
    pub cap: String,
    /// Absent, as what follows, until the database was heard.
    pub period: Option<Period>,
    pub time_zone: Option<String>,
    /// Of all machines together.
    #[serde(rename = "limit_micro_usd")]
    pub limit: Option<MicroUsd>,
    /// What is leased to all machines, or billed where that is more.
    #[serde(rename = "charged_micro_usd")]
    pub charged: Option<MicroUsdSum>,
    pub since_ms: Option<u64>,
    pub resets_at_ms: Option<u64>,
    /// `leased`, `empty`, `share`, `paused`, `unreachable`, `unheard` or `no_cap`.
    pub state: String,
    /// What this machine may spend in the window of now, of which `spent`, `held` and `reserved` are taken.
    #[serde(rename = "leased_micro_usd")]
    pub leased: MicroUsd,
    #[serde(rename = "spent_micro_usd")]
    pub spent: MicroUsdSum,
    #[serde(rename = "held_micro_usd")]
    pub held: MicroUsdSum,
    #[serde(rename = "reserved_micro_usd")]
    pub reserved: MicroUsdSum,
    pub under_way: usize,
    /// What is left of it.
    #[serde(rename = "open_micro_usd")]
    pub open: MicroUsdSum,
    /// Until it ends here. `null`: nothing is held.
    pub ends_in_ms: Option<u64>,
    /// Leased of windows that have not begun.
    #[serde(rename = "ahead_micro_usd")]
    pub ahead: MicroUsdSum,
    /// The largest price that one request is expected to have here: this machine exceeds what it leased by one such
    /// request at most. `null`: no price is known.
    #[serde(rename = "dearest_micro_usd")]
    pub dearest: Option<MicroUsd>,
    /// Requests that were refused by it, since the daemon's start.
    pub refusals: u64,
    /// Those of them that were refused with `cap_reached`.
    #[serde(default)]
    pub reached: u64,
}

/// The limits of one app's sessions, and how near to them its sessions are. Which sessions those are says
/// `bursar spend --by session`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCapsView {
    pub app: String,
    /// `None`: a session may cost anything.
    #[serde(rename = "session_cap_micro_usd")]
    pub cap: Option<MicroUsd>,
    /// `None`: a session may make any number of requests.
    #[serde(rename = "session_requests_max")]
    pub requests_max: Option<u64>,
    /// Sessions with sums of their own.
    pub sessions: usize,
    /// What those were billed together that came when there were too many, and share one cap. `None`: there are none.
    #[serde(rename = "overflow_micro_usd")]
    pub overflow: Option<MicroUsdSum>,
    /// Sessions that may not buy any more.
    pub reached: usize,
    /// The most that one session was billed.
    #[serde(rename = "most_spent_micro_usd")]
    pub most_spent: MicroUsdSum,
    /// The most requests of one session.
    pub most_requests: u64,
}

/// The day of the caps so far, of one app or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodayView {
    #[serde(rename = "spent_micro_usd")]
    pub spent: MicroUsdSum,
    /// That of the app, or of all apps together. `None`: the day has no cap.
    #[serde(rename = "limit_micro_usd")]
    pub limit: Option<MicroUsd>,
    /// Entries that began today and whose price is in doubt.
    pub in_doubt: u64,
    /// The app is; of all apps, any.
    pub frozen: bool,
}

// === impl FrozenView ===

impl FrozenView {
    /// All freezes: this machine's, then the fleet's.
    pub fn list(orders: &Orders, fleet: &Orders) -> Vec<Self> {
        let own = orders.frozen_by().map(|freeze| (freeze, false));
        let all = own.chain(fleet.frozen_by().map(|freeze| (freeze, true)));
        let view = |((app, frozen), fleet): ((Option<&str>, &Frozen), bool)| Self {
            app: app.map(str::to_owned),
            since_ms: frozen.since_ms,
            by: frozen.by.clone(),
            fleet,
        };
        all.map(view).collect()
    }
}
