//! The command line: what can be typed, and what each exit code means.
//!
//! Promise: results on standard output, mistakes on standard error, one clear line each; exit code
//! 0 done, 1 failed, 2 usage, 78 configuration. `--json` output only ever gains fields. A reader
//! that closes the pipe is no mistake.

pub mod app;
pub mod caps;
pub mod check;
pub mod client;
pub mod compact;
#[cfg(feature = "sandbox")]
pub mod demo;
pub mod exec;
pub mod explain;
pub mod export;
pub mod freeze;
pub mod keeper;
pub mod key;
pub mod ledger;
pub mod receipts;
pub mod reconcile;
pub mod run;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod source;
pub mod spend;
pub mod table;
pub mod whole_file;

use std::fmt::{self, Display};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use jiff::tz::TimeZone;
use serde_json::Value;

use self::client::ClientError;
use crate::apps::AppsError;
use crate::calendar::{self, WhenError};
use crate::config::{ConfigErrors, Overrides};
use crate::ledger::LedgerError;
use crate::screen;
use crate::server::listen::GivenError;
use crate::server::{self, ServerError};

/// sysexits.h: something is wrong with the configuration. systemd does not restart after it.
const EXIT_CONFIG: u8 = 78;
const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;

/// A local proxy that holds the key, bills each call once, and keeps exact receipts.
#[derive(Debug, Parser)]
#[command(name = "bursar", version, after_help = FIRST_STEPS)]
struct Line {
    #[command(subcommand)]
    command: Option<Command>,
}

const FIRST_STEPS: &str = "\
To start:
  bursar demo                       see it work, with no account and no network
  bursar sandbox                    the inference service on this machine
  bursar run --upstream URL --api-key-file FILE
                                    spend through http://127.0.0.1:8327/v1";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the proxy
    Run(run::Args),
    /// Show bursar at work on its sandbox
    #[cfg(feature = "sandbox")]
    Demo(demo::Args),
    /// Run the inference service on this machine
    #[cfg(feature = "sandbox")]
    Sandbox(sandbox::Args),
    /// Check the configuration and print what it comes to
    Check(check::Args),
    /// Who may spend: add, remove, list apps and renew their tokens
    App(app::Args),
    /// The organization's key: set another one
    Key(key::Args),
    /// Run a command that spends as an app, up to a limit, and print what it came to
    Exec(exec::Args),
    /// What was spent, by app, day and more
    Spend(spend::Args),
    /// List receipts, newest last
    Receipts(receipts::Args),
    /// What each cap has left, and the most it can be overrun; or raise one for its window
    Caps(caps::Args),
    /// Stop an app, or all, from spending, at once
    Freeze(freeze::Args),
    /// Let an app, or all, spend again
    Thaw(freeze::Args),
    /// One request's timeline, and why it cost what it cost
    Explain(explain::Args),
    /// Hold the ledger against the service's own figure, or against an invoice
    Reconcile(reconcile::Args),
    /// Look after the ledger itself
    Ledger(ledger::Args),
}

