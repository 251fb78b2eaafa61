//! `bursar spend`: what was spent, as far as it is known, and beside it how much is not known.
//!
//! Promise: the sums are the ledger's, in integers; entries in doubt and unreported ones are counted
//! and never estimated.

use serde_json::Value;

use super::error::CliError;
use super::locate::SourceArgs;
use super::output::{remark, say};
use super::runtime::block_on;
use super::table::{Align, Table};
use crate::admin::documents::SpendQuestion;
use crate::calendar;
use crate::clock::SystemClock;
use crate::ledger::query::GroupBy;
use crate::money::MicroUsd;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start of the period: today, yesterday, 2026-01-31, 2026-01-31T08:00:00Z, or an age: 24h, 7d
    #[arg(long, value_name = "TIME", default_value = "today")]
    since: String,
    /// End of the period, not included [default: no end]
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Group by app, lane, operation, served-by, day, state; several with commas
    #[arg(long, value_name = "WORDS", default_value = "app", value_delimiter = ',', value_parser = group_by)]
    by: Vec<GroupBy>,
    /// Time zone of days and dates [default: this machine's]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
}

pub fn spend(args: &Args) -> Result<(), CliError> {
    let zone = super::arguments::zone(args.tz.as_deref())?;
    let now_ms = SystemClock::shared().wall_ms();
    let range = calendar::range(Some(&args.since), args.until.as_deref(), now_ms, &zone)?;
    let asked = SpendQuestion {
        since_ms: Some(range.since_ms),
        until_ms: args.until.as_ref().map(|_| range.until_ms),
        by: args.by.clone(),
        zone,
    };
    let document = block_on(async {
        let source = if asked.zone.iana_name().is_some() {
            args.source.find().await?
        } else {
            // A zone without a name cannot be sent to a daemon.
            args.source.find_files().await?
        };
        source.spend(&asked).await
    })?;
    if args.json {
        say(&document)?;
    } else {
        say(heading(&asked))?;
        say(table(&args.by, &document))?;
        if let Some(compared) = compared(&document) {
            say(compared)?;
        }
        if let Some(drained) = drained(&document) {
            say(drained)?;
        }
        if let Some(unknown) = unknown(&document) {
            say(unknown)?;
        }
        if let Some(untold) = untold(&document) {
            say(untold)?;
        }
    }
    if document.get("damaged").and_then(Value::as_u64) != Some(0) {
        remark(
            "bursar: parts of the journal are damaged and missing in these sums; \
             see `bursar ledger verify`",
        );
    }
    if document.get("rounded").and_then(Value::as_bool) == Some(true) {
        remark(
            "bursar: that long ago only sums by quarter hour are left; the one that --since or --until \
             cuts counts for the moment it begins",
        );
    }
    Ok(())
}

fn group_by(word: &str) -> Result<GroupBy, String> {
    GroupBy::from_word(&word.replace('-', "_"))
        .ok_or_else(|| "one of app, lane, operation, served-by, day, state is wanted".to_owned())
}

fn heading(asked: &SpendQuestion) -> String {
    let at = |ms| calendar::shown(ms, &asked.zone);
    let zone = asked.zone.iana_name().unwrap_or("local time");
    let since = asked
        .since_ms
        .map_or_else(|| "the beginning".to_owned(), at);
    match asked.until_ms {
        None => format!("Spend since {since} ({zone})\n"),
        Some(until) => format!("Spend from {since} until {} ({zone})\n", at(until)),
    }
}

fn table(by: &[GroupBy], document: &Value) -> Table {
    let titles: Vec<String> = by.iter().map(|by| by.as_str().replace('_', " ")).collect();
    let figures = [
        "requests",
        "billed",
        "in doubt",
        "unreported",
        "input tokens",
        "output tokens",
        "saved against frontier",
    ];
    let has_audio = has_audio(document);
    let columns: Vec<(&str, Align)> = titles
        .iter()
        .map(|title| (title.as_str(), Align::Left))
        .chain(figures.iter().map(|title| (*title, Align::Right)))
        .chain(has_audio.then_some(("audio", Align::Right)))
        .collect();
    let mut table = Table::new(&columns);
    let sums = |row: &Value| {
        let audio = has_audio.then(|| audio(row));
        sums(row).into_iter().chain(audio)
    };
    let rows = document.get("rows").and_then(Value::as_array);
    for row in rows.into_iter().flatten() {
        let words = by.iter().map(|by| text(row, by.as_str()));
        table.row(words.chain(sums(row)));
    }
    table.rule();
    let mut words: Vec<String> = by.iter().map(|_| String::new()).collect();
    if let Some(first) = words.first_mut() {
        "all".clone_into(first);
    }
    table.row(words.into_iter().chain(sums(document)));
    table
}

