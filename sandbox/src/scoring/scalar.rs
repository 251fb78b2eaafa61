//! When two single values are the same.
//!
//! A model that writes `12.50` for `12.5`, or `21 November 2026` for `2026-11-21`, has read the document
//! right. The rules are few, and written down in docs/sandbox.md.
//! Promise: the comparison is symmetric, and two texts are never compared as numbers (`007` is not `7`).

use jiff::{
    Timestamp,
    civil::{Date, DateTime},
};
use serde_json::{Number, Value};

/// Relative; for what is lost when a decimal number becomes a binary one, not for rounding.
const TOLERANCE: f64 = 1e-9;

#[derive(Clone, Debug)]
pub struct Scalar {
    /// Lower case, white space collapsed.
    text: String,
    number: Option<Amount>,
    /// The value was a JSON number, not a text that looks like one.
    is_number: bool,
    when: Option<When>,
}

#[derive(Clone, Copy, Debug)]
enum Amount {
    Whole(i128),
    Real(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Day(Date),
    /// Without a time zone.
    Local(DateTime),
    Instant(Timestamp),
}

// === impl Scalar ===

impl Scalar {
    /// `None` for what says nothing (null, an empty text) and for objects and arrays.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null | Value::Array(_) | Value::Object(_) => None,
            Value::Bool(yes) => Some(Self {
                text: yes.to_string(),
                number: None,
                is_number: false,
                when: None,
            }),
            Value::Number(number) => Some(Self {
                text: number.to_string(),
                number: Amount::of(number),
                is_number: true,
                when: None,
            }),
            Value::String(text) => {
                let text = plain(text);
                (!text.is_empty()).then(|| Self {
                    number: Amount::read(&text),
                    is_number: false,
                    when: When::read(&text),
                    text,
                })
            }
        }
    }

    pub fn same(&self, other: &Self) -> bool {
        if self.is_number || other.is_number {
            return match (self.number, other.number) {
                (Some(one), Some(two)) => one.same(two),
                _ => false,
            };
        }
        self.text == other.text || self.when.is_some() && self.when == other.when
    }
}

/// Lower case, every run of white space one space, none at the ends.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().flat_map(char::to_lowercase));
    }
    out
}

// === impl Amount ===

impl Amount {
    fn of(number: &Number) -> Option<Self> {
        let whole = number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from));
        whole
            .map(Self::Whole)
            .or_else(|| number.as_f64().map(Self::Real))
    }

    /// A decimal number: an optional sign and currency sign, digits that may be grouped in threes by
    /// commas, an optional fraction.
    fn read(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let rest = rest.strip_prefix(['$', '€', '£', '¥']).unwrap_or(rest);
        let (whole, fraction) = match rest.trim_start().split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (rest.trim_start(), None),
        };
        let digits = ungrouped(whole)?;
        let sign = if negative { "-" } else { "" };
        match fraction {
            None => format!("{sign}{digits}").parse().ok().map(Self::Whole),
            Some(fraction) if is_digits(fraction) => format!("{sign}{digits}.{fraction}")
                .parse()
                .ok()
                .map(Self::Real),
            Some(_) => None,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "compared with a tolerance")]
    fn real(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Real(real) => real,
        }
    }

    fn same(self, other: Self) -> bool {
        if let (Self::Whole(one), Self::Whole(two)) = (self, other) {
            return one == two;
        }
        let (one, two) = (self.real(), other.real());
        (one - two).abs() <= TOLERANCE * one.abs().max(two.abs())
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `1,234,567` as `1234567`; `None` when the commas are elsewhere.
fn ungrouped(text: &str) -> Option<String> {
    let mut groups = text.split(',');
    let first = groups.next().filter(|first| is_digits(first))?;
    let mut digits = first.to_owned();
    for group in groups {
        if first.len() > 3 || group.len() != 3 || !is_digits(group) {
            return None;
        }
        digits.push_str(group);
    }
    Some(digits)
}

// === impl When ===

impl When {
    /// `text` is lower case with single spaces.
    fn read(text: &str) -> Option<Self> {
        if let Some(day) = day(text) {
            return Some(Self::Day(day));
        }
        // Shorter texts are days in forms that are not read here, or no dates.
        if !text.contains(':') || !text.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        let upper = text.to_ascii_uppercase();
        upper
            .parse()
            .ok()
            .map(Self::Instant)
            .or_else(|| upper.parse().ok().map(Self::Local))
    }
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// A day of a year of four digits: `2026-11-21`, `2026/11/21`, `21.11.2026`, `21 november 2026`,
/// `21-nov-2026`, `nov. 21st, 2026`; `11/21/2026` only where one of the two must be the day.
fn day(text: &str) -> Option<Date> {
    ['-', '/', '.']
        .into_iter()
        .find_map(|separator| day_in_numbers(text, separator))
        .or_else(|| day_with_name(text))
}

fn day_in_numbers(text: &str, separator: char) -> Option<Date> {
    let parts: Vec<&str> = text.split(separator).collect();
    let [first, second, third] = parts.as_slice() else {
        return None;
    };
    if let (Some(year), true) = (year(first), separator != '.') {
        return date(year, small(second)?, small(third)?);
    }
    let (first, second, year) = (small(first)?, small(second)?, year(third)?);
    match separator {
        '.' => date(year, second, first),
        '/' if first > 12 => date(year, second, first),
        '/' if second > 12 || first == second => date(year, first, second),
        _ => None,
    }
}

fn day_with_name(text: &str) -> Option<Date> {
    let words: Vec<&str> = text
        .split([' ', ',', '-', '/'])
        .filter(|word| !word.is_empty())
        .collect();
    let [first, second, third] = words.as_slice() else {
        return None;
    };
    let (month, number) = match month(first) {
        Some(month) => (month, second),
        None => (month(second)?, first),
    };
    date(year(third)?, month, small(ordinal(number))?)
}

fn date(year: i16, month: i8, day: i8) -> Option<Date> {
    Date::new(year, month, day).ok()
}

fn year(text: &str) -> Option<i16> {
    (text.len() == 4 && is_digits(text)).then(|| text.parse().ok())?
}

/// A day or a month.
fn small(text: &str) -> Option<i8> {
    (text.len() <= 2 && is_digits(text)).then(|| text.parse().ok())?
}

/// A month's name, or its first three or more letters, with or without a full stop.
fn month(text: &str) -> Option<i8> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let at = MONTHS
        .iter()
        .position(|name| text.len() >= 3 && name.starts_with(text))?;
    i8::try_from(at + 1).ok()
}

/// `21st` as `21`.
fn ordinal(text: &str) -> &str {
    ["st", "nd", "rd", "th"]
        .iter()
        .find_map(|ending| text.strip_suffix(ending))
        .unwrap_or(text.strip_suffix('.').unwrap_or(text))
}
