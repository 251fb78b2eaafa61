//! `bursar ledger export`: the ledger's entries for other programs, as JSON Lines, CSV or FOCUS.
//!
//! The CSV is that of [`super::entry_csv`], FOCUS that of [`super::focus`]; JSON Lines have every text as it came.
//!
//! Promise: memory does not grow with the ledger, but by an id for each entry where a daemon is asked for FOCUS; a file
//! is there whole or not at all, and only its owner may read it.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use jiff::tz::TimeZone;

use super::arguments::state_word;
use super::csv;
use super::entry_csv;
use super::error::CliError;
use super::focus::{self, FocusCounts, Parties};
use super::locate::SourceArgs;
use super::output::remark;
use super::runtime::block_on;
use super::source::Source;
use super::whole_file::WholeFile;
use crate::admin::documents::EntryDocument;
use crate::calendar;
use crate::clock::SystemClock;
use crate::ledger::query::{EntryView, Filter, StateWord};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// One JSON object a line, comma-separated values with a header row, or those of FOCUS 1.0, with a row for each
    /// entry that has a price; with --output the others are counted in FILE.counts.json
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Only entries from this time on: "this month", 2026-01-31, 2026-01, 2026-01-31T08:00:00Z, or an age: 24h, 7d
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only entries before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only this app
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// Only this state: open, settled, failed, replayed, unreported (malformed ones
    /// among them), malformed, in-doubt, reconciled
    #[arg(long, value_name = "STATE", value_parser = state_word)]
    state: Option<StateWord>,
    /// Time zone of dates, of the column `local_time` and of billing periods [default: that of the caps]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// Of FOCUS: the company that sends the invoice
    #[arg(long, value_name = "NAME", default_value = "inference service")]
    provider: String,
    /// Of FOCUS: the organization's account there
    #[arg(long, value_name = "ID", default_value = "organization")]
    billing_account: String,
    /// Write to this file, mode 0600, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    source: SourceArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Jsonl,
    Csv,
    Focus,
}

/// What is exported, and how.
struct Export<'a> {
    args: &'a Args,
    source: Source,
    filter: Filter,
    zone: TimeZone,
    counts: FocusCounts,
}

pub fn export(args: &Args) -> Result<(), CliError> {
    let now_ms = SystemClock::shared().wall_ms();
    let (source, zone, compacted_ms) = block_on(async {
        let source = args.source.find_files().await?;
        let zone = args.source.zone(&source, args.tz.as_deref()).await?;
        let compacted_ms = source.compacted_until_ms().await?;
        Ok::<_, CliError>((source, zone, compacted_ms))
    })?;
    let instant = |text: &Option<String>| {
        text.as_ref()
            .map(|text| calendar::instant(text, now_ms, &zone))
            .transpose()
    };
    let filter = Filter {
        since_ms: instant(&args.since)?,
        until_ms: instant(&args.until)?,
        app: args.app.clone(),
        state: args.state,
        ..Filter::default()
    };
    let compacted_ms = compacted_ms.filter(|until| filter.since_ms.is_none_or(|at| at < *until));
    if let Some(until_ms) = compacted_ms {
        remark(format_args!(
            "bursar: entries from before {} were compacted and are only in the sums of `bursar spend`",
            calendar::shown(until_ms, &zone)
        ));
    }
    let counts = FocusCounts::new(compacted_ms);
    let mut export = Export {
        args,
        counts: match &source {
            Source::Journal(_) => counts,
            // Page by page: an entry that changes meanwhile is given again.
            Source::Daemon(_) => counts.each_once(),
        },
        source,
        filter,
        zone,
    };
    match &args.output {
        None => export.write_whole(io::stdout().lock())?,
        Some(path) => {
            let target = WholeFile::create(path)?;
            export.write_whole(target.file())?;
            target.keep()?;
            if args.format == Format::Focus {
                export.write_counts(path)?;
            }
        }
    }
    if let Some(missing) = export.counts.remark() {
        remark(format_args!("bursar: {missing}"));
    }
    Ok(())
}

// === impl Export ===

impl Export<'_> {
    /// Writes every entry that matches, oldest change first.
    fn write_whole(&mut self, to: impl Write) -> Result<(), CliError> {
        let mut out = BufWriter::new(to);
        let parties = Parties {
            provider: self.args.provider.clone(),
            billing_account: self.args.billing_account.clone(),
        };
        let format = self.args.format;
        let begun = match format {
            Format::Jsonl => Ok(()),
            Format::Csv => csv::write_row(&mut out, entry_csv::names()),
            Format::Focus => csv::write_row(&mut out, focus::names()),
        };
        begun.map_err(gone_or_failed)?;
        let (counts, zone) = (&mut self.counts, &self.zone);
        let write = &mut |entry: EntryView| match format {
            Format::Jsonl => {
                serde_json::to_writer(&mut out, &EntryDocument(entry)).map_err(|error| {
                    let kind = error.io_error_kind();
                    kind.map_or(CliError::Json(error), |kind| gone_or_failed(kind.into()))
                })?;
                out.write_all(b"\n").map_err(gone_or_failed)
            }
            Format::Csv => {
                csv::write_row(&mut out, entry_csv::cells(&entry, zone)).map_err(gone_or_failed)
            }
            Format::Focus => {
                let is_new = counts.count(&entry);
                let cells = focus::cells(&entry, &parties, zone);
                match cells.filter(|_| is_new) {
                    Some(cells) => {
                        csv::write_row(&mut out, cells.into_iter()).map_err(gone_or_failed)
                    }
                    None => Ok(()),
                }
            }
        };
        block_on(self.source.for_each_receipt(&self.filter, write))?;
        out.flush().map_err(gone_or_failed)
    }

    /// Beside the rows, what is not in them.
    fn write_counts(&self, path: &Path) -> Result<(), CliError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".counts.json");
        let target = WholeFile::create(Path::new(&name))?;
        let mut text = serde_json::to_string_pretty(&self.counts)?;
        text.push('\n');
        let mut file = target.file();
        file.write_all(text.as_bytes()).map_err(gone_or_failed)?;
        target.keep()
    }
}

fn gone_or_failed(error: io::Error) -> CliError {
    match error.kind() {
        io::ErrorKind::BrokenPipe => CliError::ReaderGone,
        _ => CliError::Failed(format!("the export cannot be written: {error}")),
    }
}
