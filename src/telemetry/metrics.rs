//! Every metric of this process: name, unit and label set, each in one file, this one or one beside it.
//! What the proxy counts is held by the prometheus crate in a registry of our own; what the ledger knows is
//! asked at each scrape and written from integers (see [`super::exposition`]), so that `/metrics` equals the
//! ledger to the micro-dollar and spend counters never go back (rule I10).
//!
//! Promise: label sets are closed or bounded (rule I11); no path, model, key, session, user or request id
//! is ever a label. Names, units and suffixes pass `promtool check metrics`.

mod answers;
mod caps;
mod evidence;
mod families;
mod fleet;
mod ledger;
mod money;
mod notices;
mod process;
mod reloads;
mod tags;
mod timings;
mod traffic;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::{
    Histogram, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry, TextEncoder,
};

pub use self::evidence::{ComparisonResult, Difference, EvidenceMetrics};
pub use self::families::InFlightGuard;
use self::families::{Families, SHORT_BUCKETS, add, bool_label, set};
pub use self::fleet::{FleetFigures, FleetMetrics};
use self::ledger::{write_audio, write_health, write_unknowns};
use self::notices::NoticeMetrics;
pub use self::notices::NoticeResult;
use self::reloads::ReloadMetrics;
use self::tags::ListedTag;
use self::timings::TimingMetrics;
pub use self::timings::{RequestTimes, TimedAs};
pub use self::traffic::{Breaking, Traffic, TrafficMetrics};
use super::exposition::Exposition;
use super::labels::FirstSeen;
use crate::caps::Caps;
use crate::config::App;
use crate::ledger::{LedgerHealth, Totals};
use crate::money::MicroUsd;
use crate::protocol::translate::Dropped;
use crate::protocol::{Dialect, Operation};
use crate::release::RELEASE;

