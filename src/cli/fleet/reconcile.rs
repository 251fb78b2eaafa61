//! `bursar reconcile --fleet`: the ledgers of all machines together, held against the service's own figure.
//!
//! Promise: exact decimals only. Exit code 0 when the two are equal, or when something that has no price here can make the
//! difference; 1 when something is left over.

use serde::Serialize;

use super::address::{FleetArgs, failed};
use super::ledgers::{lines_behind, listed};
use crate::calendar;
use crate::cli::arguments::Form;
use crate::cli::csv;
use crate::cli::error::CliError;
use crate::cli::look::{Ink, Look};
use crate::cli::output::{say, say_document};
use crate::cli::table::TextTable;
use crate::fleet::{FleetBy, FleetLedger, FleetSpend};
use crate::ledger::reconcile::Conclusion;
use crate::ledger::totals::MicroUsdSum;

/// The figure, and the period that it is for.
pub struct ServiceFigure {
    /// The member of the service's document, or `typed`.
    pub source: String,
    pub service: MicroUsdSum,
    pub since_ms: u64,
    pub until_ms: u64,
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
    /// Entries of the period, lines that are not in the database yet, and ranges that were found to be lost since the
    /// period began: the service's figure may be higher by any amount for each.
    in_doubt: i64,
    unreported: i64,
    lines_behind: u64,
    losses: u64,
    /// Of the period: the service's figure may be lower by this.
    counted_twice_micro_usd: MicroUsdSum,
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
    let rows = reader.spend(since_ms, Some(until_ms), &[FleetBy::Host], "UTC");
    let rows = rows.await.map_err(failed)?;
    let ledgers = reader.ledgers().await.map_err(failed)?;
    let losses = reader.losses(since_ms).await.map_err(failed)?;
    let twice = reader.counted_twice(since_ms, until_ms);
    let twice = twice.await.map_err(failed)?;
    let document = FleetReconciliation::new(figure, &rows, &ledgers, losses, twice);
    Ok(move |form| document.say(form))
}

// === impl FleetReconciliation ===

impl FleetReconciliation {
    fn new(
        figure: ServiceFigure,
        rows: &[FleetSpend],
        ledgers: &[FleetLedger],
        losses: u64,
        counted_twice: MicroUsdSum,
    ) -> Self {
        let mut fleet = MicroUsdSum::default();
        let (mut in_doubt, mut unreported) = (0_i64, 0_i64);
        for row in rows {
            fleet.merge(row.billed);
            in_doubt = in_doubt.saturating_add(row.in_doubt);
            unreported = unreported.saturating_add(row.unreported);
        }
        let lines_behind = lines_behind(ledgers);
        let service = figure.service;
        let apart = service.get().abs_diff(fleet.get());
        let is_open = in_doubt > 0 || unreported > 0 || lines_behind > 0 || losses > 0;
        let conclusion = match service.get().cmp(&fleet.get()) {
            std::cmp::Ordering::Equal => Conclusion::Equal,
            std::cmp::Ordering::Greater if is_open => Conclusion::Explained,
            std::cmp::Ordering::Less if apart <= counted_twice.get() => Conclusion::Explained,
            _ => Conclusion::Unexplained,
        };
        let magnitude = i64::try_from(apart).ok();
        Self {
            source: figure.source,
            since: calendar::rfc3339(figure.since_ms),
            until: calendar::rfc3339(figure.until_ms),
            service_micro_usd: service,
            fleet_micro_usd: fleet,
            difference_micro_usd: match service >= fleet {
                true => magnitude,
                false => magnitude.map(|apart| -apart),
            },
            conclusion,
            in_doubt,
            unreported,
            lines_behind,
            losses,
            counted_twice_micro_usd: counted_twice,
            hosts: rows
                .iter()
                .map(|row| HostSum {
                    host: row.labels.first().cloned().unwrap_or_default(),
                    billed_micro_usd: row.billed,
                })
                .collect(),
        }
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
        let open = listed(&[
            (
                u64::try_from(self.in_doubt).unwrap_or(0),
                "entry in doubt",
                "entries in doubt",
            ),
            (
                u64::try_from(self.unreported).unwrap_or(0),
                "unreported entry",
                "unreported entries",
            ),
            (
                self.lines_behind,
                "line that is not there yet",
                "lines that are not there yet",
            ),
            (self.losses, "lost range", "lost ranges"),
        ]);
        let (ink, conclusion) = match self.conclusion {
            Conclusion::Equal => (Ink::Green, "Equal to the micro-dollar.".to_owned()),
            Conclusion::Explained if open.is_empty() => (
                Ink::Plain,
                format!(
                    "Explained: {} are of keys with an amount on two machines, which the service billed once.",
                    self.counted_twice_micro_usd
                ),
            ),
            Conclusion::Explained => (
                Ink::Plain,
                format!("Explained at most by {open}, whose price is not known here."),
            ),
            Conclusion::Unexplained => (
                Ink::Red,
                "Not explained: spent by a machine that is not in the fleet, or the figure is for other days.".to_owned(),
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
