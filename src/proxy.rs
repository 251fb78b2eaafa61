//! The way of a request. `ls src/proxy` reads as its life:
//!
//! ```text
//! accept    a connection; a head under one deadline
//! admit     the door: host, origin, path, method, content type, length
//! buffer    the body, whole, once
//! claim     is this the retry of a request whose answer the app never got? join, adopt, or lead
//! dispatch  attempts, waits, deadline
//! exchange  one attempt on the wire
//! relay     the answer: whole, flowing, followed, or our own
//! settle    the ledger
//! report    access line and metrics
//! ```
//!
//! Beside them: `attend` (waiting for the service while watching the app), `downstream` (the app's
//! side), `refuse` (every answer of our own).
//!
//! Promise: a metered request leaves only after its intent is durable (I1), and however it ends, it
//! is settled once.

pub mod accept;
pub mod admit;
mod attend;
mod buffer;
pub mod claim;
pub mod dispatch;
mod downstream;
pub mod exchange;
pub mod refuse;
mod relay;
mod report;
mod settle;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use pingora::connectors::http::Connector;
use pingora::protocols::http::ReusableHttpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

pub use self::accept::AppListener;
use self::admit::{Admission, Admitted, LocalAnswer};
use self::attend::Attendance;
use self::buffer::{BodyBudget, RequestBody};
use self::claim::live::{Follower, Live};
use self::claim::{AdoptPolicy, Claim, ClaimTable, Claimant, Mark};
use self::dispatch::Dispatch;
use self::dispatch::backoff::Backoff;
use self::downstream::Downstream;
use self::exchange::peers::{Peers, connector_options};
use self::exchange::{Outgoing, heads};
use self::refuse::{Code, Refusal};
use self::relay::Relay;
use self::report::{Report, report};
use self::settle::{Measured, OpenEntry};
use crate::clock::SharedClock;
use crate::config::{ApiKey, Config};
use crate::ledger::entry::{EntryId, EntryKey, Intent, KeyOrigin};
use crate::ledger::{FingerprintParts, Ledger};
use crate::protocol::body::{RequestPeek, replace_model};
use crate::protocol::names::ServiceNames;
use crate::protocol::routes::{BodyForm, ExtraRoute, RouteTable};
use crate::telemetry::metrics::Metrics;

/// What a gateway is made of.
pub struct GatewayParts {
    pub config: Arc<Config>,
    pub ledger: Ledger,
    pub metrics: Arc<Metrics>,
    pub clock: SharedClock,
}

/// The proxy: everything that requests share.
pub struct Gateway {
    settings: ArcSwap<Settings>,
    ledger: Ledger,
    metrics: Arc<Metrics>,
    clock: SharedClock,
    claims: ClaimTable,
    budget: BodyBudget,
    connections: Arc<Semaphore>,
    drains: Arc<Semaphore>,
    tasks: TaskTracker,
    in_flight: watch::Sender<usize>,
    cut: watch::Sender<bool>,
}

/// What a reload replaces. A request reads it once and keeps it to its end.
pub struct Settings {
    pub config: Arc<Config>,
    pub names: ServiceNames,
    pub table: RouteTable,
    pub key: ApiKey,
    pub peers: Peers,
    pub connector: Arc<Connector>,
}

/// Resolves when bursar's shutdown has run out of patience.
pub(crate) struct CutSignal(watch::Receiver<bool>);

/// Counts a request as in flight until it is dropped.
struct InFlight {
    gateway: Arc<Gateway>,
    _gauge: crate::telemetry::metrics::InFlightGuard,
}

/// The app of a request as long as no app is declared: "any process on this machine may call (app
/// `default`)".
pub const DEFAULT_APP: &str = "default";

/// "bounded: 120 s, 16 MiB, 64 at once".
const DRAINS_MAX: usize = 64;

/// "it waits up to 20 ms for that connection's end to show".
const TWIN_WAIT: Duration = Duration::from_millis(20);

/// "else 10 minutes": the client default of the interface.
const PATIENCE_DEFAULT: Duration = Duration::from_secs(600);

// === impl Settings ===

impl Settings {
    fn new(config: Arc<Config>, clock: &SharedClock, connector: Option<Arc<Connector>>) -> Self {
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
            peers: Peers::new(&config.upstream, Arc::clone(clock)),
            connector,
            config,
        }
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

// === impl Gateway ===

impl Gateway {
    pub fn new(parts: GatewayParts) -> Arc<Self> {
        let settings = Settings::new(parts.config, &parts.clock, None);
        Arc::new(Self {
            settings: ArcSwap::from_pointee(settings),
            ledger: parts.ledger,
            metrics: parts.metrics,
            claims: ClaimTable::new(Arc::clone(&parts.clock)),
            clock: parts.clock,
            budget: BodyBudget::new(),
            connections: Arc::new(Semaphore::new(accept::CONNECTIONS_MAX)),
            drains: Arc::new(Semaphore::new(DRAINS_MAX)),
            tasks: TaskTracker::new(),
            in_flight: watch::Sender::new(0),
            cut: watch::Sender::new(false),
        })
    }

