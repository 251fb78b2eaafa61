//! The rows of an eval set, read from a JSONL file.
//!
//! Interface, Eval set: "Both keys are required and both values are JSON objects; any other row shape is
//! rejected. For document tasks a row may carry only `expected_output`, with the blob attached afterwards."
//! Promise: an error names the line and the reason, never a value; a file is taken whole or not at all.

mod twice;

use crate::error::ServiceError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Assumed (eval-limits): the interface shows no number of rows.
pub const ROWS_MAX: usize = 5_000;
/// Wrong lines in an error.
const SHOWN_MAX: usize = 10;

/// One labelled row. `input` is absent only in sets of document tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvalRow {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Map<String, Value>>,
    pub expected_output: Map<String, Value>,
}

/// The rows of one file, each with the number of its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    pub rows: Vec<EvalRow>,
    lines: Vec<usize>,
}

// === impl Rows ===

impl Rows {
    /// Assumed (eval-rows): lines of white space are no rows; a byte order mark at the start is ignored.
    pub fn parse(file: &[u8]) -> Result<Self, ServiceError> {
        let text = std::str::from_utf8(file).map_err(|error| {
            let before = file.get(..error.valid_up_to()).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            ServiceError::invalid(format!("items: line {line}: not UTF-8"))
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut read = Self {
            rows: Vec::new(),
            lines: Vec::new(),
        };
        let mut wrong = Vec::new();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            if read.rows.len() == ROWS_MAX {
                return Err(
                    ServiceError::invalid(format!("items: more than {ROWS_MAX} rows"))
                        .assumed("eval-limits"),
                );
            }
            match row(line) {
                Ok(row) => {
                    read.rows.push(row);
                    read.lines.push(at + 1);
                }
                Err(reason) => wrong.push((at + 1, reason)),
            }
        }
        refuse(wrong)?;
        if read.rows.is_empty() {
            return Err(ServiceError::invalid("items must not be empty"));
        }
        Ok(read)
    }

    /// Refuses the file when `reason` finds one for any row.
    pub fn check(&self, reason: impl Fn(&EvalRow) -> Option<String>) -> Result<(), ServiceError> {
        let wrong = self
            .rows
            .iter()
            .zip(&self.lines)
            .filter_map(|(row, line)| reason(row).map(|reason| (*line, reason)))
            .collect();
        refuse(wrong)
    }
}

fn refuse(wrong: Vec<(usize, String)>) -> Result<(), ServiceError> {
    if wrong.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = wrong
        .iter()
        .take(SHOWN_MAX)
        .map(|(line, reason)| format!("line {line}: {reason}"))
        .collect();
    let more = match wrong.len().saturating_sub(SHOWN_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Err(ServiceError::invalid(format!("items: {}{more}", shown.join("; "))).assumed("eval-rows"))
}

fn row(line: &str) -> Result<EvalRow, String> {
    let value: Value = serde_json::from_str(line)
        .map_err(|error| format!("not JSON (column {})", error.column()))?;
    let Value::Object(mut members) = value else {
        return Err("must be a JSON object with input and expected_output".to_owned());
    };
    // A map keeps the last of two and says nothing.
    if let Some(column) = twice::column(line) {
        return Err(format!("a key stands twice (column {column})"));
    }
    let mut take = |name: &str| match members.remove(name) {
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(format!("{name} must be an object")),
        None => Ok(None),
    };
    let input = take("input")?;
    let expected_output = take("expected_output")?.ok_or("expected_output is missing")?;
    if let Some(name) = members.keys().next() {
        let name: String = name.chars().take(64).collect();
        return Err(format!("unexpected key {name}"));
    }
    Ok(EvalRow {
        input,
        expected_output,
    })
}

#[cfg(test)]
mod tests;
