//! bursar in this process: a gateway and a ledger in a temporary state directory.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bursar::apps::{Apps, Declared};
use bursar::clock::{SharedClock, SystemClock};
use bursar::config::{Config, Env, Overrides};
use bursar::ledger::query::{self, EntryView, Filter};
use bursar::ledger::{Ledger, LedgerOptions};
use bursar::proxy::{self, AppListener, Gateway, GatewayParts};
use bursar::telemetry::metrics::Metrics;
use tempfile::TempDir;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;

use super::wire::Wire;
use super::{KEY, eventually};

/// The service's ceilings are not what the test is about.
pub const NO_LIMITS: &str = "[shaping]\nin_flight = 0\nper_minute = 0\n";

/// 640 by ports and as many by Unix sockets; 512 requests may wait, 384 of one app among several.
pub const FEW_CONNECTIONS: &str = "[listen]\nconnections_max = 768\n";

/// A running gateway. Dropping it removes its state.
pub struct Bursar {
    pub address: SocketAddr,
    pub socket: PathBuf,
    pub gateway: Arc<Gateway>,
    pub config: Arc<Config>,
    pub ledger: Ledger,
    pub metrics: Arc<Metrics>,
    pub apps: Arc<Apps>,
    /// Dropping it ends the accept loops.
    _stop: watch::Sender<bool>,
    directory: TempDir,
    upstream: String,
    clock: SharedClock,
}

impl Bursar {
    /// Starts in front of `upstream` with quick retries.
    pub async fn before(upstream: &str) -> Self {
        Self::with(upstream, "").await
    }

    /// The same with more lines of config. `[retry]` is quick and `[shaping]` sets no limits, unless
    /// the lines have their own.
    pub async fn with(upstream: &str, lines: &str) -> Self {
        Self::with_clock(upstream, lines, SystemClock::shared()).await
    }

