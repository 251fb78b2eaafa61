//! The composition root: opens the ledger, binds the sockets, starts proxy and admin, and ends them
//! in the right order. Everything that lives as long as the process is owned here.
//!
//! Start: key and configuration are there already; the sockets are bound (all or none), then the ledger is
//! locked and replayed, then the first connection is accepted: a start that finds its address taken leaves no
//! state directory behind. Sockets that systemd gives stand in for those. The admin socket lies inside that
//! directory, so it is bound last. Stop: not ready, no new connections, what is in flight ends, the ledger last.
//!
//! Promise: a start that fails leaves nothing half started, and reports why in one line; a stop never
//! loses an outcome that can still be written.

mod descriptors;
pub mod itself;
pub mod listen;
mod notify;
mod reload;
mod signals;
mod spenders;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::Mode;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit, umask,
};
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use self::itself::UpstreamIsItself;
use self::listen::{BindError, Bound, Given, SocketFile, bind_all, take_over};
use self::reload::{ReloadError, Reloaded};
use self::signals::{SignalAction, Signals};
use crate::admin::documents::KeyStatus;
use crate::admin::{self, Admin, AdminListener, AdminParts, AutoMetrics};
use crate::apps::{Apps, AppsError, Declared};
use crate::calendar;
use crate::clock::{SharedClock, SystemClock};
use crate::config::{Config, Env, ListenAddr, Overrides};
use crate::fleet::Worker;
use crate::ledger::{Ledger, LedgerError, LedgerOptions};
use crate::notices::Notices;
use crate::proxy::{
    self, AppListener, EvalRunPoller, Gateway, GatewayParts, KeyEvidence, TrustError,
};
use crate::telemetry::journal::LogPlace;
use crate::telemetry::metrics::{Metrics, MetricsError};
use crate::telemetry::{self, Logging, LoggingError};

/// After what is left was cut: time for its outcomes to be written.
const CUT_GRACE: Duration = Duration::from_secs(10);

/// The runtime's leftover threads are not waited for longer than this.
const RUNTIME_GRACE: Duration = Duration::from_secs(1);

/// Longest time a reload may read files: a key file can be a pipe without a writer.
const RELOAD_MAX: Duration = Duration::from_secs(10);

/// Longest look-up of the service's name at a start, where its port is one of ours.
const RESOLVE_MAX: Duration = Duration::from_secs(5);

/// Why the daemon did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("the runtime could not be started: {0}")]
    Runtime(io::Error),
    #[error("signals cannot be received: {0}")]
    Signals(io::Error),
    #[error(transparent)]
    Logging(#[from] LoggingError),
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("opening the ledger failed; the log has the place")]
    LedgerPanicked,
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error("a socket that was given cannot be used: {0}")]
    Given(io::Error),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error(transparent)]
    UpstreamIsItself(#[from] UpstreamIsItself),
    #[error(transparent)]
    Apps(#[from] AppsError),
    #[error(
        "[listen] proxy names an address beyond loopback, and no app has a token: every request would be refused. \
         Add one with `bursar app add NAME`, or declare one with a token_file"
    )]
    NoAppCouldCall,
    #[error("a listener ended by itself; the log has the place")]
    ListenerLost,
    #[error("a second signal ended the process before its requests were through")]
    SecondSignal,
}

/// How a daemon ended that was asked to.
#[derive(Clone, Copy, Debug)]
enum End {
    InOrder,
    BeforeOpen,
}

/// Where a server can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    pub proxy: Vec<ListenAddr>,
    pub admin: Vec<ListenAddr>,
}

/// A running proxy with its admin listener and its ledger.
pub struct Server {
    config: Arc<Config>,
    ledger: Ledger,
    metrics: Arc<Metrics>,
    clock: SharedClock,
    gateway: Arc<Gateway>,
    apps: Arc<Apps>,
    notices: Arc<Notices>,
    /// `None`: in no fleet.
    fleet: Option<Arc<Worker>>,
    admin: Arc<Admin>,
    listening: Listening,
    stop_proxy: watch::Sender<bool>,
    stop_admin: watch::Sender<bool>,
    /// The accept loops.
    doors: JoinSet<()>,
    socket_files: Vec<SocketFile>,
}

