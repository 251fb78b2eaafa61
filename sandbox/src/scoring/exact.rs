//! Exact match: all right, or nothing.
//!
//! Interface, Eval result: "exact_match: classification runs only; exact-match rate 0-100".
//! Promise: 1 exactly when field F1 is 1.

use super::{field_f1, score::Score};
use serde_json::Value;

pub fn score(expected: &Value, answer: &Value) -> Score {
    let (matched, expected, answered) = field_f1::compared(expected, answer)?;
    let all = matched == expected && matched == answered;
    Ok(if all { 1.0 } else { 0.0 })
}
