//! Filling a form from a text: each field of a schema is read by what its name and type ask for.
//!
//! Promise: a value that is given was found in the text, or follows from it by a rule stated here; what was
//! not found is `None`, and never made up here.

mod history;
pub mod names;
mod rows;

use super::{
    facts::{self, FieldValues, Located, Numeral},
    given::PromptParts,
    minutes,
    skill::{Skill, Skills},
    text::{self, captured, has_any, patterns},
};
use jiff::{ToSpan as _, civil::Date};
use serde_json::{Map, Value};

pub use rows::number;

/// Characters of one text value.
const TEXT_MAX: usize = 400;

patterns! {
    TERMS = r"(?i)\b(?:net|within|in|terms:?)\s*(\d{1,3})(?:\s*days?)?\b";
    IDENTIFIER = r"\b[A-Z]{0,6}[-/]?\d[\w]*(?:[-/.][\w]+)*\b";
    DUE = r"(?i)\b(due|by|payable|deadline|expires?|expiry|until|before|latest)\b[^.\n]{0,20}$";
}

/// What a field of text asks for.
#[derive(Clone, Copy)]
enum FieldKind {
    Date,
    Email,
    Phone,
    Address,
    Currency,
    Identifier,
    Heading,
    Firm,
    Person,
    Skills,
    Keywords,
}

/// Words of fields' names, the surest first.
#[rustfmt::skip]
const KINDS: &[(&str, FieldKind)] = &[
    ("date dates day days when deadline birthday due", FieldKind::Date),
    ("email emails mail addresses", FieldKind::Email),
    ("phone phones telephone tel mobile fax numbers", FieldKind::Phone),
    ("url urls uri link links website homepage", FieldKind::Address),
    ("currency", FieldKind::Currency),
    ("number no id reference ref", FieldKind::Identifier),
    ("vendor supplier seller merchant store shop issuer biller", FieldKind::Heading),
    ("company organization organisation employer firm business", FieldKind::Firm),
    ("name names people persons participants person contact author authors candidate customer patient recipient sender", FieldKind::Person),
    ("skills languages competences", FieldKind::Skills),
    ("keywords tags topics", FieldKind::Keywords),
];

/// The words under which a sum stands on a bill, the surest first.
const SUMS: &[(&str, &str)] = &[
    ("tax vat gst", "vat tax gst mwst iva tva hst"),
    ("subtotal", "subtotal net"),
    ("tip", "tip gratuity"),
    (TOTALS, "total gesamt sum due pay balance amount"),
];
const TOTALS: &str = "total due sum";

/// The first type that a schema names, or the one its keywords ask for.
pub fn type_of(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(one)) => one,
        Some(Value::Array(several)) => {
            let mut named = several.iter().filter_map(Value::as_str);
            named.find(|one| *one != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() => "array",
        _ => "string",
    }
}

/// An object with these properties, each with the first value that fits it.
fn object(properties: &Map<String, Value>, record: &FieldValues) -> Value {
    let value = |name: &String| {
        let words = text::words_of_name(name);
        let fitting = record.iter().find(|(names, _)| has_any(&words, names));
        fitting.map_or(Value::Null, |(_, value)| value.clone())
    };
    let fields = properties.keys().map(|name| (name.clone(), value(name)));
    Value::Object(fields.collect())
}

/// A form's text, read once.
#[derive(Debug)]
pub struct Extractor {
    given: PromptParts,
    skills: Skills,
    dates: Vec<Located<Date>>,
}

// === impl Extractor ===

impl Extractor {
    pub fn new(given: PromptParts, skills: Skills) -> Self {
        let dates = facts::dates(&given.text);
        Self {
            given,
            skills,
            dates,
        }
    }

    pub fn given(&self) -> &PromptParts {
        &self.given
    }

    fn text(&self) -> &str {
        &self.given.text
    }

