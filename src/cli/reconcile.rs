//! `bursar reconcile`: the ledger held against the service's own figure, or against an invoice, and what
//! makes the difference.
//!
//! Promise: exact decimals only. Exit code 0 when the two are equal, or when what the ledger knows not
//! to know can make the difference (how that is decided: [`crate::ledger::reconcile`]); 1 when something
//! is left over.

use jiff::tz::TimeZone;

use super::arguments::{Form, FormArgs, usd};
use super::cells::counted;
use super::csv;
use super::error::CliError;
#[cfg(feature = "fleet")]
use super::fleet::reconcile::{ServiceFigure, compared};
#[cfg(feature = "fleet")]
use super::fleet::{FleetArgs, WholeFleetArgs};
use super::locate::SourceArgs;
use super::look::{Ink, Look};
use super::output::{say, say_document};
use super::runtime::block_on;
use super::table::TextTable;
use crate::admin::reconcile::{Figure, Invoice, Reconciliation};
use crate::calendar;
use crate::clock::SystemClock;
use crate::ledger::reconcile::{Ceiling, Conclusion, Kind, Side};
use crate::money::MicroUsd;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Compare with this figure, such as 123.456789, instead of the service's document
    #[arg(long, value_name = "USD", value_parser = usd, requires = "since")]
    billed_usd: Option<MicroUsd>,
    /// Start of the figure's period: 2026-01, "last month", 2026-01-31, 2026-01-31T08:00:00Z, or an age: 30d
    #[arg(long, value_name = "TIME", requires = "billed_usd")]
    since: Option<String>,
    /// End of the figure's period, not included [default: now]
    #[arg(long, value_name = "TIME", requires = "billed_usd")]
    until: Option<String>,
    /// Time zone of dates [default: that of the caps]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    whole: WholeFleetArgs,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    source: SourceArgs,
}

pub fn reconcile(args: &Args) -> Result<(), CliError> {
    let now_ms = SystemClock::shared().wall_ms();
    #[cfg(feature = "fleet")]
    if let Some(fleet) = args.whole.asked(&args.source.ledger) {
        return of_fleet(args, &fleet, now_ms);
    }
    let (zone, document) = block_on(async {
        let source = args.source.find().await?;
        let zone = args.source.zone(&source, args.tz.as_deref()).await?;
        let asked = figure(args, now_ms, &zone)?;
        Ok::<_, CliError>((zone, source.reconcile(&asked, now_ms).await?))
    })?;
    match args.form.form() {
        Form::Json => say_document(&document)?,
        Form::Csv => csv::say_members(&document)?,
        Form::Text(look) => say(report(&document, &zone, &look))?,
    }
    match document.conclusion {
        Conclusion::Equal | Conclusion::Explained => Ok(()),
        Conclusion::Unexplained => Err(CliError::Said),
    }
}

/// All machines: the daemon of this one asks the service, which has one figure for the organization.
#[cfg(feature = "fleet")]
fn of_fleet(args: &Args, fleet: &FleetArgs, now_ms: u64) -> Result<(), CliError> {
    let zone = fleet.zone(args.tz.as_deref())?;
    let say = block_on(async {
        let figure = match figure(args, now_ms, &zone)? {
            Figure::Typed(invoice) => ServiceFigure {
                source: "typed".to_owned(),
                service: invoice.billed.into(),
                since_ms: invoice.since_ms,
                until_ms: invoice.until_ms.unwrap_or(now_ms),
            },
            Figure::Document => {
                let source = args.source.find().await?;
                let own = source.reconcile(&Figure::Document, now_ms).await?;
                ServiceFigure {
                    source: own.source,
                    service: own.service,
                    since_ms: own.since_ms,
                    until_ms: own.until_ms,
                }
            }
        };
        compared(fleet, figure).await
    })?;
    say(args.form.form())
}

/// What the ledger is held against.
fn figure(args: &Args, now_ms: u64, zone: &TimeZone) -> Result<Figure, CliError> {
    let Some(billed) = args.billed_usd else {
        return Ok(Figure::Document);
    };
    let since = args.since.as_deref();
    let range = calendar::range(since, args.until.as_deref(), now_ms, zone)?;
    if range.since_ms > now_ms {
        return Err(CliError::usage("--since: lies in the future"));
    }
    Ok(Figure::Typed(Invoice {
        billed,
        since_ms: range.since_ms,
        until_ms: args.until.as_ref().map(|_| range.until_ms),
    }))
}

