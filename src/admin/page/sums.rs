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
    /// Those in flight are among them.
    pub requests: u64,
    pub in_doubt: u64,
    pub unreported: u64,
    pub failed: u64,
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
        let open = Self {
            requests: totals.open,
            ..Self::default()
        };
        let lines = totals.lines.iter();
        lines.fold(open, |sums, (line, row)| {
            sums.plus(&Self::of_line(line, row))
        })
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

    #[must_use]
    fn plus(mut self, more: &Self) -> Self {
        self.billed.merge(more.billed);
        self.compared += more.compared;
        Self {
            requests: self.requests.saturating_add(more.requests),
            in_doubt: self.in_doubt.saturating_add(more.in_doubt),
            unreported: self.unreported.saturating_add(more.unreported),
            failed: self.failed.saturating_add(more.failed),
            by_specialist: self.by_specialist.saturating_add(more.by_specialist),
            by_frontier: self.by_frontier.saturating_add(more.by_frontier),
            ..self
        }
    }

    /// Entries whose price is not known.
    pub const fn not_known(&self) -> u64 {
        self.in_doubt.saturating_add(self.unreported)
    }
}

// === impl Windows ===

impl Windows {
    /// What lies behind the last day counts for it: a clock that was ahead is no reason to leave it out.
    fn of_row(row: &SpendRow, days: &[String], week_days: usize) -> Self {
        let sums = WindowSums::of_row(row);
        let day = row.labels.get(&GroupBy::Day);
        let since = |first: Option<&String>| match first.is_none_or(|first| day >= Some(first)) {
            true => sums.clone(),
            false => WindowSums::default(),
        };
        let week = days.len().checked_sub(week_days);
        Self {
            today: since(days.last()),
            week: since(week.and_then(|at| days.get(at))),
            month: sums.clone(),
        }
    }

    #[must_use]
    fn plus(self, more: &Self) -> Self {
        Self {
            today: self.today.plus(&more.today),
            week: self.week.plus(&more.week),
            month: self.month.plus(&more.month),
        }
    }
}

// === impl Spent ===

impl Spent {
    /// `rows`: by app, day and server, of these days (their names, oldest first); the last of them is today.
    pub fn of(rows: &[SpendRow], days: &[String], week_days: usize) -> Self {
        let mut all = Windows::default();
        let mut apps: BTreeMap<&str, AppSums> = BTreeMap::new();
        for row in rows {
            let of_row = AppSums::of_row(row, days, week_days);
            all = all.plus(&of_row.windows);
            let name = row.labels.get(&GroupBy::App).map_or("", String::as_str);
            let so_far = apps.remove(name);
            let app = match so_far {
                Some(so_far) => so_far.plus(&of_row),
                None => of_row,
            };
            apps.insert(name, app);
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
            let sum = more.iter().fold(first.clone(), AppSums::plus);
            apps.push(AppSums {
                name: format!("{} more", others.len()),
                ..sum
            });
        }
        apps
    }
}

// === impl AppSums ===

impl AppSums {
    fn of_row(row: &SpendRow, days: &[String], week_days: usize) -> Self {
        let of = |by| row.labels.get(&by);
        let billed_on = |day: &String| match of(GroupBy::Day) == Some(day) {
            true => row.billed_micro_usd,
            false => MicroUsdSum::default(),
        };
        Self {
            name: of(GroupBy::App).cloned().unwrap_or_default(),
            windows: Windows::of_row(row, days, week_days),
            days: days.iter().map(billed_on).collect(),
        }
    }

    #[must_use]
    fn plus(self, more: &Self) -> Self {
        let mut days = self.days;
        for (sum, more) in days.iter_mut().zip(&more.days) {
            sum.merge(*more);
        }
        Self {
            name: self.name,
            windows: self.windows.plus(&more.windows),
            days,
        }
    }
}
