//! `bursar explain ID`: one request from its intent to its last evidence, and why it cost what it
//! cost.
//!
//! Promise: what is not known is said to be not known; text of others (models, receipt lines) is
//! printed as [`crate::screen`] shows it; `--json` prints the document of `/api/explain`.

mod fields;
mod timeline;

use jiff::tz::TimeZone;
use serde_json::Value;

use self::fields::{amount, list, text, time};
use super::error::CliError;
use super::locate::SourceArgs;
use super::output::{say, say_json};
use super::runtime::block_on;
use super::table::{Align, Table};
use crate::ledger::query::{PART_CHARS_MIN, TAIL_CHARS};
use crate::money::MicroUsd;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// An entry's id or its last 8 or more characters (X-Bursar-Entry, `bursar receipts`), an
    /// Idempotency-Key, or the service's x-request-id
    #[arg(value_name = "ID")]
    id: String,
    /// Time zone of the times printed [default: this machine's]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
}

pub fn explain(args: &Args) -> Result<(), CliError> {
    let zone = super::arguments::zone(args.tz.as_deref())?;
    let id = args.id.trim();
    if id.is_empty() {
        return Err(CliError::usage("an id is wanted"));
    }
    let document = block_on(async { args.source.find().await?.explain(id).await })?;
    if args.json {
        say_json(&document)?;
    }
    let candidates = list(&document, "candidates");
    if !candidates.is_empty() {
        if !args.json {
            say(lines(candidates, &zone))?;
        }
        let several = if is_cut(&document) { "more than " } else { "" };
        return Err(CliError::Failed(format!(
            "{several}{} ids begin or end with {id:?}: give more of it. Ids begin with the time, so that \
             those of one minute begin alike; their last {TAIL_CHARS} characters differ",
            candidates.len()
        )));
    }
    let entries = list(&document, "entries");
    if entries.is_empty() {
        return Err(CliError::Failed(nothing(id)));
    }
    if args.json {
        return Ok(());
    }
    for (at, entry) in entries.iter().enumerate() {
        if at > 0 {
            say("")?;
        }
        say(timeline::told(entry, &zone))?;
    }
    if let Some(purchase) = document
        .get("purchase")
        .filter(|purchase| !purchase.is_null())
    {
        say(told_purchase(purchase, entries.len(), &zone))?;
    }
    if is_cut(&document) {
        say("\nThere are more entries than can be shown at once.")?;
    }
    Ok(())
}

fn nothing(id: &str) -> String {
    format!(
        "there is no entry with the id, Idempotency-Key or x-request-id {id:?} in this ledger. Of an \
         id the last {PART_CHARS_MIN} characters will do, or more. Free requests make no entry, and what \
         retention took away is only in the sums"
    )
}

/// What the key was billed, and by which entries, where there are others than those printed.
fn told_purchase(purchase: &Value, told: usize, zone: &TimeZone) -> String {
    let entries = list(purchase, "entries");
    if entries.len() <= told && told == 1 {
        return String::new();
    }
    let billed = purchase.get("billed_micro_usd").and_then(Value::as_u64);
    let billed = billed.map_or_else(|| "?".to_owned(), |sum| MicroUsd::new(sum).to_string());
    let unknown = purchase.get("not_known").and_then(Value::as_u64);
    let unknown = match unknown {
        Some(0) | None => String::new(),
        Some(count) => format!(", {count} of them with an amount that is not known"),
    };
    format!(
        "\nall of this key: billed {billed} in {} entries{unknown}\n{}",
        entries.len(),
        lines(entries, zone)
    )
}

/// A line an entry.
fn lines(entries: &[Value], zone: &TimeZone) -> Table {
    let mut table = Table::new(&[
        ("entry", Align::Left),
        ("time", Align::Left),
        ("app", Align::Left),
        ("operation", Align::Left),
        ("billed", Align::Right),
        ("state", Align::Left),
    ]);
    for entry in entries {
        let state = match (text(entry, "state"), text(entry, "reason")) {
            (Some(state), Some(reason)) => format!("{state}({reason})"),
            (state, _) => state.unwrap_or("?").to_owned(),
        };
        table.row([
            text(entry, "id").unwrap_or("?").to_owned(),
            time(entry, "at_ms", zone),
            text(entry, "app").unwrap_or("?").to_owned(),
            text(entry, "operation").unwrap_or("?").to_owned(),
            amount(entry, "billed_micro_usd").unwrap_or_else(|| "unknown".to_owned()),
            state,
        ]);
    }
    table
}

fn is_cut(document: &Value) -> bool {
    document.get("more").and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests;
