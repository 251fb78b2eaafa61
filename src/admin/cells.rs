//! How states, amounts, counts and times stand in tables and in lines.
//!
//! Promise: an amount that is not known is `unknown`, never 0; a count agrees with its noun.

use std::fmt::Display;

use crate::ledger::entry::{EntryId, InDoubt, StateWord};
use crate::ledger::query::TAIL_CHARS;
use crate::money::MicroUsd;

/// `settled`, `in_doubt(crash)`.
pub fn state(word: StateWord, reason: Option<InDoubt>) -> String {
    match reason {
        Some(reason) => format!("{word}({reason})"),
        None => word.to_string(),
    }
}

pub fn amount(amount: Option<MicroUsd>) -> String {
    amount.map_or_else(|| "unknown".to_owned(), |amount| amount.to_string())
}

/// `0 entries`, `1 entry`, `2 entries`.
pub fn counted(count: impl Display, one: &str, more: &str) -> String {
    let count = count.to_string();
    let noun = if count == "1" { one } else { more };
    format!("{count} {noun}")
}

/// Milliseconds as `0.143 s`.
pub fn seconds(ms: u64) -> String {
    format!("{}.{:03} s", ms / 1000, ms % 1000)
}

/// The end of an entry's id, which names it: ids of one time begin alike.
pub fn tail(id: &EntryId) -> String {
    let mut text = id.to_string();
    text.split_off(text.len().saturating_sub(TAIL_CHARS))
}

#[cfg(test)]
mod tests;
