//! What is shown and logged of one cap.
//!
//! Promise: the worst case is the most that the service's books can show for the cap's window.

use super::cap_window::CapWindow;
use super::room::Under;
use crate::caps::refused::{Reached, SharedRefusal};
use crate::caps::rules::Scope;
use crate::caps::view::CapView;
use crate::caps::window::Period;
use crate::ledger::totals::MicroUsdSum;
use crate::ledger::usage::Charge;
use crate::money::MicroUsd;

/// A cap with what counts below it. `dearest`: the largest price that one of its requests is expected to have.
pub fn cap_view(
    (scope, period): &(Scope, Period),
    cap: &CapWindow,
    charge: Charge,
    under: Under,
    dearest: Option<MicroUsd>,
    refusals: u64,
) -> CapView {
    let counted = charge.billed.get().saturating_add(charge.held.now());
    let limit = u128::from(cap.limit.get());
    // A cap that was lowered while requests were under way does not stop them.
    let promised = limit.max(counted.saturating_add(under.reserved()));
    let worst = dearest.map(|dearest| promised.saturating_add(u128::from(dearest.get())));
    let sum = MicroUsdSum::from_micro_usd;
    CapView {
        scope: scope.as_str().to_owned(),
        period: *period,
        limit: cap.limit,
        configured: cap.configured,
        spent: charge.billed,
        held: sum(charge.held.now()),
        reserved: sum(under.reserved()),
        under_way: under.requests(),
        left: sum(limit.saturating_sub(counted.saturating_add(under.reserved()))),
        worst_case: worst.map(sum),
        since_ms: cap.window.since_ms,
        resets_at_ms: cap.window.until_ms,
        refusals,
    }
}

/// One line in the log for each reason, not one a request.
pub fn log_shared(refusal: &SharedRefusal) {
    tracing::warn!(
        cap = refusal.cap,
        why = ?refusal.why,
        "a shared cap grants nothing more here; its requests are refused until it does"
    );
}

/// One line in the log a window, not one a request.
pub fn log_once(reached: &Reached, cap: &mut CapWindow) {
    if !std::mem::replace(&mut cap.is_logged, true) {
        tracing::warn!(
            cap = reached.scope.as_str(),
            period = reached.period.as_str(),
            limit = %reached.limit,
            spent = %reached.spent,
            held = %reached.held,
            "a cap is reached; its requests are refused until its window ends"
        );
    }
}
