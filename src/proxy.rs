//! The way of a request. `ls src/proxy` reads as its life:
//!
//! ```text
//! accept    a connection; a head under one deadline
//! admit     the door: host, origin, path, method, content type, length
//! buffer    the body, whole, once
//! claim     is this the retry of a request whose answer the app never got? join, adopt, or lead
//! breaker   is there anything that the service just refused to everybody?
//! queue     a place within the service's ceilings, in turn
//! dispatch  attempts, waits, deadline
//! exchange  one attempt on the wire
//! relay     the answer: whole, flowing, followed, or our own
//! settle    the ledger
//! report    access line and metrics
//! ```
//!
//! `serve` calls them in this order. Beside them: `attend` (waiting for the service while watching the app), `downstream` (the app's
//! side), `refuse` (every answer of our own), `evidence` and `own_call` (what bursar asks for itself).
//!
//! Promise: a metered request leaves only after its intent is durable (I1), and however it ends, it
//! is settled once.

pub mod accept;
pub mod admit;
mod attend;
mod breaker;
mod buffer;
pub mod claim;
pub mod dispatch;
mod downstream;
pub mod evidence;
pub mod exchange;
mod halt;
pub mod hops;
pub mod own_call;
pub mod queue;
pub mod refuse;
mod relay;
mod report;
mod serve;
mod settle;
#[cfg(test)]
mod simulation;
mod waiters;

use std::future::Future;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use pingora::connectors::http::Connector;
use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;

pub use self::accept::AppListener;
use self::breaker::Breaker;
use self::buffer::{BUDGET_BYTES, BodyBudget};
use self::claim::ClaimTable;
use self::downstream::Downstream;
pub use self::evidence::Evidence;
use self::exchange::peers::Peers;
pub use self::exchange::trust::TrustError;
use self::exchange::trust::{self, connector_options};
use self::hops::Hops;
use self::queue::Queue;
use self::refuse::Refusal;
use self::report::{Report, report};
use self::settle::Measured;
use self::waiters::Waiters;
use crate::apps::Apps;
use crate::caps::Caps;
use crate::clock::SharedClock;
use crate::config::{ApiKey, Config};
use crate::ledger::Ledger;
use crate::ledger::kept_key::Organization;
use crate::places::Places;
use crate::protocol::names::ServiceNames;
use crate::protocol::routes::{ExtraRoute, RouteTable};
use crate::telemetry::metrics::Metrics;

/// What a gateway is made of.
pub struct GatewayParts {
    pub config: Arc<Config>,
    pub ledger: Ledger,
    pub metrics: Arc<Metrics>,
    pub clock: SharedClock,
    pub apps: Arc<Apps>,
}

/// Whether the service can be told from another one; to be asked before a gateway is made or reloaded.
pub fn check_trust(config: &Config) -> Result<(), TrustError> {
    trust::check(&config.upstream)
}

/// The proxy: everything that requests share.
pub struct Gateway {
    settings: ArcSwap<Settings>,
    ledger: Ledger,
    metrics: Arc<Metrics>,
    clock: SharedClock,
    caps: Arc<Caps>,
    apps: Arc<Apps>,
    claims: ClaimTable,
    budget: BodyBudget,
    places: Places,
    turn_aways: Arc<Semaphore>,
    waiters: Waiters,
    drains: Arc<Semaphore>,
    queue: Arc<Queue>,
    breaker: Arc<Breaker>,
    tasks: TaskTracker,
    in_flight: watch::Sender<usize>,
    arriving: watch::Sender<usize>,
    stopping: watch::Sender<bool>,
    cut: watch::Sender<bool>,
}

/// What a reload replaces. A request reads it once and keeps it to its end.
pub struct Settings {
    pub config: Arc<Config>,
    pub names: ServiceNames,
    pub table: RouteTable,
    pub key: ApiKey,
    /// Who pays with the key, in the ledger's words ([`Self::paid_in`]); a call of bursar's own has none.
    pub organization: Organization,
    pub peers: Peers,
    pub connector: Arc<Connector>,
    /// The same for the whole life of the process.
    pub hops: Hops,
}

