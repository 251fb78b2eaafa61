//! What stands behind the question mark of the reading API, checked.
//!
//! Promise: an unknown or unreadable parameter is an error that names it, never a wider answer than
//! the one asked for.

use jiff::tz::TimeZone;
use percent_encoding::percent_decode_str;

use crate::admin::documents::SpendQuestion;
use crate::admin::reconcile::{Figure, Invoice};
use crate::ledger::entry::{EntryId, InDoubt};
use crate::ledger::marks::SoughtSession;
use crate::ledger::query::{Filter, GroupBy, PART_CHARS_MIN, StateWord};
use crate::money::MicroUsd;
use crate::protocol::Operation;

/// Most entries in one answer.
pub const RECEIPTS_MAX: usize = 1000;

/// What a parameter should have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("the parameter {name:?} is not known here")]
    Unknown { name: String },
    #[error("the parameter {name} takes {wanted}")]
    Value { name: String, wanted: &'static str },
    #[error("there is no app of that name")]
    NoApp,
}

/// `since_ms`, `until_ms`, `by` (words with commas between; one that is repeated counts once), `tz`.
pub fn spend(query: &str) -> Result<SpendQuestion, QueryError> {
    let mut asked = SpendQuestion {
        since_ms: None,
        until_ms: None,
        by: Vec::new(),
        zone: TimeZone::UTC,
    };
    for (name, value) in pairs(query) {
        match name.as_str() {
            "since_ms" => asked.since_ms = Some(number(&name, &value)?),
            "until_ms" => asked.until_ms = Some(number(&name, &value)?),
            "by" => {
                for word in value.split(',').filter(|word| !word.is_empty()) {
                    let by = GroupBy::from_word(word).ok_or_else(|| {
                        wrong(
                            &name,
                            "app, lane, operation, served_by, day, state, model, hour, week, month, session, \
                             user, tag:KEY",
                        )
                    })?;
                    if !asked.by.contains(&by) {
                        asked.by.push(by);
                    }
                }
            }
            "tz" => {
                asked.zone = TimeZone::get(&value)
                    .map_err(|_| wrong(&name, "the name of a time zone, such as Europe/Berlin"))?;
            }
            _ => return Err(QueryError::Unknown { name }),
        }
    }
    Ok(asked)
}

/// Which entries `/api/receipts` is asked for.
#[derive(Clone, Debug)]
pub struct ReceiptsQuestion {
    /// Always with a limit.
    pub filter: Filter,
    /// The end of an id, which is still to be found.
    pub id_part: Option<String>,
}

/// `since_ms`, `until_ms`, `app`, `operation`, `model`, `session`, `state`, `reason`, `id` (whole, or its end), `after_seq`,
/// `limit`.
pub fn receipts(query: &str) -> Result<ReceiptsQuestion, QueryError> {
    let mut id_part = None;
    let mut filter = Filter {
        limit: Some(RECEIPTS_MAX),
        ..Filter::default()
    };
    for (name, value) in pairs(query) {
        match name.as_str() {
            "since_ms" => filter.since_ms = Some(number(&name, &value)?),
            "until_ms" => filter.until_ms = Some(number(&name, &value)?),
            "app" => filter.app = Some(value),
            "operation" => {
                let operation = Operation::from_word(&value)
                    .ok_or_else(|| wrong(&name, "an operation, such as chat or agent_turn"))?;
                filter.operation = Some(operation);
            }
            "model" => filter.model = Some(value),
            "session" => filter.session = Some(SoughtSession::new(&value)),
            "state" => {
                let word = StateWord::from_word(&value).ok_or_else(|| {
                    wrong(
                        &name,
                        "open, settled, failed, replayed, unreported, malformed, in_doubt, \
                         reconciled",
                    )
                })?;
                filter.state = Some(word);
            }
            "reason" => {
                let reason = InDoubt::from_word(&value)
                    .ok_or_else(|| wrong(&name, "a reason of a doubt, such as client_gone"))?;
                filter.reason = Some(reason);
            }
            "id" => match value.parse::<EntryId>() {
                Ok(id) => filter.id = Some(id),
                Err(_) if is_id_part(&value) => id_part = Some(value),
                Err(_) => return Err(wrong(&name, AN_ID)),
            },
            "after_seq" => filter.after_seq = Some(number(&name, &value)?),
            "limit" => {
                let limit = usize::try_from(number(&name, &value)?).unwrap_or(usize::MAX);
                if !(1..=RECEIPTS_MAX).contains(&limit) {
                    return Err(wrong(&name, "a number from 1 to 1000"));
                }
                filter.limit = Some(limit);
            }
            _ => return Err(QueryError::Unknown { name }),
        }
    }
    Ok(ReceiptsQuestion { filter, id_part })
}

