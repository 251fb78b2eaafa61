//! `bursar reconcile --fleet`: the ledgers of all machines together, held against the service's own figure.
//!
//! Promise: exact decimals only. Exit code 0 when the two are equal, or when something that has no price here can make the
//! difference; 1 when something is left over.

use std::time::Duration;

use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::address::{FleetArgs, failed};
use super::ledgers::{lines_behind, listed};
use crate::calendar;
use crate::cli::arguments::Form;
use crate::cli::cells::counted;
use crate::cli::csv;
use crate::cli::error::CliError;
use crate::cli::look::{Ink, Look};
use crate::cli::output::{say, say_document};
use crate::cli::table::TextTable;
use crate::clock::SystemClock;
use crate::fleet::{FleetBy, FleetError, FleetSpend, Operator};
use crate::ledger::query::{SINCE_EDGE_MS, UNTIL_EDGE_MS};
use crate::ledger::reconcile::Conclusion;
use crate::ledger::totals::MicroUsdSum;

/// A machine that was heard so shortly before the period's end says hello again: it does so every 30 s.
const THERE_MS: u64 = 2 * 60 * 1000;

/// Longest wait for that.
const HEARD_WAIT_MAX: Duration = Duration::from_secs(45);

const HEARD_PAUSE: Duration = Duration::from_secs(1);

/// The figure, and the period that it is for.
pub struct ServiceFigure {
    /// The member of the service's document, or `typed`.
    pub source: String,
    pub service: MicroUsdSum,
    pub since_ms: u64,
    pub until_ms: u64,
}

/// What the two figures can be apart by.
#[derive(Default)]
struct Beside {
    /// Requests of the period without an end there. `None`: the database was too slow.
    under_way: Option<u64>,
    /// Lines that the database lacks of machines that were heard since the period began.
    lines_behind: u64,
    /// Machines that were heard in the period, and not since: what they did behind that is not known.
    not_heard_since: u64,
    /// Machines that were not heard since the period began, and are neither revoked nor gone.
    silent: usize,
    /// Ranges that were found to be lost since the period began.
    losses: u64,
    /// Of keys with an amount on two machines. `None`: the database was too slow.
    counted_twice: Option<MicroUsdSum>,
    /// Billed to entries that began just before the period and just behind it, which the service may count in it.
    outside: MicroUsdSum,
    /// The same of entries in it, which the service may count outside.
    inside: MicroUsdSum,
}

/// `bursar reconcile --fleet --json`.
#[derive(Serialize)]
struct FleetReconciliation {
    source: String,
    since: Option<String>,
    until: Option<String>,
    service_micro_usd: MicroUsdSum,
    fleet_micro_usd: MicroUsdSum,
    /// The service's figure less the fleet's. `null` beyond 64 bits; the conclusion stands.
    difference_micro_usd: Option<i64>,
    conclusion: Conclusion,
    /// The service's figure may be higher by any amount for each of these.
    in_doubt: i64,
    unreported: i64,
    under_way: Option<u64>,
    lines_behind: u64,
    not_heard_since: u64,
    losses: u64,
    /// Machines that were not heard since the period began.
    silent: usize,
    /// It may be higher by this.
    outside_micro_usd: MicroUsdSum,
    /// It may be lower by these two.
    inside_micro_usd: MicroUsdSum,
    counted_twice_micro_usd: Option<MicroUsdSum>,
    hosts: Vec<HostSum>,
}

#[derive(Serialize)]
struct HostSum {
    host: String,
    billed_micro_usd: MicroUsdSum,
}

