//! What all connections of the admin listener share, and how well the process is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use super::documents::KeyStatus;
use super::failure::{Reconciled, reconciled_good_for};
use super::once::OnceAWhile;
use super::page::{PageFigures, figures_good_for};
use crate::apps::Apps;
use crate::caps::Caps;
use crate::clock::SharedClock;
use crate::config::{Config, ListenAddr};
use crate::ledger::Ledger;
use crate::notices::Notices;
use crate::places::Places;
use crate::telemetry::metrics::{Breaking, Metrics};

/// Connections at once of all ports together, and as many of all Unix sockets: full ports keep no order on a
/// socket out. A connection above it waits until one has ended, or has been silent or idle for too long.
const CONNECTIONS_MAX: usize = 64;

/// Questions that read the journal at once.
const QUERIES_MAX: usize = 2;

/// Longest silence of the ledger's writer thread, which shows itself twice a second, before the
/// process counts as not well. A slow disk may hold it for some seconds.
pub const WRITER_SILENCE_MAX: Duration = Duration::from_secs(10);

/// What the admin listener shows.
pub struct AdminParts {
    pub config: Arc<Config>,
    pub ledger: Ledger,
    pub metrics: Arc<Metrics>,
    pub caps: Arc<Caps>,
    pub notices: Arc<Notices>,
    pub clock: SharedClock,
    pub apps: Arc<Apps>,
    /// Where apps are served, for the status page.
    pub proxy: Vec<ListenAddr>,
    /// Requests in flight now.
    pub in_flight: Box<dyn Fn() -> usize + Send + Sync>,
    /// What is known of the key in force.
    pub key: Box<dyn Fn() -> KeyStatus + Send + Sync>,
    /// Asks the service for its `/v1/auto/metrics`, or says in words why it is not there.
    pub auto_metrics: AskAutoMetrics,
}

/// The service's `/v1/auto/metrics`.
pub struct AutoMetrics {
    pub document: Bytes,
    /// What its clock said, Unix milliseconds; `None`: it did not say.
    pub service_clock_ms: Option<u64>,
}

/// Asks the service; the closure alone holds the key.
pub type AskAutoMetrics =
    Box<dyn Fn() -> BoxFuture<'static, Result<AutoMetrics, String>> + Send + Sync>;

/// Shared by all admin connections.
pub struct Admin {
    pub(super) config: ArcSwap<Config>,
    pub(super) ledger: Ledger,
    pub(super) metrics: Arc<Metrics>,
    pub(super) caps: Arc<Caps>,
    pub(super) notices: Arc<Notices>,
    pub(super) clock: SharedClock,
    pub(super) apps: Arc<Apps>,
    pub(super) proxy: Vec<ListenAddr>,
    pub(super) in_flight: Box<dyn Fn() -> usize + Send + Sync>,
    pub(super) key: Box<dyn Fn() -> KeyStatus + Send + Sync>,
    pub(super) waits_for_restart: ArcSwap<Vec<String>>,
    pub(super) auto_metrics: AskAutoMetrics,
    /// The ledger beside the service's figure, for readers.
    pub(super) reconciled: OnceAWhile<Reconciled>,
    /// What the status page shows of the ledger, for all that look at it.
    pub(super) figures: OnceAWhile<Result<PageFigures, String>>,
    pub(super) started_ms: u64,
    pub(super) draining: AtomicBool,
    pub(super) places: Places,
    pub(super) queries: Arc<Semaphore>,
}

// === impl Admin ===

impl Admin {
    pub fn new(parts: AdminParts) -> Self {
        Self {
            config: ArcSwap::new(parts.config),
            ledger: parts.ledger,
            metrics: parts.metrics,
            caps: parts.caps,
            notices: parts.notices,
            reconciled: OnceAWhile::new(Arc::clone(&parts.clock), reconciled_good_for),
            figures: OnceAWhile::new(Arc::clone(&parts.clock), figures_good_for),
            started_ms: parts.clock.wall_ms(),
            clock: parts.clock,
            apps: parts.apps,
            proxy: parts.proxy,
            in_flight: parts.in_flight,
            key: parts.key,
            waits_for_restart: ArcSwap::default(),
            auto_metrics: parts.auto_metrics,
            draining: AtomicBool::new(false),
            places: Places::new(CONNECTIONS_MAX, 2 * CONNECTIONS_MAX),
            queries: Arc::new(Semaphore::new(QUERIES_MAX)),
        }
    }

    /// `waits_for_restart`: the settings of its file that are not in it, because they wait.
    pub fn reload(&self, config: Arc<Config>, waits_for_restart: Vec<String>) {
        self.config.store(config);
        self.waits_for_restart.store(Arc::new(waits_for_restart));
        self.reconciled.forget();
    }

    /// From now on `/readyz` says no.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Why the process is not well; `Ok` when it is.
    pub(super) fn healthy(&self) -> Result<(), String> {
        let silence = self.ledger.health().heartbeat_age;
        if silence > WRITER_SILENCE_MAX {
            return Err(format!(
                "the ledger's writer has been silent for {} s",
                silence.as_secs()
            ));
        }
        Ok(())
    }

    /// All apps are frozen.
    fn frozen(&self) -> Option<String> {
        let view = self.caps.view();
        let all = view.frozen.iter().find(|frozen| frozen.app.is_none())?;
        Some(format!("all apps are frozen by {}", all.by))
    }

    /// The causes for which requests are answered here, as words.
    pub(super) fn held_back_by(&self) -> Vec<String> {
        let breaking = self.metrics.traffic.now().breaking;
        breaking.into_iter().map(str::to_owned).collect()
    }

    /// What keeps paid requests from being served although bursar does its part.
    fn held_back(&self) -> Option<String> {
        let breaking = self.metrics.traffic.now().breaking;
        let causes = breaking.into_iter().filter_map(Breaking::from_word);
        let causes = causes.map(|cause| match cause {
            Breaking::Key => "the service refuses the organization's key (401)".to_owned(),
            Breaking::Balance => "the organization's balance is empty (402)".to_owned(),
            Breaking::Upstream => "the service cannot be reached".to_owned(),
        });
        let all: Vec<String> = self.frozen().into_iter().chain(causes).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Why requests should not be sent here; `Ok` when they may, with what is wrong all the same.
    pub(super) fn ready(&self) -> Result<Option<String>, String> {
        if self.draining.load(Ordering::Relaxed) {
            return Err("draining: bursar is shutting down".to_owned());
        }
        self.healthy()?;
        let health = self.ledger.health();
        let Some(why) = &health.unavailable else {
            let adding_up = health.is_adding_up.then(|| {
                "the journal is being added up; its totals are not on /metrics until then"
                    .to_owned()
            });
            return Ok(adding_up.or_else(|| self.held_back()));
        };
        let why = format!("the ledger cannot be written: {why}");
        if !health.is_serving_unwritten() {
            return Err(why);
        }
        Ok(Some(format!(
            "{why}; requests are sent all the same, and their entries wait in memory: {}",
            health.waiting
        )))
    }
}
