//! `bursar explain ID`, `--session ID`: one request from its intent to its last evidence, and why it cost what it
//! cost; or all that one session of an app did (`session`).
//!
//! Promise: what is not known is said to be not known; text of others (models, receipt lines) is
//! printed as [`crate::screen`] shows it; `--json` prints the document of `/api/explain`, `--csv` its entries.

mod session;

use jiff::tz::TimeZone;

use super::arguments::{Form, FormArgs};
use super::cells::{self, tail};
use super::csv;
use super::entry_csv;
use super::error::CliError;
use super::locate::SourceArgs;
use super::look::Look;
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
    #[arg(value_name = "ID", required_unless_present = "session")]
    id: Option<String>,
    /// What a session did instead: its id as the app sent it, or what `spend --by session` prints
    #[arg(long, value_name = "ID", conflicts_with = "id")]
    session: Option<String>,
    /// Time zone of the times printed [default: that of the caps]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    source: SourceArgs,
}

pub fn explain(args: &Args) -> Result<(), CliError> {
    if let Some(text) = &args.session {
        return session::explain(text.trim(), args.tz.as_deref(), &args.form, &args.source);
    }
    let id = args.id.as_deref().unwrap_or_default().trim();
    if id.is_empty() {
        return Err(CliError::usage("give an id"));
    }
    let (zone, found) = block_on(async {
        let source = args.source.find().await?;
        let zone = args.source.zone(&source, args.tz.as_deref()).await?;
        Ok::<_, CliError>((zone, source.explain(id).await?))
    })?;
    let look = match args.form.form() {
        Form::Text(look) => Some(look),
        Form::Json => {
            say_document(&found)?;
            None
        }
        Form::Csv => {
            csv::say_row(entry_csv::names())?;
            let mut entries = found.entries.iter();
            entries.try_for_each(|found| csv::say_row(entry_csv::cells(&found.entry, &zone)))?;
            None
        }
    };
    if !found.candidates.is_empty() {
        if let Some(look) = &look {
            say(lines(&found.candidates, &zone).laid_out(look))?;
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
    let Some(look) = look else {
        return Ok(());
    };
    for (at, explained) in found.entries.iter().enumerate() {
        if at > 0 {
            say("")?;
        }
        let timeline = timeline::of(explained, &zone).to_string();
        say(look.wrapped(&timeline, timeline::LABEL))?;
    }
    let purchase = found.purchase.as_ref();
    let printed = found.entries.len();
    if let Some(all) = purchase.and_then(|all| all_of_the_key(all, printed, &zone, &look)) {
        say(all)?;
    }
    if found.more {
        say("\nThere are more entries than can be shown at once.")?;
    }
    Ok(())
}

fn nothing(id: &str) -> String {
    format!(
        "there is no entry with the id, Idempotency-Key or x-request-id {id:?} in this ledger. \
         The last {PART_CHARS_MIN} characters of an id are enough. Free requests have no entry, nor have those that bursar \
         refused before it knew what they buy: its log has a line with the id. Entries that retention removed are only in \
         the sums"
    )
}

/// What the key was billed, and by which entries, where there are others than the one printed.
fn all_of_the_key(
    purchase: &KeyPurchase,
    printed: usize,
    zone: &TimeZone,
    look: &Look,
) -> Option<String> {
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
        lines(&purchase.entries, zone).laid_out(look)
    ))
}

/// A line an entry.
fn lines(entries: &[EntryLine], zone: &TimeZone) -> TextTable {
    let mut table = TextTable::new("=entry|=+time|=^time|app|operation|>billed|=+state|=^state");
    for entry in entries {
        table.row([
            tail(&entry.id),
            calendar::shown(entry.at_ms, zone),
            calendar::shown_short(entry.at_ms, zone),
            entry.app.clone(),
            entry.operation.to_string(),
            cells::amount(entry.billed_micro_usd),
            cells::state(entry.state, entry.reason),
            entry.state.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests;