pub async fn compared(
    fleet: &FleetArgs,
    figure: ServiceFigure,
) -> Result<impl FnOnce(Form) -> Result<(), CliError> + use<>, CliError> {
    let reader = fleet.operator().await?;
    let (since_ms, until_ms) = (figure.since_ms, figure.until_ms);
    let not_heard_since = not_heard_since(&reader, since_ms, until_ms).await?;
    let billed = async |since_ms, until_ms| {
        let rows = reader.spend(since_ms, Some(until_ms), &[], "UTC").await;
        let mut billed = MicroUsdSum::default();
        for row in rows.map_err(failed)? {
            billed.merge(row.billed);
        }
        Ok::<_, CliError>(billed)
    };
    let rows = reader.spend(since_ms, Some(until_ms), &[FleetBy::Host], "UTC");
    let rows = rows.await.map_err(failed)?;
    // As for one ledger (`ledger::window`).
    let (mut outside, mut inside) = (MicroUsdSum::default(), MicroUsdSum::default());
    outside.merge(billed(since_ms.saturating_sub(SINCE_EDGE_MS), since_ms).await?);
    outside.merge(billed(until_ms, until_ms.saturating_add(UNTIL_EDGE_MS)).await?);
    let first_end_ms = until_ms.min(since_ms.saturating_add(SINCE_EDGE_MS));
    inside.merge(billed(since_ms, first_end_ms).await?);
    let last_ms = first_end_ms.max(until_ms.saturating_sub(UNTIL_EDGE_MS));
    inside.merge(billed(last_ms, until_ms).await?);
    let ledgers = reader.ledgers().await.map_err(failed)?;
    let silent = ledgers
        .iter()
        .filter(|ledger| !ledger.is_revoked && !ledger.is_gone && ledger.heard_ms < since_ms);
    let losses = reader.losses(since_ms).await.map_err(failed)?;
    // The last one.
    let (under_way, counted_twice) = match reader.beside(since_ms, until_ms).await {
        Ok((under_way, twice)) => (Some(under_way), Some(twice)),
        Err(FleetError::Slow) => (None, None),
        Err(error) => return Err(failed(error)),
    };
    let beside = Beside {
        under_way,
        lines_behind: lines_behind(&ledgers, since_ms),
        not_heard_since,
        silent: silent.count(),
        losses,
        counted_twice,
        outside,
        inside,
    };
    let document = FleetReconciliation::new(figure, &rows, &beside);
    Ok(move |form| document.say(form))
}

/// How many machines were heard in the period and not since it ended. Those that are there are waited for: a hello says what
/// is not shipped yet.
async fn not_heard_since(reader: &Operator, since_ms: u64, until_ms: u64) -> Result<u64, CliError> {
    let (now_ms, begun) = (SystemClock::shared().wall_ms(), Instant::now());
    let there = reader.0.greet().await.map_err(failed)?;
    // What was heard is by the database's clock, and nothing is later than now.
    let there = |at_ms: u64| match there.now_ms.checked_sub(now_ms) {
        Some(ahead_ms) => at_ms.saturating_add(ahead_ms),
        None => at_ms.saturating_sub(now_ms.saturating_sub(there.now_ms)),
    };
    let (since_ms, until_ms) = (there(since_ms), there(until_ms.min(now_ms)));
    let is_there_ms = since_ms.max(until_ms.saturating_sub(THERE_MS));
    while begun.elapsed() < HEARD_WAIT_MAX {
        let waited_for = reader.heard_last(is_there_ms, until_ms).await;
        if waited_for.map_err(failed)? == 0 {
            break;
        }
        sleep(HEARD_PAUSE).await;
    }
    let heard_last = reader.heard_last(since_ms, until_ms).await;
    heard_last.map_err(failed)
}

// === impl FleetReconciliation ===

impl FleetReconciliation {
    fn new(figure: ServiceFigure, rows: &[FleetSpend], beside: &Beside) -> Self {
        let mut fleet = MicroUsdSum::default();
        let (mut in_doubt, mut unreported) = (0_i64, 0_i64);
        for row in rows {
            fleet.merge(row.billed);
            in_doubt = in_doubt.saturating_add(row.in_doubt);
            unreported = unreported.saturating_add(row.unreported);
        }
        let service = figure.service;
        let apart = service.get().abs_diff(fleet.get());
        let magnitude = i64::try_from(apart).ok();
        let mut document = Self {
            source: figure.source,
            since: calendar::rfc3339(figure.since_ms),
            until: calendar::rfc3339(figure.until_ms),
            service_micro_usd: service,
            fleet_micro_usd: fleet,
            difference_micro_usd: match service >= fleet {
                true => magnitude,
                false => magnitude.map(|apart| -apart),
            },
            conclusion: Conclusion::Unexplained,
            in_doubt,
            unreported,
            under_way: beside.under_way,
            lines_behind: beside.lines_behind,
            not_heard_since: beside.not_heard_since,
            losses: beside.losses,
            silent: beside.silent,
            outside_micro_usd: beside.outside,
            inside_micro_usd: beside.inside,
            counted_twice_micro_usd: beside.counted_twice,
            hosts: rows
                .iter()
                .map(|row| HostSum {
                    host: row.labels.first().cloned().unwrap_or_default(),
                    billed_micro_usd: row.billed,
                })
                .collect(),
        };
        let mut most = MicroUsdSum::default();
        let is_open = match document.is_service_higher() {
            true => {
                most.merge(beside.outside);
                !document.of_any_amount().is_empty()
            }
            false => {
                most.merge(beside.inside);
                if let Some(twice) = beside.counted_twice {
                    most.merge(twice);
                }
                false
            }
        };
        document.conclusion = match apart {
            0 => Conclusion::Equal,
            _ if is_open || apart <= most.get() => Conclusion::Explained,
            _ => Conclusion::Unexplained,
        };
        document
    }

