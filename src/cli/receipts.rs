//! `bursar receipts`: the ledger's entries, one line each, newest last; with `--follow` as they land.
//!
//! Promise: `--json` prints one object a line, every field the ledger keeps; an amount that is not
//! known is `null` there and `unknown` here, never 0.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde_json::Value;

use super::error::CliError;
use super::locate::SourceArgs;
use super::output::{say, say_json};
use super::runtime::block_on;
use super::source::{Pulse, Source};
use super::table::{Align, Table};
use crate::admin::RECEIPTS_MAX;
use crate::calendar;
use crate::clock::SystemClock;
use crate::ledger::entry::InDoubt;
use crate::ledger::query::{Filter, StateWord, TAIL_CHARS};
use crate::money::MicroUsd;
use crate::protocol::Operation;

/// How many are printed where the command names no number; `--json` then prints all.
const SHOWN: usize = 50;

/// How many are shown before following begins.
const SHOWN_BEFORE_FOLLOWING: usize = 10;

/// How often is looked for new ones.
const FOLLOW_PAUSE: Duration = Duration::from_millis(300);

/// An entry begun longer ago is not followed any more, so that only the journal's end is read.
const FOLLOW_BACK_MS: u64 = 26 * 60 * 60 * 1000;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Keep running and print each receipt as it arrives
    #[arg(long, short)]
    follow: bool,
    /// Only this state: open, settled, failed, replayed, unreported (malformed ones among them),
    /// malformed, in-doubt, reconciled
    #[arg(long, value_name = "STATE", value_parser = state_word)]
    state: Option<StateWord>,
    /// Only in doubt for this reason: client-gone, stream-drop, no-response, gateway, crash,
    /// shutdown, damaged, replay-lost-amount
    #[arg(long, value_name = "REASON", value_parser = reason)]
    reason: Option<InDoubt>,
    /// Only this app
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// Only this operation: chat, agent-turn, embeddings, rerank, image-generation, image-edit,
    /// transcription, speech, frontier-comparison, eval-run, deploy, endpoint-chat, …
    #[arg(long, value_name = "OPERATION", value_parser = operation)]
    operation: Option<Operation>,
    /// Only this model, as the app asked for it
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Only entries from this time on: today, yesterday, 2026-01-31, 2026-01-31T08:00:00Z, or an age: 24h, 7d
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// How many of the newest to print [default: 50; with --json all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Time zone of the times printed [default: this machine's]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
}

/// How entries are printed.
struct Printer {
    json: bool,
    zone: TimeZone,
}

pub fn receipts(args: &Args) -> Result<(), CliError> {
    if args.reason.is_some() && args.state.is_some_and(|state| state != StateWord::InDoubt) {
        return Err(CliError::usage(
            "--reason selects among entries in doubt: leave --state out, or make it in-doubt",
        ));
    }
    let zone = super::arguments::zone(args.tz.as_deref())?;
    let now_ms = SystemClock::shared().wall_ms();
    let since_ms = match &args.since {
        Some(text) => Some(calendar::instant(text, now_ms, &zone)?),
        None => None,
    };
    let limit = match (args.limit, args.follow, args.json) {
        (Some(limit), ..) => Some(usize::try_from(limit).unwrap_or(usize::MAX)),
        (None, true, _) => Some(SHOWN_BEFORE_FOLLOWING),
        (None, false, true) => None,
        (None, false, false) => Some(SHOWN),
    };
    let filter = Filter {
        since_ms,
        app: args.app.clone(),
        operation: args.operation,
        model: args.model.clone(),
        state: args.state,
        reason: args.reason,
        ..Filter::default()
    };
    let printer = Printer {
        json: args.json,
        zone,
    };
    block_on(async {
        match limit {
            Some(shown) if args.follow => {
                let source = args.source.find_files().await?;
                follow(&source, filter, shown, &printer, now_ms).await
            }
            Some(limit) => {
                // A longer listing than the daemon gives at once is read from the files.
                let source = if limit <= RECEIPTS_MAX {
                    args.source.find().await?
                } else {
                    args.source.find_files().await?
                };
                let listed = source.receipts(&filter, limit).await?.listed;
                if listed.is_empty() && !args.json {
                    let any = source.receipts(&Filter::default(), 1).await?;
                    return say(if any.listed.is_empty() {
                        "No receipts yet."
                    } else {
                        "No receipt matches."
                    });
                }
                printer.print_all(&listed)
            }
            None => {
                let source = args.source.find_files().await?;
                source
                    .for_each_receipt(&filter, &mut |receipt| say_json(&receipt))
                    .await
            }
        }
    })
}

/// Prints the newest, then each new one as it arrives, until a signal ends it. An entry whose amount comes
/// later is printed again then.
async fn follow(
    source: &Source,
    mut filter: Filter,
    shown: usize,
    printer: &Printer,
    now_ms: u64,
) -> Result<(), CliError> {
    let mut pulse = source.pulse().await?;
    let mut landed = source.receipts(&filter, shown).await?;
    filter.since_ms = filter.since_ms.max(now_ms.checked_sub(FOLLOW_BACK_MS));
    let mut are_all = true;
    loop {
        for receipt in &landed.listed {
            // A request that has just begun shows when it has ended, unless begun ones are asked
            // for.
            if filter.state.is_some()
                || receipt.get("state").and_then(Value::as_str) != Some("open")
            {
                printer.print_one(receipt)?;
            }
        }
        filter.after_seq = filter.after_seq.max(landed.last_seq).or(Some(0));
        if are_all {
            pulse = next_pulse(source, &pulse).await?;
        }
        landed = source.receipts(&filter, RECEIPTS_MAX).await?;
        are_all = landed.listed.len() < RECEIPTS_MAX;
    }
}

