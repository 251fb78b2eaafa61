//! The tables a prompt lists, and the words a question asks with.
//!
//! Promise: a name is met by the stems of its parts, and bounded many tables are read.

use crate::{facts::pattern, prompt};
use regex::Regex;
use rust_stemmers::{Algorithm, Stemmer};
use std::sync::LazyLock;

static TABLE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)(?:create table\s+)?\b([a-z_]\w*)\s*\(([^()]*)\)"));

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub columns: Vec<String>,
    pub alias: String,
}

pub struct Asked {
    pub words: Vec<String>,
    pub stems: Vec<String>,
}

pub fn stem(word: &str) -> String {
    Stemmer::create(Algorithm::English)
        .stem(&word.to_lowercase())
        .into_owned()
}

/// The stems of a name's parts.
pub fn parts(name: &str) -> Vec<String> {
    name.split('_')
        .filter(|part| !part.is_empty())
        .map(stem)
        .collect()
}

// === impl Asked ===

impl Asked {
    pub fn of(question: &str) -> Self {
        let words = prompt::words(question);
        let stems = words.iter().map(|word| stem(word)).collect();
        Self { words, stems }
    }

    pub fn has(&self, any_of: &[&str]) -> bool {
        self.words
            .iter()
            .any(|word| any_of.contains(&word.as_str()))
    }

    /// Where the question speaks of a name, the earliest.
    pub fn place(&self, name: &str) -> Option<usize> {
        let parts = parts(name);
        let small =
            |part: &String| ["id", "on", "at", "date", "time", "by"].contains(&part.as_str());
        self.stems
            .iter()
            .position(|stem| parts.iter().any(|part| part == stem && !small(part)))
    }
}

// === impl Table ===

impl Table {
    pub fn column(&self, any_of: &[&str]) -> Option<&String> {
        any_of
            .iter()
            .find_map(|name| self.columns.iter().find(|column| column.as_str() == *name))
    }

    /// The column people know a row by.
    pub fn label(&self) -> Option<&String> {
        self.column(&["name", "title", "plate", "label", "email", "code", "number"])
            .or_else(|| {
                self.columns
                    .iter()
                    .find(|column| *column != "id" && !column.ends_with("_id"))
            })
    }

    pub fn day(&self) -> Option<&String> {
        self.columns.iter().find(|column| {
            column.ends_with("_on") || column.ends_with("_at") || column.contains("date")
        })
    }

    /// The column that names rows of the other table.
    pub fn key_of(&self, other: &Table) -> Option<&String> {
        self.columns.iter().find(|column| {
            column
                .strip_suffix("_id")
                .is_some_and(|one| stem(one) == stem(&other.name))
        })
    }
}

/// The tables a text lists.
pub fn tables(text: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for caps in TABLE.captures_iter(text).take(50) {
        let (Some(name), Some(columns)) = (caps.get(1), caps.get(2)) else {
            continue;
        };
        let columns: Vec<String> = columns
            .as_str()
            .split(',')
            .filter_map(|column| column.split_whitespace().next())
            .filter(|column| column.chars().all(|c| c.is_alphanumeric() || c == '_'))
            .map(str::to_owned)
            .collect();
        if columns.is_empty() {
            continue;
        }
        let name = name.as_str().to_owned();
        let initial: String = name.chars().take(1).collect::<String>().to_lowercase();
        let taken = tables.iter().any(|table| table.alias == initial);
        let alias = if taken {
            name.chars().take(2).collect()
        } else {
            initial
        };
        tables.push(Table {
            name,
            columns,
            alias,
        });
    }
    tables
}
