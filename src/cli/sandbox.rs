//! `bursar sandbox`: the whole inference service on this machine, with no account and no network.
//!
//! Promise: prints `sandbox listening on http://…` once it answers; Ctrl-C or SIGTERM ends it with
//! exit code 0 (1 when `--verdict` has something to say). With the same seed and the same requests it gives the same answers.

use std::net::SocketAddr;
use std::path::PathBuf;

use bursar_sandbox::{Options, Scenario, Verdict, assumptions, serve_and_judge};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::error::CliError;
use super::output::say;
use crate::config::{Log, LogFormat, LogLevel};
use crate::telemetry::Logging;
use crate::telemetry::journal::LogPlace;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address to listen on; a loopback address
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8329")]
    listen: SocketAddr,
    /// Seed of the built-in models [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The organization's key [default: sandbox-key]
    #[arg(long, value_name = "K")]
    api_key: Option<String>,
    /// TOML file with its initial state: seed, api_key, forbidden_keys, balance_micro_usd, state_dir, [limits],
    /// [settings], [[organization]], [[model]], [[fault]] and [[step]]; docs/sandbox.md has an example
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Directory for the state that survives a restart: balances, keys with their answers, the clock
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Print at the end what the client did wrong; the exit code is 1 if there is something
    #[arg(long)]
    verdict: bool,
    /// Print what the sandbox assumes where the interface is silent, then exit
    #[arg(long)]
    assumptions: bool,
}

pub fn sandbox(args: Args) -> Result<(), CliError> {
    if args.assumptions {
        return print_assumptions();
    }
    let listen = args.listen;
    if !listen.ip().to_canonical().is_loopback() {
        return Err(CliError::usage(format_args!(
            "{listen} is not a loopback address; the sandbox has a control route and no secrets"
        )));
    }
    let verdict = args.verdict;
    let options = options(args)?;
    let log = Log {
        format: LogFormat::Text,
        level: LogLevel::Warn,
        service_detail: false,
    };
    // Without logging it serves all the same.
    let _ = Logging::start(log, LogPlace::Plain);
    super::runtime::block_on_all_cores(async move {
        let listener = TcpListener::bind(listen)
            .await
            .map_err(|error| CliError::Failed(format!("cannot listen on {listen}: {error}")))?;
        let address = listener
            .local_addr()
            .map_err(|error| CliError::Failed(format!("cannot listen on {listen}: {error}")))?;
        let failed = |error| CliError::Failed(format!("the sandbox failed: {error}"));
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let stop = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        let ready = move || {
            // Standard output may be closed; the sandbox serves all the same.
            say(format_args!("sandbox listening on http://{address}")).ok();
        };
        let seen = serve_and_judge(listener, options, stop, ready)
            .await
            .map_err(failed)?;
        if verdict {
            print_verdict(&seen)
        } else {
            Ok(())
        }
    })
}

/// Says what the client did wrong; something to say is a failure.
fn print_verdict(verdict: &Verdict) -> Result<(), CliError> {
    say(format_args!("{verdict}"))?;
    if verdict.ok {
        return Ok(());
    }
    Err(CliError::Failed(format!(
        "the client broke {} of the interface's rules",
        verdict.findings.len()
    )))
}

/// Flags over the scenario over the defaults.
fn options(args: Args) -> Result<Options, CliError> {
    let mut options = Options::default();
    if let Some(path) = args.scenario {
        let wrong = |why: String| CliError::Settings(format!("{}: {why}", path.display()));
        let text = std::fs::read_to_string(&path)
            .map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let scenario = Scenario::from_toml_str(&text)
            .map_err(|error| wrong(on_one_line(&error.to_string())))?;
        options = scenario.apply(options);
    }
    options.seed = args.seed.unwrap_or(options.seed);
    options.api_key = args.api_key.unwrap_or(options.api_key);
    options.state_dir = args.state_dir.or(options.state_dir);
    Ok(options)
}

/// A mistake in TOML is reported over several lines, with the line of the file drawn in between.
fn on_one_line(error: &str) -> String {
    let is_drawing = |line: &&str| {
        let rest = line.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ' ');
        !rest.starts_with('|')
    };
    let lines: Vec<&str> = error.lines().filter(is_drawing).collect();
    lines.join(": ")
}

fn print_assumptions() -> Result<(), CliError> {
    for assumption in assumptions() {
        say(format_args!(
            "{}\n  clause: {}\n  {}",
            assumption.id, assumption.clause, assumption.text
        ))?;
    }
    Ok(())
}