/// The answer for people.
fn report(document: &Reconciliation, zone: &TimeZone, look: &Look) -> String {
    let at = |ms: u64| calendar::shown(ms, zone);
    let zone_name = zone.iana_name().unwrap_or("local time");
    let mut lines = vec![
        format!(
            "From {} until {} ({zone_name})",
            at(document.since_ms),
            at(document.until_ms)
        ),
        String::new(),
    ];
    if let Some(age_s) = document.age_s.filter(|age_s| *age_s > 0) {
        let taken = format!(
            "Both figures were taken {age_s} s ago: over a port bursar asks once a minute."
        );
        lines.insert(1, look.wrapped(&taken, 0));
    }
    let service = match &*document.source {
        "typed" => "figure given".to_owned(),
        field => format!("service, {field}"),
    };
    let mut figures = TextTable::new("|>").headless(&[]);
    figures.row([service, document.service.to_string()]);
    figures.row(["ledger".to_owned(), document.ledger.to_string()]);
    figures.row(["difference".to_owned(), difference(document)]);
    lines.push(figures.to_string());
    lines.push(look.wrapped(&zeros(document), 0));
    if let Some(reasons) = reasons(document, look) {
        lines.push("What can make a difference:".to_owned());
        lines.push(String::new());
        lines.push(reasons);
    }
    let ink = match document.conclusion {
        Conclusion::Equal => Ink::Green,
        Conclusion::Explained => Ink::Plain,
        Conclusion::Unexplained => Ink::Red,
    };
    lines.push(look.inked(ink, look.wrapped(&conclusion(document), 0)));
    lines.join("\n")
}

/// What the ledger's sum is made of.
fn zeros(document: &Reconciliation) -> String {
    format!(
        "The ledger's sum is that of {} with a price; {} that failed and {} that were replayed \
         count as 0.\n",
        counted(document.priced, "entry", "entries"),
        document.failed,
        document.replayed
    )
}

fn reasons(document: &Reconciliation, look: &Look) -> Option<String> {
    let mut table = TextTable::new("kind|which|>entries|>at most|the service is then");
    for reason in &document.reasons {
        table.row([
            reason.kind.as_str().replace('_', " "),
            reason.detail.clone(),
            reason
                .count
                .map(|count| count.to_string())
                .unwrap_or_default(),
            match reason.bound {
                Ceiling::AtMost(most) => most.to_string(),
                Ceiling::Any => "any amount".to_owned(),
            },
            reason.service_is.to_string(),
        ]);
    }
    (!table.is_empty()).then(|| table.laid_out(look))
}

fn conclusion(document: &Reconciliation) -> String {
    let is_higher = document
        .difference_micro_usd
        .is_none_or(|difference| difference > 0);
    let or_else = match &*document.source {
        "typed" => "the figure is for other days",
        _ => "[reconcile] spend_field or window_days is not the service's",
    };
    match (document.conclusion, is_higher) {
        (Conclusion::Equal, _) => "Equal to the micro-dollar.".to_owned(),
        (Conclusion::Explained, _) if !document.unbounded.is_zero() => format!(
            "Explained at most by {}: nothing bounds their price, so {} of the difference is theirs or was spent \
             outside bursar, and which of the two is not known.",
            without_bound(document),
            document.unbounded
        ),
        (Conclusion::Explained, _) => {
            "Explained: the kinds above that go this way can make it. Each entry is taken for at most the dearest \
             answer of its operation, at the frontier's price where that is more."
                .to_owned()
        }
        (Conclusion::Unexplained, true) => format!(
            "Not explained: {} more than the ledger can account for. Spent outside bursar (another \
             machine or app with the same key), or {or_else}.",
            document.unexplained
        ),
        (Conclusion::Unexplained, false) => format!(
            "Not explained: {} that the ledger has and the service does not. This ledger holds more than \
             this organization's requests, or {or_else}.",
            document.unexplained
        ),
    }
}

/// What has no bound, and makes the service's figure the higher one: `3 unreported entries, 1 damaged range`.
fn without_bound(document: &Reconciliation) -> String {
    let reasons = document.reasons.iter();
    let open =
        reasons.filter(|reason| reason.bound == Ceiling::Any && reason.service_is == Side::Higher);
    let mut counts: Vec<(Kind, u64)> = Vec::new();
    for reason in open {
        let count = reason.count.unwrap_or_default();
        match counts.iter_mut().find(|(kind, _)| *kind == reason.kind) {
            Some((_, sum)) => *sum = sum.saturating_add(count),
            None => counts.push((reason.kind, count)),
        }
    }
    let named = counts.into_iter().map(|(kind, count)| match kind {
        Kind::Damaged => counted(count, "damaged range", "damaged ranges"),
        kind => {
            let kind = kind.as_str().replace('_', " ");
            counted(count, &format!("{kind} entry"), &format!("{kind} entries"))
        }
    });
    named.collect::<Vec<_>>().join(", ")
}

fn difference(document: &Reconciliation) -> String {
    document.difference_micro_usd.map_or_else(
        || "?".to_owned(),
        |difference| {
            let sign = match difference {
                0 => "",
                1.. => "+",
                _ => "-",
            };
            format!("{sign}{}", MicroUsd::new(difference.unsigned_abs()))
        },
    )
}