fn sums(row: &Value) -> [String; 7] {
    [
        count(row, "requests"),
        money(row, "billed_micro_usd"),
        count(row, "in_doubt"),
        count(row, "unreported"),
        count(row, "prompt_tokens"),
        count(row, "completion_tokens"),
        saved(row),
    ]
}

/// Speech is a column only where there was some: few ledgers hold any.
fn has_audio(document: &Value) -> bool {
    ["audio_ms", "audio_untold"]
        .iter()
        .any(|name| document.get(name).and_then(Value::as_u64) > Some(0))
}

/// Sound in seconds, `12.345 s`.
fn audio(row: &Value) -> String {
    let ms = row.get("audio_ms").and_then(Value::as_u64);
    ms.map_or_else(
        || "?".to_owned(),
        |ms| format!("{}.{:03} s", ms / 1000, ms % 1000),
    )
}

/// What the seconds do not hold, in a sentence.
fn untold(document: &Value) -> Option<String> {
    let untold = document.get("audio_untold").and_then(Value::as_u64);
    let untold = untold.filter(|untold| *untold > 0)?;
    let answers = if untold == 1 { "answer" } else { "answers" };
    Some(format!(
        "\nNot in the audio: {untold} {answers} of the speech routes that reported no length."
    ))
}

/// What answers that carry both prices cost less than a frontier model would have, by the service's
/// estimate. Beside the sum of all answers an estimate of some of them says nothing.
fn saved(row: &Value) -> String {
    match row.get("compared").and_then(Value::as_u64) {
        None => "?".to_owned(),
        Some(0) => "not known".to_owned(),
        Some(_) => {
            let saved = row.get("saved_micro_usd").and_then(Value::as_u64);
            saved.map_or_else(
                || "nothing".to_owned(),
                |saved| MicroUsd::new(saved).to_string(),
            )
        }
    }
}

/// Over which answers was compared, in a sentence.
fn compared(document: &Value) -> Option<String> {
    let answers = document.get("compared").and_then(Value::as_u64);
    let answers = answers.filter(|answers| *answers > 0)?;
    Some(format!(
        "\nSaved is over the answers that carry both prices: of {} requests {answers}, billed {}, where \
         a frontier model would have cost {} by the service's estimate.",
        count(document, "requests"),
        money(document, "compared_billed_micro_usd"),
        money(document, "compared_would_have_cost_micro_usd"),
    ))
}

/// What part of the sum no app has read, in a sentence.
fn drained(document: &Value) -> Option<String> {
    let drained = document.get("drained_micro_usd").and_then(Value::as_u64);
    let drained = drained.filter(|drained| *drained > 0).map(MicroUsd::new)?;
    Some(format!(
        "\nOf this, {drained} went to answers whose app had left before they ended."
    ))
}

/// What the sum does not hold, in a sentence.
fn unknown(document: &Value) -> Option<String> {
    let number = |name: &str| document.get(name).and_then(Value::as_u64);
    let parts: Vec<String> = [
        ("in_doubt", "in doubt", "in-doubt"),
        ("unreported", "unreported", "unreported"),
        ("open", "open", "open"),
    ]
    .into_iter()
    .filter_map(|(name, word, state)| {
        let count = number(name).filter(|count| *count > 0)?;
        Some(format!(
            "{count} {word} (`bursar receipts --state {state}`)"
        ))
    })
    .collect();
    (!parts.is_empty()).then(|| {
        format!(
            "\nNot in the sum, because the price is not known: {}.",
            parts.join(", ")
        )
    })
}

fn text(row: &Value, name: &str) -> String {
    let word = row.get(name).and_then(Value::as_str);
    word.unwrap_or("?").to_owned()
}

/// A figure that is missing shows as `?`, never as 0.
fn count(row: &Value, name: &str) -> String {
    let number = row.get(name).and_then(Value::as_u64);
    number.map_or_else(|| "?".to_owned(), |number| number.to_string())
}

fn money(row: &Value, name: &str) -> String {
    let amount = row.get(name).and_then(Value::as_u64).map(MicroUsd::new);
    amount.map_or_else(|| "?".to_owned(), |amount| amount.to_string())
}

#[cfg(test)]
mod tests;
