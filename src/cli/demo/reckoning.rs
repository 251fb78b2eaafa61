//! The ledger beside the service's books, operation by operation and key by key.
//!
//! Promise: both sides are read, neither is computed from the other; the difference is exact.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use tokio::time::{Instant, sleep};

use super::books::{Service, ServiceBooks};
use super::files::LedgerFiles;
use crate::cli::error::CliError;
use crate::cli::table::TextTable;
use crate::ledger::MicroUsdSum;
use crate::ledger::query::{EntryView, GroupBy, Spend, SpendRow};
use crate::protocol::routes::{Lookup, RouteTable};

/// A call of the reader's that runs while the sides are read stands on one of them only; it gets
/// this long to end.
const SETTLE_MAX: Duration = Duration::from_secs(3);

const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Both sides at one moment.
#[derive(Debug)]
pub struct Reckoning {
    lines: BTreeMap<String, OperationSums>,
    total: OperationSums,
    damaged: u64,
    /// Sums that differ under one Idempotency-Key.
    unequal: Vec<String>,
}

/// What both sides say of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OperationSums {
    requests: u64,
    known: MicroUsdSum,
    in_doubt: u64,
    unreported: u64,
    open: u64,
    debits: u64,
    debited: MicroUsdSum,
}

// === impl Reckoning ===

impl Reckoning {
    /// Reads both sides until they are at rest, or the time is up.
    pub async fn when_settled(journal: &LedgerFiles, service: &Service) -> Result<Self, CliError> {
        let until = Instant::now() + SETTLE_MAX;
        loop {
            let spend = journal.spend(GroupBy::Operation).await?;
            let entries = journal.all().await?;
            let books = service.books().await?;
            let reckoning = Self::of(&spend, &entries, &books);
            if reckoning.is_at_rest() || Instant::now() >= until {
                return Ok(reckoning);
            }
            sleep(LOOK_PAUSE).await;
        }
    }

    /// Nothing runs, and a difference has a reason that waiting does not take away.
    fn is_at_rest(&self) -> bool {
        let total = &self.total;
        let has_unknown = total.in_doubt + total.unreported > 0;
        total.open == 0 && (has_unknown || total.known == total.debited)
    }

    pub fn of(spend: &Spend, entries: &[EntryView], books: &ServiceBooks) -> Self {
        let mut lines: BTreeMap<String, OperationSums> = BTreeMap::new();
        for row in &spend.rows {
            let operation = row.labels.get(&GroupBy::Operation).cloned();
            lines
                .entry(operation.unwrap_or_default())
                .or_default()
                .add_row(row);
        }
        let mut total = OperationSums::default();
        total.add_row(&spend.total);
        let routes = RouteTable::new(&[]);
        for debit in &books.debits {
            let operation = match routes.look_up(&Method::POST, &debit.route) {
                Lookup::Found(route) => route.operation.to_string(),
                Lookup::OtherMethods(_) | Lookup::Unknown => debit.route.clone(),
            };
            for line in [lines.entry(operation).or_default(), &mut total] {
                line.debits += 1;
                line.debited.add(debit.amount);
            }
        }
        Self {
            lines,
            total,
            damaged: spend.damaged,
            unequal: unequal_keys(entries, books),
        }
    }

    pub fn table(&self) -> TextTable {
        let mut table = TextTable::new(
            "operation|>calls|>known sum|>in doubt|>no price|>debits|>debited|>difference",
        );
        for (operation, line) in &self.lines {
            table.row(line.cells(operation));
        }
        table.rule();
        table.row(self.total.cells("all"));
        table
    }

    /// The whole difference, and what is not in it.
    pub fn difference(&self) -> String {
        let mut text = difference(self.total.known, self.total.debited);
        let beside = [
            (self.total.in_doubt, "in doubt"),
            (
                self.total.unreported,
                "unreported (the service does not report their price)",
            ),
            (self.total.open, "in flight"),
        ];
        for (count, what) in beside.into_iter().filter(|(count, _)| *count > 0) {
            text.push_str(&format!("; {count} {what}"));
        }
        text
    }

    /// Why the sides do not agree; empty when they do.
    pub fn wrong(&self) -> Vec<String> {
        let mut wrong = self.unequal.clone();
        let total = &self.total;
        if total.known != total.debited {
            wrong.push(format!(
                "the ledger knows {}, the books say {}",
                total.known, total.debited
            ));
        }
        let counts = [
            (total.in_doubt, "in doubt"),
            (total.unreported, "unreported"),
            (total.open, "still open"),
            (self.damaged, "damaged in the journal"),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            wrong.push(format!("{count} {what}"));
        }
        wrong
    }
}

/// Sums under one key that are not the same on both sides.
fn unequal_keys(entries: &[EntryView], books: &ServiceBooks) -> Vec<String> {
    let mut by_key: BTreeMap<&str, (MicroUsdSum, MicroUsdSum)> = BTreeMap::new();
    for entry in entries {
        if let (Some(key), Some(billed)) = (&entry.key, entry.billed_micro_usd) {
            by_key.entry(key).or_default().0.add(billed);
        }
    }
    for debit in &books.debits {
        // Without a key there is nothing to match it by; the sums still show it.
        if let Some(key) = &debit.key {
            by_key.entry(key).or_default().1.add(debit.amount);
        }
    }
    by_key
        .into_iter()
        .filter(|(_, (known, debited))| known != debited)
        .map(|(key, (known, debited))| {
            format!("under key {key} the ledger has {known}, the books have {debited}")
        })
        .collect()
}

/// `$0.000000`, `+$0.000003` when the ledger says more, `-$0.000003` when the books do.
pub fn difference(known: MicroUsdSum, debited: MicroUsdSum) -> String {
    let micro_usd = known.get().abs_diff(debited.get());
    let sign = match known.cmp(&debited) {
        std::cmp::Ordering::Less => "-",
        std::cmp::Ordering::Equal => "",
        std::cmp::Ordering::Greater => "+",
    };
    format!(
        "{sign}${}.{:06}",
        micro_usd / 1_000_000,
        micro_usd % 1_000_000
    )
}

// === impl OperationSums ===

impl OperationSums {
    fn add_row(&mut self, row: &SpendRow) {
        self.requests += row.requests;
        self.known.merge(row.billed_micro_usd);
        self.in_doubt += row.in_doubt;
        self.unreported += row.unreported;
        self.open += row.open;
    }

    fn cells(&self, operation: &str) -> [String; 8] {
        [
            operation.to_owned(),
            self.requests.to_string(),
            self.known.to_string(),
            self.in_doubt.to_string(),
            self.unreported.to_string(),
            self.debits.to_string(),
            self.debited.to_string(),
            difference(self.known, self.debited),
        ]
    }
}

#[cfg(test)]
mod tests;
