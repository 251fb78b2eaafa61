//! `bursar ledger export`: the ledger's entries for other programs, as JSON Lines or CSV.
//!
//! The CSV has one header row and one column for each field the ledger keeps ([`COLUMNS`]); columns
//! are only ever added at the end. Amounts are integers of micro-USD, and an empty cell is "not
//! known" or "not reported", never 0. What a spreadsheet would take for a formula gets an apostrophe before
//! it, also behind a semicolon, where many spreadsheets split; control characters and unseen ones stand
//! there by their number ([`crate::screen`]). JSON Lines have every text as it came.
//!
//! Promise: memory does not grow with the ledger; a file is there whole or not at all, and only its
//! owner may read it.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use jiff::tz::TimeZone;

use super::arguments::state_word;
use super::error::CliError;
use super::locate::SourceArgs;
use super::output::remark;
use super::runtime::block_on;
use super::source::Source;
use super::whole_file::WholeFile;
use crate::admin::documents::EntryDocument;
use crate::calendar;
use crate::clock::SystemClock;
use crate::ledger::entry::{Closed, KeyOrigin, State};
use crate::ledger::query::{EntryView, Filter, How, StateWord, compacted_until_ms};
use crate::money::MicroUsd;
use crate::screen::shown;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// One JSON object a line, or comma-separated values with a header row
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Only entries from this time on: today, 2026-01-31, 2026-01-31T08:00:00Z, or an age: 24h, 7d
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
    /// Time zone of dates and of the column `local_time` [default: this machine's]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
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
}

/// A column: its name in the header row, and its cell of an entry. An empty cell: not known, or not reported.
struct Column {
    name: &'static str,
    cell: fn(&EntryView, &TimeZone) -> String,
}

