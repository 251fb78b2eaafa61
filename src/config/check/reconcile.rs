//! Checks of `[reconcile]`: how the ledger and the service's figures are brought together.
//!
//! Promise: a name that no JSON document could have is refused here, not at the first comparison.

use super::Check;
use crate::config::errors::Place;
use crate::config::file::{At, ReconcileTable};
use crate::config::settings::Reconcile;

/// The sandbox's name for the billed spend in `/v1/auto/metrics`.
/// Assumed: the interface does not name the field.
const SPEND_FIELD: &str = "billed_micro_usd_30d";

const SPEND_FIELD_BYTES_MAX: usize = 128;

pub fn reconcile(check: &mut Check<'_>, file: ReconcileTable) -> Reconcile {
    let field = file.spend_field.unwrap_or_else(|| At {
        value: SPEND_FIELD.to_owned(),
        place: Place::key("reconcile", "spend_field"),
    });
    let is_path = (1..=SPEND_FIELD_BYTES_MAX).contains(&field.value.len())
        && field.value.bytes().all(|byte| byte.is_ascii_graphic())
        && field.value.split('.').all(|part| !part.is_empty());
    if !is_path {
        let wanted =
            "takes a member's name, such as \"billed_micro_usd_30d\"; dots lead into objects";
        check.refuse(&field.place, wanted);
    }
    Reconcile {
        poll_eval_runs: file.poll_eval_runs.is_none_or(|given| given.value),
        window_days: check.number("reconcile", "window_days", file.window_days, 30, 1..=366),
        spend_field: field.value,
    }
}
