//! `bursar exec --app NAME [--max-usd N] -- CMD…`: runs a command whose SDKs spend through bursar, under
//! a token and a limit of its own, and prints at the end what it cost. `bursar launch CLIENT -- ARGS…`: the same for a
//! program that is known, with the variables and arguments that make it ask here.
//!
//! The run lives as long as a connection to the daemon's socket: whatever ends this process ends the
//! token. A daemon that restarts meanwhile gets the run again; what the run spent is in the ledger.
//!
//! Promise: the child has this process's standard input, output and error, gets its signals once, and
//! its exit code is ours (128 and the number for a signal); the organization's key is not in its
//! environment.

mod child;
mod receipt;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use bytes::BytesMut;
use http::header::CONTENT_TYPE;
use serde::de::IgnoredAny;

use self::child::{Child, Surroundings};
use super::arguments::usd;
use super::client::{Client as Daemon, ClientError, Response};
use super::clients::{Client, Filling, known_client};
use super::daemon::{document, with_fate_of_order};
use super::error::CliError;
use super::locate::{Keeper, Right, SourceArgs};
use super::output::remark;
use super::runtime::block_on;
use super::source::Source;
use crate::admin::runs::{RunOpen, RunOpened};
use crate::config::{DEFAULT_APP, Env, Token};
use crate::money::MicroUsd;

/// How often a daemon that has gone is looked for.
const AGAIN: Duration = Duration::from_millis(300);

/// Longest first line of a run.
const LINE_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The app that spends
    #[arg(long, value_name = "NAME")]
    app: String,
    #[command(flatten)]
    run: RunArgs,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub struct LaunchArgs {
    /// The program: codex, claude, opencode, aider, …
    #[arg(value_name = "CLIENT")]
    client: String,
    /// The app that spends
    #[arg(long, value_name = "NAME", default_value = DEFAULT_APP)]
    app: String,
    #[command(flatten)]
    run: RunArgs,
    /// The program's own arguments
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

/// What both take.
#[derive(Debug, clap::Args)]
struct RunArgs {
    /// Limit of this run, such as 2 or 0.50
    #[arg(long, value_name = "USD", value_parser = usd)]
    max_usd: Option<MicroUsd>,
    /// Print the receipt as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
}

/// A run as the daemon opened it. Dropping it ends the run.
struct RunLease {
    daemon: Daemon,
    token: Token,
    max: Option<MicroUsd>,
    app: String,
    id: String,
    base_url: String,
    started_ms: u64,
    state_dir: PathBuf,
    connection: Response,
}

pub fn exec(args: &Args) -> Result<(), CliError> {
    args.run.of(&args.app, Work::Command(&args.command))
}

pub fn launch(args: &LaunchArgs) -> Result<(), CliError> {
    let client = known_client(&args.client)?;
    let Some(program) = client.program else {
        return Err(CliError::usage(format_args!(
            "{} is no program that can be started from here: `bursar env {}` prints what it needs, and `bursar exec` \
             runs a command that uses it",
            client.title, client.name
        )));
    };
    args.run.of(
        &args.app,
        Work::Client {
            client,
            program,
            arguments: &args.arguments,
        },
    )
}

/// What a run is for.
enum Work<'a> {
    Command(&'a [OsString]),
    Client {
        client: &'static Client,
        program: &'static str,
        arguments: &'a [OsString],
    },
}

// === impl Work ===

impl Work<'_> {
    /// The command line, for a proxy at this address.
    fn command(&self, root: &str) -> Vec<OsString> {
        match self {
            Self::Command(command) => command.to_vec(),
            Self::Client {
                client,
                program,
                arguments,
            } => {
                let its = client.arguments(root).into_iter().map(OsString::from);
                let program = std::iter::once(OsString::from(program));
                program
                    .chain(its)
                    .chain(arguments.iter().cloned())
                    .collect()
            }
        }
    }

    /// Variables beyond those of every run.
    fn environment(&self, filling: Filling<'_>) -> Vec<(&'static str, String)> {
        match self {
            Self::Command(_) => Vec::new(),
            Self::Client { client, .. } => client.environment(filling),
        }
    }
}

// === impl RunArgs ===

impl RunArgs {
    fn of(&self, app: &str, work: Work<'_>) -> Result<(), CliError> {
        match block_on(run(self, app, work))? {
            0 => Ok(()),
            code => Err(CliError::Child(code)),
        }
    }
}

