//! The account at the end: operation by operation what the ledger knows, what the books have, and, where
//! the service told no price, what the books have under exactly those entries.
//!
//! Promise: both sides are read and matched purchase by purchase: by Idempotency-Key, by eval run, by
//! request id. A debit without an entry, an entry without its debit and an amount that differs are each
//! told; sums that are equal by chance do not hide them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::cli::demo::answer::seconds;
use crate::cli::demo::books::{Books, Debit, Purchase, Service};
use crate::cli::demo::files::Journal;
use crate::cli::demo::reckoning::{Line, Reckoning, difference};
use crate::cli::demo::stage::Stage;
use crate::cli::error::CliError;
use crate::cli::table::{Align, Table};
use crate::ledger::MicroUsdSum;
use crate::ledger::entry::State;
use crate::ledger::query::EntryView;

/// Both sides, and what makes them differ.
#[derive(Debug)]
pub struct Account {
    reckoning: Reckoning,
    /// By operation.
    untold: BTreeMap<String, Untold>,
    wrong: Vec<String>,
}

/// Answers whose price the service does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Untold {
    answers: u64,
    /// Sound, where the answers told seconds.
    audio_ms: u64,
    /// What the books have under them.
    debits: u64,
    debited: MicroUsdSum,
}

/// One purchase on both sides.
#[derive(Debug, Default)]
struct Sides<'a> {
    entries: Vec<&'a EntryView>,
    debits: Vec<&'a Debit>,
}

// === impl Account ===

impl Account {
    pub async fn when_at_rest(journal: &Journal, service: &Service) -> Result<Self, CliError> {
        let reckoning = Reckoning::when_settled(journal, service).await?;
        let entries = journal.all().await?;
        let books = service.books().await?;
        Ok(Self::of(reckoning, &entries, &books))
    }

    fn of(reckoning: Reckoning, entries: &[EntryView], books: &Books) -> Self {
        let mut account = Self {
            reckoning,
            untold: BTreeMap::new(),
            wrong: Vec::new(),
        };
        let mut purchases: BTreeMap<Purchase<'_>, Sides<'_>> = BTreeMap::new();
        for entry in entries {
            match Purchase::of_entry(entry) {
                Some(purchase) => purchases.entry(purchase).or_default().entries.push(entry),
                // Nothing of it reached the service, or nothing came back.
                None if entry.state == State::Failed => {}
                None => account.wrong.push(format!(
                    "entry {} has nothing that the books would know it by",
                    entry.id
                )),
            }
        }
        for debit in &books.debits {
            let purchase = Purchase::of_debit(debit);
            purchases.entry(purchase).or_default().debits.push(debit);
        }
        for (purchase, sides) in &purchases {
            account.compare(purchase, sides);
        }
        account.compare_operations();
        account
    }

    fn compare(&mut self, purchase: &Purchase<'_>, sides: &Sides<'_>) {
        let (known, debited) = (sides.known(), sides.debited());
        let untold: Vec<_> = sides.untold().collect();
        let Some(first) = untold.first() else {
            if sides.entries.is_empty() {
                let route = sides.debits.first().map(|debit| debit.route.as_str());
                let route = route.unwrap_or_default();
                self.wrong.push(format!(
                    "the books have {debited} for {route} ({purchase}), and the ledger no entry"
                ));
            } else if known != debited {
                self.wrong.push(format!(
                    "under {purchase} the ledger has {known}, the books have {debited}"
                ));
            }
            return;
        };
        if !known.is_zero() {
            self.wrong.push(format!(
                "under {purchase} one entry has a price, {known}, and another none"
            ));
        }
        let line = self.untold.entry(first.operation.to_string()).or_default();
        line.debits += sides.debits.len() as u64;
        line.debited.merge(debited);
        for entry in untold {
            line.answers += 1;
            line.audio_ms += entry.audio_ms.unwrap_or(0);
        }
    }

    /// The sums of each operation, as `bursar spend` reads them, against what was matched.
    fn compare_operations(&mut self) {
        for (operation, line) in &self.reckoning.lines {
            let untold = self.untold.get(operation).cloned().unwrap_or_default();
            let mut accounted = line.known;
            accounted.merge(untold.debited);
            if accounted != line.debited {
                self.wrong.push(format!(
                    "{operation}: {} are known and {} not told, the books say {}",
                    line.known, untold.debited, line.debited
                ));
            }
            if untold.answers != line.unreported {
                self.wrong.push(format!(
                    "{operation}: {} entries are unreported, {} were matched",
                    line.unreported, untold.answers
                ));
            }
        }
        let total = &self.reckoning.total;
        let counts = [
            (total.in_doubt, "in doubt"),
            (total.open, "still open"),
            (self.reckoning.damaged, "damaged in the journal"),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            self.wrong.push(format!("{count} {what}"));
        }
    }

