//! Rows of a table: priced lines of a bill, and records below a line of headings.
//!
//! Promise: a row is made of one line and holds nothing that does not stand in it, but for a quantity of one.

use crate::{
    facts::{self, pattern},
    prompt,
};
use regex::Regex;
use serde_json::{Map, Number, Value};
use std::sync::LazyLock;

static LEADING: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(\d+(?:[.,]\d+)?)\s*(?:[x×*]\s*|\s)\s*(\p{L}.*)$"));
static TIMES: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(.*\S)\s+[x×*]\s?(\d+(?:[.,]\d+)?)$"));
static IN_BRACKETS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(.*\S)\s*\((\d+(?:[.,]\d+)?)\)$"));
static COLUMN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(.*\p{L}.*?)(?:\s{2,}|\t|\s*\|\s*)(\d+(?:[.,]\d+)?)(?:\s+\p{L}+)?$")
});
static UNIT_PRICE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?:\s+(?:at|@|à|a|je))?\s+[€$£]?(\d[\d.,]*\d{2})(?:\s*(?:each|ea\.?))?\s*=?\s*$")
});

/// Words of lines that are no items.
#[rustfmt::skip]
const NO_ITEM: &[&str] = &[
    "amount", "balance", "bill", "card", "cash", "change", "date", "dated", "due", "grand", "iban", "invoice", "net",
    "paid", "pay", "payable", "rechnung", "subtotal", "sum", "tax", "terms", "total", "vat",
];

/// A priced line.
#[derive(Clone, Debug, PartialEq)]
pub struct Priced {
    pub description: String,
    pub quantity: f64,
    pub amount: f64,
}

/// The priced lines of a bill.
pub fn priced(text: &str) -> Vec<Priced> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Priced> {
    let line = line.trim();
    let no_item = prompt::words(line)
        .iter()
        .any(|word| NO_ITEM.contains(&word.as_str()));
    if no_item || !facts::dates(line).is_empty() {
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
    let mut rest = line.get(..last.at.start)?.trim();
    rest = rest
        .trim_end_matches(['=', '$', '€', '£', ':', '|'])
        .trim_end();
    if let Some(code) = facts::currency(rest) {
        rest = rest.strip_suffix(code.as_str()).unwrap_or(rest).trim_end();
    }
    let without_price = UNIT_PRICE.replace(rest, "");
    let mut description = without_price.trim().to_owned();
    let mut quantity = None;
    for (form, number, name) in [
        (&LEADING, 1, 2),
        (&TIMES, 2, 1),
        (&IN_BRACKETS, 2, 1),
        (&COLUMN, 2, 1),
    ] {
        if quantity.is_none()
            && let Some(caps) = form.captures(&description.clone())
            && let (Some(number), Some(name)) = (caps.get(number), caps.get(name))
        {
            quantity = number.as_str().replace(',', ".").parse().ok();
            description = name.as_str().trim().to_owned();
        }
    }
    let description = description
        .trim_end_matches([',', ':', '-', '.', '|'])
        .trim_end();
    description.contains(char::is_alphabetic).then(|| Priced {
        description: description.to_owned(),
        quantity: quantity.filter(|n| *n > 0.0).unwrap_or(1.0),
        amount: last.value.value,
    })
}

// === impl Priced ===

impl Priced {
    /// The value of a column by its name.
    pub fn column(&self, name: &str) -> Option<Value> {
        let words = prompt::words(&name.replace('_', " "));
        let has = |any_of: &[&str]| words.iter().any(|word| any_of.contains(&word.as_str()));
        if has(&["quantity", "qty", "count", "units", "hours", "number"]) {
            number(self.quantity)
        } else if has(&["unit", "each", "rate"]) {
            number((self.amount / self.quantity * 100.0).round() / 100.0)
        } else if has(&["amount", "total", "price", "cost", "sum", "value"]) {
            number(self.amount)
        } else if has(&[
            "description",
            "item",
            "name",
            "product",
            "title",
            "text",
            "article",
            "label",
        ]) {
            Some(Value::String(self.description.clone()))
        } else {
            None
        }
    }
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

/// Records below a line that names their columns; separated by bars, tabs, semicolons or commas.
pub fn records(text: &str, columns: &[&str]) -> Vec<Map<String, Value>> {
    let plain = |cell: &str| prompt::words(&cell.replace('_', " ")).join(" ");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    for separator in ['|', '\t', ';', ','] {
        let cells = |line: &str| -> Vec<String> {
            line.trim_matches('|')
                .split(separator)
                .map(|cell| cell.trim().to_owned())
                .collect()
        };
        let heading = lines.iter().position(|line| {
            let names: Vec<String> = cells(line).iter().map(|cell| plain(cell)).collect();
            let known = columns
                .iter()
                .filter(|column| names.contains(&plain(column)))
                .count();
            names.len() > 1 && known * 2 > columns.len()
        });
        let Some(heading) = heading else { continue };
        let names: Vec<String> = lines
            .get(heading)
            .map(|line| cells(line))
            .unwrap_or_default();
        let below = lines
            .iter()
            .skip(heading + 1)
            .take_while(|line| line.contains(separator));
        return below
            .filter(|line| line.contains(char::is_alphanumeric))
            .map(|line| {
                names
                    .iter()
                    .zip(cells(line))
                    .filter_map(|(name, cell)| {
                        let column = columns.iter().find(|column| plain(column) == plain(name))?;
                        Some(((*column).to_owned(), Value::String(cell)))
                    })
                    .collect()
            })
            .collect();
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priced_line_is_read_in_the_forms_bills_have() {
        let rows = [
            ("4  Oak shelf 80 cm   96.00", ("Oak shelf 80 cm", 4.0, 96.0)),
            ("Olive oil 5 l     x6   72.30", ("Olive oil 5 l", 6.0, 72.3)),
            ("2 x Desk lamp at 45.00 = 90.00", ("Desk lamp", 2.0, 90.0)),
            (
                "Cleaning, hours (3)   75.00",
                ("Cleaning, hours", 3.0, 75.0),
            ),
            ("Chairs   12 pieces   1,440.00", ("Chairs", 12.0, 1440.0)),
            ("Delivery   EUR 9.50", ("Delivery", 1.0, 9.5)),
        ];
        for (text, (description, quantity, amount)) in rows {
            let found = priced(text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(
                (
                    found[0].description.as_str(),
                    found[0].quantity,
                    found[0].amount
                ),
                (description, quantity, amount)
            );
        }
        for text in [
            "Total EUR 9.50",
            "Payable within 14 days",
            "12 March 2026",
            "Chapter 4",
        ] {
            assert!(priced(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn records_stand_below_their_headings() {
        let found = records(
            "Stock\nitem | shelf\n--- | ---\nnails | B4\nglue | A1",
            &["item", "shelf"],
        );

        assert_eq!(found.len(), 2);
        assert_eq!(found[1]["shelf"], "A1");
    }
}