/// Resolves when bursar stops, or when its shutdown has run out of patience.
pub(crate) struct CutSignal(watch::Receiver<bool>);

/// Counts a request as in flight until it is dropped.
struct InFlight {
    gateway: Arc<Gateway>,
    _gauge: crate::telemetry::metrics::InFlightGuard,
}

/// Counts an open door, and a connection until its first request has had its answer: a stop waits for
/// them.
struct Arriving(Arc<Gateway>);

/// "bounded: 120 s, 16 MiB, 64 at once".
const DRAINS_MAX: usize = 64;

// === impl Settings ===

impl Settings {
    fn new(
        config: Arc<Config>,
        clock: &SharedClock,
        connector: Option<Arc<Connector>>,
        hops: Hops,
    ) -> Self {
        let extra: Vec<ExtraRoute> = config
            .upstream
            .extra_routes
            .iter()
            .map(|route| ExtraRoute {
                method: route.method.clone(),
                path: route.path.clone(),
            })
            .collect();
        let connector = connector
            .unwrap_or_else(|| Arc::new(Connector::new(Some(connector_options(&config.upstream)))));
        Self {
            names: config.names.clone(),
            table: RouteTable::new(&extra),
            key: config.upstream.api_key.clone(),
            organization: Organization::default(),
            peers: Peers::new(&config.upstream, Arc::clone(clock)),
            connector,
            hops,
            config,
        }
    }

    /// For requests that have entries in this ledger.
    fn paid_in(mut self, ledger: &Ledger) -> Self {
        let upstream = &self.config.upstream;
        let (address, key) = (upstream.base_url.to_string(), self.key.header_value());
        self.organization = ledger.organization(&address, key.as_bytes());
        self
    }
}

// === impl CutSignal ===

impl CutSignal {
    pub(crate) async fn wait(&mut self) {
        if self.0.wait_for(|cut| *cut).await.is_err() {
            std::future::pending().await
        }
    }
}

// === impl InFlight ===

impl InFlight {
    fn enter(gateway: &Arc<Gateway>) -> Self {
        gateway.in_flight.send_modify(|count| *count += 1);
        Self {
            gateway: Arc::clone(gateway),
            _gauge: gateway.metrics.in_flight(),
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.gateway
            .in_flight
            .send_modify(|count| *count = count.saturating_sub(1));
    }
}

// === impl Arriving ===

impl Arriving {
    fn enter(gateway: &Arc<Gateway>) -> Self {
        gateway.arriving.send_modify(|count| *count += 1);
        Self(Arc::clone(gateway))
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        let arriving = &self.0.arriving;
        arriving.send_modify(|count| *count = count.saturating_sub(1));
    }
}

// === impl Gateway ===

impl Gateway {
    pub fn new(parts: GatewayParts) -> Arc<Self> {
        let caps = Caps::new(
            &parts.ledger,
            parts.apps.cap_rules(&parts.config.caps),
            &parts.config.ledger.state_dir,
            Arc::clone(&parts.clock),
        );
        parts.metrics.watch_caps(&caps);
        parts.apps.govern(&caps, parts.clock.monotonic());
        let hops = Hops::new(parts.ledger.new_entry_id());
        let settings = Settings::new(parts.config, &parts.clock, None, hops).paid_in(&parts.ledger);
        let (clock, metrics) = (&parts.clock, &parts.metrics);
        let shaping = &settings.config.shaping;
        let queue = Queue::new(shaping, Arc::clone(clock), Arc::clone(metrics));
        let breaker = Breaker::new(Arc::clone(clock), Arc::clone(metrics));
        Arc::new(Self {
            queue,
            breaker,
            settings: ArcSwap::from_pointee(settings),
            ledger: parts.ledger,
            metrics: parts.metrics,
            claims: ClaimTable::new(Arc::clone(&parts.clock)),
            clock: parts.clock,
            caps,
            apps: parts.apps,
            budget: BodyBudget::new(BUDGET_BYTES),
            places: Places::new(
                accept::CONNECTIONS_MAX,
                accept::CONNECTIONS_MAX + accept::OWN_ROOM,
            ),
            turn_aways: Arc::new(Semaphore::new(accept::TURN_AWAYS_MAX)),
            waiters: Waiters::default(),
            drains: Arc::new(Semaphore::new(DRAINS_MAX)),
            tasks: TaskTracker::new(),
            in_flight: watch::Sender::new(0),
            arriving: watch::Sender::new(0),
            stopping: watch::Sender::new(false),
            cut: watch::Sender::new(false),
        })
    }

