//! How a family is made and how its series are found: the mechanics below the list of names.
//!
//! Promise: a family is registered once or not at all; a label that is missing shows in tests and
//! never ends a request.

use std::time::Duration;

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
        buckets: Vec<f64>,
    ) -> prometheus::Result<Histogram> {
        self.register(Histogram::with_opts(
            HistogramOpts::new(name, help).buckets(buckets),
        )?)
    }

    pub fn histograms(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: Vec<f64>,
    ) -> prometheus::Result<HistogramVec> {
        self.register(HistogramVec::new(
            HistogramOpts::new(name, help).buckets(buckets),
            labels,
        )?)
    }

    fn register<C: Collector + Clone + 'static>(&self, family: C) -> prometheus::Result<C> {
        self.0.register(Box::new(family.clone()))?;
        Ok(family)
    }
}

/// 0.01 · 2ⁿ seconds, 10 ms to 655.36 s: the service may hold a duplicate for 9 minutes.
pub fn long_buckets() -> Vec<f64> {
    (0..=16).map(|n| 0.01 * f64::from(n).exp2()).collect()
}

/// 0.01 · 2ⁿ seconds, 39 µs to 655.36 s.
pub fn short_buckets() -> Vec<f64> {
    (-8..=16).map(|n| 0.01 * f64::from(n).exp2()).collect()
}

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

pub fn observe(family: &HistogramVec, labels: &[&str], took: Duration) {
    let histogram = family.get_metric_with_label_values(labels);
    debug_assert!(histogram.is_ok(), "a label is missing: {labels:?}");
    if let Ok(histogram) = histogram {
        histogram.observe(took.as_secs_f64());
    }
}

pub fn bool_label(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}
