//! Caps and freezes, asked at each scrape. Amounts are written from integers.
//!
//! Promise: what holds for all apps together is in families of its own, `bursar_total_…`, so that a sum over apps
//! counts nothing twice. Where there is no cap there is no sample.

use std::collections::BTreeSet;

use crate::caps::{CapView, CapsView, SharedCapView};
use crate::config::ALL_APPS;
use crate::telemetry::exposition::{Exposition, MetricType, MsAsSeconds};

/// One family for the caps of apps and one for those of all apps.
struct CapFamily {
    kind: MetricType,
    of_app: &'static str,
    of_all: &'static str,
    help: &'static str,
    value: fn(&CapView) -> String,
}

/// One family for what is leased of the caps that many machines share.
struct LeaseFamily {
    kind: MetricType,
    name: &'static str,
    help: &'static str,
    /// `None`: nothing is known of it.
    value: fn(&SharedCapView) -> Option<String>,
}

const LEASE_FAMILIES: [LeaseFamily; 5] = [
    LeaseFamily {
        kind: MetricType::Gauge,
        name: "bursar_fleet_lease_usd",
        help: "What this machine may spend of a shared cap in the window of now, in USD. Absent, as all of these: [fleet] \
               shared_caps names none.",
        value: |cap| Some(cap.leased.to_usd()),
    },
    LeaseFamily {
        kind: MetricType::Gauge,
        name: "bursar_fleet_lease_open_usd",
        help: "What of it is neither billed nor held nor reserved for requests under way, in USD.",
        value: |cap| Some(cap.open.to_usd()),
    },
    LeaseFamily {
        kind: MetricType::Gauge,
        name: "bursar_fleet_lease_left_seconds",
        help: "Seconds until it ends. Absent while nothing is leased.",
        value: |cap| cap.ends_in_ms.map(|ms| MsAsSeconds(ms).to_string()),
    },
    LeaseFamily {
        kind: MetricType::Counter,
        name: "bursar_fleet_lease_refusals_total",
        help: "Requests that were refused because nothing of the shared cap was left here, or because the fleet's database \
               could not be asked for more.",
        value: |cap| Some(cap.refusals.to_string()),
    },
    LeaseFamily {
        kind: MetricType::Counter,
        name: "bursar_fleet_cap_refusals_total",
        help: "Those of them that were refused with cap_reached: nothing is left of the shared cap, or of this ledger's \
               share of it.",
        value: |cap| Some(cap.reached.to_string()),
    },
];

const FAMILIES: [CapFamily; 6] = [
    CapFamily {
        kind: MetricType::Gauge,
        of_app: "bursar_cap_usd",
        of_all: "bursar_total_cap_usd",
        help: "The most that may be spent in the current window, in USD",
        value: |cap| cap.limit.to_usd(),
    },
    CapFamily {
        kind: MetricType::Gauge,
        of_app: "bursar_cap_spent_usd",
        of_all: "bursar_total_cap_spent_usd",
        help: "What was billed in the cap's window, in USD",
        value: |cap| cap.spent.to_usd(),
    },
    CapFamily {
        kind: MetricType::Gauge,
        of_app: "bursar_cap_held_usd",
        of_all: "bursar_total_cap_held_usd",
        help: "What the cap holds for requests of its window whose price is not known, in USD (an estimate, in no sum \
               of billed money)",
        value: |cap| cap.held.to_usd(),
    },
    CapFamily {
        kind: MetricType::Gauge,
        of_app: "bursar_cap_reserved_usd",
        of_all: "bursar_total_cap_reserved_usd",
        help: "What the cap reserves for requests under way, in USD (an estimate)",
        value: |cap| cap.reserved.to_usd(),
    },
    CapFamily {
        kind: MetricType::Gauge,
        of_app: "bursar_cap_reset_timestamp_seconds",
        of_all: "bursar_total_cap_reset_timestamp_seconds",
        help: "When the cap's next window begins",
        value: |cap| MsAsSeconds(cap.resets_at_ms).to_string(),
    },
    CapFamily {
        kind: MetricType::Counter,
        of_app: "bursar_cap_refusals_total",
        of_all: "bursar_total_cap_refusals_total",
        help: "Requests that were refused because the cap was reached",
        value: |cap| cap.refusals.to_string(),
    },
];

pub fn write(text: &mut Exposition, view: &CapsView) {
    for family in &FAMILIES {
        let mut of_app = text.family(family.kind, family.of_app, &format!("{}.", family.help));
        for cap in view.caps.iter().filter(|cap| cap.scope != ALL_APPS) {
            let labels = [("app", cap.scope.as_str()), ("period", cap.period.as_str())];
            of_app.sample(&labels, (family.value)(cap));
        }
        let help = format!("{}: the cap over all apps together.", family.help);
        let mut of_all = text.family(family.kind, family.of_all, &help);
        for cap in view.caps.iter().filter(|cap| cap.scope == ALL_APPS) {
            of_all.sample(&[("period", cap.period.as_str())], (family.value)(cap));
        }
    }
    for family in &LEASE_FAMILIES {
        let mut of_cap = text.family(family.kind, family.name, family.help);
        for cap in &view.shared {
            if let Some(value) = (family.value)(cap) {
                of_cap.sample(&[("cap", cap.cap.as_str())], value);
            }
        }
    }
    let mut family = text.family(
        MetricType::Gauge,
        "bursar_frozen",
        "1 for each app that is frozen by itself.",
    );
    let frozen = view.frozen.iter();
    // One that is frozen here may be frozen in the fleet, too.
    let apps: BTreeSet<&str> = frozen.filter_map(|frozen| frozen.app.as_deref()).collect();
    for app in apps {
        family.sample(&[("app", app)], 1);
    }
    let all = view.frozen.iter().any(|frozen| frozen.app.is_none());
    text.family(
        MetricType::Gauge,
        "bursar_total_frozen",
        "1 while all apps are frozen together.",
    )
    .sample(&[], u8::from(all));
    text.family(
        MetricType::Gauge,
        "bursar_cap_waiting_requests",
        "Requests that wait for room below a cap.",
    )
    .sample(&[], view.waiting);
}