/// Waits until something may have been added.
async fn next_pulse(source: &Source, before: &Pulse) -> Result<Pulse, CliError> {
    loop {
        tokio::time::sleep(FOLLOW_PAUSE).await;
        let now = source.pulse().await?;
        if now != *before {
            return Ok(now);
        }
    }
}

pub fn state_word(word: &str) -> Result<StateWord, String> {
    StateWord::from_word(&word.replace('-', "_")).ok_or_else(|| {
        "one of open, settled, failed, replayed, unreported, malformed, in-doubt, reconciled is \
         wanted"
            .to_owned()
    })
}

fn operation(word: &str) -> Result<Operation, String> {
    Operation::from_word(&word.replace('-', "_")).ok_or_else(|| {
        let known: Vec<String> = Operation::ALL
            .iter()
            .map(|operation| operation.as_str().replace('_', "-"))
            .collect();
        format!("one of {} is wanted", known.join(", "))
    })
}

fn reason(word: &str) -> Result<InDoubt, String> {
    InDoubt::from_word(&word.replace('-', "_")).ok_or_else(|| {
        let known: Vec<String> = InDoubt::ALL
            .iter()
            .map(|reason| reason.as_str().replace('_', "-"))
            .collect();
        format!("one of {} is wanted", known.join(", "))
    })
}

/// How many of each state were shown, and what a doubt is, when there is one.
fn footer(receipts: &[Value]) -> String {
    let word = |receipt: &Value| state_cell(receipt).replace('_', " ");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for receipt in receipts {
        *counts.entry(word(receipt)).or_default() += 1;
    }
    let counted: Vec<String> = counts
        .iter()
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    let mut text = format!("\n{} shown: {}.", receipts.len(), counted.join(", "));
    if receipts
        .iter()
        .any(|receipt| receipt.get("state").and_then(Value::as_str) == Some("in_doubt"))
    {
        text.push_str(
            "\nIn doubt: the service may have billed it and the amount was not seen, so it is in no \
             sum; `bursar explain ID` shows what happened and what would settle it.",
        );
    }
    text
}

/// The state with what belongs to it: the reason of a doubt, or that the price was none.
fn state_cell(receipt: &Value) -> String {
    let text = |name: &str| receipt.get(name).and_then(Value::as_str);
    match (text("state"), text("reason")) {
        (Some(state), Some(reason)) => format!("{state}({reason})"),
        // The service reported a price that cannot be read, which is not the same as none.
        (Some(state @ "unreported"), None) if text("receipt") == Some("malformed") => {
            format!("{state}(malformed)")
        }
        (state, _) => state.unwrap_or("?").to_owned(),
    }
}

// === impl Printer ===

impl Printer {
    fn print_all(&self, receipts: &[Value]) -> Result<(), CliError> {
        if self.json {
            return receipts.iter().try_for_each(say_json);
        }
        let mut table = Table::new(&[
            ("time", Align::Left),
            ("app", Align::Left),
            ("operation", Align::Left),
            ("model", Align::Left),
            ("served by", Align::Left),
            ("tokens", Align::Right),
            ("billed", Align::Right),
            ("state", Align::Left),
            ("entry", Align::Left),
        ]);
        for receipt in receipts {
            table.row(self.cells(receipt));
        }
        say(table)?;
        say(footer(receipts))
    }

    fn print_one(&self, receipt: &Value) -> Result<(), CliError> {
        if self.json {
            return say_json(receipt);
        }
        let mut table = Table::headless(&[
            (19, Align::Left),
            (8, Align::Left),
            (10, Align::Left),
            (8, Align::Left),
            (10, Align::Left),
            (9, Align::Right),
            (10, Align::Right),
            (11, Align::Left),
            (TAIL_CHARS, Align::Left),
        ]);
        table.row(self.cells(receipt));
        say(table)
    }

    fn cells(&self, receipt: &Value) -> [String; 9] {
        let text = |name: &str| receipt.get(name).and_then(Value::as_str);
        let or_dash = |name: &str| text(name).unwrap_or("-").to_owned();
        let at_ms = receipt.get("at_ms").and_then(Value::as_u64);
        [
            at_ms.map_or_else(
                || "?".to_owned(),
                |at_ms| calendar::shown(at_ms, &self.zone),
            ),
            or_dash("app"),
            or_dash("operation"),
            or_dash("model"),
            or_dash("served_by"),
            tokens(receipt),
            billed(receipt),
            state_cell(receipt),
            tail(text("id").unwrap_or("-")).to_owned(),
        ]
    }
}

/// The end of an id, by which `bursar explain` finds it: nothing else of it is its own.
fn tail(id: &str) -> &str {
    let at = id.len().saturating_sub(TAIL_CHARS);
    id.get(at..).unwrap_or(id)
}

/// `12+34`: input and output.
fn tokens(receipt: &Value) -> String {
    let told = |name: &str| {
        let count = receipt.get("usage").and_then(|usage| usage.get(name));
        count.and_then(Value::as_u64)
    };
    match (told("prompt_tokens"), told("completion_tokens")) {
        (None, None) => "-".to_owned(),
        (input, output) => {
            let shown =
                |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
            format!("{}+{}", shown(input), shown(output))
        }
    }
}

fn billed(receipt: &Value) -> String {
    let amount = receipt.get("billed_micro_usd").and_then(Value::as_u64);
    amount.map_or_else(
        || "unknown".to_owned(),
        |amount| MicroUsd::new(amount).to_string(),
    )
}

#[cfg(test)]
mod tests;
