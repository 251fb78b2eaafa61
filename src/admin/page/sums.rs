//! The sums of the status page: one answer of the ledger, added up for the windows that the page has, and for each
//! app and day.
//!
//! Promise: every row of the answer is in each sum that it belongs to, once, so that the apps of a window make its
//! total. Savings are summed over the answers that reported both prices, and over no others.

use std::collections::BTreeMap;

use crate::ledger::MicroUsdSum;
use crate::ledger::query::{GroupBy, SpendRow};
use crate::ledger::totals::{Compared, LineKey, LineSums, Totals};
use crate::protocol::ServedBy;

/// What one window came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowSums {
    pub billed: MicroUsdSum,
    pub requests: u64,
    pub in_doubt: u64,
    pub unreported: u64,
    pub failed: u64,
    /// Begun and not ended.
    pub open: u64,
    /// Answers that say that a specialist gave them, and those of a frontier model.
    pub by_specialist: u64,
    pub by_frontier: u64,
    pub compared: Compared,
}

/// The windows that end now.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    pub today: WindowSums,
    pub week: WindowSums,
    pub month: WindowSums,
}

/// An app with what it came to.
#[derive(Clone, Debug)]
pub struct AppSums {
    pub name: String,
    pub windows: Windows,
    /// Billed, by day of the month's window.
    pub days: Vec<MicroUsdSum>,
}

/// All that the page has of the spend.
#[derive(Clone, Debug)]
pub struct Spent {
    pub all: Windows,
    /// The one that was billed most first.
    pub apps: Vec<AppSums>,
}

// === impl WindowSums ===

impl WindowSums {
    fn of_row(row: &SpendRow) -> Self {
        let by = row.labels.get(&GroupBy::ServedBy);
        let by = by.and_then(|word| ServedBy::from_word(word));
        let sums = Self {
            billed: row.billed_micro_usd,
            requests: row.requests,
            in_doubt: row.in_doubt,
            unreported: row.unreported,
            failed: row.failed,
            open: row.open,
            compared: Compared {
                answers: row.compared,
                billed: row.compared_billed_micro_usd,
                frontier: row.compared_would_have_cost_micro_usd,
            },
            ..Self::default()
        };
        sums.served_by(by)
    }

    fn of_line(line: &LineKey, row: &LineSums) -> Self {
        let sums = Self {
            billed: row.billed,
            requests: row.requests,
            in_doubt: row.in_doubt_now(),
            unreported: row.unreported.now(),
            failed: row.failed,
            compared: row.compared,
            ..Self::default()
        };
        sums.served_by(line.served_by)
    }

    /// The whole ledger.
    pub fn of_totals(totals: &Totals) -> Self {
        let mut sums = Self {
            open: totals.open,
            requests: totals.open,
            ..Self::default()
        };
        for (line, row) in &totals.lines {
            sums.merge(&Self::of_line(line, row));
        }
        sums
    }

    fn served_by(self, by: Option<ServedBy>) -> Self {
        let requests = self.requests;
        match by {
            Some(ServedBy::Specialist) => Self {
                by_specialist: requests,
                ..self
            },
            Some(ServedBy::Frontier) => Self {
                by_frontier: requests,
                ..self
            },
            Some(ServedBy::None | ServedBy::Other) | None => self,
        }
    }

    fn merge(&mut self, other: &Self) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        self.billed.merge(other.billed);
        add(&mut self.requests, other.requests);
        add(&mut self.in_doubt, other.in_doubt);
        add(&mut self.unreported, other.unreported);
        add(&mut self.failed, other.failed);
        add(&mut self.open, other.open);
        add(&mut self.by_specialist, other.by_specialist);
        add(&mut self.by_frontier, other.by_frontier);
        self.compared.merge(other.compared);
    }

    /// Entries whose price is not known.
    pub const fn not_known(&self) -> u64 {
        self.in_doubt.saturating_add(self.unreported)
    }
}

// === impl Windows ===

impl Windows {
    /// What lies behind the last day counts for it: a clock that was ahead is no reason to leave it out.
    fn add(&mut self, row: &SpendRow, days: &[String], week_days: usize) {
        let sums = WindowSums::of_row(row);
        let day = row.labels.get(&GroupBy::Day);
        let is_since = |first: Option<&String>| first.is_none_or(|first| day >= Some(first));
        self.month.merge(&sums);
        let week = days.len().checked_sub(week_days);
        if is_since(week.and_then(|at| days.get(at))) {
            self.week.merge(&sums);
        }
        if is_since(days.last()) {
            self.today.merge(&sums);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.today.merge(&other.today);
        self.week.merge(&other.week);
        self.month.merge(&other.month);
    }
}

// === impl Spent ===

impl Spent {
    /// `rows`: by app, day and server, of these days (their names, oldest first); the last of them is today.
    pub fn of(rows: &[SpendRow], days: &[String], week_days: usize) -> Self {
        let mut all = Windows::default();
        let mut apps: BTreeMap<&str, AppSums> = BTreeMap::new();
        for row in rows {
            all.add(row, days, week_days);
            let name = row.labels.get(&GroupBy::App).map_or("", String::as_str);
            let app = apps.entry(name).or_insert_with(|| AppSums {
                name: name.to_owned(),
                windows: Windows::default(),
                days: vec![MicroUsdSum::default(); days.len()],
            });
            app.windows.add(row, days, week_days);
            let day = row.labels.get(&GroupBy::Day);
            let at = days.iter().position(|known| Some(known) == day);
            if let Some(sum) = at.and_then(|at| app.days.get_mut(at)) {
                sum.merge(row.billed_micro_usd);
            }
        }
        let mut apps: Vec<AppSums> = apps.into_values().collect();
        let rank = |app: &AppSums| (app.windows.month.billed, app.windows.month.requests);
        apps.sort_by(|a, b| rank(b).cmp(&rank(a)).then_with(|| a.name.cmp(&b.name)));
        Self { all, apps }
    }

    /// The first so many apps, and all others as one, if there are any.
    pub fn first_apps(&self, count: usize) -> Vec<AppSums> {
        let named = self.apps.iter().take(count);
        let mut apps: Vec<AppSums> = named.cloned().collect();
        let others = self.apps.get(count..).unwrap_or_default();
        if let Some((first, more)) = others.split_first() {
            let mut sum = first.clone();
            for app in more {
                sum.merge(app);
            }
            sum.name = format!("{} more", others.len());
            apps.push(sum);
        }
        apps
    }
}

// === impl AppSums ===

impl AppSums {
    fn merge(&mut self, other: &Self) {
        self.windows.merge(&other.windows);
        for (sum, more) in self.days.iter_mut().zip(&other.days) {
            sum.merge(*more);
        }
    }
}
