//! `bursar spend --fleet`: the sums over all machines, from the fleet's database.
//!
//! Promise: integers, as the ledgers have them; what has no price is counted and never estimated. What is not in the sum,
//! and what is in it twice, is said beside it.

use std::time::Duration;

use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::address::{FleetArgs, failed};
use super::ledgers::{lines_behind, listed};
use crate::calendar;
use crate::cli::arguments::{Form, since_of, word};
use crate::cli::csv;
use crate::cli::error::CliError;
use crate::cli::look::Look;
use crate::cli::output::{say, say_document};
use crate::cli::runtime::block_on;
use crate::cli::table::TextTable;
use crate::clock::SystemClock;
use crate::fleet::{FleetBy, FleetSpend};
use crate::ledger::query::GroupBy;
use crate::ledger::totals::MicroUsdSum;

/// What is asked for, as it was typed.
pub struct Asked<'a> {
    pub since: Option<&'a str>,
    pub until: Option<&'a str>,
    /// Empty: by host.
    pub by: &'a [String],
    pub tz: Option<&'a str>,
    pub form: Form,
    pub fleet: &'a FleetArgs,
}

/// By what the sum may differ from what the service billed.
struct Apart {
    /// They are not in the database yet, as far as machines said that were heard since the period began.
    lines_behind: u64,
    /// Requests of the period without an end there. `None`: not known, as of `counted_twice`.
    under_way: Option<u64>,
    /// Ranges of lines that were found to be lost since the period began.
    losses: u64,
    /// Of keys with an amount on two machines, which the service billed once. `None`: not known. The database looks through
    /// all lines for it, which is not waited for longer than [`BESIDE_MAX`].
    counted_twice: Option<MicroUsdSum>,
}

const BESIDE_MAX: Duration = Duration::from_secs(5);

const FIGURES: [&str; 4] = ["requests", "billed_micro_usd", "in_doubt", "unreported"];

pub fn spend(asked: &Asked<'_>) -> Result<(), CliError> {
    let by = match asked.by {
        [] => vec![FleetBy::Host],
        typed => typed
            .iter()
            .map(|typed| by(typed))
            .collect::<Result<_, _>>()?,
    };
    let zone = asked.fleet.zone(asked.tz)?;
    let name = zone.iana_name().ok_or_else(|| {
        CliError::usage("this machine's time zone has no name; give one with --tz")
    })?;
    let now_ms = SystemClock::shared().wall_ms();
    let since = asked.since.map(str::to_owned);
    let since = since.unwrap_or_else(|| since_of_fleet(&by, now_ms, &zone));
    let range = calendar::range(Some(&since), asked.until, now_ms, &zone)?;
    let until_ms = asked.until.map(|_| range.until_ms);
    let (rows, apart) = block_on(async {
        let reader = asked.fleet.operator().await?;
        if by.iter().any(|by| by.is_of_calendar())
            && reader.is_abbreviation(name).await.map_err(failed)?
        {
            return Err(CliError::usage(format_args!(
                "PostgreSQL takes {name:?} for an abbreviation, without summer time: use a name such as Europe/Paris with --tz"
            )));
        }
        let rows = reader.spend(range.since_ms, until_ms, &by, name).await;
        let rows = rows.map_err(failed)?;
        let ledgers = reader.ledgers().await.map_err(failed)?;
        let losses = reader.losses(range.since_ms).await.map_err(failed)?;
        let (since_ms, end_ms) = (range.since_ms, until_ms.unwrap_or(u64::MAX));
        let (under_way, counted_twice) = match asked.form {
            Form::Csv => (None, None),
            Form::Json | Form::Text(_) => {
                match timeout(BESIDE_MAX, reader.beside(since_ms, end_ms)).await {
                    Err(_) => (None, None),
                    Ok(beside) => {
                        let (under_way, twice) = beside.map_err(failed)?;
                        (Some(under_way), Some(twice))
                    }
                }
            }
        };
        let apart = Apart {
            lines_behind: lines_behind(&ledgers, since_ms),
            under_way,
            losses,
            counted_twice,
        };
        Ok::<_, CliError>((rows, apart))
    })?;
    let total = total(&rows);
    match asked.form {
        Form::Json => {
            let mut document = Map::new();
            document.insert("since".to_owned(), calendar::rfc3339(range.since_ms).into());
            let until = until_ms.and_then(calendar::rfc3339);
            document.insert("until".to_owned(), until.into());
            document.insert("by".to_owned(), words(&by).collect::<Vec<_>>().into());
            document.insert("rows".to_owned(), documents(&rows, &by)?.into());
            document.insert("total".to_owned(), document_of(&total, &[])?);
            document.insert("lines_behind".to_owned(), apart.lines_behind.into());
            document.insert("under_way".to_owned(), apart.under_way.into());
            document.insert("losses".to_owned(), apart.losses.into());
            let twice = serde_json::to_value(apart.counted_twice)?;
            document.insert("counted_twice_micro_usd".to_owned(), twice);
            say_document(&document)
        }
        Form::Csv => {
            let columns: Vec<&str> = words(&by).chain(FIGURES).collect();
            csv::say_documents(&columns, documents(&rows, &by)?)
        }
        Form::Text(look) => {
            say(look.wrapped(&heading(range.since_ms, until_ms, &zone), 0))?;
            say(table(&rows, &total, &by, &look))?;
            apart
                .lines()
                .iter()
                .try_for_each(|line| say(look.wrapped(line, 0)))
        }
    }
}