/// Runs the daemon until a signal ends it, on the sockets that were given, if any. `announce` is called
/// once, when everything is served.
pub fn run(
    config: Config,
    overrides: Overrides,
    env: Env,
    given: Given,
    announce: impl FnOnce(&Listening),
) -> Result<(), ServerError> {
    keep_files_private();
    let logging = Logging::start(config.log, LogPlace::of_standard_error(&env))?;
    telemetry::log_panics();
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(ServerError::Runtime)?;
    let ended = runtime.block_on(async {
        // First: a socket that is bound has callers, and a long journal takes its time to be read.
        let mut signals = Signals::install().map_err(ServerError::Signals)?;
        let mut server = tokio::select! {
            started = Server::start_on(given, config, SystemClock::shared()) => started?,
            () = signals.stop() => {
                notify::stopping();
                tracing::info!("stopped before the ledger was open");
                return Ok(End::BeforeOpen);
            }
        };
        announce(server.listening());
        notify::ready();
        let watchdog = tokio::spawn(notify::feed_watchdog(server.ledger.clone()));
        let lost = server
            .serve(&mut signals, &logging, &overrides, &env)
            .await
            .err();
        notify::stopping();
        let ended = tokio::select! {
            () = server.stop() => lost.map_or(Ok(End::InOrder), Err),
            () = signals.stop() => Err(ServerError::SecondSignal),
        };
        watchdog.abort();
        ended
    });
    match ended {
        // The thread that opens the ledger is not waited for: what it does is made to be killed.
        Ok(End::BeforeOpen) | Err(ServerError::SecondSignal) => runtime.shutdown_background(),
        _ => runtime.shutdown_timeout(RUNTIME_GRACE),
    }
    ended.map(|_| ())
}

/// No core dump, and no `/proc/…/mem`, `environ` or `fd` for other processes of this user: they
/// would show the key. To be called before the key is read.
pub fn keep_memory_private() {
    // Without the right to do it the rest of the defences stand.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // A pattern that pipes cores into a program is not asked for a size, but goes by the above.
    let none = Some(0);
    let _ = setrlimit(
        Resource::Core,
        Rlimit {
            current: none,
            maximum: none,
        },
    );
}

/// Whatever creates a file (the index does, with a mode of its own choice): 0600 and 0700.
fn keep_files_private() {
    umask(Mode::RWXG | Mode::RWXO);
}

// === impl Server ===

impl Server {
    /// Binds all sockets, opens the ledger, and starts serving.
    pub async fn start(config: Config, clock: SharedClock) -> Result<Self, ServerError> {
        Self::start_on(Given::default(), config, clock).await
    }

