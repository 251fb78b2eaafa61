//! Facts that have a form of their own: dates, amounts, currencies, addresses, telephone numbers.
//!
//! Promise: what is found stands in the text, and a date is a day of the calendar; work is linear in the text.

use jiff::civil::Date;
use regex::{Captures, Regex};
use std::{ops::Range, sync::LazyLock};

/// Something found, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Found<T> {
    pub at: Range<usize>,
    pub value: T,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    pub value: f64,
    /// It was written with decimals, as money is.
    pub decimals: bool,
    pub percent: bool,
}

/// A pattern of this crate.
#[expect(
    clippy::expect_used,
    reason = "constants of this crate, each compiled by a test"
)]
pub fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("a pattern of this crate compiles")
}

/// A pattern of this crate on bytes.
#[expect(
    clippy::expect_used,
    reason = "constants of this crate, each compiled by a test"
)]
pub fn bytes_pattern(source: &str) -> regex::bytes::Regex {
    regex::bytes::Regex::new(source).expect("a pattern of this crate compiles")
}

const MONTH: &str = r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)";

static YEAR_FIRST: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})\b"));
static YEAR_LAST: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(\d{1,2})([-/.])(\d{1,2})[-/.](\d{4})\b"));
static DAY_MONTH: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"(?i)\b(\d{{1,2}})(?:st|nd|rd|th|\.)?[ -](?:of )?{MONTH}\.?,?[ -](\d{{4}})\b"
    ))
});
static MONTH_DAY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"(?i)\b{MONTH}\.? (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})\b"
    ))
});
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"-?\d{1,3}(?:\.\d{3})+,\d{2}\b|-?\d{1,3}(?:[,']\d{3})+(?:\.\d+)?|-?\d+,\d{2}\b|-?\d+(?:\.\d+)?",
    )
});
static EMAIL: LazyLock<Regex> = LazyLock::new(|| pattern(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"));
static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"https?://[^\s<>"')\]]+[^\s<>"')\].,;:!?]"#));
static PHONE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\+?\(?\d[\d ()/.-]{4,}\d"));
static TWO_YEARS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\d{4}\s*[-/]\s*\d{4}$|^\d+\.\d{2}$|^\d{3,}$"));
static CURRENCY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b(EUR|USD|GBP|CHF|JPY|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN|TRY|INR|CNY|HKD|SGD|KRW|BRL|MXN|ZAR|AED|ILS|THB|ISK|UAH)\b|[€$£¥₹]",
    )
});

/// All days of the text, in its order. `5/3` is the third of May where the text shows that months stand
/// first (a day over 12, dollars), else the fifth of March.
pub fn dates(text: &str) -> Vec<Found<Date>> {
    let month_first = month_first(text);
    let mut found: Vec<Found<Date>> = Vec::new();
    let mut add = |caps: &Captures<'_>, day: Option<Date>| {
        if let (Some(whole), Some(value)) = (caps.get(0), day) {
            let at = whole.range();
            if found
                .iter()
                .all(|one| one.at.end <= at.start || at.end <= one.at.start)
            {
                found.push(Found { at, value });
            }
        }
    };
    for caps in YEAR_FIRST.captures_iter(text) {
        add(
            &caps,
            day(&part(&caps, 1), &part(&caps, 2), &part(&caps, 3)),
        );
    }
    for caps in YEAR_LAST.captures_iter(text) {
        let (first, second) = (part(&caps, 1), part(&caps, 3));
        let swap = part(&caps, 2) == "/" && month_first;
        let (month, number) = if swap {
            (first, second)
        } else {
            (second, first)
        };
        add(&caps, day(&part(&caps, 4), &month, &number));
    }
    for caps in DAY_MONTH.captures_iter(text) {
        add(
            &caps,
            day(&part(&caps, 3), &month(&part(&caps, 2)), &part(&caps, 1)),
        );
    }
    for caps in MONTH_DAY.captures_iter(text) {
        add(
            &caps,
            day(&part(&caps, 3), &month(&part(&caps, 1)), &part(&caps, 2)),
        );
    }
    found.sort_by_key(|one| one.at.start);
    found
}