    /// The same on a clock of the test's own.
    pub async fn with_clock(upstream: &str, lines: &str, clock: SharedClock) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self::start(directory, upstream, lines, clock).await
    }

    /// Starts on the state directory that lies in this one.
    pub async fn on(directory: TempDir, upstream: &str) -> Self {
        Self::start(directory, upstream, "", SystemClock::shared()).await
    }

    /// Ends in order and starts again on the same state, on a new port. Requests in flight are cut,
    /// as by a stop whose time is up.
    pub async fn restart(self, lines: &str) -> Self {
        let Self {
            gateway,
            ledger,
            directory,
            upstream,
            clock,
            ..
        } = self;
        gateway.cut();
        gateway.idle().await;
        ledger.close().await;
        Self::start(directory, &upstream, lines, clock).await
    }

    async fn start(directory: TempDir, upstream: &str, lines: &str, clock: SharedClock) -> Self {
        let retry = if lines.contains("[retry]") {
            ""
        } else {
            "[retry]\nbase_ms = 1\ncap_ms = 2\n"
        };
        let shaping = if lines.contains("[shaping]") {
            ""
        } else {
            NO_LIMITS
        };
        let listen = if lines.contains("[listen]") {
            ""
        } else {
            FEW_CONNECTIONS
        };
        let state_dir = directory.path().join("state");
        let upstream_table = if lines.contains("[upstream]") {
            ""
        } else {
            "[upstream]\n"
        };
        let file = directory.path().join("config.toml");
        let text = format!("{lines}\n{listen}{upstream_table}{retry}{shaping}");
        std::fs::write(&file, text).expect("the config is written");
        let config = read(&directory, upstream);
        let ledger = Ledger::open(LedgerOptions::new(&state_dir, Arc::clone(&clock)))
            .expect("the ledger opens");
        let metrics = Arc::new(Metrics::new().expect("metrics register"));
        let config = Arc::new(config);
        let apps = Apps::open(&state_dir, Declared::from(&*config)).expect("the apps are read");
        let apps = Arc::new(apps);
        let gateway = Gateway::new(GatewayParts {
            config: Arc::clone(&config),
            authorities: proxy::authorities(&config).expect("authorities"),
            ledger: ledger.clone(),
            metrics: Arc::clone(&metrics),
            clock: Arc::clone(&clock),
            apps: Arc::clone(&apps),
            connections_max: config.listen.connections_max,
        });
        gateway
            .restore_undelivered()
            .await
            .expect("the ledger answers");
        let (stop, stopped) = watch::channel(false);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let socket = directory.path().join("app.sock");
        std::fs::remove_file(&socket).ok();
        let unix = UnixListener::bind(&socket).expect("a socket");
        let tcp = AppListener::Tcp(listener);
        tokio::spawn(proxy::serve(Arc::clone(&gateway), tcp, stopped.clone()));
        tokio::spawn(proxy::serve(
            Arc::clone(&gateway),
            AppListener::Unix(unix),
            stopped,
        ));
        Self {
            address,
            socket,
            gateway,
            config,
            ledger,
            metrics,
            apps,
            _stop: stop,
            directory,
            upstream: upstream.to_owned(),
            clock,
        }
    }

    pub fn state_dir(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    pub async fn connect(&self) -> Wire {
        Wire::tcp(self.address).await
    }

    /// What the service refused to every app is forgotten, as by a reload.
    pub fn forget_refusals(&self) {
        self.reload(Config::clone(&self.config));
    }

    /// The files are read again, as by a reload.
    pub fn reread(&self) {
        self.reload(read(&self.directory, &self.upstream));
    }

    /// Requests that come from now on have this configuration.
    pub fn reload(&self, config: Config) {
        let authorities = proxy::authorities(&config).expect("authorities");
        self.gateway.reload(Arc::new(config), authorities);
    }

    /// One request on a connection of its own.
    pub async fn post(&self, path: &str, body: &str) -> super::Answer {
        self.connect().await.post(path, body).await
    }

    /// All entries of the ledger, oldest first.
    pub fn entries(&self) -> Vec<EntryView> {
        entries(&self.state_dir())
    }

    /// The entries once there are `count` of them and none is open.
    pub async fn settled(&self, count: usize) -> Vec<EntryView> {
        eventually("entries to settle", || async {
            let entries = self.entries();
            let done = entries
                .iter()
                .all(|entry| entry.state != bursar::ledger::entry::State::Open);
            (entries.len() >= count && done).then_some(entries)
        })
        .await
    }

    /// All of `/metrics`.
    pub fn metrics_text(&self) -> String {
        self.metrics
            .render(&self.ledger.totals(), &self.ledger.health())
            .expect("metrics render")
    }

    /// The sum of all samples of a family whose labels contain `labels`, such as `reason="busy"`.
    pub fn metric(&self, family: &str, labels: &str) -> f64 {
        self.metrics_text()
            .lines()
            .filter(|line| line.split(['{', ' ']).next() == Some(family) && line.contains(labels))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    /// The entry that an answer names.
    pub fn entry_of(&self, answer: &super::Answer) -> EntryView {
        let id = answer
            .header("x-bursar-entry")
            .expect("an entry id")
            .to_owned();
        self.entries()
            .into_iter()
            .find(|entry| entry.id.0.to_string() == id)
            .unwrap_or_else(|| panic!("no entry {id}"))
    }

    /// The sum of what the ledger knows to be billed, in micro-USD.
    pub fn billed(&self) -> u64 {
        self.entries()
            .iter()
            .filter_map(|entry| entry.billed_micro_usd)
            .map(|billed| billed.get())
            .sum()
    }
}

/// All entries of a state directory, oldest first.
pub fn entries(state_dir: &Path) -> Vec<EntryView> {
    let mut entries = query::entries(state_dir, &Filter::default()).expect("the journal reads");
    entries.sort_by_key(|entry| entry.at_ms);
    entries
}

/// What the files of a directory say.
fn read(directory: &TempDir, upstream: &str) -> Config {
    let overrides = Overrides {
        config: Some(directory.path().join("config.toml")),
        upstream: Some(upstream.to_owned()),
        state_dir: Some(directory.path().join("state")),
        ..Overrides::default()
    };
    let env = Env::from_pairs([("BURSAR_API_KEY", KEY)]);
    Config::load(&overrides, &env).unwrap_or_else(|errors| panic!("{errors}"))
}
