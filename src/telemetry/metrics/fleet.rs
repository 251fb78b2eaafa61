//! How the fleet's database is reached, and what it lacks of this ledger ([fleet]).
//!
//! Promise: the page, `bursar status` and `/metrics` show the same numbers. Where there is no fleet there is no sample.

use parking_lot::Mutex;

use crate::telemetry::exposition::{Exposition, MetricType, MsAsSeconds};

/// As it was at the end of the last visit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetFigures {
    pub ship_interval_s: u64,
    pub visits: u64,
    pub failed_visits: u64,
    /// Since the start.
    pub lines_shipped: u64,
    /// Lines of batches that were not taken for what is in them, each time that they were sent.
    pub lines_refused: u64,
    /// Lines of the journal that were not there; where the last visit failed, that are not known to be there. `None`: no
    /// visit since the start has shown it.
    pub lines_behind: Option<u64>,
    /// When it was heard last, Unix milliseconds. `None`: not since the start.
    pub heard_ms: Option<u64>,
    /// When it last lacked nothing.
    pub caught_up_ms: Option<u64>,
    /// This machine's clock less the database's, when it was heard last. `None`: not since the start.
    pub clock_ahead_ms: Option<i64>,
    /// Why the last visit failed on its way, or leased nothing; `None`: it did not.
    pub trouble: Option<String>,
    /// Why the last visit that was to ship lines did not; `None`: it did.
    pub ship_trouble: Option<String>,
}

/// `None`: this ledger is in no fleet.
#[derive(Debug, Default)]
pub struct FleetMetrics(Mutex<Option<FleetFigures>>);

// === impl FleetFigures ===

impl FleetFigures {
    /// Both, where there are both.
    pub fn troubles(&self) -> Option<String> {
        let troubles = [&self.trouble, &self.ship_trouble].into_iter().flatten();
        let mut troubles: Vec<&str> = troubles.map(String::as_str).collect();
        troubles.dedup();
        (!troubles.is_empty()).then(|| troubles.join("; "))
    }
}

// === impl FleetMetrics ===

impl FleetMetrics {
    pub fn show(&self, figures: &FleetFigures) {
        *self.0.lock() = Some(figures.clone());
    }

    pub fn now(&self) -> Option<FleetFigures> {
        self.0.lock().clone()
    }

    pub(super) fn write(&self, text: &mut Exposition) {
        let now = self.now();
        let figures = now.as_ref();
        let visits = figures.map(|figures| figures.visits.saturating_sub(figures.failed_visits));
        let mut family = text.family(
            MetricType::Counter,
            "bursar_fleet_visits_total",
            "Visits to the fleet's database, by what became of them. Absent, as all of these: this ledger is in no fleet.",
        );
        for (result, count) in [
            ("ok", visits),
            ("failed", figures.map(|figures| figures.failed_visits)),
        ] {
            if let Some(count) = count {
                family.sample(&[("result", result)], count);
            }
        }
        let of = [
            (
                MetricType::Gauge,
                "bursar_fleet_ship_interval_seconds",
                "[fleet] ship_interval_s: how often lines are shipped.",
                figures.map(|figures| figures.ship_interval_s),
            ),
            (
                MetricType::Counter,
                "bursar_fleet_lines_shipped_total",
                "Lines of the journal that the fleet's database took.",
                figures.map(|figures| figures.lines_shipped),
            ),
            (
                MetricType::Counter,
                "bursar_fleet_lines_refused_total",
                "Lines of batches that the fleet's database refused for what is in them, each time that they were sent. They stay in the journal.",
                figures.map(|figures| figures.lines_refused),
            ),
            (
                MetricType::Gauge,
                "bursar_fleet_lines_behind",
                "Lines of the journal that the fleet's database did not have at the end of the last visit; while it is away, that it is not known to have. Absent until a visit since the start has shown it.",
                figures.and_then(|figures| figures.lines_behind),
            ),
        ];
        for (kind, name, help, value) in of {
            let mut family = text.family(kind, name, help);
            if let Some(value) = value {
                family.sample(&[], value);
            }
        }
        let times = [
            (
                "bursar_fleet_last_visit_timestamp_seconds",
                "When the fleet's database was heard last. Absent until it was since the start.",
                figures.and_then(|figures| figures.heard_ms),
            ),
            (
                "bursar_fleet_caught_up_timestamp_seconds",
                "When the fleet's database last had every line. Absent until it had since the start.",
                figures.and_then(|figures| figures.caught_up_ms),
            ),
        ];
        for (name, help, at_ms) in times {
            let mut family = text.family(MetricType::Gauge, name, help);
            if let Some(at_ms) = at_ms {
                family.sample(&[], MsAsSeconds(at_ms));
            }
        }
    }
}