    fn is_service_higher(&self) -> bool {
        self.service_micro_usd >= self.fleet_micro_usd
    }

    /// What the fleet has no price of.
    fn of_any_amount(&self) -> String {
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        listed(&[
            (count(self.in_doubt), "entry in doubt", "entries in doubt"),
            (
                count(self.unreported),
                "unreported entry",
                "unreported entries",
            ),
            (
                self.under_way.unwrap_or(0),
                "request without an end",
                "requests without an end",
            ),
            (
                self.lines_behind,
                "line that is not there yet",
                "lines that are not there yet",
            ),
            (
                self.not_heard_since,
                "machine that was not heard since",
                "machines that were not heard since",
            ),
            (self.losses, "lost range", "lost ranges"),
        ])
    }

    fn say(&self, form: Form) -> Result<(), CliError> {
        match form {
            Form::Json => say_document(self)?,
            Form::Csv => csv::say_members(self)?,
            Form::Text(look) => say(self.text(&look))?,
        }
        match self.conclusion {
            Conclusion::Equal | Conclusion::Explained => Ok(()),
            Conclusion::Unexplained => Err(CliError::Said),
        }
    }

    fn text(&self, look: &Look) -> String {
        let at = |time: &Option<String>| time.clone().unwrap_or_default();
        let mut table = TextTable::new("|>").headless(&[]);
        for host in &self.hosts {
            table.row([host.host.clone(), host.billed_micro_usd.to_string()]);
        }
        table.rule();
        table.row(["all machines".to_owned(), self.fleet_micro_usd.to_string()]);
        table.row([
            format!("the service ({})", self.source),
            self.service_micro_usd.to_string(),
        ]);
        let amount = |of: MicroUsdSum, what: &str| (!of.is_zero()).then(|| format!("{of} {what}"));
        let reasons = match self.is_service_higher() {
            true => {
                let unpriced = self.of_any_amount();
                let unpriced = (!unpriced.is_empty())
                    .then(|| format!("{unpriced}, whose price is not known here"));
                let outside = "of entries just outside the period";
                [unpriced, amount(self.outside_micro_usd, outside)]
            }
            false => {
                let of_keys =
                    "of keys with an amount on two machines, which the service billed once";
                let twice = self.counted_twice_micro_usd;
                let twice = twice.and_then(|twice| amount(twice, of_keys));
                [
                    twice,
                    amount(self.inside_micro_usd, "of entries at the period's ends"),
                ]
            }
        };
        let reasons: Vec<String> = reasons.into_iter().flatten().collect();
        let (ink, mut conclusion) = match (self.conclusion, self.is_service_higher()) {
            (Conclusion::Equal, _) => (Ink::Green, "Equal to the micro-dollar.".to_owned()),
            (Conclusion::Explained, _) => (
                Ink::Plain,
                format!("Explained at most by {}.", reasons.join("; ")),
            ),
            (Conclusion::Unexplained, true) => (
                Ink::Red,
                "Not explained: spent by a machine that is not in the fleet, or the figure is for other days.".to_owned(),
            ),
            (Conclusion::Unexplained, false) => (
                Ink::Red,
                "Not explained: an app used one key of its own on two machines, or the figure is for other days.".to_owned(),
            ),
        };
        if self.conclusion == Conclusion::Unexplained && self.under_way.is_none() {
            conclusion.push_str(
                " The database was too slow to say which requests have no end and which keys are on two machines.",
            );
        }
        if self.conclusion == Conclusion::Unexplained && self.is_service_higher() && self.silent > 0
        {
            conclusion.push_str(&format!(
                " Not heard since the period began: {}.",
                counted(
                    u64::try_from(self.silent).unwrap_or(u64::MAX),
                    "machine",
                    "machines"
                )
            ));
        }
        format!(
            "From {} until {}\n\n{}\n{}",
            at(&self.since),
            at(&self.until),
            table.laid_out(look),
            look.inked(ink, look.wrapped(&conclusion, 0))
        )
    }
}

#[cfg(test)]
mod tests;
