//! Comma-separated values: one header row, and a row each that no spreadsheet takes for a formula.
//!
//! Promise: columns are only ever added at the end; an empty cell is "not known" or "not reported", never 0. What
//! a spreadsheet would take for a formula gets an apostrophe before it, also behind a semicolon, where many
//! spreadsheets split; control characters and unseen ones stand there by their number ([`crate::screen`]).

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value};

use super::error::CliError;
use super::output::say;
use crate::screen::shown;

/// One row as RFC 4180 has it: a cell with a comma, a quote or a line end stands in quotes. The cells are as they
/// are given: see [`harmless`].
pub fn write_row(out: &mut impl Write, cells: impl Iterator<Item = String>) -> io::Result<()> {
    let mut before = "";
    for cell in cells {
        out.write_all(before.as_bytes())?;
        before = ",";
        if cell.contains([',', '"', '\n', '\r']) {
            write!(out, "\"{}\"", cell.replace('"', "\"\""))?;
        } else {
            out.write_all(cell.as_bytes())?;
        }
    }
    out.write_all(b"\n")
}

/// One row on standard output.
pub fn say_row(cells: impl IntoIterator<Item = String>) -> Result<(), CliError> {
    let mut row = Vec::new();
    write_row(&mut row, cells.into_iter()).map_err(CliError::Output)?;
    say(String::from_utf8_lossy(&row))
}

/// A header row, and a row for each document with those of its members.
pub fn say_documents<T: Serialize>(
    columns: &[&str],
    documents: impl IntoIterator<Item = T>,
) -> Result<(), CliError> {
    say_row(columns.iter().map(|name| (*name).to_owned()))?;
    for document in documents {
        let members = serde_json::to_value(document)?;
        let cell = |name: &&str| members.get(*name).map(text).unwrap_or_default();
        say_row(columns.iter().map(cell))?;
    }
    Ok(())
}

/// A document with no rows: a row `name,value` for each member, the inner ones with dots.
pub fn say_members(document: &impl Serialize) -> Result<(), CliError> {
    say_row(["name", "value"].map(str::to_owned))?;
    match serde_json::to_value(document)? {
        Value::Object(members) => say_inner(&members, ""),
        other => say_row([String::new(), text(&other)]),
    }
}

fn say_inner(members: &Map<String, Value>, before: &str) -> Result<(), CliError> {
    for (name, member) in members {
        let name = format!("{before}{name}");
        match member {
            Value::Object(inner) => say_inner(inner, &format!("{name}."))?,
            Value::Array(list) if list.iter().any(Value::is_object) => {
                for (at, element) in list.iter().enumerate() {
                    let inner = Map::from_iter([(format!("{name}.{at}"), element.clone())]);
                    say_inner(&inner, "")?;
                }
            }
            other => say_row([harmless(&name), text(other)])?,
        }
    }
    Ok(())
}

/// A list has spaces between its elements. A number is no formula, whatever its sign.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => harmless(text),
        Value::Array(list) => list.iter().map(text).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// A spreadsheet takes what begins so for a formula, and runs it; some read the wide forms as the others.
const FORMULAS: [char; 8] = [
    '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// Text that no reader takes for a formula: an apostrophe makes it text. A cell may begin at the start
/// and, for a reader of another kind, behind a semicolon, a comma, a tab or a bar; readers drop blanks
/// and quotes before it.
pub fn harmless(text: &str) -> String {
    let mut begins = true;
    let mut cell = String::with_capacity(text.len());
    for character in shown(text).chars() {
        if begins && FORMULAS.contains(&character) {
            cell.push('\'');
        }
        cell.push(character);
        begins = match character {
            ';' | ',' | '|' => true,
            '"' => begins,
            blank if blank.is_whitespace() => begins,
            _ => false,
        };
    }
    cell
}

#[cfg(test)]
mod tests;
