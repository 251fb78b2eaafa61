//! `/api/reconcile` and `bursar reconcile`: which figure is compared with the ledger, and the document
//! with the result.
//!
//! Promise: the service's figure is read as the integer that it is in the document, from the member that the
//! config names, or not at all; errors quote only the document's names and whole numbers.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::calendar;
use crate::ledger::LedgerError;
use crate::ledger::query::{Period, window};
use crate::ledger::reconcile::{Comparison, Conclusion, Reason, compare};
use crate::ledger::totals::MicroUsdSum;
use crate::money::MicroUsd;

/// Whole numbers of a document that are listed when the figure is not among them.
const LISTED_MAX: usize = 40;

/// What is held against the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The service's document contains it, over the days of `[reconcile] window_days`.
    Document,
    /// An operator typed it in.
    Typed(Invoice),
}

/// A sum for `[since_ms, until_ms)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invoice {
    pub billed: MicroUsd,
    pub since_ms: u64,
    /// `None`: now.
    pub until_ms: Option<u64>,
}

/// Both figures, how they compare, and why: the document of `/api/reconcile` and `bursar reconcile --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reconciliation {
    /// The member of the service's document that has the figure, or `typed`.
    pub source: String,
    pub since: Option<String>,
    pub until: Option<String>,
    pub since_ms: u64,
    pub until_ms: u64,
    #[serde(rename = "service_micro_usd")]
    pub service: MicroUsdSum,
    #[serde(rename = "ledger_micro_usd")]
    pub ledger: MicroUsdSum,
    /// The service's figure less the ledger's. `None` beyond 64 bits; the conclusion stands.
    pub difference_micro_usd: Option<i64>,
    pub conclusion: Conclusion,
    #[serde(rename = "unexplained_micro_usd")]
    pub unexplained: MicroUsdSum,
    /// The part of the difference that only entries without any bound can explain.
    #[serde(rename = "unbounded_micro_usd", default)]
    pub unbounded: MicroUsdSum,
    pub reasons: Vec<Reason>,
    pub priced: u64,
    pub failed: u64,
    pub replayed: u64,
    /// How long ago both figures were taken, in seconds. `None`: for a figure that was typed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u64>,
    /// What the service's clock said when it answered, at `until_ms` of the daemon's. `None`: it did not say, or was not
    /// asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_clock_ms: Option<u64>,
}

/// Why the document does not hold the figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FigureError {
    #[error("the service's /v1/auto/metrics is not a JSON object")]
    NoObject,
    #[error(
        "the service's /v1/auto/metrics has no member {field:?}; set [reconcile] spend_field to the one \
         with the billed spend. Its whole numbers: {known}"
    )]
    Missing { field: String, known: String },
    #[error(
        "{field:?} of the service's /v1/auto/metrics is {found}, not a whole number of micro-dollars; \
         set [reconcile] spend_field to the one with the billed spend. Its whole numbers: {known}"
    )]
    NoAmount {
        field: String,
        found: &'static str,
        known: String,
    },
}

/// The billed spend in the service's document: the member of that name, else the one that the
/// dots lead to.
pub fn spend_in(document: &[u8], field: &str) -> Result<MicroUsd, FigureError> {
    let document: Value = serde_json::from_slice(document).map_err(|_| FigureError::NoObject)?;
    if !document.is_object() {
        return Err(FigureError::NoObject);
    }
    let known = || {
        let mut numbers = Vec::new();
        list_numbers(&document, "", &mut numbers);
        match numbers.is_empty() {
            true => "none".to_owned(),
            false => numbers.join(", "),
        }
    };
    let dotted = || {
        let mut parts = field.split('.');
        parts.try_fold(&document, |inside, part| inside.get(part))
    };
    let Some(found) = document.get(field).or_else(dotted) else {
        return Err(FigureError::Missing {
            field: field.to_owned(),
            known: known(),
        });
    };
    found.as_u64().map(MicroUsd::new).ok_or_else(|| {
        let found = match found {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "another number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        FigureError::NoAmount {
            field: field.to_owned(),
            found,
            known: known(),
        }
    })
}

/// `name = number` of every whole number, objects within objects with dots.
fn list_numbers(value: &Value, path: &str, to: &mut Vec<String>) {
    for (name, member) in value.as_object().into_iter().flatten() {
        let path = match path {
            "" => name.clone(),
            path => format!("{path}.{name}"),
        };
        if let Some(number) = member.as_u64()
            && to.len() < LISTED_MAX
        {
            to.push(format!("{path} = {number}"));
        }
        list_numbers(member, &path, to);
    }
}

// === impl Invoice ===

impl Invoice {
    /// Holds it against the journal's files.
    pub fn compare(&self, state_dir: &Path, now_ms: u64) -> Result<Reconciliation, LedgerError> {
        let until_ms = self.until_ms.unwrap_or(now_ms);
        let window = window(state_dir, self.since_ms, until_ms)?;
        let compared = compare(self.billed.into(), &window);
        Ok(Reconciliation::new("typed", &window, &compared))
    }
}

// === impl Reconciliation ===

impl Reconciliation {
    /// `source`: the member of the service's document, or `typed`.
    pub fn new(source: &str, window: &Period, compared: &Comparison) -> Self {
        Self {
            source: source.to_owned(),
            since: calendar::rfc3339(window.since_ms),
            until: calendar::rfc3339(window.until_ms),
            since_ms: window.since_ms,
            until_ms: window.until_ms,
            service: compared.service,
            ledger: compared.ledger,
            difference_micro_usd: i64::try_from(compared.difference).ok(),
            conclusion: compared.conclusion,
            unexplained: compared.unexplained,
            unbounded: compared.unbounded,
            reasons: compared.reasons.clone(),
            priced: window.priced,
            failed: window.failed,
            replayed: window.replayed,
            age_s: None,
            service_clock_ms: None,
        }
    }

    /// The same with how long ago both figures were taken.
    pub fn aged(self, age: Duration) -> Self {
        Self {
            age_s: Some(age.as_secs()),
            ..self
        }
    }
}

#[cfg(test)]
mod tests;
