//! The texts that word-based scorers compare: field by field of the expected object.
//!
//! Promise: each expected field is scored by itself and the mean is the score; a field that the answer does
//! not have is an empty text, never an error.

use super::score::{Score, Unscored, number};
use serde_json::{Map, Value};

/// The mean of `one` over the expected fields that hold something; of an expected text, `one` of it.
pub fn mean_over_fields(
    expected: &Value,
    answer: &Value,
    one: impl Fn(&Value, &Value) -> Score,
) -> Score {
    let Value::Object(fields) = expected else {
        return one(expected, answer);
    };
    let fields = said(fields);
    let answered = match (answer, fields.as_slice()) {
        (Value::Object(answered), _) => answered,
        // A bare text is the answer to the one thing that was asked.
        (_, [(_, expected)]) => return one(expected, answer),
        _ => return Err(Unscored::because("the answer is no JSON object")),
    };
    if fields.is_empty() {
        return Err(Unscored::because("the expected output holds nothing"));
    }
    let count = number(fields.len());
    let mut sum = 0.0;
    for (name, expected) in fields {
        sum += one(expected, answered.get(name).unwrap_or(&Value::Null))?;
    }
    Ok((sum / count).clamp(0.0, 1.0))
}

fn said(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    fields
        .iter()
        .filter(|(_, value)| !value.is_null())
        .collect()
}

/// A value as text: the entries of an array and the values of an object one after the other.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(entries) => joined(entries.iter()),
        Value::Object(fields) => joined(fields.values()),
        scalar => scalar.to_string(),
    }
}

fn joined<'a>(values: impl Iterator<Item = &'a Value>) -> String {
    values.map(text_of).collect::<Vec<_>>().join("\n")
}
