//! `bursar ledger`: `export`, `compact`; and here `verify`, which reads every line of the journal and reports
//! damage, and `rebuild`, which rebuilds the index from the journal.
//!
//! Promise: `verify` modifies nothing, needs no daemon and disturbs none; exit code 1 when something
//! is wrong, with the sequence numbers of what is lost. `rebuild` refuses while a daemon runs.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;

use super::arguments::{Form, FormArgs};
use super::cells::counted;
use super::csv;
use super::error::CliError;
use super::locate::LedgerArgs;
use super::output::say;
use super::runtime::block_on;
use super::{compact, export};
use crate::clock::SystemClock;
use crate::ledger::query::{Damage, DamageKind, IndexCheck, VerifyReport, verify};
use crate::ledger::{Ledger, LedgerOptions, OnProgress};

/// Records between two lines of progress.
const PROGRESS_RECORDS: u64 = 50_000;

/// How much damage is printed one by one; `--json` has all of it.
const PRINTED_MAX: usize = 100;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: LedgerCommand,
}

#[derive(Debug, Subcommand)]
enum LedgerCommand {
    /// Check every line, the chain of entries, and the index
    Verify(VerifyArgs),
    /// Rebuild the index from the journal; no daemon may be running
    Rebuild(ReadArgs),
    /// Write entries as JSON Lines, CSV or FOCUS
    Export(export::Args),
    /// Replace old entries by their sums
    Compact(compact::Args),
}

#[derive(Debug, clap::Args)]
struct VerifyArgs {
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    ledger: LedgerArgs,
}

#[derive(Debug, clap::Args)]
struct ReadArgs {
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    ledger: LedgerArgs,
}

pub fn ledger(args: &Args) -> Result<(), CliError> {
    match &args.command {
        LedgerCommand::Verify(args) => print_verified(args),
        LedgerCommand::Rebuild(args) => rebuild(args),
        LedgerCommand::Export(args) => export::export(args),
        LedgerCommand::Compact(args) => compact::compact(args),
    }
}

// === impl ReadArgs ===

impl ReadArgs {
    fn state_dir(&self) -> Result<PathBuf, CliError> {
        Ok(block_on(self.ledger.found())?.state_dir)
    }
}

fn rebuild(args: &ReadArgs) -> Result<(), CliError> {
    let clock = SystemClock::shared();
    let options = LedgerOptions::new(args.state_dir()?, Arc::clone(&clock));
    let is_seen = std::io::stderr().is_terminal();
    let on_progress: OnProgress = Arc::new(move |seq, last| {
        if is_seen && seq % PROGRESS_RECORDS == 0 {
            // A line of progress may be lost.
            let _ = write!(std::io::stderr(), "\r{seq} of {last} records ");
        }
    });
    let began = clock.monotonic();
    let entries = Ledger::rebuild(options, on_progress);
    if is_seen {
        let _ = write!(std::io::stderr(), "\r");
    }
    let (entries, took) = (entries?, clock.monotonic().saturating_sub(began));
    let seconds = format!("{:.1}", took.as_secs_f64());
    if args.json {
        return say(format_args!(
            r#"{{"entries":{entries},"seconds":{seconds}}}"#
        ));
    }
    say(format_args!(
        "the index and the lookup files were rebuilt: {} in {seconds} s",
        counted(entries, "entry", "entries")
    ))
}

fn print_verified(args: &VerifyArgs) -> Result<(), CliError> {
    let report = verify(&block_on(args.ledger.found_to_read())?)?;
    match args.form.form() {
        Form::Json => say(serde_json::to_string(&report)?)?,
        Form::Csv => csv::say_members(&report)?,
        Form::Text(_) => print(&report)?,
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
    if report.identity_damaged {
        say(
            "wrong    identity.json cannot be read; move it away, and the next start reads the \
             ledger's id from the journal",
        )?;
    }
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
        "journal  {} in {}, {}, {}, {} lost",
        counted(report.journal.records, "record", "records"),
        counted(report.journal.segments, "segment", "segments"),
        counted(report.journal.bad_count, "damaged range", "damaged ranges"),
        counted(report.journal.gap_count, "gap", "gaps"),
        counted(report.journal.missing_records, "record", "records")
    ))?;
    for damage in report.damage.iter().take(PRINTED_MAX) {
        say(format_args!("wrong    {}", sentence(damage)))?;
    }
    if report.damage.len() > PRINTED_MAX {
        let more = report.damage.len() - PRINTED_MAX;
        say(format_args!("wrong    {more} more, see --json"))?;
    }
    if report.may_have_lost_their_end > 0 {
        say(format_args!(
            "wrong    {} as in_doubt(damaged)",
            counted(
                report.may_have_lost_their_end,
                "entry may have lost its end: the next start files it",
                "entries may have lost their end: the next start files them"
            )
        ))?;
    }
    for note in &report.lost {
        say(format_args!(
            "wrong    quarantine/{note}: remove it to accept the loss"
        ))?;
    }
    match &report.index {
        IndexCheck::Agrees => say("index    agrees with the journal")?,
        IndexCheck::Differs(why) => say(format_args!(
            "index    differs: {why}; `bursar ledger rebuild` rebuilds it"
        ))?,
        IndexCheck::NotChecked(why) => say(format_args!("index    not checked: {why}"))?,
    }
    for unfit in &report.unfit_lookups {
        say(format_args!(
            "lookup   {unfit}; nothing is lost, a running daemon rebuilds it"
        ))?;
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

/// Which records are lost, where, and how it looks.
fn sentence(damage: &Damage) -> String {
    let place = match (damage.segment, damage.offset, damage.bytes) {
        (Some(segment), Some(offset), Some(bytes)) => {
            let bytes = counted(bytes, "byte", "bytes");
            format!("{bytes} damaged at {offset} in journal/{segment:08}.jsonl")
        }
        (Some(segment), Some(offset), None) => {
            format!("lines at {offset} in journal/{segment:08}.jsonl")
        }
        _ => String::new(),
    };
    let records = match (damage.first_seq, damage.last_seq) {
        (Some(first), Some(last)) if first == last => format!("record {first} is lost"),
        (Some(first), Some(last)) => format!("records {first} to {last} are lost"),
        (Some(first), None) => format!("records from {first} on may be lost"),
        (None, _) => "no record is lost".to_owned(),
    };
    match damage.kind {
        DamageKind::Damaged => format!("{records}: {place}"),
        DamageKind::Missing => format!("{records}: their lines are gone"),
        DamageKind::CutOff => format!("{records}: the journal's end was cut off"),
        DamageKind::Misplaced => format!("{place} are not where they belong; {records}"),
        DamageKind::UnknownEnd => format!("{records}: nothing records how far the journal reached"),
    }
}
