//! What a day cost, case by case: the service's books, what the apps' answers reported, and, where there is
//! one, bursar's ledger.
//!
//! Promise: nothing is computed from the other side; a debit beyond the first for one question is a
//! double bill, on whichever side it stands.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::app::Lived;
use super::day::{Case, Day};
use crate::cli::cells;
use crate::cli::demo::books::{Service, ServiceBooks};
use crate::cli::demo::files::LedgerFiles;
use crate::cli::demo::screen::Screen;
use crate::cli::error::CliError;
use crate::cli::output::say;
use crate::cli::table::TextTable;
use crate::ledger::MicroUsdSum;
use crate::ledger::entry::State;
use crate::ledger::query::EntryView;
use crate::money::MicroUsd;

/// Work that an app gave up on continues at the service, and bursar reads its answer to the end for an app
/// that left; both get this long to end.
const REST_MAX: Duration = Duration::from_secs(8);

/// The books count as at rest when they have not changed for so long.
const STILL: Duration = Duration::from_millis(700);

const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// One day's bill.
pub struct Bills {
    cases: Vec<(Case, Lived, CaseBill)>,
    requests: usize,
    /// Debits, and all money that left the balance.
    debits: usize,
    billed: MicroUsdSum,
    /// bursar's entries, where it was there.
    entries: Option<Vec<EntryView>>,
    /// Money under the keys of entries whose amount bursar does not know.
    behind_doubts: MicroUsdSum,
    /// Keys that were debited more than once.
    keys_debited_twice: usize,
}

/// What the books have for one question.
#[derive(Clone, Copy, Debug, Default)]
struct CaseBill {
    debits: usize,
    billed: MicroUsdSum,
}

// === impl Bills ===

impl Bills {
    /// Reads the books once nothing runs any more.
    pub async fn when_at_rest(
        Day {
            cases: day,
            work_ends,
        }: Day,
        service: &Service,
        ledger: Option<&LedgerFiles>,
    ) -> Result<Self, CliError> {
        let until = work_ends.max(Instant::now()) + REST_MAX;
        let mut still_since = work_ends;
        let mut before = 0;
        loop {
            let books = service.books().await?;
            let entries = match ledger {
                Some(ledger) => Some(ledger.all().await?),
                None => None,
            };
            let is_open = |view: &EntryView| view.state == State::Open;
            let open = entries.iter().flatten().any(is_open);
            if open || books.debits.len() != before {
                before = books.debits.len();
                still_since = work_ends.max(Instant::now());
            }
            let now = Instant::now();
            if now.saturating_duration_since(still_since) >= STILL || now >= until {
                let sessions = service.sessions().await?;
                return Ok(Self::of(day, &books, &sessions, entries));
            }
            sleep(LOOK_PAUSE).await;
        }
    }

    fn of(
        day: Vec<(Case, Lived)>,
        books: &ServiceBooks,
        sessions: &HashMap<String, String>,
        entries: Option<Vec<EntryView>>,
    ) -> Self {
        let mut billed = MicroUsdSum::default();
        let mut by_case: HashMap<&str, CaseBill> = HashMap::new();
        let mut by_key: HashMap<&str, CaseBill> = HashMap::new();
        for debit in &books.debits {
            billed.add(debit.amount);
            if let Some(case) = sessions.get(&debit.request_id) {
                by_case.entry(case).or_default().add(debit.amount);
            }
            if let Some(key) = &debit.key {
                by_key.entry(key).or_default().add(debit.amount);
            }
        }
        let mut behind_doubts = MicroUsdSum::default();
        let unknown = entries.iter().flatten().filter(|view| is_unknown(view));
        for bill in unknown.filter_map(|view| by_key.get(view.key.as_deref()?)) {
            behind_doubts.merge(bill.billed);
        }
        Self {
            cases: day
                .into_iter()
                .map(|(case, lived)| {
                    let bill = by_case.get(case.name()).copied().unwrap_or_default();
                    (case, lived, bill)
                })
                .collect(),
            requests: sessions.len(),
            debits: books.debits.len(),
            billed,
            entries,
            behind_doubts,
            keys_debited_twice: by_key.values().filter(|bill| bill.debits > 1).count(),
        }
    }

    pub fn billed(&self) -> MicroUsdSum {
        self.billed
    }

    /// Debits beyond the first one for a question.
    fn double_bills(&self) -> usize {
        let beyond = |bill: &CaseBill| bill.debits.saturating_sub(1);
        self.cases.iter().map(|(_, _, bill)| beyond(bill)).sum()
    }

    fn answers(&self) -> u32 {
        self.cases
            .iter()
            .map(|(_, lived, _)| lived.answered())
            .sum()
    }

    /// What can be known afterwards: bursar's sum, else what the answers reported.
    fn known(&self) -> MicroUsdSum {
        let mut known = MicroUsdSum::default();
        match &self.entries {
            Some(entries) => entries.iter().for_each(|view| known.add(view.state.adds())),
            None => {
                let reported = self.cases.iter().flat_map(|(_, lived, _)| lived.reported());
                reported.for_each(|reported| known.add(*reported));
            }
        }
        known
    }

