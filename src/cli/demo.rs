//! `bursar demo`: the sandbox and bursar in front of it in one process, on free ports, with a
//! ledger of its own in a temporary directory; a short story through the door; then the ledger
//! beside the service's books.
//!
//! Everything is the product: the server is the daemon's, the requests go over sockets, and each
//! number printed was read from an answer, from the journal, or from the sandbox's books.
//!
//! Promise: nothing of an existing installation is read or written, nothing is left behind, and
//! exit code 0 means that every step did what it says and that the difference is 0; with `--full`,
//! that all of it stands under entries whose price the service does not tell.

mod answer;
mod books;
mod compare;
mod files;
mod full;
mod reckoning;
mod stage;
mod story;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bursar_sandbox::{Options, serve};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use self::books::Service;
use self::files::{Folder, Journal};
use self::reckoning::Reckoning;
use self::stage::Stage;
use self::story::Story;
use super::client::Client;
use super::{CliError, say};
use crate::clock::SystemClock;
use crate::config::{Config, Env, ListenAddr, Log, LogFormat, LogLevel, Overrides};
use crate::ledger::entry::State;
use crate::protocol::names::ServiceNames;
use crate::server::Server;
use crate::telemetry::Logging;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Exit after the story instead of staying up
    #[arg(long)]
    pub once: bool,
    /// Live one bad day twice, straight and through bursar, and show the two bills
    #[arg(long, group = "other_story")]
    pub compare: bool,
    /// Go through all seven parts of the service, and hold each operation against its books
    #[arg(long, group = "other_story")]
    pub full: bool,
    /// With --compare or --full: print one JSON object
    #[arg(long, requires = "other_story")]
    pub json: bool,
    /// Where apps connect, IP:PORT [default: a free port]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Seed of the sandbox's models: the same seed, the same answers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// The key of a service that is not there outside this process.
const DEMO_KEY: &str = "sandbox-key";

/// Short waits, so that the story is; a reader's stream has a moment when Ctrl-C comes.
const DEMO_CONFIG: &str = "\
[listen]
shutdown_timeout_s = 3

[retry]
base_ms = 200
cap_ms = 400
";

/// How often the ledger is looked at for receipts of the reader's own calls.
const FOLLOW_PAUSE: Duration = Duration::from_millis(300);

/// What runs: the sandbox, and the daemon in front of it.
struct World {
    server: Server,
    sandbox: JoinHandle<io::Result<()>>,
    stop_sandbox: oneshot::Sender<()>,
    places: Places,
    journal: Journal,
    names: ServiceNames,
}

/// Where everything is.
struct Places {
    door: SocketAddr,
    admin: Option<SocketAddr>,
    service: SocketAddr,
}

/// Ctrl-C or SIGTERM.
struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
}

pub fn demo(args: Args) -> Result<(), CliError> {
    // Below this level the log would stand between the lines of the story. Without logging it runs
    // all the same.
    let _ = Logging::start(Log {
        format: LogFormat::Text,
        level: LogLevel::Error,
    });
    super::block_on_all_cores(run(args))
}

async fn run(args: Args) -> Result<(), CliError> {
    let mut interrupt = Interrupt::install()?;
    let stage = Stage::of_standard_output();
    if args.compare {
        return compare::compare(&args, &stage, &mut interrupt).await;
    }
    if args.full {
        return full::full(&args, &stage, &mut interrupt).await;
    }
    let folder = Folder::new().map_err(|error| failed("make a temporary directory", &error))?;
    let mut world = World::start(&args, &folder).await?;

    let shown = tokio::select! {
        shown = show(&stage, &world, &folder) => shown,
        () = interrupt.wait() => {
            // A sentence may have been cut short.
            let interrupted = CliError::Failed("interrupted before the story ended".to_owned());
            say("").and(Err(interrupted))
        }
    };
    let ended = match shown {
        Ok(()) if !args.once => stay(&stage, &world, &mut interrupt).await,
        shown => shown,
    };
    tokio::select! {
        () = world.stop() => ended,
        () = interrupt.wait() => {
            Err(CliError::Failed("a second signal ended it at once".to_owned()))
        }
    }
}

