//! What a demo runs: the sandbox, the daemon in front of it, both on free ports, and the signals that end it.
//!
//! Promise: it depends on nothing of this machine's configuration; bursar stops before the service does.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use bursar_sandbox::{Options, serve};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::args::Args;
use super::books::Service;
use super::files::{Folder, LedgerFiles};
use crate::cli::error::CliError;
use crate::clock::SystemClock;
use crate::config::{Config, Env, ListenAddr, Overrides};
use crate::protocol::names::ServiceNames;
use crate::server::Server;

/// The key of a service that is not there outside this process.
pub const DEMO_KEY: &str = "sandbox-key";

/// Short waits, so that the story is; a reader's stream has a moment when Ctrl-C comes.
const DEMO_CONFIG: &str = "\
[listen]
shutdown_timeout_s = 3

[retry]
base_ms = 200
cap_ms = 400
";

/// A service on a free port. It stops when this is dropped, too.
pub struct Sandbox {
    address: SocketAddr,
    task: JoinHandle<io::Result<()>>,
    stop: watch::Sender<bool>,
}

/// What runs: the sandbox, and the daemon in front of it.
pub struct World {
    server: Server,
    sandbox: Sandbox,
    pub places: Addresses,
    pub journal: LedgerFiles,
    pub names: ServiceNames,
}

/// Where everything is.
pub struct Addresses {
    pub door: SocketAddr,
    pub admin: Option<SocketAddr>,
    pub service: SocketAddr,
}

/// Ctrl-C or SIGTERM.
pub struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
}

pub fn failed(what: &str, error: &io::Error) -> CliError {
    CliError::Failed(format!("the demo cannot {what}: {error}"))
}

// === impl Sandbox ===

impl Sandbox {
    pub async fn start(seed: u64) -> Result<Self, CliError> {
        let listen = |error| failed("listen", &error);
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let (stop, mut stopped) = watch::channel(false);
        let options = Options {
            seed,
            api_key: DEMO_KEY.to_owned(),
            ..Options::default()
        };
        let task = tokio::spawn(serve(listener, options, async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        }));
        Ok(Self {
            address,
            task,
            stop,
        })
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    pub async fn stop(&mut self) {
        self.stop.send_replace(true);
        let _ = (&mut self.task).await;
    }
}

// === impl World ===

impl World {
    pub async fn start(args: &Args, folder: &Folder) -> Result<Self, CliError> {
        let sandbox = Sandbox::start(args.seed).await?;
        let service = sandbox.address;
        let config = config(args, service, folder.path())?;
        let names = config.names.clone();
        let journal = LedgerFiles::new(&config.ledger.state_dir);
        let server = Server::start(config, SystemClock::shared()).await?;
        let tcp = |addresses: &[ListenAddr]| {
            addresses.iter().find_map(|address| match address {
                ListenAddr::Tcp(address) => Some(*address),
                ListenAddr::Unix(_) => None,
            })
        };
        let door = tcp(&server.listening().proxy)
            .ok_or_else(|| CliError::Failed("the demo listens nowhere".to_owned()))?;
        let admin = tcp(&server.listening().admin);
        Ok(Self {
            server,
            sandbox,
            places: Addresses {
                door,
                admin,
                service,
            },
            journal,
            names,
        })
    }

    pub fn service(&self) -> Service {
        Service::new(self.places.service)
    }

    /// bursar first: what is in flight needs the service.
    pub async fn stop(mut self) {
        self.server.stop().await;
        self.sandbox.stop().await;
    }
}

/// A configuration that depends on nothing of this machine.
fn config(args: &Args, service: SocketAddr, folder: &Path) -> Result<Config, CliError> {
    let file = folder.join("config.toml");
    std::fs::write(&file, DEMO_CONFIG).map_err(|error| failed("write its config", &error))?;
    let listen = args
        .listen
        .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
    let overrides = Overrides {
        config: Some(file),
        upstream: Some(format!("http://{service}")),
        listen: vec![listen.to_string()],
        admin: Some("127.0.0.1:0".to_owned()),
        state_dir: Some(folder.join("state")),
        ..Overrides::default()
    };
    let env = Env::from_pairs([("BURSAR_API_KEY", DEMO_KEY)]);
    Ok(Config::load(&overrides, &env)?)
}

// === impl Addresses ===

impl Addresses {
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.door)
    }

    pub fn agent_url(&self) -> String {
        format!("http://{}/agent/v1", self.door)
    }

    pub fn curl(&self) -> String {
        format!(
            "curl -si {}/chat/completions -H 'Content-Type: application/json' \
             -d '{{\"model\": \"auto\", \"messages\": [{{\"role\": \"user\", \"content\": \
             \"What is 6 * 7?\"}}]}}'",
            self.base_url()
        )
    }

    /// At the left edge, so that it can be pasted.
    pub fn python(&self) -> String {
        format!(
            "from openai import OpenAI\n\
             client = OpenAI(base_url=\"{}\", api_key=\"any\")\n\
             print(client.chat.completions.create(model=\"auto\", messages=[{{\"role\": \"user\", \
             \"content\": \"What is 6 * 7?\"}}]).choices[0].message.content)",
            self.base_url()
        )
    }
}

// === impl Interrupt ===

impl Interrupt {
    pub fn install() -> Result<Self, CliError> {
        let failed = |error: io::Error| failed("receive signals", &error);
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
        })
    }

    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