    /// The value of a text field; `schema` may ask for a format.
    pub fn string(&self, field: &str, schema: &Value) -> Option<String> {
        let format = schema.get("format").and_then(Value::as_str).unwrap_or("");
        let mut words = text::words_of_name(field);
        if ["date", "email", "uri"].contains(&format) {
            words.push(format.to_owned());
        }
        let labelled = || labelled(&words, self.text());
        let found = match kind(&words) {
            Some(FieldKind::Date) => return self.date(&words).map(|day| day.to_string()),
            Some(
                kind @ (FieldKind::Email
                | FieldKind::Phone
                | FieldKind::Address
                | FieldKind::Currency),
            ) => self.all(kind)?.into_iter().next(),
            Some(FieldKind::Identifier) => labelled().or_else(|| self.identifier()),
            Some(FieldKind::Heading) => labelled().or_else(|| self.heading()),
            Some(FieldKind::Firm) => labelled().or_else(|| names::organization(self.text())),
            Some(FieldKind::Person) => labelled().or_else(|| names::person(self.text())),
            Some(FieldKind::Skills | FieldKind::Keywords) | None => labelled(),
        };
        found.map(|text| text.chars().take(TEXT_MAX).collect())
    }

    /// The entries of a list of texts.
    pub fn texts(&self, field: &str) -> Option<Vec<String>> {
        self.all(kind(&text::words_of_name(field))?)
    }

    /// All that the text has of a kind; `None` of a kind that a text has one of.
    fn all(&self, kind: FieldKind) -> Option<Vec<String>> {
        let text = self.text();
        let owned = |found: Vec<&str>| found.into_iter().map(str::to_owned).collect();
        Some(match kind {
            FieldKind::Date => self.dates.iter().map(|one| one.value.to_string()).collect(),
            FieldKind::Email => owned(facts::emails(text)),
            FieldKind::Phone => owned(facts::phones(text)),
            FieldKind::Address => owned(facts::addresses(text)),
            FieldKind::Currency => facts::currency(text).into_iter().collect(),
            FieldKind::Person => names::people(text),
            FieldKind::Skills => history::skills(text),
            FieldKind::Keywords => text::subject_words(text).into_iter().take(5).collect(),
            FieldKind::Identifier | FieldKind::Heading | FieldKind::Firm => return None,
        })
    }

    /// The first line with letters: the writer of a bill stands there.
    fn heading(&self) -> Option<String> {
        let mut lines = self.text().lines().map(str::trim);
        let line = lines.find(|line| line.contains(char::is_alphabetic))?;
        Some(line.trim_end_matches([',', ':']).to_owned())
    }

    /// The words before a place in its line.
    fn words_before(&self, at: usize) -> Vec<String> {
        text::words(line_before(self.text(), at))
    }

