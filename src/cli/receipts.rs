//! `bursar receipts`: the ledger's entries, one line each, newest last; with `--follow` as they land.
//!
//! Promise: `--json` prints one object a line, `--csv` a row, with every field the ledger keeps; an amount that is not
//! known is `null` or empty there and `unknown` here, never 0.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;

use super::arguments::{Form, FormArgs, state_word, word};
use super::cells;
use super::cells::tail;
use super::csv;
use super::entry_csv;
use super::error::CliError;
use super::locate::SourceArgs;
use super::look::{Ink, Look};
use super::output::{say, say_document};
use super::runtime::block_on;
use super::source::{Pulse, Source};
use super::table::TextTable;
use crate::admin::RECEIPTS_MAX;
use crate::admin::documents::EntryDocument;
use crate::calendar;
use crate::clock::SystemClock;
use crate::ledger::entry::{InDoubt, State};
use crate::ledger::marks::SoughtSession;
use crate::ledger::query::{EntryView, Filter, ReceiptWord, StateWord, TAIL_CHARS};
use crate::protocol::{Operation, Usage};

/// How many are printed where the command names no number; `--json` and `--csv` then print all.
const SHOWN: usize = 50;

/// How many are shown before following begins.
const SHOWN_BEFORE_FOLLOWING: usize = 10;

/// How often is looked for new ones.
const FOLLOW_PAUSE: Duration = Duration::from_millis(300);

/// An entry begun longer ago is not followed any more, so that only the journal's end is read.
const FOLLOW_BACK_MS: u64 = 26 * 60 * 60 * 1000;

const TITLES: &str =
    "=+time|=^time|app|operation|model|~served by|>~tokens|>billed|=+state|=^state|=entry";

/// Of lines that come one by one.
const WIDTHS: [usize; 11] = [19, 14, 8, 10, 8, 10, 9, 10, 11, 10, TAIL_CHARS];

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
    /// Only this session: its id as the app sent it, or what `spend --by session` prints
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only entries from this time on: today, yesterday, "this week", 2026-01-31, 2026-01, 2026-01-31T08:00:00Z, or an
    /// age: 24h, 7d
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// How many of the newest to print [default: 50; with --json or --csv all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Time zone of the times printed [default: that of the caps]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    source: SourceArgs,
}

/// How entries are printed.
struct Printer {
    form: Form,
    zone: TimeZone,
}