    /// Swaps the settings; requests that run keep theirs. Pooled connections go on as long as the
    /// trust they were made with is the same.
    pub fn reload(&self, config: Arc<Config>) {
        let before = self.settings.load();
        let same_trust = before.config.upstream.ca_file == config.upstream.ca_file;
        let connector = same_trust.then(|| Arc::clone(&before.connector));
        let settings = Settings::new(config, &self.clock, connector);
        self.settings.store(Arc::new(settings));
    }

    /// Accepts connections until `stop` turns true.
    pub async fn serve(self: Arc<Self>, listener: AppListener, stop: watch::Receiver<bool>) {
        accept::accept_until(self, listener, stop).await;
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

    /// The shutdown's time is up: what is left ends now, as `in_doubt(shutdown)`.
    pub fn cut(&self) {
        self.cut.send_replace(true);
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
                app: DEFAULT_APP,
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
        let (mut downstream, _) = relay::send_refusal(downstream, &refusal, Some(entry)).await;
        buffer::drain_raw(&mut downstream).await;
    }
}

/// One request, from its head to its last byte. Returns the connection when it can be kept.
async fn serve_request(
    gateway: &Arc<Gateway>,
    mut downstream: Downstream,
) -> Option<ReusableHttpStream> {
    let _in_flight = InFlight::enter(gateway);
    let arrived = gateway.clock.monotonic();
    let entry_id = gateway.ledger.new_entry_id();
    let settings = gateway.settings.load_full();
    let admission = admit::admit(&settings, &downstream);
    let admitted = match admission {
        Ok(Admission::Relay(admitted)) => admitted,
        Ok(Admission::Local(answer)) => {
            return serve_local(gateway, downstream, &answer, entry_id, arrived).await;
        }
        Err(refusal) => {
            return turn_down(gateway, downstream, refusal, None, entry_id, arrived).await;
        }
    };
    let body = match buffer::read_body(&gateway.budget, &mut downstream, &admitted).await {
        Ok(body) => body,
        Err(refusal) => {
            let admitted = Some(&*admitted);
            return turn_down(gateway, downstream, refusal, admitted, entry_id, arrived).await;
        }
    };
    let request = Request {
        gateway,
        settings,
        admitted: &admitted,
        arrived,
        entry_id,
    };
    let keep = if admitted.route.metered {
        request.serve_metered(&mut downstream, body).await
    } else {
        request.serve_free(&mut downstream, body).await
    };
    if keep {
        downstream.into_reusable().await
    } else {
        None
    }
}

/// A request that came in, on its way to the service.
struct Request<'a> {
    gateway: &'a Arc<Gateway>,
    settings: Arc<Settings>,
    admitted: &'a Admitted,
    arrived: Duration,
    entry_id: EntryId,
}

/// The body as it is sent, and what was read of it.
struct Prepared {
    body: bytes::Bytes,
    peek: RequestPeek,
    /// The model that the app asked for, when it is not the interface's and no alias is set for it.
    foreign_model: Option<String>,
}

// === impl Request ===

impl Request<'_> {
    /// A request that makes no entry.
    async fn serve_free(self, downstream: &mut Downstream, body: RequestBody) -> bool {
        let prepared = self.prepare(&body);
        self.exchange(downstream, prepared, None, None).await
    }