    /// Why the sides do not agree; empty when they do.
    pub fn wrong(&self) -> Vec<String> {
        self.wrong.clone()
    }

    pub fn table(&self) -> Table {
        let mut table = Table::new(&[
            ("operation", Align::Left),
            ("requests", Align::Right),
            ("ledger", Align::Right),
            ("books", Align::Right),
            ("difference", Align::Right),
            ("not told", Align::Right),
        ]);
        for (operation, line) in &self.reckoning.lines {
            table.row(cells(operation, line));
        }
        table.rule();
        table.row(cells("all", &self.reckoning.total));
        table
    }

    /// What makes the difference.
    pub fn explain(&self, stage: &Stage) -> Result<(), CliError> {
        let mut label = "not told";
        for (operation, untold) in &self.untold {
            let sound = match untold.audio_ms {
                0 => String::new(),
                ms => format!(" for {} of sound", seconds(ms)),
            };
            let answers = match untold.answers {
                1 => "1 answer".to_owned(),
                answers => format!("{answers} answers"),
            };
            stage.fact(
                label,
                format_args!(
                    "{operation}: {answers}{sound}; the books have {} under it",
                    untold.debited
                ),
            )?;
            label = "";
        }
        let untold = self.untold_in_all();
        let Line { known, debited, .. } = self.reckoning.total;
        let difference = difference(known, debited);
        stage.fact(
            "difference",
            match untold.debited.is_zero() {
                true => difference,
                false => format!(
                    "{difference}; answers whose price was not told: {}",
                    untold.debited
                ),
            },
        )
    }

    /// One object for each operation. Amounts are micro-USD; `null` where one is too large for JSON.
    pub fn operations(&self) -> Vec<Value> {
        let none = Untold::default();
        let lines = self.reckoning.lines.iter();
        lines
            .map(|(operation, line)| {
                let untold = self.untold.get(operation).unwrap_or(&none);
                let mut object = document(line, untold);
                object.insert("operation".to_owned(), json!(operation));
                Value::Object(object)
            })
            .collect()
    }

    pub fn total(&self) -> Value {
        Value::Object(document(&self.reckoning.total, &self.untold_in_all()))
    }

    fn untold_in_all(&self) -> Untold {
        let mut all = Untold::default();
        for untold in self.untold.values() {
            all.answers += untold.answers;
            all.audio_ms += untold.audio_ms;
            all.debits += untold.debits;
            all.debited.merge(untold.debited);
        }
        all
    }
}

fn cells(operation: &str, line: &Line) -> [String; 6] {
    [
        operation.to_owned(),
        line.requests.to_string(),
        line.known.to_string(),
        line.debited.to_string(),
        difference(line.known, line.debited),
        match line.unreported {
            0 => String::new(),
            count => count.to_string(),
        },
    ]
}

fn document(line: &Line, untold: &Untold) -> Map<String, Value> {
    let signed = |sum: MicroUsdSum| i64::try_from(sum.get()).ok();
    let difference = signed(line.known).zip(signed(line.debited));
    let difference = difference.and_then(|(known, debited)| known.checked_sub(debited));
    let members = [
        ("requests", json!(line.requests)),
        ("ledger_micro_usd", json!(line.known.as_amount())),
        ("books_debits", json!(line.debits)),
        ("books_micro_usd", json!(line.debited.as_amount())),
        ("difference_micro_usd", json!(difference)),
        ("unreported", json!(untold.answers)),
        ("unreported_audio_ms", json!(untold.audio_ms)),
        (
            "unreported_books_micro_usd",
            json!(untold.debited.as_amount()),
        ),
    ];
    let named = members.map(|(name, value)| (name.to_owned(), value));
    named.into_iter().collect()
}

// === impl Sides ===

impl<'a> Sides<'a> {
    fn known(&self) -> MicroUsdSum {
        let mut known = MicroUsdSum::default();
        let billed = self.entries.iter().filter_map(|one| one.billed_micro_usd);
        billed.for_each(|amount| known.add(amount));
        known
    }

    fn debited(&self) -> MicroUsdSum {
        let mut debited = MicroUsdSum::default();
        let debits = self.debits.iter();
        debits.for_each(|debit| debited.add(debit.amount));
        debited
    }

    fn untold(&self) -> impl Iterator<Item = &'a EntryView> {
        let entries = self.entries.iter().copied();
        entries.filter(|entry| entry.state == State::Unreported)
    }
}

#[cfg(test)]
mod tests;