/// So many apps get a series of their own, and as many again that are added while this process runs.
const APPS_MAX: usize = 64;
/// Names of left-out members that get a series of their own.
const DROPPED_MEMBERS_MAX: usize = 64;
/// What `upstream_attempts_total{result}` can be.
const ATTEMPT_RESULTS: [&str; 11] = [
    "ok", "not_sent", "no_head", "broken", "gateway", "3xx", "409", "429", "4xx", "503", "5xx",
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
    translated: IntCounterVec,
    dropped: IntCounterVec,
    dropped_members: FirstSeen,
    /// In micro-USD.
    repeats_avoided: AtomicU64,
    drains: IntCounterVec,
    disconnects: IntCounterVec,
    pub evidence: EvidenceMetrics,
    pub notices: NoticeMetrics,
    pub traffic: TrafficMetrics,
    pub fleet: FleetMetrics,
    route_version: IntGaugeVec,
    current_route_version: Mutex<String>,
    in_flight: IntGauge,
    timings: TimingMetrics,
    journal_commit: Histogram,
    pub reloads: ReloadMetrics,
    caps: OnceLock<Arc<Caps>>,
    /// The tags that are shown.
    tags: Mutex<Vec<ListedTag>>,
    /// Unix milliseconds.
    started_ms: OnceLock<u64>,
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
                "Requests that were let in, by the status they were answered with. A request \
                 that took several attempts counts once. Those that were not let in are in \
                 bursar_refusals_total.",
                &["app", "lane", "operation", "stream", "status"],
            )?,
            attempts: families.counters(
                "bursar_upstream_attempts_total",
                "Requests sent, or tried to be sent, to the service.",
                &["operation", "result"],
            )?,
            retries: families.counters(
                "bursar_retries_total",
                "Attempts after the first, by what ended the one before: not sent, no head of an answer, a broken answer, busy (429, 503), \
                 conflict (409), transient (408, 500, 502, 504).",
                &["app", "reason"],
            )?,
            refusals: families.counters(
                "bursar_refusals_total",
                "Answers that bursar made itself, by their X-Bursar-Error code. Those of requests whose app is not \
                 known yet have app=\"other\".",
                &["app", "error"],
            )?,
            joined: families.counter(
                "bursar_joined_retries_total",
                "Retries of an app that got the answer of their first try, without a second \
                 request.",
            )?,
            translated: families.counters(
                "bursar_translated_requests_total",
                "Requests in another dialect, or in OpenAI's form of the speech routes, that were translated to the \
                 service's form.",
                &["spoken"],
            )?,
            dropped: families.counters(
                "bursar_translation_dropped_total",
                "Members of such requests that were left out, for the service has nothing like them \
                 (docs/dialects.md, docs/audio.md). The first 64 names, then other.",
                &["member", "spoken"],
            )?,
            dropped_members: FirstSeen::new(DROPPED_MEMBERS_MAX),
            repeats_avoided: AtomicU64::new(0),
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
            notices: NoticeMetrics::new(&families)?,
            traffic: TrafficMetrics::new(&families)?,
            fleet: FleetMetrics::default(),
            route_version: families.infos(
                "bursar_route_version_info",
                "The route version that the last answer reported.",
                &["route_version"],
            )?,
            current_route_version: Mutex::default(),
            in_flight: families.gauge(
                "bursar_inflight_requests",
                "Requests being served now, those whose app has left included.",
            )?,
            timings: TimingMetrics::new(&families)?,
            journal_commit: families.histogram(
                "bursar_journal_commit_seconds",
                "One group commit of the journal: write and fdatasync.",
                &SHORT_BUCKETS,
            )?,
            reloads: ReloadMetrics::new(&families)?,
            caps: OnceLock::new(),
            tags: Mutex::default(),
            started_ms: OnceLock::new(),
            registry: families.0.clone(),
        };
        let build = families.infos(
            "bursar_build_info",
            "The running program: its version, the commit and the compiler (\"\" where the build did not know them), and \
             whether the sandbox is in it.",
            &["version", "commit", "rustc", "sandbox"],
        )?;
        let labels = [
            RELEASE.version,
            RELEASE.commit.unwrap_or_default(),
            RELEASE.rustc.unwrap_or_default(),
            bool_label(RELEASE.sandbox),
        ];
        set(&build, &labels, 1);
        metrics.show_zeros();
        Ok(metrics)
    }

    /// A series that only appears with its first event hides that event from `increase()`.
    fn show_zeros(&self) {
        for operation in Operation::ALL {
            for result in ATTEMPT_RESULTS {
                add(&self.attempts, &[operation.as_str(), result], 0);
            }
        }
        let spoken = [Dialect::Responses, Dialect::Messages, Dialect::Audio].map(Dialect::as_str);
        let known: [(&IntCounterVec, &[&str]); 3] = [
            (&self.translated, &spoken),
            (&self.drains, &DRAIN_RESULTS),
            (&self.disconnects, &DISCONNECT_PHASES),
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
            money::write(totals, &self.apps, &mut text);
            answers::write(totals, &self.apps, &mut text);
            write_unknowns(totals, &self.apps, &mut text);
            write_audio(totals, &mut text);
            tags::write(totals, &self.tags.lock(), &self.apps, &mut text);
        }
        let avoided = self.repeats_avoided.load(Ordering::Relaxed);
        money::write_repeats_avoided(MicroUsd::new(avoided), &mut text);
        write_health(health, &mut text);
        self.traffic.write(&mut text);
        self.reloads.write(&mut text);
        self.evidence.write(&mut text);
        self.fleet.write(&mut text);
        if let Some(caps) = self.caps.get() {
            caps::write(&mut text, &caps.view());
        }
        process::write(self.started_ms.get().copied(), &mut text);
        Ok(text.into_text())
    }

    /// Apps that have series of their own, whatever the ledger has of apps that were removed.
    pub fn name_apps<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        self.apps.name(names);
    }

    /// The caps that are shown from now on. Once a process.
    pub fn watch_caps(&self, caps: &Arc<Caps>) {
        // A second gateway of a test shows the first one's.
        let _ = self.caps.set(Arc::clone(caps));
    }

    /// The tags of apps that are shown from now on.
    pub fn list_tags(&self, apps: &[App]) {
        *self.tags.lock() = ListedTag::of(apps);
    }

    /// When the process started. Once a process.
    pub fn started(&self, wall_ms: u64) {
        let _ = self.started_ms.set(wall_ms);
    }

    /// A request that passed the door is over.
    pub fn request(&self, app: &str, of: TimedAs, status: u16, times: &RequestTimes) {
        let app = self.apps.hold(app);
        let labels = [
            app,
            of.lane.as_str(),
            of.operation.as_str(),
            bool_label(of.stream),
            &status.to_string(),
        ];
        add(&self.requests, &labels, 1);
        self.timings.observe(app, of, times);
    }

    pub fn attempt(&self, op: Operation, result: &'static str) {
        add(&self.attempts, &[op.as_str(), result], 1);
    }

    /// An attempt got its place at the service after this time.
    pub fn waited(&self, app: &str, waited: Duration) {
        self.traffic.waited(self.apps.hold(app), waited);
    }

    pub fn retry(&self, app: &str, reason: &'static str) {
        add(&self.retries, &[self.apps.hold(app), reason], 1);
    }

    pub fn refusal(&self, app: &str, error: &'static str) {
        add(&self.refusals, &[self.apps.hold(app), error], 1);
    }

    pub fn joined(&self) {
        self.joined.inc();
    }

    /// A request was translated, and this was left out of it.
    pub fn translated(&self, dialect: Dialect, dropped: &Dropped) {
        add(&self.translated, &[dialect.as_str()], 1);
        for (member, count) in dropped.iter() {
            let member = self.dropped_members.hold(member);
            add(&self.dropped, &[member, dialect.as_str()], u64::from(count));
        }
    }

    /// So many retries got an answer of this price without a purchase of their own.
    pub fn repeats_avoided(&self, price: MicroUsd, count: u32) {
        let more = price.get().saturating_mul(u64::from(count));
        // A counter that ran over would go back to nothing.
        let sum = |sum: u64| Some(sum.saturating_add(more));
        let _ = self
            .repeats_avoided
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
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

    pub fn in_flight(&self) -> InFlightGuard {
        InFlightGuard::new(&self.in_flight)
    }

    pub fn journal_commit(&self, took: Duration) {
        self.journal_commit.observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests;