    async fn serve_metered(self, downstream: &mut Downstream, body: RequestBody) -> bool {
        let admitted = self.admitted;
        let fingerprint = self.gateway.ledger.fingerprint(&FingerprintParts {
            method: admitted.method.as_str(),
            path_and_query: &admitted.target,
            body: &body.bytes,
            session: admitted.session.as_ref().map(http::HeaderValue::as_bytes),
            rte_query: admitted.rte_query.as_ref().map(http::HeaderValue::as_bytes),
        });
        let claimant = Claimant {
            mark: Mark {
                app: Arc::from(DEFAULT_APP),
                fingerprint,
            },
            entry: self.entry_id,
            own_key: admitted.own_key.clone().filter(|_| admitted.route.keyed),
            keyed: admitted.route.keyed,
            marked_retry: admitted.marked_retry,
        };
        let live = match self.claim(&claimant).await {
            Claim::Lead(live) => live,
            Claim::Follow(follower) => return self.follow(downstream, follower).await,
            // A second look always decides.
            Claim::LookAgain(_) => {
                let refusal = Refusal::new(Code::Internal);
                return self.refuse(downstream, &refusal).await;
            }
        };
        let mut entry = OpenEntry::new(self.gateway, Arc::clone(&live), &admitted.route);
        let prepared = self.prepare(&body);
        let intent = Intent {
            id: self.entry_id,
            at_ms: self.gateway.clock.wall_ms(),
            app: Arc::clone(&claimant.mark.app),
            lane: admitted.route.lane,
            operation: admitted.route.operation,
            model: prepared.peek.model.clone(),
            stream: prepared.peek.stream,
            key: live.key.clone(),
            fingerprint,
            request_bytes: u64::try_from(body.bytes.len()).unwrap_or(u64::MAX),
        };
        // Rule I1: nothing leaves before its intent is durable.
        if let Err(error) = self.gateway.ledger.intend(intent).await {
            tracing::error!(%error, "an intent could not be written; the request was not sent");
            entry.never_sent();
            let refusal = Refusal::new(Code::LedgerUnavailable);
            return self.refuse(downstream, &refusal).await;
        }
        let adopted = adopted_from(live.key.as_ref());
        if adopted.is_some() {
            self.gateway.metrics.adopted();
        }
        self.exchange(downstream, prepared, Some(entry), adopted)
            .await
    }

    /// Finds the request's predecessor. A marked retry whose equal is still connected waits for a
    /// moment, because the end of the old connection may be on its way.
    async fn claim(&self, claimant: &Claimant) -> Claim {
        let retry = &self.settings.config.retry;
        let policy = AdoptPolicy {
            adopt: retry.adopt,
            window: retry.adopt_window,
        };
        let until = Instant::now() + TWIN_WAIT;
        loop {
            match self.gateway.claims.claim(claimant, policy, true) {
                Claim::LookAgain(mut left) => {
                    let changed = tokio::time::timeout_at(until, left.changed()).await;
                    if !matches!(changed, Ok(Ok(()))) {
                        return self.gateway.claims.claim(claimant, policy, false);
                    }
                }
                decided => return decided,
            }
        }
    }

    /// Reads what rules need from the body, and applies a model alias.
    fn prepare(&self, body: &RequestBody) -> Prepared {
        let reads = matches!(self.admitted.route.body, BodyForm::Json | BodyForm::Any)
            && self.admitted.route.metered;
        if !reads {
            return Prepared {
                body: body.bytes.clone(),
                peek: RequestPeek::default(),
                foreign_model: None,
            };
        }
        let peek = RequestPeek::read(&body.bytes);
        let alias = peek
            .model
            .as_deref()
            .and_then(|model| self.settings.config.models.aliases.target(model));
        match (alias, peek.model_span.clone()) {
            (Some(alias), Some(span)) => Prepared {
                body: bytes::Bytes::from(replace_model(&body.bytes, span, alias)),
                peek,
                foreign_model: None,
            },
            _ => Prepared {
                body: body.bytes.clone(),
                foreign_model: peek.model.clone().filter(|model| model != "auto"),
                peek,
            },
        }
    }

    /// Attempts and answer.
    async fn exchange(
        self,
        downstream: &mut Downstream,
        prepared: Prepared,
        entry: Option<OpenEntry>,
        adopted: Option<EntryId>,
    ) -> bool {
        let route = &self.admitted.route;
        let key = entry
            .as_ref()
            .and_then(|entry| entry.live.key.as_ref())
            .map(|key| Arc::clone(&key.value));
        let header = heads::request_head(
            &self.settings,
            self.admitted,
            &downstream.head().headers,
            key.as_deref(),
            prepared.body.len(),
        );
        let Ok(header) = header else {
            if let Some(mut entry) = entry {
                entry.nothing_sent().await;
            }
            let refusal = Refusal::new(Code::HeaderRefused);
            return self.refuse(downstream, &refusal).await;
        };
        let outgoing = Outgoing {
            header,
            body: prepared.body,
            // Where an answer that is missing may not be asked for again, a stale pooled connection
            // must not be what it is missing for.
            fresh_connection: !route.retry.no_head,
            read_timeout: self.settings.config.upstream.read_timeout,
        };
        let retry = &self.settings.config.retry;
        let mut dispatch = Dispatch {
            gateway: self.gateway,
            route,
            outgoing: &outgoing,
            backoff: Backoff {
                retries_max: usize::try_from(retry.attempts.saturating_sub(1)).unwrap_or(0),
                base: retry.base,
                cap: retry.cap,
            },
            deadline: self.arrived.saturating_add(patience(self.admitted)),
            attempts: Vec::new(),
            waited: Duration::ZERO,
            service_time: Duration::ZERO,
            first_byte_at: None,
        };
        let live = entry.as_ref().map(|entry| Arc::clone(&entry.live));
        let mut app = Attendance::new(self.gateway, Arc::clone(&self.settings), downstream, live);
        let (reached, exhausted) = dispatch.run(&mut app).await;
        let relay = Relay {
            gateway: self.gateway,
            settings: self.settings,
            admitted: self.admitted,
            app,
            dispatch,
            entry,
            entry_id: self.entry_id,
            adopted,
            foreign_model: prepared.foreign_model,
            exhausted,
            arrived: self.arrived,
            state: None,
            delivered: false,
        };
        relay.run(reached).await
    }