pub fn receipts(args: &Args) -> Result<(), CliError> {
    if args.reason.is_some() && args.state.is_some_and(|state| state != StateWord::InDoubt) {
        return Err(CliError::usage(
            "--reason selects among entries in doubt: leave --state out, or make it in-doubt",
        ));
    }
    let now_ms = SystemClock::shared().wall_ms();
    let form = args.form.form();
    let is_text = matches!(form, Form::Text(_));
    let limit = match (args.limit, args.follow) {
        (Some(limit), _) => Some(usize::try_from(limit).unwrap_or(usize::MAX)),
        (None, true) => Some(SHOWN_BEFORE_FOLLOWING),
        (None, false) => is_text.then_some(SHOWN),
    };
    block_on(async {
        // A longer listing than the daemon gives at once is read from the files, and so is what is followed.
        let source = match limit {
            Some(limit) if !args.follow && limit <= RECEIPTS_MAX => args.source.find().await?,
            _ => args.source.find_files().await?,
        };
        let zone = args.source.zone(&source, args.tz.as_deref()).await?;
        let since = args.since.as_ref();
        let since = since.map(|text| calendar::instant(text, now_ms, &zone));
        let filter = Filter {
            since_ms: since.transpose()?,
            app: args.app.clone(),
            operation: args.operation,
            model: args.model.clone(),
            session: args.session.as_deref().map(SoughtSession::new),
            state: args.state,
            reason: args.reason,
            ..Filter::default()
        };
        let printer = Printer { form, zone };
        match limit {
            Some(shown) if args.follow => follow(&source, filter, shown, &printer, now_ms).await,
            Some(limit) => {
                let listed = source.receipts(&filter, limit).await?.entries;
                if listed.is_empty() && is_text {
                    let any = source.receipts(&Filter::default(), 1).await?;
                    return say(if any.entries.is_empty() {
                        "No receipts yet."
                    } else {
                        "No receipt matches."
                    });
                }
                printer.print_all(listed)
            }
            None => {
                printer.begin()?;
                let print = &mut |entry| printer.print_one(entry);
                source.for_each_receipt(&filter, print).await
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
    printer.begin()?;
    let mut pulse = source.pulse().await?;
    let mut landed = source.receipts(&filter, shown).await?;
    filter.since_ms = filter.since_ms.max(now_ms.checked_sub(FOLLOW_BACK_MS));
    loop {
        let are_all = landed.entries.len() < RECEIPTS_MAX;
        for entry in landed.entries {
            // A request that has just begun shows when it has ended, unless begun ones are asked
            // for.
            if filter.state.is_some() || entry.state != State::Open {
                printer.print_one(entry)?;
            }
        }
        filter.after_seq = filter.after_seq.max(landed.last_seq).or(Some(0));
        if are_all {
            pulse = next_pulse(source, &pulse).await?;
        }
        landed = source.receipts(&filter, RECEIPTS_MAX).await?;
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

fn operation(typed: &str) -> Result<Operation, String> {
    word(Operation::ALL, typed)
}

fn reason(typed: &str) -> Result<InDoubt, String> {
    word(InDoubt::ALL, typed)
}

/// How many of each state were shown, and what a doubt is, when there is one.
fn footer(entries: &[EntryView]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for entry in entries {
        let cell = state_cell(entry).replace('_', " ");
        *counts.entry(cell).or_default() += 1;
    }
    let counted: Vec<String> = counts
        .iter()
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    let mut text = format!("\n{} shown: {}.", entries.len(), counted.join(", "));
    if entries.iter().any(|entry| entry.state.reason().is_some()) {
        text.push_str(
            "\nIn doubt: the service may have billed it and the amount was not seen, so it is in no \
             sum; `bursar explain ID` shows what happened and what would settle it.",
        );
    }
    text
}

/// The state with what belongs to it: the reason of a doubt, or that the price was none.
fn state_cell(entry: &EntryView) -> String {
    match (entry.state, entry.receipt) {
        // The service reported a price that cannot be read, which is not the same as none.
        (State::Unreported, ReceiptWord::Malformed) => "unreported(malformed)".to_owned(),
        (state, _) => cells::state(state.word(), state.reason()),
    }
}

/// What a person should see first.
fn ink(state: State) -> Ink {
    match state {
        State::Failed => Ink::Red,
        State::InDoubt { .. } | State::Unreported => Ink::Yellow,
        _ => Ink::Plain,
    }
}

// === impl Printer ===

impl Printer {
    /// Before lines that come one by one.
    fn begin(&self) -> Result<(), CliError> {
        match self.form {
            Form::Csv => csv::say_row(entry_csv::names()),
            Form::Text(_) | Form::Json => Ok(()),
        }
    }

    fn print_all(&self, entries: Vec<EntryView>) -> Result<(), CliError> {
        let Form::Text(look) = &self.form else {
            self.begin()?;
            let mut entries = entries.into_iter();
            return entries.try_for_each(|entry| self.print_one(entry));
        };
        let mut table = TextTable::new(TITLES);
        for entry in &entries {
            table.row_in(ink(entry.state), self.cells(entry));
        }
        say(table.laid_out(look))?;
        say(look.wrapped(&footer(&entries), 0))
    }

    fn print_one(&self, entry: EntryView) -> Result<(), CliError> {
        match &self.form {
            Form::Json => say_document(&EntryDocument(entry)),
            Form::Csv => csv::say_row(entry_csv::cells(&entry, &self.zone)),
            Form::Text(look) => say(self.line(&entry, look)),
        }
    }

    fn line(&self, entry: &EntryView, look: &Look) -> String {
        let mut table = TextTable::new(TITLES).headless(&WIDTHS);
        table.row_in(ink(entry.state), self.cells(entry));
        table.laid_out(look)
    }

    fn cells(&self, entry: &EntryView) -> [String; 11] {
        let state = state_cell(entry);
        let short = state.split('(').next().unwrap_or_default().to_owned();
        [
            calendar::shown(entry.at_ms, &self.zone),
            calendar::shown_short(entry.at_ms, &self.zone),
            entry.app.to_string(),
            entry.operation.to_string(),
            entry.model.clone().unwrap_or_else(|| "-".to_owned()),
            entry
                .served_by
                .map_or_else(|| "-".to_owned(), |by| by.to_string()),
            tokens(entry.usage),
            cells::amount(entry.billed_micro_usd),
            state,
            short,
            tail(&entry.id),
        ]
    }
}

/// `12+34`: input and output.
fn tokens(usage: Usage) -> String {
    match (usage.prompt_tokens, usage.completion_tokens) {
        (None, None) => "-".to_owned(),
        (input, output) => {
            let shown =
                |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
            format!("{}+{}", shown(input), shown(output))
        }
    }
}

#[cfg(test)]
mod tests;
