//! Facts that have a form of their own: dates, amounts, currencies, addresses, telephone numbers.
//!
//! Promise: what is found stands in the text, and a date is a day of the calendar; work is linear in the text.

use crate::text::{self, patterns};
use jiff::civil::Date;
use regex::{Captures, Regex};
use serde_json::Value;
use std::{ops::Range, sync::LazyLock};

/// Something found, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Located<T> {
    pub at: Range<usize>,
    pub value: T,
}

/// Values of one row, each under the words of the fields that they fit.
pub type FieldValues = Vec<(&'static str, Value)>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Numeral {
    pub value: f64,
    /// It was written with decimals, as money is.
    pub decimals: bool,
    pub percent: bool,
}

const MONTH: &str = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)";

/// Days as people write them: year, month and day by name, or `a` and `b`, whose order the text decides.
static DAYS: LazyLock<[Regex; 5]> = LazyLock::new(|| {
    [
        r"\b(?<year>\d{4})[-/.](?<month>\d{1,2})[-/.](?<day>\d{1,2})\b",
        r"\b(?<a>\d{1,2})/(?<b>\d{1,2})/(?<year>\d{4})\b",
        r"\b(?<day>\d{1,2})[-.](?<month>\d{1,2})[-.](?<year>\d{4})\b",
        r"(?i)\b(?<day>\d{1,2})(?:st|nd|rd|th|\.)?[ -](?:of )?(?<month>MONTH)\.?,?[ -](?<year>\d{4})\b",
        r"(?i)\b(?<month>MONTH)\.? (?<day>\d{1,2})(?:st|nd|rd|th)?,? (?<year>\d{4})\b",
    ]
    .map(|source| text::pattern(&source.replace("MONTH", MONTH)))
});
patterns! {
    NUMBER = r"-?\d{1,3}(?:\.\d{3})+,\d{2}\b|-?\d{1,3}(?:[,']\d{3})+(?:\.\d+)?|-?\d+,\d{2}\b|-?\d+(?:\.\d+)?";
    EMAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+";
    ADDRESS = r#"https?://[^\s<>"')\]]+[^\s<>"')\].,;:!?]"#;
    PHONE = r"\+?\(?\d[\d ()/.-]{4,}\d";
    TWO_YEARS = r"^\d{4}\s*[-/]\s*\d{4}$|^\d+\.\d{2}$|^\d{3,}$";
    CURRENCY = r"\b(EUR|USD|GBP|CHF|JPY|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN|TRY|INR|CNY|HKD|SGD|KRW|BRL|MXN|ZAR|AED|ILS|THB|ISK|UAH)\b|[€$£¥₹]";
}

/// All days of the text, in its order. `5/3` is the third of May where the text shows that months stand
/// first (a day over 12, dollars), else the fifth of March.
pub fn dates(text: &str) -> Vec<Located<Date>> {
    let captures = || DAYS.iter().flat_map(|form| form.captures_iter(text));
    let figure = |caps: &Captures<'_>, name| caps.name(name)?.as_str().parse::<i8>().ok();
    let over_12 = |name| captures().any(|caps| figure(&caps, name) > Some(12));
    let month_first = over_12("b") || !over_12("a") && currency(text).as_deref() == Some("USD");
    let day = |caps: &Captures<'_>| {
        let (month, day) = match (figure(caps, "a"), figure(caps, "b")) {
            (Some(a), Some(b)) if month_first => (a, b),
            (Some(a), Some(b)) => (b, a),
            _ => (month(caps.name("month")?.as_str())?, figure(caps, "day")?),
        };
        Date::new(caps.name("year")?.as_str().parse().ok()?, month, day).ok()
    };
    let mut found: Vec<Located<Date>> = Vec::new();
    for caps in captures() {
        if let (Some(whole), Some(value)) = (caps.get(0), day(&caps))
            && !overlaps(&found, &whole.range())
        {
            found.push(Located {
                at: whole.range(),
                value,
            });
        }
    }
    found.sort_by_key(|one| one.at.start);
    found
}

/// Whether a place lies on one of the days.
pub fn overlaps(dates: &[Located<Date>], at: &Range<usize>) -> bool {
    let mut dates = dates.iter();
    dates.any(|date| date.at.start < at.end && at.start < date.at.end)
}

/// A month's number by its name or its figures.
fn month(text: &str) -> Option<i8> {
    const NAMES: &str = "jan feb mar apr may jun jul aug sep oct nov dec";
    let text = text.to_lowercase();
    let mut named = NAMES.split(' ').zip(1..);
    let found = named.find(|(name, _)| text.starts_with(name));
    found
        .map(|(_, number)| number)
        .or_else(|| text.parse().ok())
}

/// The numbers of a text that are no part of a word; days are left out.
pub fn amounts(text: &str) -> Vec<Located<Numeral>> {
    let dates = dates(text);
    let found = NUMBER.find_iter(text).map(|one| one.range());
    found
        .filter(|at| !overlaps(&dates, at))
        .filter_map(|at| amount(text, at))
        .collect()
}

fn amount(text: &str, mut at: Range<usize>) -> Option<Located<Numeral>> {
    let before = text.get(..at.start)?.chars().next_back();
    let after = text.get(at.end..)?;
    let mut written = text.get(at.clone())?;
    // `ORD-1003` and `a-5` are names, and `2019-2024` holds no minus.
    if written.starts_with('-') && before.is_some_and(char::is_numeric) {
        written = written.get(1..)?;
        at.start += 1;
    } else if before.is_some_and(|c| c.is_alphabetic() || c == '.') {
        return None;
    }
    if after.starts_with(char::is_alphabetic) {
        return None;
    }
    let value = Numeral {
        value: number(written)?,
        decimals: written.contains(['.', ',']),
        percent: after.trim_start().starts_with('%'),
    };
    Some(Located { at, value })
}

/// The values of the amounts.
pub fn numbers(text: &str) -> Vec<f64> {
    amounts(text).iter().map(|one| one.value.value).collect()
}

/// `1,240.50`, `1'240.50`, `1.240,50`, `12,50`.
fn number(written: &str) -> Option<f64> {
    let plain = match written.rsplit_once(',') {
        Some((whole, cents)) if cents.len() == 2 => format!("{}.{cents}", whole.replace('.', "")),
        _ => written.replace([',', '\''], ""),
    };
    plain.parse().ok().filter(|n: &f64| n.is_finite())
}

/// The ISO code of the first currency named, by code or sign.
pub fn currency(text: &str) -> Option<String> {
    let code = match CURRENCY.find(text)?.as_str() {
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
    let found = PHONE
        .find_iter(text)
        .filter(|one| !overlaps(&dates, &one.range()));
    let is_phone = |one: &&str| {
        let digits = one.bytes().filter(u8::is_ascii_digit).count();
        (7..=15).contains(&digits) && !TWO_YEARS.is_match(one)
    };
    found
        .map(|one| one.as_str().trim())
        .filter(is_phone)
        .collect()
}

#[cfg(test)]
mod tests;