    /// Takes over the answer of an equal request whose connection has left.
    async fn follow(self, downstream: &mut Downstream, mut follower: Follower) -> bool {
        self.gateway.metrics.joined();
        let leader: Arc<Live> = Arc::clone(&follower.live);
        let followed = relay::follow::follow(downstream, &mut follower).await;
        drop(follower);
        if followed.delivered {
            self.gateway.claims.delivered(&leader.mark, leader.entry);
        }
        report(
            self.gateway,
            &Report {
                app: DEFAULT_APP,
                route: Some(&self.admitted.route),
                entry: Some(leader.entry),
                adopted: Some(leader.entry),
                stream: followed.stream,
                status: followed.status,
                code: followed.code.map(Code::as_str),
                attempts: 0,
                state: None,
                measured: Measured {
                    total: self.gateway.clock.monotonic().saturating_sub(self.arrived),
                    ..Measured::default()
                },
            },
        );
        followed.keep
    }

    /// An answer of our own to a request whose body was read.
    async fn refuse(&self, downstream: &mut Downstream, refusal: &Refusal) -> bool {
        let keep = relay::give_refusal(downstream, refusal, self.entry_id).await;
        report_refusal(
            self.gateway,
            refusal,
            Some(self.admitted),
            self.entry_id,
            self.arrived,
        );
        keep
    }
}

/// The app's announced patience "less the larger of 1 s and 10 %"; else 10 minutes.
fn patience(admitted: &Admitted) -> Duration {
    admitted.patience.map_or(PATIENCE_DEFAULT, |announced| {
        let margin = (announced / 10).max(Duration::from_secs(1));
        announced.saturating_sub(margin)
    })
}

fn adopted_from(key: Option<&EntryKey>) -> Option<EntryId> {
    match key?.origin {
        KeyOrigin::Adopted { from } => Some(from),
        KeyOrigin::Minted | KeyOrigin::App => None,
    }
}

async fn serve_local(
    gateway: &Arc<Gateway>,
    mut downstream: Downstream,
    answer: &LocalAnswer,
    entry_id: EntryId,
    arrived: Duration,
) -> Option<ReusableHttpStream> {
    let (status, written) = relay::send_local(&mut downstream, answer, entry_id).await;
    report(
        gateway,
        &Report {
            app: DEFAULT_APP,
            route: None,
            entry: Some(entry_id),
            adopted: None,
            stream: false,
            status,
            code: None,
            attempts: 0,
            state: None,
            measured: Measured {
                total: gateway.clock.monotonic().saturating_sub(arrived),
                ..Measured::default()
            },
        },
    );
    if written {
        downstream.into_reusable().await
    } else {
        None
    }
}

/// Refuses a request whose body was not read whole: answer, then discard what is still sent.
async fn turn_down(
    gateway: &Arc<Gateway>,
    downstream: Downstream,
    refusal: Refusal,
    admitted: Option<&Admitted>,
    entry_id: EntryId,
    arrived: Duration,
) -> Option<ReusableHttpStream> {
    report_refusal(gateway, &refusal, admitted, entry_id, arrived);
    let framing_is_clear = !matches!(
        refusal.code,
        Code::LengthRefused | Code::HeadMalformed | Code::BodyBroken | Code::BodyTooSlow
    );
    let (mut downstream, written) = relay::send_refusal(downstream, &refusal, Some(entry_id)).await;
    if written && framing_is_clear {
        buffer::drain(&mut downstream).await;
    } else if written {
        buffer::drain_raw(&mut downstream).await;
    }
    None
}

fn report_refusal(
    gateway: &Gateway,
    refusal: &Refusal,
    admitted: Option<&Admitted>,
    entry_id: EntryId,
    arrived: Duration,
) {
    report(
        gateway,
        &Report {
            app: DEFAULT_APP,
            route: admitted.map(|admitted| &admitted.route),
            entry: Some(entry_id),
            adopted: None,
            stream: false,
            status: refusal.status().as_u16(),
            code: Some(refusal.code.as_str()),
            attempts: 0,
            state: None,
            measured: Measured {
                total: gateway.clock.monotonic().saturating_sub(arrived),
                ..Measured::default()
            },
        },
    );
}
