//! `bursar spend`: what was spent, as far as it is known, and beside it how much is not known.
//!
//! Promise: the sums are the ledger's, in integers; entries in doubt and unreported ones are counted
//! and never estimated.

use super::arguments::{Form, FormArgs, since_of, word};
use super::cells::{counted, seconds};
use super::csv;
use super::error::CliError;
#[cfg(feature = "fleet")]
use super::fleet::{self, WholeFleetArgs};
use super::locate::SourceArgs;
use super::output::{remark, say, say_document};
use super::runtime::block_on;
use super::source::Source;
use super::table::TextTable;
use crate::admin::documents::{SpendDocument, SpendQuestion};
use crate::calendar;
use crate::clock::SystemClock;
use crate::ledger::query::{GroupBy, SpendRow};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start of the period: today, yesterday, "this month", "last week", 2026-01-31, 2026-01, 2026-W05,
    /// 2026-01-31T08:00:00Z, or an age: 24h, 7d, 2w [default: today; by day this month; by month this year;
    /// by week the first week of this year]
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// End of the period, not included [default: no end]
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Group by app, lane, operation, served-by, day, state, model, hour, week, month, session, user, tag:KEY;
    /// several with commas [default: app]
    #[cfg_attr(
        feature = "fleet",
        doc = "Of a fleet also by host, which is its default, and not by model, session, user or tag"
    )]
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    by: Vec<String>,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    whole: WholeFleetArgs,
    /// Time zone of days and dates [default: that of the caps]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    source: SourceArgs,
}

/// The sums of a row in comma-separated values. An estimate of some answers does not stand beside the sum of all.
const FIGURES: [&str; 18] = [
    "requests",
    "billed_micro_usd",
    "settled",
    "reconciled",
    "in_doubt",
    "unreported",
    "failed",
    "replayed",
    "open",
    "compared",
    "compared_billed_micro_usd",
    "compared_would_have_cost_micro_usd",
    "drained_micro_usd",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "audio_ms",
    "audio_untold",
];

pub fn spend(args: &Args) -> Result<(), CliError> {
    #[cfg(feature = "fleet")]
    if let Some(fleet) = args.whole.asked(&args.source.ledger) {
        return fleet::spend::spend(&fleet::spend::Asked {
            since: args.since.as_deref(),
            until: args.until.as_deref(),
            by: &args.by,
            tz: args.tz.as_deref(),
            form: args.form.form(),
            fleet: &fleet,
        });
    }
    let by = match &*args.by {
        [] => vec![GroupBy::App],
        typed => {
            let by: Result<_, _> = typed.iter().map(|typed| group_by(typed)).collect();
            by.map_err(|why| CliError::usage(format_args!("--by: {why}")))?
        }
    };
    let now_ms = SystemClock::shared().wall_ms();
    let (asked, document) = block_on(async {
        let mut source = args.source.find().await?;
        let zone = args.source.zone(&source, args.tz.as_deref()).await?;
        // The files are read by session, user or tag: that takes long, and the daemon's time is for requests. A zone without a name
        // cannot be sent to a daemon.
        let is_long = by.iter().any(|by| by.is_of_lines());
        if (is_long || zone.iana_name().is_none()) && matches!(source, Source::Daemon(_)) {
            source = args.source.find_files().await?;
        }
        let since = args.since.clone();
        let since = since.unwrap_or_else(|| since_of(&by, now_ms, &zone));
        let range = calendar::range(Some(&since), args.until.as_deref(), now_ms, &zone)?;
        let asked = SpendQuestion {
            since_ms: Some(range.since_ms),
            until_ms: args.until.as_ref().map(|_| range.until_ms),
            by: by.clone(),
            zone,
        };
        let document = source.spend(&asked).await?;
        Ok::<_, CliError>((asked, document))
    })?;
    match args.form.form() {
        Form::Json => say_document(&document)?,
        Form::Csv => {
            let words: Vec<String> = asked.by.iter().map(ToString::to_string).collect();
            let words = words.iter().map(String::as_str);
            let columns: Vec<&str> = words.chain(FIGURES).collect();
            csv::say_documents(&columns, &document.rows)?;
        }
        Form::Text(look) => {
            say(look.wrapped(&heading(&asked), 0))?;
            say(table(&document).laid_out(&look))?;
            let total = &document.total;
            let sentences = [
                compared(total),
                drained(total),
                unknown(total),
                without_length(total),
            ];
            let mut sentences = sentences.into_iter().flatten();
            sentences.try_for_each(|sentence| say(look.wrapped(&sentence, 0)))?;
        }
    }
    if document.damaged > 0 {
        remark(
            "bursar: parts of the journal are damaged and missing in these sums; \
             see `bursar ledger verify`",
        );
    }
    if let Some(since) = &document.sessions_since {
        remark(format_args!(
            "bursar: sessions are known of entries that began after {since}; of earlier ones only sums are left"
        ));
    }
    if document.rounded {
        remark(
            "bursar: that long ago only sums by quarter hour are left; the one that --since or --until \
             cuts counts for the moment it begins",
        );
    }
    Ok(())
}