    /// Swaps the settings; requests that run keep theirs. Pooled connections go on as long as the
    /// trust they were made with is the same. Apps and caps are declared anew by [`Apps::redeclare`].
    pub fn reload(&self, config: Arc<Config>) {
        let before = self.settings.load();
        let trust = |config: &Config| {
            let upstream = &config.upstream;
            (upstream.base_url.tls, upstream.ca_file.clone())
        };
        let same_trust = trust(&before.config) == trust(&config);
        let connector = same_trust.then(|| Arc::clone(&before.connector));
        let hops = before.hops.clone();
        let settings = Settings::new(config, &self.clock, connector, hops).paid_in(&self.ledger);
        self.queue.reconfigure(&settings.config.shaping);
        self.settings.store(Arc::new(settings));
        self.breaker.reset();
    }

    /// bursar is stopping: what waits for its turn, or for room below a limit, is told so, and what is
    /// at the service goes on.
    pub fn close_queue(&self) {
        self.stopping.send_replace(true);
        self.queue.close();
    }

    /// Accepts connections until `stop` turns true.
    pub async fn serve(self: Arc<Self>, listener: AppListener, stop: watch::Receiver<bool>) {
        accept::accept_until(self, listener, stop).await;
    }

    /// Who may spend how much.
    pub fn caps(&self) -> &Arc<Caps> {
        &self.caps
    }

    /// Requests in flight, drains included.
    pub fn in_flight(&self) -> usize {
        *self.in_flight.borrow()
    }

    /// Resolves when nothing is in flight.
    pub async fn idle(&self) {
        let mut count = self.in_flight.subscribe();
        // The sender lives as long as `self`.
        count.wait_for(|count| *count == 0).await.ok();
    }

    /// Resolves after a stop: the doors are shut, who had come in has been answered, nothing is in
    /// flight.
    pub async fn at_rest(&self) {
        let mut arriving = self.arriving.subscribe();
        arriving.wait_for(|count| *count == 0).await.ok();
        self.idle().await;
    }

    /// The shutdown's time is up: what is left ends now, as `in_doubt(shutdown)`.
    pub fn cut(&self) {
        self.cut.send_replace(true);
    }

    /// The service's own rollup, asked for with the key. A free GET; in words why it is not there.
    pub async fn auto_metrics(self: Arc<Self>) -> Result<Bytes, String> {
        own_call::auto_metrics(self).await
    }

    fn stop_signal(&self) -> CutSignal {
        CutSignal(self.stopping.subscribe())
    }

    fn cut_signal(&self) -> CutSignal {
        CutSignal(self.cut.subscribe())
    }

    /// Runs a task that the gateway keeps count of.
    fn spawn(self: Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Answers a connection whose head could not be read, and closes it.
    async fn refuse_unread(&self, downstream: Downstream, refusal: Refusal) {
        let entry = self.ledger.new_entry_id();
        report(
            self,
            &Report {
                app: None,
                route: None,
                entry: Some(entry),
                adopted: None,
                stream: false,
                status: refusal.status().as_u16(),
                code: Some(refusal.code.as_str()),
                attempts: 0,
                state: None,
                measured: Measured::default(),
            },
        );
        let (downstream, _) = relay::send_refusal(downstream, &refusal, Some(entry)).await;
        buffer::drain_raw(downstream).await;
    }
}
