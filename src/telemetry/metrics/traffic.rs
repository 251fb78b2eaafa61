//! What holds requests back on their way to the service: the queue, the limits as they are now, and
//! the breaker.
//!
//! Promise: the status page and `/metrics` show the same numbers.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use prometheus::{HistogramVec, IntCounter, IntGauge};

use super::families::{Families, LONG_BUCKETS};
use crate::protocol::closed_set;
use crate::telemetry::exposition::{Exposition, MetricType};

closed_set! {
    /// What the breaker holds requests back for.
    Breaking {
        /// The service refuses the organization's key (401).
        Key => "key",
        /// The organization's balance is empty (402).
        Balance => "balance",
        /// The service cannot be reached.
        Upstream => "upstream",
    }
}

/// The numbers of this moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub waiting: i64,
    pub in_flight: i64,
    /// `None`, here and in the next: bursar sets no limit.
    pub in_flight_limit: Option<i64>,
    pub per_minute_limit: Option<i64>,
    /// What requests are held back for.
    pub breaking: Vec<&'static str>,
}

#[derive(Debug)]
pub struct TrafficMetrics {
    depth: IntGauge,
    wait: HistogramVec,
    in_flight: IntGauge,
    in_flight_limit: OptionalLimit,
    per_minute_limit: OptionalLimit,
    /// By [`Breaking::ALL`].
    breaker: Vec<IntGauge>,
    /// Over a connection that was kept, and over a new one.
    kept: IntCounter,
    new: IntCounter,
    bodies: HeldBytes,
}

/// Asks how many bytes of bodies are held.
#[derive(Default)]
struct HeldBytes(OnceLock<Box<dyn Fn() -> usize + Send + Sync>>);

impl fmt::Debug for HeldBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldBytes")
    }
}

/// A limit that may be none.
#[derive(Debug)]
struct OptionalLimit(AtomicI64);

// === impl OptionalLimit ===

impl OptionalLimit {
    const NONE: i64 = -1;

    fn set(&self, limit: Option<usize>) {
        let limit = limit.map_or(Self::NONE, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        self.0.store(limit, Ordering::Relaxed);
    }

    fn get(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|limit| *limit != Self::NONE)
    }
}

impl Default for OptionalLimit {
    fn default() -> Self {
        Self(AtomicI64::new(Self::NONE))
    }
}

// === impl TrafficMetrics ===

impl TrafficMetrics {
    pub(super) fn new(families: &Families) -> prometheus::Result<Self> {
        let breaker = families.infos(
            "bursar_breaker_open",
            "1 while new requests are held back because the service refuses the key (key), has \
             an empty balance (balance) or cannot be reached (upstream).",
            &["cause"],
        )?;
        let of_cause = |cause: &Breaking| breaker.get_metric_with_label_values(&[cause.as_str()]);
        let answers = families.counters(
            "bursar_upstream_answers_total",
            "Answers of the service to requests of apps, refusals included, by whether they came over a new connection or \
             over one that earlier requests had used.",
            &["connection"],
        )?;
        Ok(Self {
            kept: answers.get_metric_with_label_values(&["kept"])?,
            new: answers.get_metric_with_label_values(&["new"])?,
            bodies: HeldBytes::default(),
            depth: families.gauge(
                "bursar_queue_depth",
                "Requests that wait for a place at the service.",
            )?,
            wait: families.histograms(
                "bursar_queue_wait_seconds",
                "How long attempts waited for a place at the service; most of them not at all.",
                &["app"],
                &LONG_BUCKETS,
            )?,
            in_flight: families.gauge(
                "bursar_upstream_inflight_requests",
                "Places at the service that are taken, drains included; those that \
                 bursar_concurrency_limit bounds.",
            )?,
            in_flight_limit: OptionalLimit::default(),
            per_minute_limit: OptionalLimit::default(),
            breaker: Breaking::ALL
                .iter()
                .map(of_cause)
                .collect::<Result<_, _>>()?,
        })
    }

    /// An attempt of this app, one of those with a label of their own, got its place after this time.
    pub(super) fn waited(&self, app: &str, waited: Duration) {
        if let Ok(wait) = self.wait.get_metric_with_label_values(&[app]) {
            wait.observe(waited.as_secs_f64());
        }
    }

    /// The service has begun to answer.
    pub fn answered(&self, on_kept_connection: bool) {
        match on_kept_connection {
            true => self.kept.inc(),
            false => self.new.inc(),
        }
    }

    /// How many bytes of bodies are held is asked at each scrape. Once a process.
    pub fn watch_bodies(&self, held: impl Fn() -> usize + Send + Sync + 'static) {
        // A second gateway of a test shows the first one's.
        let _ = self.bodies.0.set(Box::new(held));
    }

    /// The queue now; `None`: no limit.
    pub fn show(
        &self,
        waiting: usize,
        in_flight: usize,
        in_flight_limit: Option<usize>,
        per_minute_limit: Option<usize>,
    ) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.depth.set(number(waiting));
        self.in_flight.set(number(in_flight));
        self.in_flight_limit.set(in_flight_limit);
        self.per_minute_limit.set(per_minute_limit);
    }

    /// The limits, where there are any, and what is asked at a scrape.
    pub(super) fn write(&self, text: &mut Exposition) {
        let mut family = text.family(
            MetricType::Gauge,
            "bursar_request_body_bytes",
            "Memory that is taken by the bodies of requests, of the 256 MiB that there are for them.",
        );
        if let Some(held) = self.bodies.0.get() {
            family.sample(&[], held());
        }
        for (name, help, limit) in [
            (
                "bursar_concurrency_limit",
                "Requests that may be at the service at once: [shaping] in_flight, or less after a 429 or beside busy machines of a fleet. Absent: no \
                 limit.",
                self.in_flight_limit.get(),
            ),
            (
                "bursar_rate_limit_per_minute",
                "Requests that may go in a minute: [shaping] per_minute, or less after a 429 or beside busy machines of a fleet. Absent: no limit.",
                self.per_minute_limit.get(),
            ),
        ] {
            let mut family = text.family(MetricType::Gauge, name, help);
            if let Some(limit) = limit {
                family.sample(&[], limit);
            }
        }
    }

    pub fn breaker(&self, cause: Breaking, is_open: bool) {
        let mut gauges = Breaking::ALL.iter().zip(&self.breaker);
        if let Some((_, gauge)) = gauges.find(|(of, _)| **of == cause) {
            gauge.set(i64::from(is_open));
        }
    }

    pub fn now(&self) -> Traffic {
        Traffic {
            waiting: self.depth.get(),
            in_flight: self.in_flight.get(),
            in_flight_limit: self.in_flight_limit.get(),
            per_minute_limit: self.per_minute_limit.get(),
            breaking: Breaking::ALL
                .iter()
                .zip(&self.breaker)
                .filter(|(_, gauge)| gauge.get() != 0)
                .map(|(cause, _)| cause.as_str())
                .collect(),
        }
    }
}
