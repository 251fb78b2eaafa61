//! One row for each key of the configuration, and what is known of keys. The rows are the shipped
//! `config.toml` itself, which is built in: a line `# key = value` has the key's default, or with
//! `# no default` an example; the comment above it has the range of a number in its last `1 to 300.`,
//! and `Restart only.` where a reload cannot change it. A key's reader (`reader.rs`) takes them from here.
//!
//! Promise: a key that is read is known, documented and printed, with one default and one range.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use toml::de::DeValue;

use super::errors::{Location, bracketed};

const SHIPPED: &str = include_str!("../../config.toml");

/// The line of the table that stands there as an example as a whole.
const APP_LINE: &str = "# [[app]]";

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| rows_of(SHIPPED));

/// Keys that a later release brings, so that they are not taken for misspelt.
const LATER: [(&str, &str); 1] = [("streams", "strip_comments")];

/// One key.
#[derive(Debug)]
pub struct Row {
    /// `""` is the top level.
    pub table: &'static str,
    pub key: &'static str,
    /// `None`: what stands there is an example.
    pub default: Option<DeValue<'static>>,
    /// Of a number.
    pub range: Option<RangeInclusive<u64>>,
    is_restart_only: bool,
}

/// The values in force, as TOML: by place of the table, entry of the table, and place of the row.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct InForce(BTreeMap<(usize, usize, usize), String>);

// === impl InForce ===

impl InForce {
    /// Notes the value of a key in one entry of its table.
    pub fn set(&mut self, table: &str, entry: usize, key: &str, value: String) {
        let row_at = ROWS
            .iter()
            .position(|row| (row.table, row.key) == (table, key));
        let table_at = ROWS.iter().position(|row| row.table == table);
        if let (Some(table_at), Some(row_at)) = (table_at, row_at) {
            self.0.insert((table_at, entry, row_at), value);
        }
    }

    /// One line each, table by table.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut begun = (0, 0);
        for ((table_at, entry, row_at), value) in &self.0 {
            let Some(row) = ROWS.get(*row_at) else {
                continue;
            };
            if begun != (*table_at, *entry) {
                begun = (*table_at, *entry);
                text.push_str(&format!("\n{}\n", bracketed(row.table)));
            }
            text.push_str(&format!("{} = {value}\n", row.key));
        }
        text
    }

    /// The same, with the running values of the keys that a reload cannot change.
    pub fn keeping(&self, running: &Self) -> Self {
        let is_fixed = |row_at: usize| ROWS.get(row_at).is_some_and(|row| row.is_restart_only);
        let new = self.0.iter().filter(|((.., at), _)| !is_fixed(*at));
        let kept = running.0.iter().filter(|((.., at), _)| is_fixed(*at));
        let all = new.chain(kept).map(|(key, value)| (*key, value.clone()));
        Self(all.collect())
    }

    /// The keys that a reload cannot change and whose values differ: `[listen] proxy`.
    pub fn needing_restart(&self, new: &Self) -> Vec<String> {
        let rows = ROWS.iter().enumerate();
        let fixed = rows.filter(|(_, row)| row.is_restart_only);
        let value = |of: &Self, at: usize| {
            let mut values = of.0.iter();
            values.find_map(|((.., row_at), value)| (*row_at == at).then(|| value.clone()))
        };
        fixed
            .filter(|(at, _)| value(self, *at) != value(new, *at))
            .map(|(_, row)| Location::key(row.table, row.key).to_string())
            .collect()
    }
}

impl fmt::Debug for InForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_toml())
    }
}

/// The rows of a text that is written as `config.toml` is.
fn rows_of(text: &'static str) -> Vec<Row> {
    let (mut table, mut comment) = ("", Vec::new());
    let mut rows = Vec::new();
    for line in text.lines() {
        let heading = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        table = match line {
            APP_LINE => "app",
            _ => heading.unwrap_or(table),
        };
        let Some((key, sample)) = line.strip_prefix("# ").and_then(setting) else {
            match line.strip_prefix("# ") {
                Some(words) => comment.extend(words.split_whitespace()),
                None => comment.clear(),
            }
            continue;
        };
        let default = DeValue::parse(sample.split(" # ").next().unwrap_or(sample)).ok();
        rows.push(Row {
            table,
            key,
            default: default
                .filter(|_| !sample.ends_with("# no default"))
                .map(toml::Spanned::into_inner),
            range: comment.windows(3).rev().find_map(range_of),
            is_restart_only: comment.ends_with(&["Restart", "only."]),
        });
        comment.clear();
    }
    rows
}

