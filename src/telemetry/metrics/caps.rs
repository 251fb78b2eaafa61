//! Caps and freezes, asked at each scrape. Amounts are written from integers.

use crate::caps::{CapView, CapsView};
use crate::config::ALL_APPS;
use crate::telemetry::exposition::{Exposition, MetricType, MsAsSeconds};

pub fn write(text: &mut Exposition, view: &CapsView) {
    let mut family =
        |name: &'static str, help: &'static str, value: &dyn Fn(&CapView) -> String| {
            let mut family = text.family(MetricType::Gauge, name, help);
            for cap in &view.caps {
                let labels = [("app", cap.scope.as_str()), ("period", cap.period.as_str())];
                family.sample(&labels, value(cap));
            }
        };
    family(
        "bursar_cap_usd",
        "The most that may be spent in the window of now, in USD; app=\"all\" is all apps together.",
        &|cap| cap.limit.to_usd(),
    );
    family(
        "bursar_cap_spent_usd",
        "What was billed in the cap's window, in USD.",
        &|cap| cap.spent.to_usd(),
    );
    family(
        "bursar_cap_held_usd",
        "What the cap holds for requests of its window whose price is not known, in USD. An \
         estimate, in no sum of billed money.",
        &|cap| cap.held.to_usd(),
    );
    family(
        "bursar_cap_reserved_usd",
        "What the cap reserves for requests under way, in USD. An estimate.",
        &|cap| cap.reserved.to_usd(),
    );
    family(
        "bursar_cap_reset_timestamp_seconds",
        "When the cap's next window begins.",
        &|cap| MsAsSeconds(cap.resets_at_ms).to_string(),
    );
    let mut family = text.family(
        MetricType::Counter,
        "bursar_cap_refusals_total",
        "Requests that were refused because a cap was reached.",
    );
    for cap in &view.caps {
        let labels = [("app", cap.scope.as_str()), ("period", cap.period.as_str())];
        family.sample(&labels, cap.refusals);
    }
    let mut family = text.family(
        MetricType::Gauge,
        "bursar_frozen",
        "1 for each app that is frozen; app=\"all\": all apps are.",
    );
    for frozen in &view.frozen {
        family.sample(&[("app", frozen.app.as_deref().unwrap_or(ALL_APPS))], 1);
    }
    text.family(
        MetricType::Gauge,
        "bursar_cap_waiting_requests",
        "Requests that wait for room below a cap.",
    )
    .sample(&[], view.waiting);
}
