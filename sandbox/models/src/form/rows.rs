//! Rows of a bill: the lines that end in a price.
//!
//! Promise: a row is made of one line and holds nothing that does not stand in it, but for a quantity of one.

use crate::{
    facts::{self, FieldValues},
    text::{self, patterns},
};
use serde_json::{Number, Value, json};

patterns! {
    /// How a line states its quantity beside the name of the item.
    LEADING = r"^(?<n>\d+(?:[.,]\d+)?)\s*(?:[x×*]\s*|\s)\s*(?<name>\p{L}.*)$";
    TIMES = r"^(?<name>.*\S)\s+[x×*]\s?(?<n>\d+(?:[.,]\d+)?)$";
    IN_BRACKETS = r"^(?<name>.*\S)\s*\((?<n>\d+(?:[.,]\d+)?)\)$";
    COLUMN = r"^(?<name>.*\p{L}.*?)(?:\s{2,}|\t|\s*\|\s*)(?<n>\d+(?:[.,]\d+)?)(?:\s+\p{L}+)?$";
    UNIT_PRICE = r"(?:\s+(?:at|@|à|a|je))?\s+[€$£]?(\d[\d.,]*\d{2})(?:\s*(?:each|ea\.?))?\s*=?\s*$";
}

/// Words of lines that are no items.
const NO_ITEM: &str = "amount balance bill card cash change date dated due grand iban invoice net paid pay payable \
    rechnung subtotal sum tax terms total vat";

/// The priced lines of a bill.
pub fn priced(text: &str) -> Vec<FieldValues> {
    text.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<FieldValues> {
    let line = line.trim();
    if text::has_word(line, NO_ITEM) || !facts::dates(line).is_empty() {
        return None;
    }
    let last = facts::amounts(line)
        .into_iter()
        .rfind(|one| !one.value.percent)?;
    // The amount ends the line, but for a currency.
    let behind = line.get(last.at.end..)?.trim();
    if behind.chars().count() > 4 || !last.value.decimals && facts::currency(line).is_none() {
        return None;
    }
    let rest = line.get(..last.at.start)?.trim();
    let mut rest = rest
        .trim_end_matches(['=', '$', '€', '£', ':', '|'])
        .trim_end();
    if let Some(code) = facts::currency(rest) {
        rest = rest.strip_suffix(code.as_str()).unwrap_or(rest).trim_end();
    }
    let rest = UNIT_PRICE.replace(rest, "");
    let rest = rest.trim();
    let forms = [&LEADING, &TIMES, &IN_BRACKETS, &COLUMN];
    let counted = forms.iter().find_map(|form| form.captures(rest));
    let counted = counted.and_then(|caps| {
        let count: f64 = caps.name("n")?.as_str().replace(',', ".").parse().ok()?;
        Some((count, caps.name("name")?.as_str()))
    });
    let (count, name) = counted
        .filter(|(count, _)| *count > 0.0)
        .unwrap_or((1.0, rest));
    let name = name
        .trim()
        .trim_end_matches([',', ':', '-', '.', '|'])
        .trim_end();
    let unit_price = (last.value.value / count * 100.0).round() / 100.0;
    name.contains(char::is_alphabetic).then(|| {
        vec![
            (
                "quantity qty count units hours number",
                json!(number(count)),
            ),
            ("unit each rate", json!(number(unit_price))),
            (
                "amount total price cost sum value",
                json!(number(last.value.value)),
            ),
            (
                "description item name product title text article label",
                json!(name),
            ),
        ]
    })
}

/// A whole number as one.
pub fn number(value: f64) -> Option<Value> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a whole number below 2^53 keeps its value"
    )]
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Some(Value::from(value as i64));
    }
    Number::from_f64(value).map(Value::Number)
}

#[cfg(test)]
mod tests;
