//! Rows of a table: priced lines of a bill, and records below a line of headings.
//!
//! Promise: a row is made of one line and holds nothing that does not stand in it, but for a quantity of one.

use crate::{
    facts::{self, patterns},
    prompt,
};
use serde_json::{Map, Number, Value};

patterns! {
    LEADING = r"^(\d+(?:[.,]\d+)?)\s*(?:[x×*]\s*|\s)\s*(\p{L}.*)$";
    TIMES = r"^(.*\S)\s+[x×*]\s?(\d+(?:[.,]\d+)?)$";
    IN_BRACKETS = r"^(.*\S)\s*\((\d+(?:[.,]\d+)?)\)$";
    COLUMN = r"^(.*\p{L}.*?)(?:\s{2,}|\t|\s*\|\s*)(\d+(?:[.,]\d+)?)(?:\s+\p{L}+)?$";
    UNIT_PRICE = r"(?:\s+(?:at|@|à|a|je))?\s+[€$£]?(\d[\d.,]*\d{2})(?:\s*(?:each|ea\.?))?\s*=?\s*$";
}

/// Words of lines that are no items.
const NO_ITEM: &str = "amount balance bill card cash change date dated due grand iban invoice net paid pay payable \
    rechnung subtotal sum tax terms total vat";

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
    let no_item = prompt::has_word(line, NO_ITEM);
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
        let has = |list: &str| prompt::has_any(&words, list);
        if has("quantity qty count units hours number") {
            number(self.quantity)
        } else if has("unit each rate") {
            number((self.amount / self.quantity * 100.0).round() / 100.0)
        } else if has("amount total price cost sum value") {
            number(self.amount)
        } else if has("description item name product title text article label") {
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
    let column = |cell: &str| {
        columns
            .iter()
            .copied()
            .find(|column| plain(column) == plain(cell))
    };
    for separator in ['|', '\t', ';', ','] {
        let cells = |line: &str| -> Vec<String> {
            let cells = line.trim_matches('|').split(separator);
            cells.map(|cell| cell.trim().to_owned()).collect()
        };
        let mut lines = text.lines().map(str::trim);
        let heading = lines.find_map(|line| {
            let names: Vec<Option<&str>> = cells(line).iter().map(|cell| column(cell)).collect();
            let known = names.iter().flatten().count();
            (names.len() > 1 && known * 2 > columns.len()).then_some(names)
        });
        let Some(names) = heading else { continue };
        let below = lines.take_while(|line| line.contains(separator));
        let rows = below.filter(|line| line.contains(char::is_alphanumeric));
        let record = |line| {
            let named = names.iter().zip(cells(line));
            let fields =
                named.filter_map(|(name, cell)| Some(((*name)?.to_owned(), Value::String(cell))));
            fields.collect()
        };
        return rows.map(record).collect();
    }
    Vec::new()
}

#[cfg(test)]
mod tests;
