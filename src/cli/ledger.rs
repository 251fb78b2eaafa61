//! `bursar ledger`: export, compact and verify. Here `verify`, which reads every line of the journal
//! and says what is not as it should be.
//!
//! Promise: modifies nothing, needs no daemon and disturbs none; exit code 1 when something is wrong.

use std::path::PathBuf;

use clap::Subcommand;

use super::source::SourceArgs;
use super::{CliError, compact, export, say};
use crate::ledger::query::{IndexCheck, VerifyReport, verify};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check every line, the chain of entries, and the index
    Verify(VerifyArgs),
    /// Write entries as JSON Lines or CSV
    Export(export::Args),
    /// Turn old entries into sums
    Compact(compact::Args),
}

#[derive(Debug, clap::Args)]
struct VerifyArgs {
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
    /// Configuration file [env: BURSAR_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the ledger is [env: BURSAR_STATE_DIR]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

pub fn ledger(args: &Args) -> Result<(), CliError> {
    let args = match &args.command {
        Command::Verify(args) => args,
        Command::Export(args) => return export::export(args),
        Command::Compact(args) => return compact::compact(args),
    };
    let source = SourceArgs {
        config: args.config.clone(),
        state_dir: args.state_dir.clone(),
        admin: None,
    };
    let state_dir = source.whereabouts()?.state_dir;
    source.must_have_ledger(&state_dir)?;
    let report = verify(&state_dir)?;
    if args.json {
        say(serde_json::to_string(&report)?)?;
    } else {
        print(&report)?;
    }
    if report.ok {
        Ok(())
    } else {
        Err(CliError::Said)
    }
}

fn print(report: &VerifyReport) -> Result<(), CliError> {
    say(format_args!(
        "ledger   {}",
        report
            .ledger
            .as_deref()
            .unwrap_or("unknown: its identity file is lost")
    ))?;
    say(format_args!(
        "entries  {}, {} of them open",
        report.entries.saturating_add(report.open),
        report.open
    ))?;
    say(format_args!(
        "billed   {}, {} in doubt, {} unreported",
        report.billed_micro_usd, report.in_doubt, report.unreported
    ))?;
    say(format_args!(
        "journal  {} records in {} segments, {} damaged ranges, {} gaps",
        report.journal.records,
        report.journal.segments,
        report.journal.bad_count,
        report.journal.gap_count
    ))?;
    match &report.index {
        IndexCheck::Agrees => say("index    agrees with the journal")?,
        IndexCheck::Differs(why) => say(format_args!(
            "index    differs: {why}; the next start rebuilds it"
        ))?,
        IndexCheck::NotChecked(why) => say(format_args!("index    not checked: {why}"))?,
    }
    for contradiction in &report.contradictions {
        say(format_args!("wrong    {contradiction}"))?;
    }
    let listed = u64::try_from(report.contradictions.len()).unwrap_or(u64::MAX);
    if report.contradictions_count > listed {
        say(format_args!(
            "wrong    {} more",
            report.contradictions_count - listed
        ))?;
    }
    say(if report.ok { "ok" } else { "NOT OK" })
}