/// The story and the table.
async fn show(stage: &Stage, world: &World, folder: &Folder) -> Result<(), CliError> {
    stage
        .heading("bursar demo: the service's sandbox, and bursar in front of it, in one process")?;
    say("")?;
    stage.fact("base URL", world.places.base_url())?;
    stage.fact("try it", world.places.curl())?;
    stage.fact(
        "files",
        format_args!("{} (removed at the end)", folder.path().display()),
    )?;

    let mut story = Story::new(
        stage,
        Client::new(ListenAddr::Tcp(world.places.door)),
        world.service(),
        world.journal.clone(),
        world.names.clone(),
    );
    let mut wrong = story.tell().await?;

    let reckoning = Reckoning::when_settled(&world.journal, &world.service()).await?;
    say("")?;
    stage.heading("the ledger beside the service's own books")?;
    say("")?;
    say(reckoning.table())?;
    say("")?;
    stage.fact("difference", reckoning.difference())?;
    wrong.extend(reckoning.wrong());
    if wrong.is_empty() {
        return stage.good(
            "result",
            "every step did what it says; ledger and books agree to the micro-dollar",
        );
    }
    for what in &wrong {
        stage.bad("WRONG", what)?;
    }
    Err(CliError::Failed(format!(
        "the demo did not do what it says: {} wrong",
        wrong.len()
    )))
}

/// Stays up, and shows receipts as they land, until a signal comes.
async fn stay(stage: &Stage, world: &World, interrupt: &mut Interrupt) -> Result<(), CliError> {
    let places = &world.places;
    // Before the addresses are told: who uses them at once is shown, too.
    let mut seen = world.journal.last_seq().await?;
    say("")?;
    stage.heading("your turn: it stays up until Ctrl-C, and your receipts land here")?;
    say("")?;
    stage.fact("base URL", places.base_url())?;
    stage.fact("agents", places.agent_url())?;
    if let Some(admin) = places.admin {
        stage.fact("status", format_args!("http://{admin}/"))?;
        stage.fact("metrics", format_args!("http://{admin}/metrics"))?;
    }
    stage.fact(
        "books",
        format_args!("http://{}/sandbox/books", places.service),
    )?;
    stage.fact("curl", places.curl())?;
    stage.fact("Python", "")?;
    say(places.python())?;
    say("")?;

    let mut came = false;
    loop {
        tokio::select! {
            () = interrupt.wait() => break,
            () = tokio::time::sleep(FOLLOW_PAUSE) => {}
        }
        for entry in world.journal.changed_since(seen).await? {
            seen = seen.max(entry.seq);
            if entry.state != State::Open {
                came = true;
                let line = answer::entry_line(&entry);
                stage.fact("receipt", format_args!("{} {line}", entry.operation))?;
            }
        }
    }
    if came {
        let reckoning = Reckoning::when_settled(&world.journal, &world.service()).await?;
        say("")?;
        say(reckoning.table())?;
        say("")?;
        stage.fact("difference", reckoning.difference())?;
    }
    say("stopping")
}

fn failed(what: &str, error: &io::Error) -> CliError {
    CliError::Failed(format!("the demo cannot {what}: {error}"))
}

// === impl World ===

impl World {
    async fn start(args: &Args, folder: &Folder) -> Result<Self, CliError> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .map_err(|error| failed("listen", &error))?;
        let service = listener
            .local_addr()
            .map_err(|error| failed("listen", &error))?;
        let config = config(args, service, folder.path())?;
        let names = config.names.clone();
        let journal = Journal::new(&config.ledger.state_dir);
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

        let (stop_sandbox, sandbox_stopped) = oneshot::channel::<()>();
        let options = Options {
            seed: args.seed,
            api_key: DEMO_KEY.to_owned(),
            ..Options::default()
        };
        let sandbox = tokio::spawn(serve(listener, options, async {
            // Dropped or sent: stop.
            let _ = sandbox_stopped.await;
        }));
        Ok(Self {
            server,
            sandbox,
            stop_sandbox,
            places: Places {
                door,
                admin,
                service,
            },
            journal,
            names,
        })
    }

    fn service(&self) -> Service {
        Service::new(self.places.service)
    }

    /// bursar first: what is in flight needs the service.
    async fn stop(&mut self) {
        self.server.stop().await;
        let (spent, _) = oneshot::channel();
        let _ = std::mem::replace(&mut self.stop_sandbox, spent).send(());
        let _ = (&mut self.sandbox).await;
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

// === impl Places ===

impl Places {
    fn base_url(&self) -> String {
        format!("http://{}/v1", self.door)
    }

    fn agent_url(&self) -> String {
        format!("http://{}/agent/v1", self.door)
    }

    fn curl(&self) -> String {
        format!(
            "curl -si {}/chat/completions -H 'Content-Type: application/json' \
             -d '{{\"model\": \"auto\", \"messages\": [{{\"role\": \"user\", \"content\": \
             \"What is 6 * 7?\"}}]}}'",
            self.base_url()
        )
    }

    /// At the left edge, so that it can be pasted.
    fn python(&self) -> String {
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
    fn install() -> Result<Self, CliError> {
        let failed = |error: io::Error| failed("receive signals", &error);
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
        })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