    /// The same on sockets that were given, in place of the configured ones.
    pub async fn start_on(
        given: Given,
        config: Config,
        clock: SharedClock,
    ) -> Result<Self, ServerError> {
        let authorities = proxy::authorities(&config)?;
        let config = Arc::new(config);
        let metrics = Arc::new(Metrics::new()?);
        metrics.started(clock.wall_ms());
        // Clients that connect before the ledger is open wait in the backlog.
        let state_dir = &config.ledger.state_dir;
        let (inside, admin_outside): (Vec<_>, Vec<_>) = config
            .listen
            .admin
            .iter()
            .cloned()
            .partition(|address| address.is_below(state_dir));
        let (proxy_inside, proxy_outside): (Vec<_>, Vec<_>) = config
            .listen
            .proxy
            .iter()
            .cloned()
            .partition(|address| address.is_below(state_dir));
        let proxy_is_given = !given.proxy.is_empty();
        let has_admin_port = given.has_admin_port();
        let mut proxy = match proxy_is_given {
            true => take_over(given.proxy, "[listen] proxy").map_err(ServerError::Given)?,
            false => bind_all(&proxy_outside, config.listen.proxy_is_default)?,
        };
        let mut admin_bound = match has_admin_port {
            true => Vec::new(),
            false => bind_all(&admin_outside, false)?,
        };
        let admin_given = take_over(given.admin, "[listen] admin");
        admin_bound.extend(admin_given.map_err(ServerError::Given)?);
        let bound = proxy.iter().chain(&admin_bound).map(Bound::address);
        check_upstream(&config, bound.collect()).await?;
        let connections_max = descriptors::make_room(config.listen.connections_max);
        let fleet = Worker::new(&config.fleet, state_dir, &clock, &metrics);
        let ledger = open_ledger(&config, &metrics, &clock, fleet.as_ref()).await?;
        let apps = Arc::new(Apps::open(state_dir, Declared::from(&*config))?);
        if config.listen.is_remote() && !apps.table().has_token() {
            return Err(ServerError::NoAppCouldCall);
        }
        let labelled = Arc::clone(&metrics);
        apps.announce(move |table| {
            let known = table.known().iter().map(|known| &known.app);
            let apps = known.chain([table.default_app()]);
            labelled.name_apps(apps.map(|app| &*app.name));
        });
        spenders::say(&apps);
        if !proxy_is_given {
            proxy.extend(bind_all(&proxy_inside, false)?);
        }
        admin_bound.extend(bind_all(&inside, false)?);
        let addresses = |bound: &[Bound]| bound.iter().map(Bound::address).collect();
        let listening = Listening {
            proxy: addresses(&proxy),
            admin: addresses(&admin_bound),
        };

        let gateway = Gateway::new(GatewayParts {
            config: Arc::clone(&config),
            authorities,
            ledger: ledger.clone(),
            metrics: Arc::clone(&metrics),
            clock: Arc::clone(&clock),
            apps: Arc::clone(&apps),
            connections_max,
        });
        gateway.restore_undelivered().await?;
        if let Some(fleet) = &fleet {
            fleet.restore(gateway.caps())?;
        }
        let notices = Notices::new(
            Arc::clone(&config),
            Arc::clone(gateway.caps()),
            Arc::clone(&metrics),
            Arc::clone(&clock),
        );
        let counted = Arc::clone(&gateway);
        let asking = Arc::clone(&gateway);
        let keyed = Arc::clone(&gateway);
        let admin = Arc::new(Admin::new(AdminParts {
            config: Arc::clone(&config),
            ledger: ledger.clone(),
            metrics: Arc::clone(&metrics),
            caps: Arc::clone(gateway.caps()),
            notices: Arc::clone(&notices),
            clock: Arc::clone(&clock),
            apps: Arc::clone(&apps),
            proxy: listening.proxy.clone(),
            in_flight: Box::new(move || counted.in_flight()),
            key: Box::new(move || key_status(keyed.key_evidence())),
            auto_metrics: Box::new(move || Box::pin(auto_metrics(Arc::clone(&asking)))),
        }));

        let mut server = Self {
            config,
            ledger,
            metrics,
            clock,
            gateway,
            apps,
            notices,
            fleet,
            admin,
            listening,
            stop_proxy: watch::Sender::new(false),
            stop_admin: watch::Sender::new(false),
            doors: JoinSet::new(),
            socket_files: Vec::new(),
        };
        server.open_doors(proxy, admin_bound);
        let own = server.socket_files.iter().filter_map(SocketFile::own_path);
        spenders::share_sockets(&server.apps, &server.listening.proxy, own);
        let caps = Arc::clone(server.gateway.caps());
        tokio::spawn(caps.follow(server.stop_proxy.subscribe()));
        let notices = Arc::clone(&server.notices);
        tokio::spawn(notices.run(server.stop_proxy.subscribe()));
        let comparing = Arc::clone(&server.admin);
        tokio::spawn(admin::schedule::reconcile(
            comparing,
            server.stop_proxy.subscribe(),
        ));
        let evidence = EvalRunPoller::new(&server.gateway);
        tokio::spawn(evidence.gather(server.stop_proxy.subscribe()));
        if let Some(fleet) = &server.fleet {
            let (caps, queue) = (Arc::clone(server.gateway.caps()), server.gateway.ceilings());
            tokio::spawn(Arc::clone(fleet).run(caps, queue, server.stop_proxy.subscribe()));
        }
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            upstream = %server.config.upstream.base_url,
            state_dir = %server.config.ledger.state_dir.display(),
            config = server.config.path.as_ref().map(|path| tracing::field::display(path.display())),
            "started"
        );
        Ok(server)
    }

    fn open_doors(&mut self, proxy: Vec<Bound>, admin: Vec<Bound>) {
        for bound in proxy {
            let listener = match bound {
                Bound::Tcp(listener, _) => AppListener::Tcp(listener),
                Bound::Unix(listener, file) => {
                    self.socket_files.push(file);
                    AppListener::Unix(listener)
                }
            };
            let gateway = Arc::clone(&self.gateway);
            self.doors
                .spawn(proxy::serve(gateway, listener, self.stop_proxy.subscribe()));
        }
        for bound in admin {
            let listener = match bound {
                Bound::Tcp(listener, _) => AdminListener::Tcp(listener),
                Bound::Unix(listener, file) => {
                    self.socket_files.push(file);
                    AdminListener::Unix(listener)
                }
            };
            let admin = Arc::clone(&self.admin);
            self.doors
                .spawn(admin::serve(admin, listener, self.stop_admin.subscribe()));
        }
    }

    pub fn listening(&self) -> &Listening {
        &self.listening
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Serves, and reloads when asked, until a signal asks to stop.
    async fn serve(
        &mut self,
        signals: &mut Signals,
        logging: &Logging,
        overrides: &Overrides,
        env: &Env,
    ) -> Result<(), ServerError> {
        loop {
            tokio::select! {
                asked = signals.next() => match asked {
                    SignalAction::Stop => return Ok(()),
                    SignalAction::Reload => {
                        notify::reloading();
                        let outcome = self.reload(logging, overrides, env).await;
                        notify::ready_after_reload(outcome);
                    }
                },
                Some(ended) = self.doors.join_next() => {
                    tracing::error!(panicked = ended.is_err(), "a listener ended by itself");
                    return Err(ServerError::ListenerLost);
                }
            }
        }
    }

    /// Swaps what a running process can change, or logs why nothing was. What an operator has to know of it is
    /// answered.
    async fn reload(&mut self, logging: &Logging, overrides: &Overrides, env: &Env) -> String {
        match self.read_new_config(overrides, env).await {
            Ok(reloaded) => {
                let Reloaded {
                    config,
                    authorities,
                    waits_for_restart,
                } = reloaded;
                for warning in &config.warnings {
                    tracing::warn!("{warning}");
                }
                // Otherwise an operator would think that a new key is in use once it stands where systemd
                // copies it from.
                let key = &config.upstream.api_key;
                if key.is_a_copy() && *key == self.config.upstream.api_key {
                    tracing::info!(
                        "the key stays: systemd copied it when the service started, and a new one \
                         needs a restart"
                    );
                }
                logging.set_level(config.log.level);
                self.config = Arc::new(config);
                self.notices.reload(Arc::clone(&self.config));
                self.gateway.reload(Arc::clone(&self.config), authorities);
                self.admin
                    .reload(Arc::clone(&self.config), waits_for_restart.clone());
                let now_ms = self.clock.wall_ms();
                self.metrics.reloads.count(true, now_ms);
                let waiting = waits_for_restart.len();
                self.metrics.reloads.leaves_to_restart(waiting);
                if waits_for_restart.is_empty() {
                    tracing::info!("the configuration was reloaded");
                    return String::new();
                }
                let keys = waits_for_restart.join(", ");
                tracing::warn!(
                    keys,
                    "the configuration was reloaded; these keys wait for a restart"
                );
                format!("reloaded; waits for a restart: {keys}")
            }
            Err(error) => {
                let now_ms = self.clock.wall_ms();
                self.metrics.reloads.count(false, now_ms);
                tracing::error!(%error, "the reload was refused; nothing changed");
                format!("the last reload was refused: {error}")
            }
        }
    }

    async fn read_new_config(
        &self,
        overrides: &Overrides,
        env: &Env,
    ) -> Result<Reloaded, ReloadError> {
        let (overrides, env) = (overrides.clone(), env.clone());
        // Reading a file can take for ever; nobody else waits for it.
        let reading = spawn_blocking(move || -> Result<_, ReloadError> {
            let config = Config::load(&overrides, &env)?;
            let authorities = proxy::authorities(&config)?;
            Ok((config, authorities))
        });
        let (config, authorities) = match timeout(RELOAD_MAX, reading).await {
            Ok(Ok(read)) => read?,
            Ok(Err(_)) => return Err(ReloadError::Panicked),
            Err(_) => {
                let seconds = RELOAD_MAX.as_secs();
                return Err(ReloadError::TooSlow { seconds });
            }
        };
        let listening = [self.listening.proxy.clone(), self.listening.admin.clone()].concat();
        check_upstream(&config, listening).await?;
        let waits_for_restart = self.config.keys_needing_restart(&config);
        let config = config.keeping(&self.config);
        // Last: from here on nothing can be wrong with it.
        self.apps.redeclare(Declared::from(&config))?;
        spenders::say(&self.apps);
        Ok(Reloaded {
            config,
            authorities,
            waits_for_restart,
        })
    }

    /// Ends everything in order. What is still in flight when the time is up is cut and ends in
    /// doubt; the ledger closes after the last outcome.
    pub async fn stop(&mut self) {
        let patience = self.config.listen.shutdown_timeout;
        tracing::info!(
            in_flight = self.gateway.in_flight(),
            "stopping: what is in flight has up to {} s to end; a second Ctrl-C (or SIGTERM) ends bursar at once, and \
             what it cuts is in doubt",
            patience.as_secs()
        );
        self.admin.drain();
        self.stop_proxy.send_replace(true);
        self.gateway.close_queue();
        if timeout(patience, self.gateway.at_rest()).await.is_err() {
            let left = self.gateway.in_flight();
            tracing::warn!(left, "shutdown_timeout_s is over; what is left is cut");
            self.gateway.cut();
            if timeout(CUT_GRACE, self.gateway.at_rest()).await.is_err() {
                tracing::error!("requests did not end when they were cut");
            }
        }
        self.stop_admin.send_replace(true);
        self.ledger.close().await;
        if let Some(fleet) = &self.fleet {
            fleet
                .flush(self.gateway.caps(), self.config.has_left_fleet())
                .await;
        }
        tracing::info!("stopped");
    }
}

