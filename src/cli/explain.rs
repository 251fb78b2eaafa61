//! `bursar explain ID`: one request from its intent to its last evidence, and why it cost what it
//! cost.
//!
//! Promise: what is not known is said to be not known; text of others (models, receipt lines) is
//! printed as [`crate::screen`] shows it; `--json` prints the document of `/api/explain`.

use jiff::tz::TimeZone;

use super::cells;
use super::error::CliError;
use super::locate::SourceArgs;
use super::output::{say, say_document};
use super::runtime::block_on;
use super::table::TextTable;
use crate::admin::explain::{EntryLine, KeyPurchase, timeline};
use crate::calendar;
use crate::ledger::query::{PART_CHARS_MIN, TAIL_CHARS};

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
    let found = block_on(async { args.source.find().await?.explain(id).await })?;
    if args.json {
        say_document(&found)?;
    }
    if !found.candidates.is_empty() {
        if !args.json {
            say(lines(&found.candidates, &zone))?;
        }
        let several = if found.more { "more than " } else { "" };
        return Err(CliError::Failed(format!(
            "{several}{} ids begin or end with {id:?}: give more of it. Ids begin with the time, so that \
             those of one minute begin alike; their last {TAIL_CHARS} characters differ",
            found.candidates.len()
        )));
    }
    if found.entries.is_empty() {
        return Err(CliError::Failed(nothing(id)));
    }
    if args.json {
        return Ok(());
    }
    for (at, explained) in found.entries.iter().enumerate() {
        if at > 0 {
            say("")?;
        }
        say(timeline::of(explained, &zone))?;
    }
    let purchase = found.purchase.as_ref();
    if let Some(all) = purchase.and_then(|all| all_of_the_key(all, found.entries.len(), &zone)) {
        say(all)?;
    }
    if found.more {
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

/// What the key was billed, and by which entries, where there are others than the one printed.
fn all_of_the_key(purchase: &KeyPurchase, printed: usize, zone: &TimeZone) -> Option<String> {
    if printed <= 1 && purchase.entries.len() <= 1 {
        return None;
    }
    let unknown = match purchase.not_known {
        0 => String::new(),
        count => format!(", {count} of them with an amount that is not known"),
    };
    Some(format!(
        "\nall of this key: billed {} in {}{unknown}\n{}",
        purchase.billed_micro_usd,
        cells::counted(purchase.entries.len(), "entry", "entries"),
        lines(&purchase.entries, zone)
    ))
}

/// A line an entry.
fn lines(entries: &[EntryLine], zone: &TimeZone) -> TextTable {
    let mut table = TextTable::new("entry|time|app|operation|>billed|state");
    for entry in entries {
        table.row([
            entry.id.to_string(),
            calendar::shown(entry.at_ms, zone),
            entry.app.clone(),
            entry.operation.to_string(),
            cells::amount(entry.billed_micro_usd),
            cells::state(entry.state, entry.reason),
        ]);
    }
    table
}

#[cfg(test)]
mod tests;
