//! Every metric of this process: name, unit and label set, each in one file, this one or one beside it.
//! What the proxy counts is held by the prometheus crate in a registry of our own; what the ledger knows is
//! asked at each scrape and written from integers (see [`super::exposition`]), so that `/metrics` equals the
//! ledger to the micro-dollar and spend counters never go back (rule I10).
//!
//! Promise: label sets are closed or bounded (rule I11); no path, model, key, session or request id
//! is ever a label. Names, units and suffixes pass `promtool check metrics`.

mod answers;
mod caps;
mod evidence;
mod families;
mod ledger;
mod traffic;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::{
    Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry,
    TextEncoder,
};

pub use self::evidence::{Difference, EvidenceMetrics};
pub use self::families::InFlightGuard;
use self::families::{Families, add, bool_label, long_buckets, observe, set, short_buckets};
use self::ledger::{write_audio, write_health, write_unknowns};
pub use self::traffic::{Breaking, Traffic, TrafficMetrics};
use super::exposition::{Exposition, MetricType};
use super::labels::FirstSeen;
use crate::caps::Caps;
use crate::ledger::totals::MicroUsdSum;
use crate::ledger::{LedgerHealth, Totals};
use crate::protocol::{Lane, Operation};

/// App names come from the config; this many get a series of their own.
const APPS_MAX: usize = 64;
/// What `retries_total{reason}` can be.
const RETRY_REASONS: [&str; 6] = [
    "not_sent",
    "no_head",
    "broken",
    "busy",
    "conflict",
    "transient",
];
/// What `drains_total{result}` can be.
const DRAIN_RESULTS: [&str; 5] = ["completed", "cut", "cancelled", "displaced", "refused"];
/// What `client_disconnects_total{phase}` can be.
const DISCONNECT_PHASES: [&str; 3] = ["waiting", "answering", "streaming"];

/// The counters of one process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    apps: FirstSeen,
    requests: IntCounterVec,
    attempts: IntCounterVec,
    retries: IntCounterVec,
    refusals: IntCounterVec,
    joined: IntCounter,
    drains: IntCounterVec,
    disconnects: IntCounterVec,
    pub evidence: EvidenceMetrics,
    pub traffic: TrafficMetrics,
    route_version: IntGaugeVec,
    current_route_version: Mutex<String>,
    in_flight: IntGauge,
    duration: HistogramVec,
    first_byte: HistogramVec,
    overhead: HistogramVec,
    journal_commit: Histogram,
    reloads: IntCounterVec,
    caps: OnceLock<Arc<Caps>>,
}

