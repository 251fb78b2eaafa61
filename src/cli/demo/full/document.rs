//! The members of an answer's document, by their JSON pointer.
//!
//! Promise: an answer that lacks what the step reads of it fails the step with the service's own words.

use serde_json::Value;

use crate::cli::demo::scene::ERROR_CHARS;
use crate::cli::error::CliError;

/// A text of an answer, by its JSON pointer.
pub fn text<'a>(body: &'a Value, at: &str) -> Result<&'a str, CliError> {
    member(body, at)?.as_str().ok_or_else(|| lacks(body, at))
}

/// A natural number of an answer.
pub fn number(body: &Value, at: &str) -> Result<u64, CliError> {
    member(body, at)?.as_u64().ok_or_else(|| lacks(body, at))
}

/// A number that counts nothing exact: a score, a rate.
pub fn figure(body: &Value, at: &str) -> Result<f64, CliError> {
    member(body, at)?.as_f64().ok_or_else(|| lacks(body, at))
}

/// Absent is no.
pub fn is_true(body: &Value, at: &str) -> bool {
    body.pointer(at).and_then(Value::as_bool) == Some(true)
}

pub fn list<'a>(body: &'a Value, at: &str) -> Result<&'a [Value], CliError> {
    let list = member(body, at)?.as_array();
    list.map(Vec::as_slice).ok_or_else(|| lacks(body, at))
}

fn member<'a>(body: &'a Value, at: &str) -> Result<&'a Value, CliError> {
    body.pointer(at).ok_or_else(|| lacks(body, at))
}

fn lacks(body: &Value, at: &str) -> CliError {
    let body: String = body.to_string().chars().take(ERROR_CHARS).collect();
    CliError::Failed(format!("the answer has no {at} as it should be: {body}"))
}