/// The header row. New columns go to the end.
const COLUMNS: &[Column] = &[
    column("id", |entry, _| entry.id.to_string()),
    column("seq", |entry, _| entry.seq.to_string()),
    column("at", |entry, _| text(calendar::rfc3339(entry.at_ms))),
    column("local_time", |entry, zone| {
        calendar::shown(entry.at_ms, zone)
    }),
    column("at_ms", |entry, _| entry.at_ms.to_string()),
    column("ended_ms", |entry, _| text(entry.ended_ms)),
    column("app", |entry, _| entry.app.to_string()),
    column("lane", |entry, _| entry.lane.to_string()),
    column("operation", |entry, _| entry.operation.to_string()),
    column("model", |entry, _| text(entry.model.as_ref())),
    column("stream", |entry, _| text(entry.stream)),
    column("state", |entry, _| entry.state.word().to_string()),
    column("reason", |entry, _| text(entry.state.reason())),
    column("billed_micro_usd", |entry, _| {
        micro_usd(entry.billed_micro_usd)
    }),
    column("receipt", |entry, _| entry.receipt.to_string()),
    column("would_have_cost_micro_usd", |entry, _| {
        micro_usd(entry.would_have_cost_micro_usd)
    }),
    column("receipt_source", |entry, _| text(entry.receipt_source)),
    column("served_by", |entry, _| text(entry.served_by)),
    column("specialist", |entry, _| text(entry.specialist.as_ref())),
    column("escalated", |entry, _| entry.escalated.to_string()),
    column("route_version", |entry, _| {
        text(entry.route_version.as_ref())
    }),
    column("input_required", |entry, _| {
        text(entry.input_required.as_ref())
    }),
    column("replayed", |entry, _| entry.replayed.to_string()),
    column("key", |entry, _| text(entry.key.as_ref())),
    column("key_origin", |entry, _| {
        text(entry.key_origin.map(|origin| match origin {
            KeyOrigin::Minted => "minted",
            KeyOrigin::App => "app",
            KeyOrigin::Adopted { .. } => "adopted",
        }))
    }),
    column("adopted_from", |entry, _| match entry.key_origin {
        Some(KeyOrigin::Adopted { from }) => from.to_string(),
        _ => String::new(),
    }),
    column("request_id", |entry, _| text(entry.request_id.as_ref())),
    column("run_id", |entry, _| text(entry.run_id.as_ref())),
    column("prompt_tokens", |entry, _| text(entry.usage.prompt_tokens)),
    column("completion_tokens", |entry, _| {
        text(entry.usage.completion_tokens)
    }),
    column("total_tokens", |entry, _| text(entry.usage.total_tokens)),
    column("audio_ms", |entry, _| text(entry.audio_ms)),
    column("attempts", |entry, _| entry.attempts.len().to_string()),
    column("attempt_ends", |entry, _| {
        each(&entry.attempts, |attempt| Some(attempt.end))
    }),
    column("attempt_statuses", |entry, _| {
        each(&entry.attempts, |attempt| attempt.status)
    }),
    column("attempt_causes", |entry, _| {
        each(&entry.attempts, |attempt| attempt.cause.clone())
    }),
    column("attempt_waits_ms", |entry, _| {
        each(&entry.attempts, |attempt| Some(attempt.wait_ms))
    }),
    column("attempt_took_ms", |entry, _| {
        each(&entry.attempts, |attempt| Some(attempt.took_ms))
    }),
    column("anomalies", |entry, _| {
        each(&entry.anomalies, |kind| Some(*kind))
    }),
    column("reconciled_by", |entry, _| {
        text(entry.reconciled_by.as_ref().map(|how| match how {
            How::Key { .. } => "key",
            How::Run { .. } => "run",
        }))
    }),
    column("reconciled_by_entry", |entry, _| {
        match &entry.reconciled_by {
            Some(How::Key { entry }) => entry.to_string(),
            _ => String::new(),
        }
    }),
    column("reconciled_by_run", |entry, _| match &entry.reconciled_by {
        Some(How::Run { run_id }) => run_id.clone(),
        _ => String::new(),
    }),
    column("request_bytes", |entry, _| text(entry.request_bytes)),
    column("response_bytes", |entry, _| text(entry.response_bytes)),
    column("queue_ms", |entry, _| {
        text(entry.timings.map(|times| times.queue_ms))
    }),
    column("first_byte_ms", |entry, _| {
        text(entry.timings.and_then(|times| times.first_byte_ms))
    }),
    column("total_ms", |entry, _| {
        text(entry.timings.map(|times| times.total_ms))
    }),
    column("own_us", |entry, _| {
        text(entry.timings.map(|times| times.own_us))
    }),
    column("broken_billed_micro_usd", |entry, _| {
        micro_usd(entry.broken_billed_micro_usd)
    }),
    column("drained", |entry, _| entry.drained.to_string()),
    column("closed_by", |entry, _| {
        closings(entry, |closed| closed.by.as_str())
    }),
    column("closed_stages", |entry, _| {
        closings(entry, |closed| closed.stage.as_str())
    }),
    column("reconciled_ms", |entry, _| text(entry.reconciled_ms)),
    column("delivery", |entry, _| text(entry.delivery)),
    column("reconciled_from", |entry, _| {
        text(entry.was.map(State::word))
    }),
    column("key_hash", |entry, _| text(entry.key_hash)),
    column("run", |entry, _| text(entry.run.as_ref())),
    column("trace_id", |entry, _| text(entry.trace_id)),
    column("service_detail", |entry, _| {
        text(entry.service_detail.as_ref())
    }),
];

/// What an element that lacks the value shows in a list. A `-` would look like a formula.
const NONE_IN_LIST: &str = "none";

const fn column(name: &'static str, cell: fn(&EntryView, &TimeZone) -> String) -> Column {
    Column { name, cell }
}

