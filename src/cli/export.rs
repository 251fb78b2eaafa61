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

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::error::CliError;
use super::locate::SourceArgs;
use super::output::remark;
use super::receipts::state_word;
use super::runtime::block_on;
use super::source::Source;
use super::whole_file::WholeFile;
use crate::calendar;
use crate::clock::SystemClock;
use crate::ledger::query::{Filter, StateWord, compacted_until_ms};
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

/// A column: its name, and where its cell comes from.
struct Column {
    name: &'static str,
    cell: Cell,
}

/// Where a cell comes from.
enum Cell {
    /// The value at this JSON pointer: a text, a number, or a truth value.
    At(&'static str),
    /// When the entry began, on the clocks of the zone asked for.
    LocalTime,
    /// The one word an object or a text at the pointer begins with.
    Word(&'static str),
    /// How many the list at the pointer has.
    Count(&'static str),
    /// From each element of the list the value at the second pointer, with spaces between.
    Each(&'static str, &'static str),
}

/// The header row. New columns go to the end.
const COLUMNS: &[Column] = &[
    at("id", "/id"),
    at("seq", "/seq"),
    at("at", "/at"),
    Column {
        name: "local_time",
        cell: Cell::LocalTime,
    },
    at("at_ms", "/at_ms"),
    at("ended_ms", "/ended_ms"),
    at("app", "/app"),
    at("lane", "/lane"),
    at("operation", "/operation"),
    at("model", "/model"),
    at("stream", "/stream"),
    at("state", "/state"),
    at("reason", "/reason"),
    at("billed_micro_usd", "/billed_micro_usd"),
    at("receipt", "/receipt"),
    at("would_have_cost_micro_usd", "/would_have_cost_micro_usd"),
    at("receipt_source", "/receipt_source"),
    at("served_by", "/served_by"),
    at("specialist", "/specialist"),
    at("escalated", "/escalated"),
    at("route_version", "/route_version"),
    at("input_required", "/input_required"),
    at("replayed", "/replayed"),
    at("key", "/key"),
    Column {
        name: "key_origin",
        cell: Cell::Word("/key_origin"),
    },
    at("adopted_from", "/key_origin/adopted/from"),
    at("request_id", "/request_id"),
    at("run_id", "/run_id"),
    at("prompt_tokens", "/usage/prompt_tokens"),
    at("completion_tokens", "/usage/completion_tokens"),
    at("total_tokens", "/usage/total_tokens"),
    at("audio_ms", "/audio_ms"),
    Column {
        name: "attempts",
        cell: Cell::Count("/attempts"),
    },
    each("attempt_ends", "/attempts", "/end"),
    each("attempt_statuses", "/attempts", "/status"),
    each("attempt_causes", "/attempts", "/cause"),
    each("attempt_waits_ms", "/attempts", "/wait_ms"),
    each("attempt_took_ms", "/attempts", "/took_ms"),
    each("anomalies", "/anomalies", ""),
    Column {
        name: "reconciled_by",
        cell: Cell::Word("/reconciled_by"),
    },
    at("reconciled_by_entry", "/reconciled_by/key/entry"),
    at("reconciled_by_run", "/reconciled_by/run/run_id"),
    at("request_bytes", "/request_bytes"),
    at("response_bytes", "/response_bytes"),
    at("queue_ms", "/timings/queue_ms"),
    at("first_byte_ms", "/timings/first_byte_ms"),
    at("total_ms", "/timings/total_ms"),
    at("own_us", "/timings/own_us"),
    at("broken_billed_micro_usd", "/broken_billed_micro_usd"),
    at("drained", "/drained"),
    each("closed_by", "/closed", "/by"),
    each("closed_stages", "/closed", "/stage"),
    at("reconciled_ms", "/reconciled_ms"),
    at("delivery", "/delivery"),
    Column {
        name: "reconciled_from",
        cell: Cell::Word("/was"),
    },
    at("key_hash", "/key_hash"),
];

/// What an element that lacks the value shows in a list. A `-` would look like a formula.
const NONE_IN_LIST: &str = "none";

const fn at(name: &'static str, pointer: &'static str) -> Column {
    Column {
        name,
        cell: Cell::At(pointer),
    }
}

const fn each(name: &'static str, list: &'static str, pointer: &'static str) -> Column {
    Column {
        name,
        cell: Cell::Each(list, pointer),
    }
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
            block_on(source.for_each_receipt(filter, &mut |receipt| {
                serde_json::to_writer(&mut out, &receipt).map_err(|error| {
                    let kind = error.io_error_kind();
                    kind.map_or(CliError::Json(error), |kind| gone_or_failed(kind.into()))
                })?;
                out.write_all(b"\n").map_err(gone_or_failed)
            }))?;
            Ok(out)
        }
        Format::Csv => {
            let mut rows = csv::Writer::from_writer(out);
            let names = COLUMNS.iter().map(|column| column.name);
            rows.write_record(names).map_err(csv_error)?;
            block_on(source.for_each_receipt(filter, &mut |receipt| {
                let cells = COLUMNS.iter().map(|column| column.cell.of(&receipt, zone));
                rows.write_record(cells).map_err(csv_error)
            }))?;
            rows.into_inner()
                .map_err(|error| gone_or_failed(error.into_error()))
        }
    }
}

fn csv_error(error: csv::Error) -> CliError {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => gone_or_failed(error),
        kind => CliError::Failed(format!("the CSV cannot be written: {kind:?}")),
    }
}

fn gone_or_failed(error: io::Error) -> CliError {
    match error.kind() {
        io::ErrorKind::BrokenPipe => CliError::ReaderGone,
        _ => CliError::Failed(format!("the export cannot be written: {error}")),
    }
}

// === impl Cell ===

impl Cell {
    fn of(&self, receipt: &Value, zone: &TimeZone) -> String {
        match self {
            Self::At(pointer) => receipt.pointer(pointer).map(plain).unwrap_or_default(),
            Self::LocalTime => {
                let at_ms = receipt.get("at_ms").and_then(Value::as_u64);
                at_ms.map_or_else(String::new, |at_ms| calendar::shown(at_ms, zone))
            }
            Self::Word(pointer) => match receipt.pointer(pointer) {
                Some(Value::Object(one)) => one.keys().next().cloned().unwrap_or_default(),
                Some(word) => plain(word),
                None => String::new(),
            },
            Self::Count(pointer) => {
                let list = receipt.pointer(pointer).and_then(Value::as_array);
                list.map_or_else(String::new, |list| list.len().to_string())
            }
            Self::Each(pointer, within) => {
                let list = receipt.pointer(pointer).and_then(Value::as_array);
                let cells = list.into_iter().flatten().map(|element| {
                    let cell = element.pointer(within).map(plain).unwrap_or_default();
                    if cell.is_empty() {
                        NONE_IN_LIST.to_owned()
                    } else {
                        cell
                    }
                });
                let cells: Vec<String> = cells.collect();
                harmless(&cells.join(" "))
            }
        }
    }
}

/// A value as a cell. `null` is empty.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => harmless(text),
        other => other.to_string(),
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