fn by(typed: &str) -> Result<FleetBy, CliError> {
    word(FleetBy::ALL, typed).map_err(|why| CliError::usage(format_args!("--by: of a fleet {why}")))
}

/// Since when, where nothing is said: as of one ledger, which is not grouped by host.
fn since_of_fleet(by: &[FleetBy], now_ms: u64, zone: &TimeZone) -> String {
    let by: Vec<GroupBy> = words(by).filter_map(GroupBy::from_word).collect();
    since_of(&by, now_ms, zone)
}

fn words(by: &[FleetBy]) -> impl Iterator<Item = &'static str> {
    by.iter().map(|by| by.as_str())
}

fn total(rows: &[FleetSpend]) -> FleetSpend {
    let mut total = FleetSpend::default();
    for row in rows {
        total.requests = total.requests.saturating_add(row.requests);
        total.billed.merge(row.billed);
        total.in_doubt = total.in_doubt.saturating_add(row.in_doubt);
        total.unreported = total.unreported.saturating_add(row.unreported);
    }
    total
}

fn documents(rows: &[FleetSpend], by: &[FleetBy]) -> Result<Vec<Value>, CliError> {
    rows.iter().map(|row| document_of(row, by)).collect()
}

/// A sum that a number of JSON cannot hold exactly is a text, as in the daemon's documents.
fn document_of(row: &FleetSpend, by: &[FleetBy]) -> Result<Value, CliError> {
    let labels = words(by).zip(&row.labels);
    let mut members: Map<String, Value> = labels
        .map(|(word, label)| (word.to_owned(), label.clone().into()))
        .collect();
    let billed = serde_json::to_value(row.billed)?;
    let figures = [
        row.requests.into(),
        billed,
        row.in_doubt.into(),
        row.unreported.into(),
    ];
    members.extend(FIGURES.map(str::to_owned).into_iter().zip(figures));
    Ok(members.into())
}

fn heading(since_ms: u64, until_ms: Option<u64>, zone: &TimeZone) -> String {
    let at = |ms| calendar::shown(ms, zone);
    let name = zone.iana_name().unwrap_or("local time");
    match until_ms {
        None => format!("Spend of the fleet since {} ({name})\n", at(since_ms)),
        Some(until_ms) => format!(
            "Spend of the fleet from {} until {} ({name})\n",
            at(since_ms),
            at(until_ms)
        ),
    }
}

fn table(rows: &[FleetSpend], total: &FleetSpend, by: &[FleetBy], look: &Look) -> String {
    let titles = words(by).map(|word| word.replace('_', " "));
    let titles: Vec<String> = titles.collect();
    let titles = format!(
        "{}|>requests|>billed|>in doubt|>unreported",
        titles.join("|")
    );
    let mut table = TextTable::new(&titles);
    let figures = |row: &FleetSpend| {
        [
            row.requests.to_string(),
            row.billed.to_string(),
            row.in_doubt.to_string(),
            row.unreported.to_string(),
        ]
    };
    for row in rows {
        table.row(row.labels.iter().cloned().chain(figures(row)));
    }
    table.rule();
    let mut labels = vec![String::new(); by.len()];
    if let Some(first) = labels.first_mut() {
        "all".clone_into(first);
    }
    table.row(labels.into_iter().chain(figures(total)));
    table.laid_out(look)
}

// === impl Apart ===

impl Apart {
    /// In words. Nothing where the sum is exact.
    fn lines(&self) -> Vec<String> {
        let missing = listed(&[
            (
                self.lines_behind,
                "line is not there yet",
                "lines are not there yet",
            ),
            (
                self.under_way.unwrap_or(0),
                "request has no end there",
                "requests have no end there",
            ),
            (self.losses, "range is lost", "ranges are lost"),
        ]);
        let mut lines = Vec::new();
        if !missing.is_empty() {
            lines.push(format!("{missing}: what that cost is not in the sum."));
        }
        match self.counted_twice {
            Some(twice) if twice.is_zero() => {}
            Some(twice) => lines.push(format!(
                "{twice} of it are of keys with an amount on two machines, which the service billed once."
            )),
            None => lines.push(format!(
                "How many requests have no end there, and whether keys have an amount on two machines, the database did not \
                 say within {} s.",
                BESIDE_MAX.as_secs()
            )),
        }
        lines
    }
}

#[cfg(test)]
mod tests;