    /// The first identifier of the page.
    fn identifier(&self) -> Option<String> {
        let is_name = |one: &regex::Match<'_>| {
            let text = one.as_str();
            let shaped = text.contains(|c: char| c == '-' || c == '/' || c.is_ascii_uppercase());
            let long = shaped || text.len() > 3;
            long && !text.contains('.') && !facts::overlaps(&self.dates, &one.range())
        };
        let found = IDENTIFIER.find_iter(self.text()).find(is_name)?;
        Some(found.as_str().to_owned())
    }

    fn date(&self, words: &[String]) -> Option<Date> {
        let is_due = |date: &&Located<Date>| DUE.is_match(line_before(self.text(), date.at.start));
        let issued = || self.dates.iter().filter(|date| !is_due(date));
        let found = if has_any(words, "due deadline expiry expires expiration until end") {
            let stated = self.dates.iter().find(is_due);
            if stated.is_none() && self.skills.has(Skill::Inference) {
                return self.by_terms(issued().next()?.value);
            }
            stated
        } else {
            // A date that is named by another word stands behind that word.
            let is_named = |date: &&Located<Date>| {
                let before = self.words_before(date.at.start);
                words
                    .iter()
                    .any(|word| word != "date" && before.contains(word))
            };
            let named = issued().find(is_named).or_else(|| issued().next());
            named.or(self.dates.first())
        };
        found.map(|date| date.value)
    }

    /// `net 30`, `within 14 days`: counted from the day of issue.
    fn by_terms(&self, issued: Date) -> Option<Date> {
        let days: i64 = captured(&TERMS, self.text())?.parse().ok()?;
        issued.checked_add(days.days()).ok()
    }

    /// The value of a number field.
    pub fn amount(&self, field: &str) -> Option<f64> {
        let words = text::words_of_name(field);
        if has_any(
            &words,
            "quantity qty count people persons guests age number year",
        ) {
            return self.counted(&words);
        }
        let listed = SUMS.iter().find(|(names, _)| has_any(&words, names));
        let own = words.join(" ");
        let labels = listed.map_or(own.as_str(), |(_, labels)| labels);
        let is_total = has_any(&words, TOTALS);
        let sums = |label: &str| {
            let lines = self.text().lines();
            let mut sums = lines
                .filter(|line| text::has_word(line, label))
                .filter_map(last_amount);
            // The grand total stands below the others.
            if is_total {
                sums.next_back()
            } else {
                sums.next()
            }
        };
        let found = labels.split(' ').find_map(sums);
        if found.is_some() || !is_total {
            return found;
        }
        let mut lines = self.text().lines().rev();
        lines.find_map(|line| facts::currency(line).and_then(|_| last_amount(line)))
    }

    /// The number beside one of the field's words: `4 people`, `guests: 4`.
    fn counted(&self, words: &[String]) -> Option<f64> {
        let touches = |word: Option<&String>| word.is_some_and(|word| words.contains(word));
        let near = |one: &Located<Numeral>| {
            let behind = self.text().get(one.at.end..).unwrap_or("");
            let behind: String = behind.chars().take(24).collect();
            touches(self.words_before(one.at.start).last()) || touches(text::words(&behind).first())
        };
        let found = facts::amounts(self.text()).into_iter().find(near);
        found.map(|one| one.value.value)
    }

    /// The entries of a list of objects, by what the names of their fields ask for.
    pub fn objects(&self, schema: &Value) -> Option<Vec<Value>> {
        let properties = schema.get("properties")?.as_object()?;
        let columns: Vec<String> = properties.keys().cloned().collect();
        let has = |list: &str| has_any(&columns, list);
        let text = self.text();
        let records = if has("owner assignee") && minutes::is_conversation(text) {
            minutes::actions(text, self.skills)
        } else if has("employer title company position role")
            && has("from to start end start_year end_year")
        {
            history::jobs(text)
        } else if has("degree school university institution") {
            history::education(text)
        } else if has("amount price total unit_price cost") {
            rows::priced(text)
        } else {
            return None;
        };
        Some(
            records
                .iter()
                .map(|record| object(properties, record))
                .collect(),
        )
    }
}

fn kind(words: &[String]) -> Option<FieldKind> {
    let found = KINDS.iter().find(|(names, _)| has_any(words, names));
    found.map(|(_, kind)| *kind)
}

/// The part of a place's line that stands before it.
fn line_before(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or("");
    before.rsplit('\n').next().unwrap_or("")
}

/// `Order number: 12-A` for the field `order_number`.
fn labelled(words: &[String], text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (left, right) = line.split_once(':').or_else(|| line.split_once(" is "))?;
        let value = right.trim().trim_end_matches(['.', ',', ';']);
        let fits = text::words(left).ends_with(words) && !words.is_empty();
        (fits && !value.is_empty()).then(|| value.chars().take(TEXT_MAX).collect())
    })
}

/// What a text field that must have a value probably asks for, found anywhere in the prompt.
pub fn likely(field: &str, text: &str) -> Option<String> {
    let words = text::words_of_name(field);
    if let Some(labelled) = labelled(&words, text) {
        Some(labelled)
    } else if has_any(
        &words,
        "city location place country name person company vendor title",
    ) {
        names::capitalised(text)
    } else if has_any(
        &words,
        "query text question message prompt content description task",
    ) {
        Some(text.trim().chars().take(TEXT_MAX).collect())
    } else {
        None
    }
}

/// The last amount of a line, those with decimals first, as money has.
fn last_amount(line: &str) -> Option<f64> {
    let amounts = facts::amounts(line);
    let mut plain = amounts
        .iter()
        .rev()
        .map(|one| one.value)
        .filter(|one| !one.percent);
    let money = plain
        .clone()
        .find(|one| one.decimals)
        .or_else(|| plain.next());
    money.map(|one| one.value)
}

#[cfg(test)]
mod tests;