const AN_ID: &str = "an entry id (a UUID), or its last 8 characters or more";

/// Several ids end so.
pub fn ambiguous_id() -> QueryError {
    wrong("id", "more of the id: several end so")
}

fn is_id_part(text: &str) -> bool {
    let is_of_id = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    text.len() >= PART_CHARS_MIN && text.bytes().all(is_of_id)
}

/// `id`: what is to be explained.
pub fn explain(query: &str) -> Result<String, QueryError> {
    let mut asked = None;
    for (name, value) in pairs(query) {
        match name.as_str() {
            "id" => asked = Some(value),
            _ => return Err(QueryError::Unknown { name }),
        }
    }
    asked
        .filter(|text| !text.trim().is_empty())
        .ok_or_else(|| wrong("id", "an entry id, an Idempotency-Key or an x-request-id"))
}

/// None: the service's own figure. Else `billed_micro_usd`, `since_ms`, and `until_ms` if it is not now.
pub fn reconcile(query: &str) -> Result<Figure, QueryError> {
    let (mut billed, mut since_ms, mut until_ms) = (None, None, None);
    for (name, value) in pairs(query) {
        match name.as_str() {
            "billed_micro_usd" => billed = Some(MicroUsd::new(number(&name, &value)?)),
            "since_ms" => since_ms = Some(number(&name, &value)?),
            "until_ms" => until_ms = Some(number(&name, &value)?),
            _ => return Err(QueryError::Unknown { name }),
        }
    }
    match (billed, since_ms) {
        (Some(billed), Some(since_ms)) => Ok(Figure::Typed(Invoice {
            billed,
            since_ms,
            until_ms,
        })),
        (None, None) if until_ms.is_none() => Ok(Figure::Document),
        (None, _) => Err(wrong("billed_micro_usd", "the figure, beside since_ms")),
        (Some(_), None) => Err(wrong("since_ms", "the beginning, beside billed_micro_usd")),
    }
}

/// What a line is asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineQuestion {
    /// `None`: all apps.
    pub app: Option<String>,
    /// As the app's client names it.
    pub session: Option<String>,
}

/// Longest name of a session.
pub const SESSION_BYTES_MAX: usize = 256;

/// `app`, `session`.
pub fn line(query: &str) -> Result<LineQuestion, QueryError> {
    let mut asked = LineQuestion::default();
    for (name, value) in pairs(query) {
        match name.as_str() {
            "app" => asked.app = Some(value),
            "session" if (1..=SESSION_BYTES_MAX).contains(&value.len()) => {
                asked.session = Some(value);
            }
            "session" => return Err(wrong(&name, "1 to 256 bytes")),
            _ => return Err(QueryError::Unknown { name }),
        }
    }
    Ok(asked)
}

/// No parameters at all.
pub fn nothing(query: &str) -> Result<(), QueryError> {
    match pairs(query).next() {
        Some((name, _)) => Err(QueryError::Unknown { name }),
        None => Ok(()),
    }
}

fn number(name: &str, value: &str) -> Result<u64, QueryError> {
    value
        .parse()
        .ok()
        .filter(|_| value.bytes().all(|byte| byte.is_ascii_digit()))
        .ok_or_else(|| wrong(name, "a whole number"))
}

fn wrong(name: &str, wanted: &'static str) -> QueryError {
    QueryError::Value {
        name: name.to_owned(),
        wanted,
    }
}

/// What is no escape stays as it is; what is no UTF-8 shows as `�`.
fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    let decoded = |text: &str| {
        let spaced = text.replace('+', " ");
        let bytes = percent_decode_str(&spaced);
        bytes.decode_utf8_lossy().into_owned()
    };
    let given = query.split('&').filter(|pair| !pair.is_empty());
    given.map(move |pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    })
}

#[cfg(test)]
mod tests;
