//! TOML as it is written: the line of a value, the entries of a table, its type in words, whole
//! numbers, and strings and lists in print.
//!
//! Promise: no words here repeat a value of the file.

use std::ops::Range;

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::errors::{ConfigErrors, Location};

/// Finds the line of a byte offset.
pub struct LineStarts {
    starts: Vec<usize>,
}

// === impl LineStarts ===

impl LineStarts {
    pub fn of(text: &str) -> Self {
        let after_breaks = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        Self {
            starts: std::iter::once(0).chain(after_breaks).collect(),
        }
    }

    /// The line, counted from 1.
    pub fn line_of(&self, span: &Range<usize>) -> usize {
        self.starts.partition_point(|start| *start <= span.start)
    }
}

/// The entries of a table, and where each begins. `shown`: `[table]`, or `[[table]]`, which is a list.
pub fn entries<'a>(
    shown: &str,
    value: &'a DeValue<'a>,
    line: usize,
    lines: &LineStarts,
    errors: &mut ConfigErrors,
) -> Vec<(Location, &'a DeTable<'a>)> {
    let place = Location::of_line(line);
    let given = kind_of(value);
    match (value, shown.starts_with("[[")) {
        (DeValue::Table(members), false) => vec![(place, members)],
        (DeValue::Array(list), true) => {
            let mut entries = Vec::new();
            for element in list {
                let place = Location::of_line(lines.line_of(&element.span()));
                match element.get_ref() {
                    DeValue::Table(members) => entries.push((place, members)),
                    other => {
                        let given = kind_of(other);
                        let message =
                            format!("{shown} is a list of tables; this element is {given}");
                        errors.push(&place, message);
                    }
                }
            }
            entries
        }
        (_, is_list) => {
            let wanted = if is_list {
                "a list of tables"
            } else {
                "a table"
            };
            errors.push(&place, format!("{shown} is {wanted}; here it is {given}"));
            Vec::new()
        }
    }
}

/// A string as TOML writes it: as JSON does, but that DEL is escaped, too.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A list as TOML writes it.
pub fn list(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(", "))
}

/// A table as JSON has it.
pub fn members(table: &DeTable<'_>) -> Map<String, Value> {
    let members = table.iter();
    members
        .map(|(name, value)| (name.get_ref().to_string(), json(value.get_ref())))
        .collect()
}

fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(&**text),
        DeValue::Integer(_) => integer_of(value).into(),
        DeValue::Float(number) => Value::from(number.as_str()),
        DeValue::Boolean(flag) => Value::from(*flag),
        DeValue::Datetime(date) => Value::from(date.to_string()),
        DeValue::Array(values) => values.iter().map(|value| json(value.get_ref())).collect(),
        DeValue::Table(table) => Value::Object(members(table)),
    }
}

/// A whole number. One that does not fit is out of every range, and is refused as that.
pub fn integer_of(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    let beyond = if integer.as_str().starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    Some(i64::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(beyond))
}

/// The type of a value, in words. Never the value: it may be the key.
pub fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
