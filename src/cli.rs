//! The command line: what can be typed, and what each exit code means.
//!
//! Promise: results on standard output, mistakes on standard error, one clear line each; exit code
//! 0 done, 1 failed, 2 usage, 78 configuration. `--json` output only ever gains fields. A reader
//! that closes the pipe is no mistake.
//!
//! This file reads the line and hands it to its command. Below it, lowest first: `client` `look` `systemd` < `table` <
//! `error` < `output` `daemon` `runtime` < `csv` < `clients` `entry_csv` `focus` `arguments` `source` (what a command reads) < `locate` (which daemon or
//! directory) < the commands.

pub mod app;
pub mod arguments;
pub mod caps;
pub mod check;
pub mod client;
pub mod clients;
pub mod compact;
pub mod csv;
pub mod daemon;
#[cfg(feature = "sandbox")]
pub mod demo;
pub mod doctor;
#[cfg(not(feature = "sandbox"))]
mod elsewhere;
pub mod entry_csv;
pub mod error;
pub mod exec;
pub mod explain;
pub mod export;
#[cfg(feature = "fleet")]
pub mod fleet;
pub mod focus;
pub mod freeze;
pub mod key;
pub mod ledger;
pub mod line;
pub mod locate;
pub mod look;
pub mod output;
pub mod receipts;
pub mod reconcile;
pub mod run;
pub mod runtime;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod shell_files;
pub mod source;
pub mod spend;
pub mod status;
pub mod systemd;
pub mod table;
pub mod top;
pub mod version;
pub mod whole_file;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use self::error::{CliError, EXIT_USAGE};
use self::output::{remark, say};
use crate::admin::cells;
use crate::config::Env;
use crate::server;
use crate::telemetry::journal::{self, LogPlace};

#[derive(Debug, Parser)]
#[command(name = "bursar", version, about = ABOUT, after_help = FIRST_STEPS)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
}

const ABOUT: &str =
    "A local proxy that holds the key, bills each call once, and keeps exact receipts";

const FIRST_STEPS: &str = "\
To start:
  bursar demo                       see it work, with no account and no network
  bursar sandbox                    the inference service on this machine
  bursar run --upstream URL --api-key-file FILE
                                    spend through http://127.0.0.1:8327/v1";

const NEXT_STEPS: &str = "\
Where it runs, `bursar status` shows it on one screen; where it does not, `bursar doctor` says why.
All commands: bursar help";

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
    /// Show bursar at work on its sandbox (package bursar-sandbox)
    #[cfg(not(feature = "sandbox"))]
    #[command(disable_help_flag = true)]
    Demo(elsewhere::Args),
    /// Run the inference service on this machine (package bursar-sandbox)
    #[cfg(not(feature = "sandbox"))]
    #[command(disable_help_flag = true)]
    Sandbox(elsewhere::Args),
    /// Check the configuration and print the settings that result
    Check(check::Args),
    /// Find what keeps bursar from working, and say what helps
    Doctor(doctor::Args),
    /// Add, change, list and remove apps, and renew their tokens
    App(app::Args),
    /// Replace the organization's key
    Key(key::Args),
    /// Run a command that spends as an app, up to a limit, and print what it cost
    Exec(exec::Args),
    /// Run a known program, such as codex or claude, that spends through bursar, and print what it cost
    Launch(exec::LaunchArgs),
    /// Show the running daemon on one screen
    Status(status::StatusArgs),
    /// Show live what each app spends, the queue, and the last receipts
    Top(top::Args),
    /// Print spend and trouble in one line, for a prompt or a status bar
    Line(line::Args),
    /// Print what a shell sets so that its programs, or one known CLIENT, spend through bursar: eval "$(bursar env)"
    Env(status::EnvArgs),
    /// Show what was spent, by app, day and more
    Spend(spend::Args),
    /// List receipts, newest last
    Receipts(receipts::Args),
    /// Show what each cap has left and how far it can be exceeded, or raise a cap for a while
    Caps(caps::Args),
    /// Stop an app, or all apps, from spending, at once
    Freeze(freeze::Args),
    /// Let an app, or all apps, spend again
    Thaw(freeze::Args),
    /// Show one request's timeline, and why it cost what it cost
    Explain(explain::Args),
    /// Compare the ledger with the service's own figure, or with an invoice
    Reconcile(reconcile::Args),
    /// Set up the books of several machines
    #[cfg(feature = "fleet")]
    Fleet(fleet::Args),
    /// Check, rebuild, export or compact the ledger
    Ledger(ledger::Args),
    /// Print which build this is
    Version(version::Args),
    /// Print the completion script for a shell
    Completions(shell_files::CompletionsArgs),
    /// Print the manual page, or write one for each command
    Man(shell_files::ManArgs),
}

/// The whole program.
pub fn main() -> ExitCode {
    server::keep_memory_private();
    let line = match CommandLine::try_parse() {
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
        None => say(format_args!("{ABOUT}\n\n{FIRST_STEPS}\n\n{NEXT_STEPS}")),
        Some(Command::Run(args)) => run::run(&args),
        #[cfg(feature = "sandbox")]
        Some(Command::Demo(args)) => demo::demo(args),
        #[cfg(feature = "sandbox")]
        Some(Command::Sandbox(args)) => sandbox::sandbox(args),
        #[cfg(not(feature = "sandbox"))]
        Some(Command::Demo(args)) => Err(elsewhere::become_it("demo", args)),
        #[cfg(not(feature = "sandbox"))]
        Some(Command::Sandbox(args)) => Err(elsewhere::become_it("sandbox", args)),
        Some(Command::Check(args)) => check::check(&args),
        Some(Command::Doctor(args)) => doctor::doctor(&args),
        Some(Command::App(args)) => app::app(&args),
        Some(Command::Key(args)) => key::key(&args),
        Some(Command::Exec(args)) => exec::exec(&args),
        Some(Command::Launch(args)) => exec::launch(&args),
        Some(Command::Status(args)) => status::status(&args),
        Some(Command::Top(args)) => top::top(&args),
        Some(Command::Line(args)) => line::line(&args),
        Some(Command::Env(args)) => status::env(&args),
        Some(Command::Spend(args)) => spend::spend(&args),
        Some(Command::Receipts(args)) => receipts::receipts(&args),
        Some(Command::Caps(args)) => caps::caps(&args),
        Some(Command::Freeze(args)) => freeze::freeze(&args),
        Some(Command::Thaw(args)) => freeze::thaw(&args),
        Some(Command::Explain(args)) => explain::explain(&args),
        Some(Command::Reconcile(args)) => reconcile::reconcile(&args),
        #[cfg(feature = "fleet")]
        Some(Command::Fleet(args)) => fleet::fleet(&args),
        Some(Command::Ledger(args)) => ledger::ledger(&args),
        Some(Command::Version(args)) => version::version(&args),
        Some(Command::Completions(args)) => shell_files::completions(&args, CommandLine::command()),
        Some(Command::Man(args)) => shell_files::man(&args, CommandLine::command()),
    }
}

fn complain(error: &CliError) {
    // What ends the service has its priority in the journal, too.
    let place = LogPlace::of_standard_error(&Env::from_process());
    let prefix = place.prefix(journal::ERROR);
    match error {
        CliError::Said | CliError::Child(_) => {}
        CliError::Config(errors) => {
            for line in errors.lines() {
                remark(format_args!("{prefix}bursar: {line}"));
            }
        }
        error => remark(format_args!("{prefix}bursar: {error}")),
    }
}

#[cfg(test)]
mod tests;