fn part(caps: &Captures<'_>, at: usize) -> String {
    caps.get(at).map_or("", |one| one.as_str()).to_owned()
}

fn month_first(text: &str) -> bool {
    let pairs: Vec<(u32, u32)> = YEAR_LAST
        .captures_iter(text)
        .filter(|caps| part(caps, 2) == "/")
        .filter_map(|caps| Some((part(&caps, 1).parse().ok()?, part(&caps, 3).parse().ok()?)))
        .collect();
    if pairs.iter().any(|(_, second)| *second > 12) {
        return true;
    }
    pairs.iter().all(|(first, _)| *first <= 12) && currency(text).as_deref() == Some("USD")
}

/// A month's number by its name.
fn month(name: &str) -> String {
    const NAMES: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let name = name.to_lowercase();
    let at = NAMES.iter().position(|start| name.starts_with(start));
    at.map_or(String::new(), |at| (at + 1).to_string())
}

fn day(year: &str, month: &str, day: &str) -> Option<Date> {
    Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()
}

/// The numbers of a text that are no part of a word; days are left out.
pub fn amounts(text: &str) -> Vec<Found<Amount>> {
    let dates = dates(text);
    NUMBER
        .find_iter(text)
        .filter(|one| {
            dates
                .iter()
                .all(|date| one.end() <= date.at.start || date.at.end <= one.start())
        })
        .filter_map(|one| {
            let mut at = one.range();
            let before = text.get(..at.start)?.chars().next_back();
            let after = text.get(at.end..)?.chars().next();
            let mut written = one.as_str();
            // `ORD-1003` and `a-5` are names, and `2019-2024` holds no minus.
            if written.starts_with('-') && before.is_some_and(char::is_alphabetic) {
                return None;
            }
            if written.starts_with('-') && before.is_some_and(char::is_numeric) {
                written = written.get(1..)?;
                at.start += 1;
            } else if before.is_some_and(|c| c.is_alphabetic() || c == '.') {
                return None;
            }
            if after.is_some_and(char::is_alphabetic) {
                return None;
            }
            let value = number(written)?;
            let value = Amount {
                value,
                decimals: written.contains(['.', ',']),
                percent: text.get(at.end..)?.trim_start().starts_with('%'),
            };
            Some(Found { at, value })
        })
        .collect()
}

/// The values of the amounts.
pub fn numbers(text: &str) -> Vec<f64> {
    amounts(text).iter().map(|one| one.value.value).collect()
}

/// `1,240.50`, `1'240.50`, `1.240,50`, `12,50`.
fn number(written: &str) -> Option<f64> {
    let decimal_comma = written
        .rsplit_once(',')
        .is_some_and(|(_, rest)| rest.len() == 2);
    let plain = if decimal_comma {
        written.replace('.', "").replace(',', ".")
    } else {
        written.replace([',', '\''], "")
    };
    plain.parse().ok().filter(|n: &f64| n.is_finite())
}

/// The ISO code of the first currency named, by code or sign.
pub fn currency(text: &str) -> Option<String> {
    let found = CURRENCY.find(text)?.as_str();
    let code = match found {
        "€" => "EUR",
        "$" => "USD",
        "£" => "GBP",
        "¥" => "JPY",
        "₹" => "INR",
        code => code,
    };
    Some(code.to_owned())
}

pub fn emails(text: &str) -> Vec<&str> {
    EMAIL.find_iter(text).map(|one| one.as_str()).collect()
}

pub fn addresses(text: &str) -> Vec<&str> {
    ADDRESS.find_iter(text).map(|one| one.as_str()).collect()
}

/// Telephone numbers: seven to fifteen digits, grouped or with a country's sign, that are no day and no years.
pub fn phones(text: &str) -> Vec<&str> {
    let dates = dates(text);
    PHONE
        .find_iter(text)
        .filter(|one| {
            dates
                .iter()
                .all(|date| one.end() <= date.at.start || date.at.end <= one.start())
        })
        .map(|one| one.as_str().trim())
        .filter(|one| {
            let digits = one.bytes().filter(u8::is_ascii_digit).count();
            (7..=15).contains(&digits) && !TWO_YEARS.is_match(one)
        })
        .collect()
}

#[cfg(test)]
mod tests;