fn text(value: Option<impl Display>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn micro_usd(amount: Option<MicroUsd>) -> String {
    text(amount.map(MicroUsd::get))
}

/// From each element one value, with spaces between.
fn each<T, V: Display>(list: &[T], value: impl Fn(&T) -> Option<V>) -> String {
    let words = list.iter().map(|element| match value(element) {
        Some(value) => value.to_string(),
        None => NONE_IN_LIST.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Empty where no side left early.
fn closings(entry: &EntryView, word: fn(&Closed) -> &'static str) -> String {
    each(&entry.closed, |closed| Some(word(closed)))
}

pub fn export(args: &Args) -> Result<(), CliError> {
    let zone = super::arguments::zone(args.tz.as_deref())?;
    let now_ms = SystemClock::shared().wall_ms();
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
    let source = block_on(args.source.find_files())?;
    if let Source::Journal(state_dir) = &source
        && let Some(until_ms) = compacted_until_ms(state_dir)?
        && filter.since_ms.is_none_or(|since| since < until_ms)
    {
        remark(format_args!(
            "bursar: entries from before {} were compacted and are only in the sums of `bursar spend`",
            calendar::shown(until_ms, &zone)
        ));
    }
    match &args.output {
        None => {
            let out = BufWriter::new(io::stdout().lock());
            write_to(out, args.format, &source, &filter, &zone)?
                .flush()
                .map_err(gone_or_failed)
        }
        Some(path) => {
            let target = WholeFile::create(path)?;
            let out = BufWriter::new(target.file());
            write_to(out, args.format, &source, &filter, &zone)?
                .flush()
                .map_err(gone_or_failed)?;
            target.keep()
        }
    }
}

/// Writes every entry that matches, oldest change first, and gives the writer back.
fn write_to<W: Write>(
    out: W,
    format: Format,
    source: &Source,
    filter: &Filter,
    zone: &TimeZone,
) -> Result<W, CliError> {
    match format {
        Format::Jsonl => {
            let mut out = out;
            block_on(source.for_each_receipt(filter, &mut |entry| {
                serde_json::to_writer(&mut out, &EntryDocument(entry)).map_err(|error| {
                    let kind = error.io_error_kind();
                    kind.map_or(CliError::Json(error), |kind| gone_or_failed(kind.into()))
                })?;
                out.write_all(b"\n").map_err(gone_or_failed)
            }))?;
            Ok(out)
        }
        Format::Csv => {
            let mut out = out;
            let names = COLUMNS.iter().map(|column| column.name.to_owned());
            write_row(&mut out, names).map_err(gone_or_failed)?;
            block_on(source.for_each_receipt(filter, &mut |entry| {
                let cells = COLUMNS.iter().map(|column| column.of(&entry, zone));
                write_row(&mut out, cells).map_err(gone_or_failed)
            }))?;
            Ok(out)
        }
    }
}

/// One row as RFC 4180 has it: a cell with a comma, a quote or a line end stands in quotes.
fn write_row(out: &mut impl Write, cells: impl Iterator<Item = String>) -> io::Result<()> {
    let mut before = "";
    for cell in cells {
        out.write_all(before.as_bytes())?;
        before = ",";
        if cell.contains([',', '"', '\n', '\r']) {
            write!(out, "\"{}\"", cell.replace('"', "\"\""))?;
        } else {
            out.write_all(cell.as_bytes())?;
        }
    }
    out.write_all(b"\n")
}

fn gone_or_failed(error: io::Error) -> CliError {
    match error.kind() {
        io::ErrorKind::BrokenPipe => CliError::ReaderGone,
        _ => CliError::Failed(format!("the export cannot be written: {error}")),
    }
}

// === impl Column ===

impl Column {
    fn of(&self, entry: &EntryView, zone: &TimeZone) -> String {
        harmless(&(self.cell)(entry, zone))
    }
}

/// A spreadsheet takes what begins so for a formula, and runs it; some read the wide forms as the others.
const FORMULAS: [char; 8] = [
    '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// Text that no reader takes for a formula: an apostrophe makes it text. A cell may begin at the start
/// and, for a reader of another kind, behind a semicolon, a comma, a tab or a bar; readers drop blanks
/// and quotes before it.
fn harmless(text: &str) -> String {
    let mut begins = true;
    let mut cell = String::with_capacity(text.len());
    for character in shown(text).chars() {
        if begins && FORMULAS.contains(&character) {
            cell.push('\'');
        }
        cell.push(character);
        begins = match character {
            ';' | ',' | '|' => true,
            '"' => begins,
            blank if blank.is_whitespace() => begins,
            _ => false,
        };
    }
    cell
}

#[cfg(test)]
mod tests;