/// A metric could not be made: two have one name, or a name is not valid. A bug of ours.
#[derive(Debug, thiserror::Error)]
#[error("the metrics cannot be set up: {0}")]
pub struct MetricsError(#[from] prometheus::Error);

// === impl Metrics ===

impl Metrics {
    pub fn new() -> Result<Self, MetricsError> {
        let families = Families(Registry::new());
        let metrics = Self {
            apps: FirstSeen::new(APPS_MAX),
            requests: families.counters(
                "bursar_requests_total",
                "Requests that passed the door, by the status they were answered with. A request \
                 that took several attempts counts once. What the door refuses is in \
                 bursar_refusals_total.",
                &["app", "lane", "operation", "stream", "code"],
            )?,
            attempts: families.counters(
                "bursar_upstream_attempts_total",
                "Requests sent, or tried to be sent, to the service.",
                &["operation", "result"],
            )?,
            retries: families.counters(
                "bursar_retries_total",
                "Attempts after the first, by what ended the one before.",
                &["reason"],
            )?,
            refusals: families.counters(
                "bursar_refusals_total",
                "Answers that bursar made itself, by their X-Bursar-Error code.",
                &["code"],
            )?,
            joined: families.counter(
                "bursar_joined_retries_total",
                "Retries of an app that got the answer of their first try, without a second \
                 request.",
            )?,
            drains: families.counters(
                "bursar_drains_total",
                "Answers that were read to their end after the app had left, by how that ended.",
                &["result"],
            )?,
            disconnects: families.counters(
                "bursar_client_disconnects_total",
                "Apps that left before their answer was complete, by how far it had come.",
                &["phase"],
            )?,
            evidence: EvidenceMetrics::new(&families)?,
            traffic: TrafficMetrics::new(&families)?,
            route_version: families.infos(
                "bursar_route_version_info",
                "The route version that the last answer reported.",
                &["version"],
            )?,
            current_route_version: Mutex::default(),
            in_flight: families.gauge(
                "bursar_inflight_requests",
                "Requests being served now, those whose app has left included.",
            )?,
            duration: families.histograms(
                "bursar_request_duration_seconds",
                "From a request's arrival to the last byte of its answer.",
                &["lane", "stream"],
                long_buckets(),
            )?,
            first_byte: families.histograms(
                "bursar_time_to_first_byte_seconds",
                "From a request's arrival to the first byte of the service's answer.",
                &["lane", "stream"],
                long_buckets(),
            )?,
            overhead: families.histograms(
                "bursar_overhead_seconds",
                "bursar's own share of a request until its outcome goes to the ledger: the total less waits, the service's time and the app's.",
                &["lane"],
                short_buckets(),
            )?,
            journal_commit: families.histogram(
                "bursar_journal_commit_seconds",
                "One group commit of the journal: write and fdatasync.",
                short_buckets(),
            )?,
            reloads: families.counters(
                "bursar_config_reloads_total",
                "Reloads of the configuration; a refused one changed nothing.",
                &["result"],
            )?,
            caps: OnceLock::new(),
            registry: families.0.clone(),
        };
        let build = families.infos(
            "bursar_build_info",
            "The running program's version.",
            &["version"],
        )?;
        set(&build, &[env!("CARGO_PKG_VERSION")], 1);
        metrics.show_zeros();
        Ok(metrics)
    }

    /// A series that only appears with its first event hides that event from `increase()`.
    fn show_zeros(&self) {
        let known: [(&IntCounterVec, &[&str]); 4] = [
            (&self.retries, &RETRY_REASONS),
            (&self.drains, &DRAIN_RESULTS),
            (&self.disconnects, &DISCONNECT_PHASES),
            (&self.reloads, &["ok", "refused"]),
        ];
        for (counters, words) in known {
            words.iter().for_each(|word| add(counters, &[word], 0));
        }
    }

    /// All of `/metrics`: what this process counted, then what the ledger knows at this moment.
    pub fn render(&self, totals: &Totals, health: &LedgerHealth) -> Result<String, MetricsError> {
        let own = TextEncoder::new().encode_to_string(&self.registry.gather())?;
        let mut text = Exposition::after(own);
        // Absent rather than lower than they were (rule I10).
        if !health.is_adding_up {
            self.write_money(totals, &mut text);
            answers::write(totals, &self.apps, &mut text);
            write_unknowns(totals, &mut text);
            write_audio(totals, &mut text);
        }
        write_health(health, &mut text);
        self.evidence.write(&mut text);
        if let Some(caps) = self.caps.get() {
            caps::write(&mut text, &caps.view());
        }
        Ok(text.into_text())
    }

    /// The caps that are shown from now on. Once a process.
    pub fn watch_caps(&self, caps: &Arc<Caps>) {
        // A second gateway of a test shows the first one's.
        let _ = self.caps.set(Arc::clone(caps));
    }

    /// Money, summed by the ledger in integers.
    fn write_money(&self, totals: &Totals, text: &mut Exposition) {
        let mut billed: BTreeMap<_, MicroUsdSum> = BTreeMap::new();
        let mut estimates: BTreeMap<_, MicroUsdSum> = BTreeMap::new();
        for (line, row) in &totals.lines {
            let app = self.apps.hold(&line.app);
            let labels = (app, line.lane, line.operation, line.served_by_word());
            billed.entry(labels).or_default().merge(row.billed);
            let labels = (app, line.lane);
            estimates
                .entry(labels)
                .or_default()
                .merge(row.would_have_cost);
        }
        let mut family = text.family(
            MetricType::Counter,
            "bursar_billed_usd_total",
            "What the service said it billed, in USD, over the whole life of the ledger. What is \
             not known is in bursar_in_doubt_requests and bursar_unreported_requests.",
        );
        for ((app, lane, operation, served_by), sum) in &billed {
            let labels = [
                ("app", *app),
                ("lane", lane.as_str()),
                ("operation", operation.as_str()),
                ("served_by", served_by),
            ];
            family.sample(&labels, sum.to_usd());
        }
        let mut family = text.family(
            MetricType::Counter,
            "bursar_frontier_would_have_cost_usd_total",
            "The service's estimate of what a frontier model would have cost, in USD, for the answers \
             that carried one. Others are billed too: bursar spend compares those that carry both.",
        );
        for ((app, lane), sum) in &estimates {
            family.sample(&[("app", *app), ("lane", lane.as_str())], sum.to_usd());
        }
        text.family(
            MetricType::Counter,
            "bursar_drained_usd_total",
            "What answers cost whose app had left when they ended, in USD, over the whole life of the \
             ledger. It is in bursar_billed_usd_total too.",
        )
        .sample(&[], totals.drained().to_usd());
    }

    pub fn request(&self, app: &str, lane: Lane, op: Operation, stream: bool, status: u16) {
        let labels = [
            self.apps.hold(app),
            lane.as_str(),
            op.as_str(),
            bool_label(stream),
            &status.to_string(),
        ];
        add(&self.requests, &labels, 1);
    }

    pub fn attempt(&self, op: Operation, result: &'static str) {
        add(&self.attempts, &[op.as_str(), result], 1);
    }

    pub fn retry(&self, reason: &'static str) {
        add(&self.retries, &[reason], 1);
    }

    pub fn refusal(&self, code: &'static str) {
        add(&self.refusals, &[code], 1);
    }

    pub fn joined(&self) {
        self.joined.inc();
    }

    pub fn drain(&self, result: &'static str) {
        add(&self.drains, &[result], 1);
    }

    pub fn disconnect(&self, phase: &'static str) {
        add(&self.disconnects, &[phase], 1);
    }

    /// Only the last version is shown: each of the service's deploys has a new name.
    pub fn route_version(&self, version: &str) {
        let mut current = self.current_route_version.lock();
        if *current != version {
            self.route_version.reset();
            set(&self.route_version, &[version], 1);
            version.clone_into(&mut current);
        }
    }

    pub fn timings(
        &self,
        lane: Lane,
        stream: bool,
        total: Duration,
        first_byte: Option<Duration>,
        own: Duration,
    ) {
        let labels = [lane.as_str(), bool_label(stream)];
        observe(&self.duration, &labels, total);
        if let Some(first_byte) = first_byte {
            observe(&self.first_byte, &labels, first_byte);
        }
        observe(&self.overhead, &[lane.as_str()], own);
    }

    pub fn in_flight(&self) -> InFlightGuard {
        InFlightGuard::new(&self.in_flight)
    }

    pub fn journal_commit(&self, took: Duration) {
        self.journal_commit.observe(took.as_secs_f64());
    }

    pub fn reload(&self, ok: bool) {
        add(&self.reloads, &[if ok { "ok" } else { "refused" }], 1);
    }
}

#[cfg(test)]
mod tests;