/// Flags that `run` and `check` share; each wins over environment and file.
#[derive(Clone, Debug, Args)]
pub struct ConfigArgs {
    /// Configuration file [env: BURSAR_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where the service is, without /v1 [env: BURSAR_UPSTREAM]
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// File with the organization's key [env: BURSAR_API_KEY_FILE, or the key in BURSAR_API_KEY]
    #[arg(long, value_name = "FILE")]
    pub api_key_file: Option<PathBuf>,
    /// Where apps connect, IP:PORT or unix:/PATH; may be repeated
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,
    /// Where metrics, health and the status page are
    #[arg(long, value_name = "ADDR")]
    pub admin: Option<String>,
    /// Where the ledger is [env: BURSAR_STATE_DIR]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    #[error(transparent)]
    Given(#[from] GivenError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Apps(#[from] AppsError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    When(#[from] WhenError),
    #[error("{0}")]
    Usage(String),
    /// A file of settings that is not the configuration is wrong.
    #[error("{0}")]
    Settings(String),
    #[error("{0}")]
    Failed(String),
    /// The command that was run ended so.
    #[error("the command ended with {0}")]
    Child(u8),
    /// Everything was said already; only the exit code is left.
    #[error("failed")]
    Said,
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    /// The reader of our output has seen enough.
    #[error("the reader has gone")]
    ReaderGone,
}

/// The whole program.
pub fn main() -> ExitCode {
    server::keep_memory_private();
    let line = match Line::try_parse() {
        Ok(line) => line,
        // Help and version come this way, too; they go to standard output and are no mistake.
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { EXIT_USAGE } else { 0 });
        }
    };
    match obey(line.command) {
        Ok(()) | Err(CliError::ReaderGone) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

fn obey(command: Option<Command>) -> Result<(), CliError> {
    match command {
        None => say(Line::command().render_help()),
        Some(Command::Run(args)) => run::run(&args),
        #[cfg(feature = "sandbox")]
        Some(Command::Demo(args)) => demo::demo(args),
        #[cfg(feature = "sandbox")]
        Some(Command::Sandbox(args)) => sandbox::sandbox(args),
        Some(Command::Check(args)) => check::check(&args),
        Some(Command::App(args)) => app::app(&args),
        Some(Command::Key(args)) => key::key(&args),
        Some(Command::Exec(args)) => exec::exec(&args),
        Some(Command::Spend(args)) => spend::spend(&args),
        Some(Command::Receipts(args)) => receipts::receipts(&args),
        Some(Command::Caps(args)) => caps::caps(&args),
        Some(Command::Freeze(args)) => freeze::freeze(&args),
        Some(Command::Thaw(args)) => freeze::thaw(&args),
        Some(Command::Explain(args)) => explain::explain(&args),
        Some(Command::Reconcile(args)) => reconcile::reconcile(&args),
        Some(Command::Ledger(args)) => ledger::ledger(&args),
    }
}

/// One line on standard output. It goes out at once: a pipe's reader may wait for it.
pub fn say(line: impl Display) -> Result<(), CliError> {
    let text = line.to_string();
    let mut out = io::stdout().lock();
    let written = out
        .write_all(text.trim_end_matches('\n').as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    match written {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(CliError::ReaderGone),
        Err(error) => Err(CliError::Output(error)),
    }
}

/// A JSON document on standard output, which may be a person's screen: see [`crate::screen`].
pub fn say_json(document: &Value) -> Result<(), CliError> {
    say(screen::shown_json(&document.to_string()))
}

/// A remark for the person at the terminal; never part of a result.
pub fn remark(text: impl Display) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Whether standard output is a terminal and not a pipe or a file.
pub fn at_terminal() -> bool {
    io::stdout().is_terminal()
}

/// The zone that was named, or this machine's. One of the machine's that is not understood counts
/// as UTC, with a remark.
pub fn zone(name: Option<&str>) -> Result<TimeZone, CliError> {
    let zone = calendar::zone(name)?;
    if name.is_some() || !zone.is_unknown() {
        return Ok(zone);
    }
    remark(
        "bursar: this machine's time zone is not understood (TZ, /etc/localtime); this is in UTC",
    );
    Ok(TimeZone::UTC)
}

fn complain(error: &CliError) {
    match error {
        CliError::Said | CliError::Child(_) => {}
        CliError::Config(errors) => {
            for line in errors.lines() {
                remark(format_args!("bursar: {line}"));
            }
        }
        error => remark(format_args!("bursar: {error}")),
    }
}

/// Runs the future of a command that only asks and prints.
pub fn block_on<T>(command: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::Failed(format!("the runtime could not be started: {error}")))?
        .block_on(command)
}

/// Runs the future of a command that serves.
#[cfg(feature = "sandbox")]
pub fn block_on_all_cores<T>(
    command: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::Failed(format!("the runtime could not be started: {error}")))?
        .block_on(command)
}

// === impl ConfigArgs ===

impl ConfigArgs {
    pub fn overrides(&self) -> Overrides {
        Overrides {
            config: self.config.clone(),
            upstream: self.upstream.clone(),
            api_key_file: self.api_key_file.clone(),
            listen: self.listen.clone(),
            admin: self.admin.clone(),
            state_dir: self.state_dir.clone(),
        }
    }
}

// === impl CliError ===

impl CliError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_)
            | Self::Settings(_)
            | Self::Given(_)
            | Self::Server(
                ServerError::Trust(_)
                | ServerError::UpstreamIsItself(_)
                | ServerError::NobodyMayCall,
            ) => EXIT_CONFIG,
            // A disk may be well again at the next start; what the files say stays.
            Self::Server(ServerError::Apps(AppsError::Ledger(_) | AppsError::Random(_))) => {
                EXIT_FAILED
            }
            Self::Server(ServerError::Apps(_)) => EXIT_CONFIG,
            Self::Usage(_) | Self::When(_) => EXIT_USAGE,
            Self::ReaderGone => 0,
            Self::Child(code) => *code,
            _ => EXIT_FAILED,
        }
    }

    pub fn usage(text: impl fmt::Display) -> Self {
        Self::Usage(text.to_string())
    }
}

#[cfg(test)]
mod tests;