/// Looks whether the service is bursar itself. A resolver that is slow is not waited for: a request that comes
/// back is known at the door, too.
async fn check_upstream(
    config: &Config,
    listening: Vec<ListenAddr>,
) -> Result<(), UpstreamIsItself> {
    let base_url = config.upstream.base_url.clone();
    let looking = spawn_blocking(move || itself::check(&base_url, &listening));
    match timeout(RESOLVE_MAX, looking).await {
        Ok(Ok(found)) => found,
        Ok(Err(_)) | Err(_) => Ok(()),
    }
}

async fn auto_metrics(gateway: Arc<Gateway>) -> Result<AutoMetrics, String> {
    let answer = proxy::auto_metrics(gateway).await?;
    Ok(AutoMetrics {
        service_clock_ms: answer.date_ms(),
        document: answer.body,
    })
}

fn key_status(evidence: KeyEvidence) -> KeyStatus {
    let at = |ms: Option<u64>| ms.and_then(calendar::rfc3339);
    KeyStatus {
        answered: at(evidence.answered_ms),
        accepted: at(evidence.accepted_ms),
        refused: at(evidence.refused_ms),
        balance_empty: at(evidence.balance_empty_ms),
    }
}

async fn open_ledger(
    config: &Config,
    metrics: &Arc<Metrics>,
    clock: &SharedClock,
    fleet: Option<&Arc<Worker>>,
) -> Result<Ledger, ServerError> {
    let mut options = LedgerOptions::new(&config.ledger.state_dir, Arc::clone(clock));
    options.durability = config.ledger.durability;
    options.on_failure = config.ledger.on_failure;
    options.retention = config.ledger.retention;
    options.copied = fleet.map(|fleet| fleet.copied());
    let metrics = Arc::clone(metrics);
    options.on_commit = Some(Arc::new(move |took| metrics.journal_commit(took)));
    // Replaying a long journal takes its time, and rebuilding the index still more.
    let opening = spawn_blocking(move || Ledger::open(options));
    let opened = tokio::select! {
        opened = opening => opened,
        never = notify::still_starting() => match never {},
    };
    match opened {
        Ok(opened) => Ok(opened?),
        Err(_) => Err(ServerError::LedgerPanicked),
    }
}

#[cfg(test)]
mod tests;
