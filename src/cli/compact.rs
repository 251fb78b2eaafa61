//! `bursar ledger compact`: turns old entries into sums, where no daemon runs. A running daemon does
//! the same by itself, once a day, with `[ledger] retention_days`.
//!
//! Promise: sums stay as they are; `--dry-run` writes nothing.

use std::time::Duration;

use super::cells::counted;
use super::error::CliError;
use super::locate::LedgerArgs;
use super::output::{remark, say};
use super::runtime::block_on;
use crate::calendar;
use crate::clock::SystemClock;
use crate::ledger::query::compactable;
use crate::ledger::{self, CompactReport, LedgerError, LedgerOptions, RETENTION_MS_MIN};

const MIB: u64 = 1 << 20;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Replace entries older than this, at least 2d: 90d, 52w, or a date [default: retention_days of the
    /// configuration]
    #[arg(long, value_name = "TIME")]
    older_than: Option<String>,
    /// Print what would be replaced, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Time zone of dates [default: this machine's]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    ledger: LedgerArgs,
}

pub fn compact(args: &Args) -> Result<(), CliError> {
    let zone = super::arguments::zone(args.tz.as_deref())?;
    let clock = SystemClock::shared();
    let now_ms = clock.wall_ms();
    let whereabouts = block_on(args.ledger.found())?;
    let older_than = match (&args.older_than, whereabouts.retention) {
        (Some(text), _) => {
            let before_ms = calendar::instant(text, now_ms, &zone)?;
            Duration::from_millis(now_ms.saturating_sub(before_ms))
        }
        (None, Some(retention)) => retention,
        (None, None) => {
            return Err(CliError::usage(
                "say how old with --older-than 90d, or set [ledger] retention_days",
            ));
        }
    };
    if older_than < Duration::from_millis(RETENTION_MS_MIN) {
        return Err(CliError::usage(
            "--older-than: the entries of the last two days are needed one by one; write 2d or more",
        ));
    }
    let report = if args.dry_run {
        if whereabouts.fleet.url_file.is_some() {
            remark(
                "bursar: this ledger is in a fleet: the daemon compacts only what the fleet has acknowledged, and nothing \
                 younger than [fleet] resend_days",
            );
        }
        let age_ms = u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX);
        compactable(&whereabouts.state_dir, now_ms.saturating_sub(age_ms))?
    } else if whereabouts.fleet.url_file.is_some() {
        return Err(CliError::Failed(
            "this ledger is in a fleet ([fleet] url_file): only the daemon knows what the fleet has of it, and compacts \
             that by itself with [ledger] retention_days"
                .to_owned(),
        ));
    } else {
        let options = LedgerOptions::new(&whereabouts.state_dir, clock);
        ledger::compact(options, older_than).map_err(|error| match error {
            LedgerError::Locked { pid } => CliError::Failed(format!(
                "the daemon with process id {pid} has the ledger: it compacts by itself with [ledger] \
                 retention_days; or stop it first"
            )),
            error => error.into(),
        })?
    };
    if args.json {
        say(serde_json::to_string(&report)?)?;
    } else {
        print(&report, args.dry_run, &zone)?;
    }
    if report.stopped_by.is_some() {
        return Err(CliError::Said);
    }
    Ok(())
}

fn print(
    report: &CompactReport,
    is_dry_run: bool,
    zone: &jiff::tz::TimeZone,
) -> Result<(), CliError> {
    let until = report
        .until_ms
        .map(|until_ms| calendar::shown(until_ms, zone));
    let mib = report.bytes_before.div_ceil(MIB);
    let segments = counted(report.segments, "segment", "segments");
    match (&until, report.bytes_after) {
        (Some(until), None) if is_dry_run => say(format_args!(
            "would compact {segments} ({mib} MiB), up to {until}"
        ))?,
        (Some(until), Some(after)) => say(format_args!(
            "compacted {segments}, up to {until}: {} in sums now, {mib} MiB became {} MiB",
            counted(report.entries.unwrap_or(0), "entry is", "entries are"),
            after.div_ceil(MIB)
        ))?,
        _ => say("nothing to compact: no whole segment is that old")?,
    }
    match &report.stopped_by {
        Some(why) => say(format_args!("NOT ALL: {why}")),
        None => Ok(()),
    }
}
