//! `bursar explain --session ID`: what a session of an app came to, and each of its requests.
//!
//! Promise: amounts that are not known are counted and in no sum; where more requests were made than are
//! shown, that is said.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;

use crate::admin::RECEIPTS_MAX;
use crate::admin::documents::ReceiptsDocument;
use crate::calendar;
use crate::cli::arguments::{Form, FormArgs};
use crate::cli::cells;
use crate::cli::csv;
use crate::cli::entry_csv;
use crate::cli::error::CliError;
use crate::cli::locate::SourceArgs;
use crate::cli::output::{say, say_document};
use crate::cli::runtime::block_on;
use crate::cli::table::TextTable;
use crate::ledger::MicroUsdSum;
use crate::ledger::marks::SoughtSession;
use crate::ledger::query::{EntryView, Filter, Listing};

/// `tz`: the zone of the times printed, where one was named.
pub fn explain(
    text: &str,
    tz: Option<&str>,
    form: &FormArgs,
    asked: &SourceArgs,
) -> Result<(), CliError> {
    if text.is_empty() {
        return Err(CliError::usage("a session is wanted"));
    }
    let filter = Filter {
        session: Some(SoughtSession::new(text)),
        ..Filter::default()
    };
    let (zone, listing) = block_on(async {
        let source = asked.find().await?;
        let zone = asked.zone(&source, tz).await?;
        let listing = source.receipts(&filter, RECEIPTS_MAX).await?;
        Ok::<_, CliError>((zone, listing))
    })?;
    if listing.entries.is_empty() {
        return Err(CliError::Failed(format!(
            "no request of the session {text:?} is in this ledger. It is named by its whole id as the app sent it, by \
             the last 8 characters of that, or as `bursar spend --by session` prints it; what retention took away \
             is only in the sums"
        )));
    }
    match form.form() {
        Form::Json => say_document(&ReceiptsDocument::from(listing)),
        Form::Csv => {
            csv::say_row(entry_csv::names())?;
            let mut entries = listing.entries.iter();
            entries.try_for_each(|entry| csv::say_row(entry_csv::cells(entry, &zone)))
        }
        Form::Text(look) => {
            say(look.wrapped(&summary(&listing, &zone), 0))?;
            say(lines(&listing.entries, &zone).laid_out(&look))
        }
    }
}

/// What they came to, in sentences.
fn summary(listing: &Listing, zone: &TimeZone) -> String {
    let entries = &listing.entries;
    let sessions: BTreeSet<String> = entries
        .iter()
        .filter_map(|entry| Some(format!("{} of {}", entry.session?, entry.app)))
        .collect();
    let sessions: Vec<String> = sessions.into_iter().collect();
    let mut billed = MicroUsdSum::default();
    let known = entries.iter().filter_map(|entry| entry.billed_micro_usd);
    known.for_each(|amount| billed.add(amount));
    let unknown = entries
        .iter()
        .filter(|entry| entry.billed_micro_usd.is_none());
    let unknown = match unknown.count() {
        0 => String::new(),
        count => format!(", {count} of them with an amount that is not known"),
    };
    let began = entries.iter().map(|entry| entry.at_ms);
    let (first, last) = (began.clone().min(), began.max());
    let at = |ms: Option<u64>| calendar::shown(ms.unwrap_or(0), zone);
    let newest = match entries.len() >= RECEIPTS_MAX {
        true => {
            format!(" These are the newest {RECEIPTS_MAX}; `bursar receipts --session` lists all.")
        }
        false => String::new(),
    };
    format!(
        "session {}\nbilled {billed} in {}{unknown}, from {} to {}.{newest}\n",
        sessions.join(", "),
        cells::counted(entries.len(), "request", "requests"),
        at(first),
        at(last),
    )
}

/// A line each, oldest first.
fn lines(entries: &[EntryView], zone: &TimeZone) -> TextTable {
    let mut table = TextTable::new("=entry|=+time|=^time|operation|model|>billed|=+state|=^state");
    let mut sorted: Vec<&EntryView> = entries.iter().collect();
    sorted.sort_by_key(|entry| (entry.at_ms, entry.id));
    for entry in sorted {
        table.row([
            cells::tail(&entry.id),
            calendar::shown(entry.at_ms, zone),
            calendar::shown_short(entry.at_ms, zone),
            entry.operation.to_string(),
            entry.model.clone().unwrap_or_else(|| "-".to_owned()),
            cells::amount(entry.billed_micro_usd),
            cells::state(entry.state.word(), entry.state.reason()),
            entry.state.word().to_string(),
        ]);
    }
    table
}