/// `key = value`
fn setting(line: &str) -> Option<(&str, &str)> {
    let is_key = |key: &str| {
        key.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    line.split_once(" = ").filter(|(key, _)| is_key(key))
}

/// `1 to 300.`
fn range_of(words: &[&str]) -> Option<RangeInclusive<u64>> {
    match words {
        [least, "to", most] => Some(least.parse().ok()?..=most.strip_suffix('.')?.parse().ok()?),
        _ => None,
    }
}

pub fn row(table: &str, key: &str) -> Option<&'static Row> {
    of(table).find(|row| row.key == key)
}

/// The table of that name; the top level has none.
pub fn table_named(name: &str) -> Option<&'static str> {
    tables_below("").into_iter().find(|table| *table == name)
}

fn of(table: &str) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |row| row.table == table)
}

/// Only the top level has tables.
fn tables_below(table: &str) -> Vec<&'static str> {
    let names = ROWS.iter().map(|row| row.table);
    let mut names: Vec<_> = names
        .filter(|name| table.is_empty() && !name.is_empty())
        .collect();
    names.dedup();
    names
}

/// The error for a key that is not known.
pub fn refusal(table: &str, key: &str, value: &DeValue<'_>) -> String {
    let is_table = matches!(value, DeValue::Table(_)) || is_list_of_tables(value);
    let full = match (table, value) {
        ("", DeValue::Table(_)) => format!("[{key}]"),
        ("", _) if is_table => format!("[[{key}]]"),
        ("", _) => key.escape_debug().to_string(),
        (table, _) => format!("{} {}", bracketed(table), key.escape_debug()),
    };
    if LATER.contains(&(table, key)) {
        return format!("{full} is not in this release; a later one brings it");
    }
    if is_the_key_itself(table, key) {
        return format!(
            "{full} is unknown: the key itself is never written in this file; put it into a file of its own and name that in [upstream] api_key_file"
        );
    }
    match elsewhere(table, key) {
        Some("") => return format!("{full} is unknown here; {key} belongs above all tables"),
        Some(other) => {
            let place = bracketed(other);
            return format!("{full} is unknown here; {key} belongs to {place}");
        }
        None => {}
    }
    match nearest(table, key, is_table) {
        Some(near) => format!("{full} is unknown; did you mean {near}?"),
        None => {
            let keys = of(table).map(|row| row.key.to_owned());
            let tables = tables_below(table).into_iter().map(bracketed);
            let known: Vec<String> = keys.chain(tables).collect();
            format!("{full} is unknown; known here: {}", known.join(", "))
        }
    }
}

/// The key that an unknown one was perhaps meant to be: in its table, or the same in another.
pub fn meant(table: &str, key: &str) -> Option<Location> {
    if is_the_key_itself(table, key) {
        return Some(Location::key(table, "api_key_file"));
    }
    match elsewhere(table, key) {
        Some(other) => Some(Location::key(other, key)),
        None => nearest(table, key, false).map(|near| Location::key(table, &near)),
    }
}

/// Another table that knows this key.
fn elsewhere(table: &str, key: &str) -> Option<&'static str> {
    let mut others = ROWS.iter().filter(|row| row.table != table);
    others.find(|row| row.key == key).map(|row| row.table)
}

/// The known key or table that `key` most resembles, when it resembles any.
fn nearest(table: &str, key: &str, is_table: bool) -> Option<String> {
    const RESEMBLES: f64 = 0.8;
    let tables = tables_below(table).into_iter();
    let keys = of(table).filter(|_| !is_table);
    keys.map(|row| (row.key, row.key.to_owned()))
        .chain(tables.map(|name| (name, bracketed(name))))
        .map(|(name, shown)| (strsim::jaro_winkler(key, name), shown))
        .filter(|(score, _)| *score >= RESEMBLES)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, shown)| shown)
}

fn is_the_key_itself(table: &str, key: &str) -> bool {
    table == "upstream" && matches!(key, "api_key" | "key" | "token")
}

fn is_list_of_tables(value: &DeValue<'_>) -> bool {
    let is_table = |element: &toml::Spanned<DeValue<'_>>| element.get_ref().is_table();
    value
        .as_array()
        .is_some_and(|list| !list.is_empty() && list.iter().all(is_table))
}