fn group_by(typed: &str) -> Result<GroupBy, String> {
    // The key of a tag is typed as it is.
    let tag = typed.starts_with("tag:").then(|| GroupBy::from_word(typed));
    match tag {
        Some(by) => by.ok_or_else(|| format!("{typed:?} has no key of a tag: tag:customer")),
        None => word(GroupBy::ALL, typed),
    }
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

fn table(document: &SpendDocument) -> TextTable {
    let by = &document.by;
    let title = |by: &GroupBy| {
        // Of hours that are cut none could be recognised.
        let mark = if by.is_of_calendar() { "=" } else { "" };
        format!("{mark}{}", by.to_string().replace('_', " "))
    };
    let mut titles: Vec<String> = by.iter().map(title).collect();
    titles.push(
        ">requests|>billed|>in doubt|>unreported|>+saved against frontier|>^saved".to_owned(),
    );
    // Speech is a column only where there was some: few ledgers hold any.
    let has_audio = document.total.audio_ms > 0 || document.total.audio_untold > 0;
    titles.extend(has_audio.then(|| ">~audio".to_owned()));
    titles.push(">~input tokens|>~output tokens".to_owned());
    let mut table = TextTable::new(&titles.join("|"));
    let sums = |row: &SpendRow| {
        let audio = has_audio.then(|| seconds(row.audio_ms));
        let tokens = [row.prompt_tokens, row.completion_tokens].map(|count| count.to_string());
        sums(row).into_iter().chain(audio).chain(tokens)
    };
    for row in &document.rows {
        let words = by
            .iter()
            .map(|by| row.labels.get(by).cloned().unwrap_or_default());
        table.row(words.chain(sums(row)));
    }
    table.rule();
    let mut words = vec![String::new(); by.len()];
    if let Some(first) = words.first_mut() {
        "all".clone_into(first);
    }
    table.row(words.into_iter().chain(sums(&document.total)));
    table
}

fn sums(row: &SpendRow) -> [String; 6] {
    [
        row.requests.to_string(),
        row.billed_micro_usd.to_string(),
        row.in_doubt.to_string(),
        row.unreported.to_string(),
        saved(row),
        saved(row),
    ]
}

/// What answers that carry both prices cost less than a frontier model would have, by the service's
/// estimate. Beside the sum of all answers an estimate of some of them says nothing.
fn saved(row: &SpendRow) -> String {
    match row.saved_micro_usd {
        _ if row.compared == 0 => "not known".to_owned(),
        None => "nothing".to_owned(),
        Some(saved) => saved.to_string(),
    }
}

/// Over which answers was compared, in a sentence.
fn compared(total: &SpendRow) -> Option<String> {
    (total.compared > 0).then(|| {
        format!(
            "\nSaved counts the answers that carry both prices: of {} {}, billed {}, where \
             a frontier model would have cost {} by the service's estimate.",
            counted(total.requests, "request", "requests"),
            total.compared,
            total.compared_billed_micro_usd,
            total.compared_would_have_cost_micro_usd,
        )
    })
}

/// What part of the sum no app has read, in a sentence.
fn drained(total: &SpendRow) -> Option<String> {
    let drained = total.drained_micro_usd;
    (!drained.is_zero()).then(|| {
        format!("\nOf this, {drained} went to answers whose app had left before they ended.")
    })
}

/// What the sum does not hold, in a sentence.
fn unknown(total: &SpendRow) -> Option<String> {
    let counts = [
        (total.in_doubt, "in doubt", "in-doubt"),
        (total.unreported, "unreported", "unreported"),
        (total.open, "open", "open"),
    ];
    let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
    let parts: Vec<String> = counts
        .map(|(count, word, state)| format!("{count} {word} (`bursar receipts --state {state}`)"))
        .collect();
    (!parts.is_empty()).then(|| {
        format!(
            "\nNot in the sum, because the price is not known: {}.",
            parts.join(", ")
        )
    })
}

/// What the seconds do not hold, in a sentence.
fn without_length(total: &SpendRow) -> Option<String> {
    let count = total.audio_untold;
    let answers = counted(count, "answer", "answers");
    (count > 0).then(|| {
        format!("\nNot in the audio: {answers} of the speech routes that reported no length.")
    })
}

#[cfg(test)]
mod tests;
