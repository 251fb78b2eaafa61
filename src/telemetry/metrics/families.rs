//! How a family is made and how its series are found: the mechanics below the list of names.
//!
//! Promise: a family is registered once or not at all; a label that is missing shows in tests and
//! never ends a request.

use prometheus::core::Collector;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};

/// Makes families and registers them.
pub struct Families(pub Registry);

/// One request in flight, for as long as this lives.
#[derive(Debug)]
pub struct InFlightGuard(IntGauge);

// === impl InFlightGuard ===

impl InFlightGuard {
    pub fn new(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

// === impl Families ===

impl Families {
    pub fn counter(&self, name: &str, help: &str) -> prometheus::Result<IntCounter> {
        self.register(IntCounter::new(name, help)?)
    }

    pub fn counters(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> prometheus::Result<IntCounterVec> {
        self.register(IntCounterVec::new(Opts::new(name, help), labels)?)
    }

    pub fn gauge(&self, name: &str, help: &str) -> prometheus::Result<IntGauge> {
        self.register(IntGauge::new(name, help)?)
    }

    pub fn infos(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> prometheus::Result<IntGaugeVec> {
        self.register(IntGaugeVec::new(Opts::new(name, help), labels)?)
    }

    pub fn histogram(
        &self,
        name: &str,
        help: &str,
        buckets: &[f64],
    ) -> prometheus::Result<Histogram> {
        self.register(Histogram::with_opts(
            HistogramOpts::new(name, help).buckets(buckets.to_vec()),
        )?)
    }

    pub fn histograms(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: &[f64],
    ) -> prometheus::Result<HistogramVec> {
        self.register(HistogramVec::new(
            HistogramOpts::new(name, help).buckets(buckets.to_vec()),
            labels,
        )?)
    }

    fn register<C: Collector + Clone + 'static>(&self, family: C) -> prometheus::Result<C> {
        self.0.register(Box::new(family.clone()))?;
        Ok(family)
    }
}

/// Seconds of what the service takes its time for: it may hold a duplicate for 9 minutes.
pub const LONG_BUCKETS: [f64; 13] = [
    0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0,
];

/// Seconds of bursar's own work, from 50 µs.
pub const SHORT_BUCKETS: [f64; 17] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0,
];

pub fn add(family: &IntCounterVec, labels: &[&str], by: u64) {
    let counter = family.get_metric_with_label_values(labels);
    debug_assert!(counter.is_ok(), "a label is missing: {labels:?}");
    // A counter that ran over would go back to nothing.
    if let Ok(counter) = counter
        && counter.get().checked_add(by).is_some()
    {
        counter.inc_by(by);
    }
}

pub fn set(family: &IntGaugeVec, labels: &[&str], to: i64) {
    let gauge = family.get_metric_with_label_values(labels);
    debug_assert!(gauge.is_ok(), "a label is missing: {labels:?}");
    if let Ok(gauge) = gauge {
        gauge.set(to);
    }
}

pub fn bool_label(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}
