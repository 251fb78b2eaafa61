//! `bursar reconcile --fleet`: the ledgers of all machines together, held against the service's own figure.
//!
//! Promise: exact decimals only. Exit code 0 when the two are equal, or when something that has no price here can make the
//! difference; 1 when something is left over.

use std::time::Duration;

use serde::Serialize;
use tokio::time::{Instant, sleep, timeout};

use super::address::{FleetArgs, failed};
use super::ledgers::{lines_behind, listed};
use super::spend::TWICE_MAX;
use crate::calendar;
use crate::cli::arguments::Form;
use crate::cli::csv;
use crate::cli::error::CliError;
use crate::cli::look::{Ink, Look};
use crate::cli::output::{say, say_document};
use crate::cli::table::TextTable;
use crate::fleet::{FleetBy, FleetLedger, FleetSpend, Operator};
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
    /// Requests of the period without an end there. `None`: the database took too long.
    under_way: Option<u64>,
    /// Lines that the database lacks of machines that were heard since the period began.
    lines_behind: u64,
    /// Machines that were heard in the period, and not since: what they did behind that is not known.
    not_heard_since: usize,
    /// Ranges that were found to be lost since the period began.
    losses: u64,
    /// Of keys with an amount on two machines. `None`: the database took too long.
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
    not_heard_since: usize,
    losses: u64,
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
    let (ledgers, not_heard_since) = heard(&reader, since_ms, until_ms).await?;
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
    let under_way = timeout(TWICE_MAX, reader.under_way(since_ms, until_ms));
    let under_way = under_way.await.ok().and_then(Result::ok);
    let counted_twice = timeout(TWICE_MAX, reader.counted_twice(since_ms, until_ms));
    let counted_twice = counted_twice.await.ok().and_then(Result::ok);
    let beside = Beside {
        under_way,
        lines_behind: lines_behind(&ledgers, since_ms),
        not_heard_since,
        losses: reader.losses(since_ms).await.map_err(failed)?,
        counted_twice,
        outside,
        inside,
    };
    let document = FleetReconciliation::new(figure, &rows, &beside);
    Ok(move |form| document.say(form))
}

/// The ledgers, and how many of them were heard in the period and not since. Those that are there are waited for: a hello
/// says what is not shipped yet.
async fn heard(
    reader: &Operator,
    since_ms: u64,
    until_ms: u64,
) -> Result<(Vec<FleetLedger>, usize), CliError> {
    let begun = Instant::now();
    loop {
        let ledgers = reader.ledgers().await.map_err(failed)?;
        let not_since = |from_ms: u64| {
            let has_all = |ledger: &&FleetLedger| ledger.is_gone && ledger.lines_behind == 0;
            let here = ledgers.iter().filter(|ledger| !has_all(ledger));
            here.filter(|ledger| (from_ms..until_ms).contains(&ledger.heard_ms))
                .count()
        };
        let is_there_ms = since_ms.max(until_ms.saturating_sub(THERE_MS));
        if not_since(is_there_ms) == 0 || begun.elapsed() >= HEARD_WAIT_MAX {
            let count = not_since(since_ms);
            return Ok((ledgers, count));
        }
        sleep(HEARD_PAUSE).await;
    }
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
                most.merge(beside.counted_twice.unwrap_or_default());
                beside.counted_twice.is_none()
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
        let mut listed = listed(&[
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
                u64::try_from(self.not_heard_since).unwrap_or(u64::MAX),
                "machine that was not heard since",
                "machines that were not heard since",
            ),
            (self.losses, "lost range", "lost ranges"),
        ]);
        if self.under_way.is_none() {
            listed.push_str(match listed.is_empty() {
                true => "requests without an end, which the database did not count in time",
                false => ", requests without an end, which the database did not count in time",
            });
        }
        listed
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
                let of_keys = "keys with an amount on two machines, which the service billed once";
                let twice = match self.counted_twice_micro_usd {
                    Some(twice) => amount(twice, &format!("of {of_keys}")),
                    None => Some(format!(
                        "{of_keys}: the database did not add them up in time"
                    )),
                };
                [
                    twice,
                    amount(self.inside_micro_usd, "of entries at the period's ends"),
                ]
            }
        };
        let reasons: Vec<String> = reasons.into_iter().flatten().collect();
        let (ink, conclusion) = match (self.conclusion, self.is_service_higher()) {
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