/// Opens a run, and the work is done in it; the exit code of its process.
async fn run(args: &RunArgs, app: &str, work: Work<'_>) -> Result<u8, CliError> {
    let daemon = match args.source.keeper(Right::Change).await? {
        Keeper::Daemon(daemon) => daemon,
        Keeper::Files(place) => {
            return Err(CliError::Failed(format!(
                "no daemon runs on {}: start `bursar run`, or name its state directory with \
                 --state-dir\nFor the system service: sudo bursar exec --app NAME -- runuser -u \"$USER\" -- CMD",
                place.state_dir.display()
            )));
        }
    };
    let run = RunLease::open(daemon, app, args.max_usd).await?;
    let root = run.base_url.clone();
    let token = run.token.reveal();
    let surroundings = Surroundings {
        base_url: format!("{root}/v1"),
        token,
        run: &run.id,
        more: work.environment(Filling { root: &root, token }),
        env: &Env::from_process(),
    };
    // Signals are caught before the child is there, so that none is lost between.
    let mut child = Child::start(&work.command(&root), &surroundings)?;
    let mut run = run;
    let code = tokio::select! {
        code = child.ended() => code?,
        () = run.keep() => child.ended().await?,
    };
    let place = run.place().await;
    let (id, app, max) = (run.id.clone(), run.app.clone(), run.max);
    let started_ms = run.started_ms;
    // The token ends here, even if other processes still have it.
    drop(run);
    match receipt::of(&place, &id, started_ms).await {
        Ok(receipt) if args.json => remark(receipt.document(&id, &app, max)),
        Ok(receipt) => remark(receipt.text(&id, &app, max)),
        Err(error) => remark(format_args!(
            "bursar: the run {id} of {app} ended, and its receipt cannot be read: {error}; `bursar receipts --app {app}` lists it"
        )),
    }
    Ok(code)
}

// === impl RunLease ===

impl RunLease {
    async fn open(daemon: Daemon, app: &str, max: Option<MicroUsd>) -> Result<Self, CliError> {
        let token = Token::draw()
            .map_err(|error| CliError::Failed(format!("no token can be drawn: {error}")))?;
        let asked = RunOpen {
            app: app.to_owned(),
            token: token.reveal().to_owned(),
            max_micro_usd: max,
            run: None,
        };
        let (connection, first) = ask(&daemon, &asked).await.map_err(with_fate_of_order)?;
        Ok(Self {
            id: first.run,
            app: first.app,
            base_url: first.base_url,
            started_ms: first.started_ms,
            state_dir: first.state_dir,
            daemon,
            token,
            max,
            connection,
        })
    }

    /// Holds the run open, over restarts of the daemon. Returns when it cannot be any more: its app
    /// is gone, say.
    async fn keep(&mut self) {
        loop {
            while let Ok(Some(_)) = self.connection.chunk().await {}
            let again = RunOpen {
                app: self.app.clone(),
                token: self.token.reveal().to_owned(),
                max_micro_usd: self.max,
                run: Some(self.id.clone()),
            };
            loop {
                tokio::time::sleep(AGAIN).await;
                // A daemon that hangs may go on; the command does meanwhile.
                match ask(&self.daemon.clone().without_deadline(), &again).await {
                    Ok((connection, _)) => {
                        self.connection = connection;
                        break;
                    }
                    // Not there, or just coming or going.
                    Err(CliError::Client(_)) => {}
                    Err(error) => {
                        remark(format_args!(
                            "bursar: the run {} ends before its command, which cannot spend any more: {error}",
                            self.id
                        ));
                        return;
                    }
                }
            }
        }
    }

    /// Where its entries are read: the files where they can be, else of the daemon.
    async fn place(&self) -> Source {
        match std::fs::read_dir(self.state_dir.join("journal")) {
            Ok(_) => Source::Journal(self.state_dir.clone()),
            Err(_) => Source::Daemon(self.daemon.clone()),
        }
    }
}

/// Opens a run and reads its first line.
async fn ask(daemon: &Daemon, asked: &RunOpen) -> Result<(Response, RunOpened), CliError> {
    let body = serde_json::to_string(asked)?;
    let mut answer = daemon.post_json("/api/runs", body).await?;
    let is_run = answer.header(CONTENT_TYPE.as_str()) == Some("application/x-ndjson");
    if !answer.status().is_success() || !is_run {
        document::<IgnoredAny>(daemon, answer).await?;
        return Err(CliError::Failed("the daemon opened no run".to_owned()));
    }
    let mut line = BytesMut::new();
    while !line.contains(&b'\n') && line.len() < LINE_BYTES_MAX {
        match answer.next_in_time().await? {
            Some(chunk) => line.extend_from_slice(&chunk),
            None => break,
        }
    }
    let first = serde_json::from_slice(line.trim_ascii()).map_err(ClientError::from)?;
    Ok((answer, first))
}