    /// Entries that the ledger lists as not known. `None` without a ledger: nothing counts them.
    fn not_known(&self) -> Option<usize> {
        let entries = self.entries.as_ref()?;
        Some(entries.iter().filter(|view| is_unknown(view)).count())
    }

    /// Why what bursar knows and what it says it does not know are not the whole; empty when they are.
    pub fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut explained = self.known();
        explained.merge(self.behind_doubts);
        if explained != self.billed {
            wrong.push(format!(
                "the ledger knows {}, {} stand under keys in doubt, and the books have {}",
                self.known(),
                self.behind_doubts,
                self.billed
            ));
        }
        if self.keys_debited_twice > 0 {
            wrong.push(format!(
                "{} debited twice",
                cells::counted(self.keys_debited_twice, "key was", "keys were")
            ));
        }
        wrong
    }

    pub fn document(&self) -> Value {
        let cases: Vec<Value> = self
            .cases
            .iter()
            .map(|(case, lived, bill)| {
                json!({
                    "case": case.name(),
                    "title": case.title(),
                    "tries": lived.tries(),
                    "answers": lived.answered(),
                    "debits": bill.debits,
                    "billed_micro_usd": whole(bill.billed),
                    "told_micro_usd": lived.reported_in_all(),
                })
            })
            .collect();
        let in_doubt: Vec<Value> = self
            .entries
            .iter()
            .flatten()
            .filter(|view| is_unknown(view))
            .map(|view| json!({"entry": view.id, "state": state(view)}))
            .collect();
        json!({
            "requests": self.requests,
            "answers": self.answers(),
            "debits": self.debits,
            "billed_micro_usd": whole(self.billed),
            "double_bills": self.double_bills(),
            "known_micro_usd": whole(self.known()),
            "not_known": self.not_known(),
            "not_known_entries": in_doubt,
            "cases": cases,
        })
    }
}

/// Both bills, case by case and in all, and what even bursar cannot know.
pub fn show(screen: &Screen, straight: &Bills, through: &Bills) -> Result<(), CliError> {
    let side_titles = ">tries|>answers|>debits|>billed";
    let mut table = TextTable::new(&format!("case|{side_titles}|{side_titles}"));
    for ((case, lived, bill), (_, their_lived, their_bill)) in
        straight.cases.iter().zip(&through.cases)
    {
        let cells = [side(lived, *bill), side(their_lived, *their_bill)].concat();
        table.row(std::iter::once(case.name().to_owned()).chain(cells));
    }
    say("")?;
    say(format_args!("{:12}{:35}through bursar", "", "straight"))?;
    say(table)?;

    let mut table = TextTable::new("the two bills|>straight|>through bursar");
    type Figure = fn(&Bills) -> String;
    let figures: [(&str, Figure); 7] = [
        ("requests at the service", |bills| {
            bills.requests.to_string()
        }),
        ("debits", |bills| bills.debits.to_string()),
        ("double bills", |bills| bills.double_bills().to_string()),
        ("answers received", |bills| bills.answers().to_string()),
        ("billed", |bills| bills.billed.to_string()),
        ("known afterwards", |bills| bills.known().to_string()),
        ("listed as not known", |bills| {
            let count = bills.not_known().map(|count| count.to_string());
            count.unwrap_or_else(|| "not counted".to_owned())
        }),
    ];
    for (what, figure) in figures {
        table.row([what.to_owned(), figure(straight), figure(through)]);
    }
    say("")?;
    say(table)?;

    say("")?;
    let saved = straight.billed.get().saturating_sub(through.billed.get());
    screen.good(
        "saved",
        format_args!("${}.{:06}", saved / 1_000_000, saved % 1_000_000),
    )?;
    for view in through
        .entries
        .iter()
        .flatten()
        .filter(|view| is_unknown(view))
    {
        screen.fact("not known", format_args!("{} {}", view.id, state(view)))?;
    }
    screen.fact(
        "",
        "straight, only the amounts in the answers were known, and not what lost answers cost. \
         The repeat of a lost answer shows 0, and a stream that breaks reports no price: bursar lists \
         both and adds nothing for them. Of a stream that broke, a part had been delivered: asking \
         again is a new purchase, with bursar and without.",
    )
}

fn side(lived: &Lived, bill: CaseBill) -> Vec<String> {
    vec![
        lived.tries().to_string(),
        lived.answered().to_string(),
        bill.debits.to_string(),
        bill.billed.to_string(),
    ]
}

fn state(view: &EntryView) -> String {
    cells::state(view.state.word(), view.state.reason())
}

fn is_unknown(view: &EntryView) -> bool {
    view.state.billed().is_none()
}

/// A sum of this story's as a JSON number.
fn whole(sum: MicroUsdSum) -> Value {
    sum.as_amount().map_or(Value::Null, |sum| json!(sum.get()))
}

// === impl CaseBill ===

impl CaseBill {
    fn add(&mut self, amount: MicroUsd) {
        self.debits += 1;
        self.billed.add(amount);
    }
}
