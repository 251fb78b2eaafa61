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
/// How many wrong lines an error tells.
const TOLD_MAX: usize = 10;

/// One labelled row. `input` is absent only in sets of document tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Map<String, Value>>,
    pub expected_output: Map<String, Value>,
}

/// The rows of one file, each with the number of its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    pub rows: Vec<Row>,
    lines: Vec<usize>,
}

// === impl Rows ===

impl Rows {
    /// Assumed (eval-rows): lines of white space are no rows; a byte order mark at the start is none.
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
    pub fn check(&self, reason: impl Fn(&Row) -> Option<String>) -> Result<(), ServiceError> {
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
    let told: Vec<String> = wrong
        .iter()
        .take(TOLD_MAX)
        .map(|(line, reason)| format!("line {line}: {reason}"))
        .collect();
    let more = match wrong.len().saturating_sub(TOLD_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Err(ServiceError::invalid(format!("items: {}{more}", told.join("; "))).assumed("eval-rows"))
}

fn row(line: &str) -> Result<Row, String> {
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
    Ok(Row {
        input,
        expected_output,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(file: &[u8]) -> String {
        Rows::parse(file).unwrap_err().to_string()
    }

    #[test]
    fn a_file_that_is_not_rows_is_refused_with_line_and_reason() {
        let good = r#"{"input": {}, "expected_output": {}}"#;
        let rows = [
            ("", "items must not be empty"),
            ("\n  \n", "items must not be empty"),
            ("{", "items: line 1: not JSON (column 1)"),
            (
                "[]",
                "items: line 1: must be a JSON object with input and expected_output",
            ),
            (
                r#"{"input": {}}"#,
                "items: line 1: expected_output is missing",
            ),
            (
                r#"{"input": 1, "expected_output": {}}"#,
                "items: line 1: input must be an object",
            ),
            (
                r#"{"input": null, "expected_output": {}}"#,
                "items: line 1: input must be an object",
            ),
            (
                r#"{"input": {}, "expected_output": "x"}"#,
                "items: line 1: expected_output must be an object",
            ),
            (
                r#"{"input": {}, "expected_output": {}, "id": 7}"#,
                "items: line 1: unexpected key id",
            ),
            (
                r#"{"input": {}, "expected_output": {"a": 1}, "expected_output": {}}"#,
                "items: line 1: a key stands twice (column 60)",
            ),
            (
                r#"{"input": {"a": [{"b": 1, "b": 2}]}, "expected_output": {}}"#,
                "items: line 1: a key stands twice (column 29)",
            ),
        ];

        for (file, expected) in rows {
            assert_eq!(error(file.as_bytes()), expected, "{file}");
        }
        let second = format!("{good}\r\n\r\n{{}}\n");
        assert_eq!(
            error(second.as_bytes()),
            "items: line 3: expected_output is missing"
        );
        assert_eq!(error(b"{}\n\xff"), "items: line 2: not UTF-8");
    }

    #[test]
    fn the_first_ten_wrong_lines_are_told() {
        let told = error("[]\n".repeat(12).as_bytes());

        assert!(
            told.contains("line 10:") && !told.contains("line 11:"),
            "{told}"
        );
        assert!(told.ends_with("; and 2 more"), "{told}");
    }

    #[test]
    fn the_number_of_rows_is_bounded() {
        let row = "{\"input\":{},\"expected_output\":{}}\n";

        assert_eq!(
            Rows::parse(row.repeat(ROWS_MAX).as_bytes())
                .unwrap()
                .rows
                .len(),
            ROWS_MAX
        );
        assert_eq!(
            error(row.repeat(ROWS_MAX + 1).as_bytes()),
            "items: more than 5000 rows"
        );
    }

    #[test]
    fn blank_lines_and_a_byte_order_mark_are_no_rows() {
        let file = "\u{feff}{\"expected_output\":{\"a\":1}}\r\n\n{\"input\":{\"t\":\"x\"},\"expected_output\":{}}";

        let read = Rows::parse(file.as_bytes()).unwrap();

        assert_eq!((read.rows.len(), read.lines), (2, vec![1, 3]));
        assert_eq!(read.rows[0].input, None);
    }
}
