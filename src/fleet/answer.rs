//! What the fleet's database answers: rows as they are read, and why a call came to nothing.
//!
//! Promise: an answer that cannot be read is an error; nothing is made up for what it lacks.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::chain::Chain;
use super::schema::VERSION;

/// Longest wait for an answer.
pub(super) const CALL_MAX: Duration = Duration::from_secs(30);

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error("the fleet's database cannot be reached: {0}")]
    Unreachable(String),
    #[error("the fleet's database did not answer within {} s", CALL_MAX.as_secs())]
    Slow,
    #[error("this fleet does not know the ledger; a code lets it in (docs/fleet.md)")]
    Unknown,
    #[error("the ledger was revoked; nothing more is taken of it (docs/fleet.md)")]
    Revoked,
    #[error(
        "the code is not known, was used, or has expired; an operator makes another (docs/fleet.md)"
    )]
    BadCode,
    #[error(
        "1000 copies of this ledger took names of their own within a day; make images of machines \
         without a state directory (docs/fleet.md)"
    )]
    Copies,
    #[error(
        "the database has no schema of a fleet, or one of an older bursar; as an administrator: bursar fleet schema | psql -d DATABASE"
    )]
    NoSchema,
    #[error(
        "this login may not do that in the fleet's database: a bursar signs in with a role IN ROLE bursar_node, an operator \
         with bursar_operator, a reader with bursar_reader (docs/fleet.md)"
    )]
    NotAllowed,
    #[error("the fleet's schema has version {found}, and this bursar speaks {VERSION}; {}", advice(*found))]
    Version { found: i32 },
    #[error("the fleet's database refused: {0}")]
    Refused(String),
    /// It would be the same again.
    #[error("the fleet's database refused lines for what is in them: {0}")]
    Lines(String),
    #[error("a line of the journal is not JSON, and cannot be shipped: number {0}")]
    Unshippable(u64),
}

fn advice(found: i32) -> &'static str {
    match found > VERSION {
        true => "install a newer bursar",
        false => "run `bursar fleet schema | psql -d DATABASE` as its administrator",
    }
}

pub(super) fn speaks(found: i32) -> Result<(), FleetError> {
    match found == VERSION {
        true => Ok(()),
        false => Err(FleetError::Version { found }),
    }
}

// === impl FleetError ===

impl FleetError {
    /// Of a call that hands lines over. Data that cannot be read, or that a table's rules do not take, is in them.
    pub(super) fn of_lines(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(said) => Self::refusal_of_lines(said.code(), said.message()),
            None => Self::from(error),
        }
    }

    fn refusal_of_lines(code: &SqlState, message: &str) -> Self {
        let class = code.code().get(..2);
        match Self::refusal(code, message) {
            Self::Refused(why) if matches!(class, Some("22" | "23")) => Self::Lines(why),
            other => other,
        }
    }

    fn refusal(code: &SqlState, message: &str) -> Self {
        let missing = [
            SqlState::INVALID_SCHEMA_NAME,
            SqlState::UNDEFINED_FUNCTION,
            SqlState::UNDEFINED_TABLE,
            SqlState::UNDEFINED_COLUMN,
        ];
        match code.code() {
            "BF001" => Self::Unknown,
            "BF002" => Self::Revoked,
            "BF004" => Self::BadCode,
            "BF008" => Self::Copies,
            _ if missing.contains(code) => Self::NoSchema,
            _ if *code == SqlState::INSUFFICIENT_PRIVILEGE => Self::NotAllowed,
            code @ ("BF005" | "BF006" | "BF007") => Self::Lines(format!("{message} ({code})")),
            code => Self::Refused(format!("{message} ({code})")),
        }
    }
}

impl From<tokio_postgres::Error> for FleetError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(said) => Self::refusal(said.code(), said.message()),
            None => Self::Unreachable(chain_of(&error)),
        }
    }
}

/// An error and what caused it: the driver's own text is "error connecting to server".
fn chain_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Numbers of lines, times and amounts are far below 2^63.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn value<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a Row,
    at: usize,
) -> Result<T, FleetError> {
    row.try_get(at).map_err(|error| {
        FleetError::Refused(format!("its answer cannot be read: {}", chain_of(&error)))
    })
}

pub(super) fn seq(row: &Row, at: usize) -> Result<u64, FleetError> {
    let seq: i64 = value(row, at)?;
    u64::try_from(seq).map_err(|_| FleetError::Refused("it answered a negative number".to_owned()))
}

pub(super) fn chain(row: &Row, at: usize) -> Result<Chain, FleetError> {
    let bytes: Option<Vec<u8>> = value(row, at)?;
    Chain::from_bytes(bytes.unwrap_or_default())
        .ok_or_else(|| FleetError::Refused("it answered no hash".to_owned()))
}

#[cfg(test)]
mod tests;
