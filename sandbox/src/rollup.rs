//! Sums by the hour, for `GET /v1/auto/metrics`.
//!
//! They are part of the books: a debit is added here in the same step that takes it from the balance.
//! Promise: every debit of the last 30 days is in the sum exactly once; at most 31 days of hours are kept.
//! They are saved with the next commit: a kill -9 may cost the last request's counts, never money.

pub mod hours;
pub mod times;

use crate::{money::MicroUsd, spec};
use hours::{Hours, hour_of, start_of};
use jiff::{Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use times::Times;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OrgHour {
    requests: u64,
    successes: u64,
    billed: MicroUsd,
    saved: i64,
    times: Times,
}

#[derive(Debug, Default)]
pub struct Rollup {
    organizations: HashMap<String, Hours<OrgHour>>,
}

/// Members of the document whose names the interface does not show.
/// Assumed (auto-metrics).
const BILLED: &str = "billed_micro_usd_30d";
const HOURLY: &str = "hourly_7d";
const DAILY: &str = "daily_30d";

/// Whether a request to this path is one of those that are counted.
///
/// Assumed (auto-metrics): what is served and billed by the request is inference; runs and deploys are not.
pub fn counts(path: &str) -> bool {
    let chat_of_an_endpoint = path
        .strip_prefix(spec::ENDPOINTS)
        .is_some_and(|rest| rest.starts_with('/') && rest.ends_with("/chat/completions"));
    chat_of_an_endpoint || spec::INFERENCE.contains(&path)
}

// === impl Rollup ===

impl Rollup {
    /// Continued from the rows of [`Rollup::take_unsaved`].
    pub fn of_rows(rows: Vec<(String, OrgHour)>) -> Self {
        let mut rollup = Self::default();
        for (row, hour) in rows {
            if let Ok((org, at)) = serde_json::from_str::<(String, i64)>(&row) {
                rollup.of(&org).restore(at, hour);
            }
        }
        rollup
    }

    /// The hours that changed since the last call, by row; one without sums is to be removed.
    pub fn take_unsaved(&mut self) -> Vec<(String, Option<OrgHour>)> {
        let organizations = self.organizations.iter_mut();
        let unsaved = organizations.flat_map(|(org, hours)| {
            let hours = hours.take_unsaved().into_iter();
            hours.map(move |(at, hour)| (json!([org, at]).to_string(), hour))
        });
        unsaved.collect()
    }

    /// False when the sum does not fit.
    pub fn add_debit(&mut self, org: &str, at: Timestamp, amount: MicroUsd) -> bool {
        let hour = self.of(org).at(at);
        match hour.billed.checked_add(amount) {
            Some(billed) => {
                hour.billed = billed;
                true
            }
            None => false,
        }
    }

    /// A debit was taken back; if its hour is forgotten, so is the debit.
    pub fn remove_debit(&mut self, org: &str, at: Timestamp, amount: MicroUsd) {
        let hours = self.of(org);
        if hours.is_kept(at)
            && let Some(billed) = hours.at(at).billed.checked_sub(amount)
        {
            hours.at(at).billed = billed;
        }
    }

    /// What the frontier's list price is above what was billed. An estimate, no money that moved: a sum that
    /// does not fit stays at its bound.
    pub fn add_saving(&mut self, org: &str, at: Timestamp, saved: i64) {
        let hour = self.of(org).at(at);
        hour.saved = hour.saved.saturating_add(saved);
    }

    pub fn add_request(&mut self, org: &str, at: Timestamp, took_ms: u64, success: bool) {
        let hour = self.of(org).at(at);
        hour.requests += 1;
        hour.successes += u64::from(success);
        hour.times.add(took_ms);
    }

    /// The document of an organization.
    pub fn document(&self, org: &str, now: Timestamp) -> Value {
        let none = Hours::default();
        let hours = self.organizations.get(org).unwrap_or(&none);
        let this_hour = hour_of(now);
        // Assumed (auto-metrics): by whole hours, the oldest one counted whole.
        let oldest = this_hour - 30 * 24;
        let month = sum(hours, oldest, this_hour);
        let mut document = Map::new();
        let mut add = |name: &str, value: Value| document.insert(name.to_owned(), value);
        add(spec::REQUESTS_30D, json!(month.requests));
        add(spec::SUCCESS_RATE_30D, month.success_rate());
        add(BILLED, json!(billed(hours, oldest, this_hour)));
        add(spec::SAVINGS_30D, json!(month.saved));
        let hourly = (this_hour - 7 * 24 + 1..=this_hour).map(|at| hourly(hours, at));
        add(HOURLY, hourly.collect());
        let today = this_hour.div_euclid(24);
        let daily = (today - 29..=today).map(|day| daily(hours, day));
        add(DAILY, daily.collect());
        Value::Object(document)
    }

    fn of(&mut self, org: &str) -> &mut Hours<OrgHour> {
        self.organizations.entry(org.to_owned()).or_default()
    }
}

fn sum(hours: &Hours<OrgHour>, from: i64, to: i64) -> OrgHour {
    let mut sum = OrgHour::default();
    for (_, hour) in hours.between(from, to) {
        sum.requests += hour.requests;
        sum.successes += hour.successes;
        sum.saved = sum.saved.saturating_add(hour.saved);
    }
    sum
}

/// The amount debited; `None` if it is more than an amount can be.
fn billed(hours: &Hours<OrgHour>, from: i64, to: i64) -> Option<MicroUsd> {
    let mut amounts = hours.between(from, to).map(|(_, hour)| hour.billed);
    amounts.try_fold(MicroUsd::ZERO, MicroUsd::checked_add)
}

fn hourly(hours: &Hours<OrgHour>, at: i64) -> Value {
    let hour = hours.get(at).cloned().unwrap_or_default();
    let [p50, p95] = times::percentiles_ms([&hour.times].into_iter(), [50, 95]);
    json!({
        "hour": start_of(at).map(|at| at.to_string()),
        "requests": hour.requests,
        "errors": hour.requests - hour.successes,
        "p50_ms": p50,
        "p95_ms": p95,
    })
}

fn daily(hours: &Hours<OrgHour>, day: i64) -> Value {
    let sum = sum(hours, day * 24, day * 24 + 23);
    let date = start_of(day * 24).map(|at| at.to_zoned(TimeZone::UTC).date().to_string());
    json!({
        "day": date,
        "requests": sum.requests,
        "successes": sum.successes,
        "success_rate": sum.success_rate(),
    })
}

// === impl OrgHour ===

impl OrgHour {
    /// A share from 0 to 1; `null` when there was no request.
    fn success_rate(&self) -> Value {
        if self.requests == 0 {
            return Value::Null;
        }
        json!(self.successes as f64 / self.requests as f64)
    }
}

#[cfg(test)]
mod tests;
