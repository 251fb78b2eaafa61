//! Filling a form from a text: each field of a schema is read by what its name and type ask for.
//!
//! Promise: a value that is given was found in the text, or follows from it by a rule stated here; what was
//! not found is `None`, and never made up here.

mod history;
pub mod names;
mod rows;

use super::{
    facts::{self, Amount, Found, patterns},
    given::Given,
    prompt,
    skill::{Pass, Skills},
};
use jiff::{ToSpan as _, civil::Date};
use serde_json::{Map, Value, json};

pub use rows::number;

/// Characters of one text value.
const TEXT_MAX: usize = 400;

patterns! {
    TERMS = r"(?i)\b(?:net|within|in|terms:?)\s*(\d{1,3})(?:\s*days?)?\b";
    IDENTIFIER = r"\b[A-Z]{0,6}[-/]?\d[\w]*(?:[-/.][\w]+)*\b";
    DUE = r"(?i)\b(due|by|payable|deadline|expires?|expiry|until|before|latest)\b[^.\n]{0,20}$";
}

/// The first type that a schema names, or the one its keywords ask for.
pub fn type_of(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(one)) => one,
        Some(Value::Array(several)) => several
            .iter()
            .filter_map(Value::as_str)
            .find(|one| *one != "null")
            .unwrap_or("null"),
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() => "array",
        _ => "string",
    }
}

/// A form's text, read once.
#[derive(Debug)]
pub struct Form {
    given: Given,
    skills: Skills,
    dates: Vec<Found<Date>>,
}

/// The words of a field's name.
pub fn words_of(field: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut before = ' ';
    for c in field.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            spaced.push(' ');
        }
        spaced.push(c);
        before = c;
    }
    prompt::words(&spaced.replace('_', " "))
}

/// The words under which a sum stands on a bill, the surest first.
const SUMS: &[(&str, &str)] = &[
    ("tax vat gst", "vat tax gst mwst iva tva hst"),
    ("subtotal", "subtotal net"),
    ("tip", "tip gratuity"),
    (TOTALS, "total gesamt sum due pay balance amount"),
];
const TOTALS: &str = "total due sum";

/// The part of a place's line that stands before it.
fn line_before(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or("");
    before.rsplit('\n').next().unwrap_or("")
}

// === impl Form ===

impl Form {
    pub fn new(given: Given, skills: Skills) -> Self {
        Self {
            dates: facts::dates(&given.text),
            given,
            skills,
        }
    }

    pub fn given(&self) -> &Given {
        &self.given
    }

    fn text(&self) -> &str {
        &self.given.text
    }

    /// The value of a text field; `schema` may ask for a format.
    pub fn string(&self, field: &str, schema: &Value) -> Option<String> {
        let words = words_of(field);
        let has = |list: &str| prompt::has_any(&words, list);
        let format = schema.get("format").and_then(Value::as_str).unwrap_or("");
        let text = self.text();
        let found = if format == "date" || has("date deadline birthday") {
            return self.date(&words).map(|day| day.to_string());
        } else if format == "email" || has("email mail") {
            return facts::emails(text).first().map(ToString::to_string);
        } else if has("phone telephone tel mobile fax") {
            return facts::phones(text).first().map(ToString::to_string);
        } else if format == "uri" || has("url link website homepage") {
            return facts::addresses(text).first().map(ToString::to_string);
        } else if has("currency") {
            return facts::currency(text);
        } else if let Some(labelled) = labelled(&words, text) {
            Some(labelled)
        } else if has("number no id reference ref") {
            return self.identifier(&words);
        } else if has("vendor supplier seller merchant store shop issuer biller") {
            self.heading()
        } else if has("company organization organisation employer firm business") {
            names::organization(text, self.skills.has(Pass::Prose))
        } else if has("name person contact author candidate customer patient recipient sender") {
            names::person(text, self.skills.has(Pass::Prose))
        } else {
            None
        };
        found.map(|text| text.chars().take(TEXT_MAX).collect())
    }

    /// The first line with letters: who wrote the page.
    fn heading(&self) -> Option<String> {
        let line = self
            .text()
            .lines()
            .map(str::trim)
            .find(|line| line.chars().any(char::is_alphabetic))?;
        Some(line.trim_end_matches([',', ':']).to_owned())
    }

    /// The identifier behind a word of the field's name, else the first of the page.
    fn identifier(&self, words: &[String]) -> Option<String> {
        let is_name = |one: &regex::Match<'_>| {
            let text = one.as_str();
            let is_date = self
                .dates
                .iter()
                .any(|date| date.at.start < one.end() && one.start() < date.at.end);
            let shaped = text.contains(['-', '/']) || text.bytes().any(|b| b.is_ascii_uppercase());
            !is_date && (shaped || text.len() > 3) && !text.contains('.')
        };
        let labelled = |one: &regex::Match<'_>| {
            let before = prompt::words(line_before(self.text(), one.start()));
            let subject = |word: &&String| !prompt::listed(word, "number no id reference ref");
            words
                .iter()
                .filter(subject)
                .any(|word| before.contains(word))
        };
        let found: Vec<_> = IDENTIFIER.find_iter(self.text()).filter(is_name).collect();
        let found = found.iter().find(|one| labelled(one)).or(found.first())?;
        Some(found.as_str().to_owned())
    }

    fn date(&self, words: &[String]) -> Option<Date> {
        let before = |date: &Found<Date>| line_before(self.text(), date.at.start);
        let is_due = |date: &Found<Date>| DUE.is_match(before(date));
        let issued = self.dates.iter().find(|date| !is_due(date));
        if prompt::has_any(words, "due deadline expiry expires expiration until end") {
            let stated = self.dates.iter().find(|date| is_due(date));
            return match stated {
                Some(date) => Some(date.value),
                None if self.skills.has(Pass::Inference) => self.by_terms(issued?.value),
                None => None,
            };
        }
        // A date that is named by another word stands behind that word.
        let names = |date: &Found<Date>| {
            let before = prompt::words(before(date));
            words
                .iter()
                .any(|word| *word != "date" && before.contains(word))
        };
        let labelled = self.dates.iter().find(|date| !is_due(date) && names(date));
        labelled
            .or(issued)
            .or(self.dates.first())
            .map(|date| date.value)
    }

    /// `net 30`, `within 14 days`: counted from the day of issue.
    fn by_terms(&self, issued: Date) -> Option<Date> {
        let days: i64 = TERMS.captures(self.text())?.get(1)?.as_str().parse().ok()?;
        issued.checked_add(days.days()).ok()
    }

    /// The value of a number field.
    pub fn amount(&self, field: &str) -> Option<f64> {
        let words = words_of(field);
        let has = |list: &str| prompt::has_any(&words, list);
        if has("quantity qty count people persons guests age number year") {
            return self.counted(&words);
        }
        let listed = SUMS.iter().find(|(names, _)| has(names));
        let own = words.join(" ");
        let labels = listed.map_or(own.as_str(), |(_, labels)| labels);
        let is_total = has(TOTALS);
        let lines: Vec<&str> = self.text().lines().collect();
        let found = labels.split(' ').find_map(|label| {
            let mut sums = lines.iter().filter(|line| prompt::has_word(line, label));
            let mut amounts = sums.by_ref().filter_map(|line| last_amount(line));
            // The grand total stands below the others.
            if is_total {
                amounts.last()
            } else {
                amounts.next()
            }
        });
        if found.is_some() || !is_total {
            return found;
        }
        let mut with_currency = lines
            .iter()
            .rev()
            .filter(|line| facts::currency(line).is_some());
        with_currency.find_map(|line| last_amount(line))
    }

    /// The number beside one of the field's words: `4 people`, `guests: 4`.
    fn counted(&self, words: &[String]) -> Option<f64> {
        let text = self.text();
        let touches = |word: Option<&String>| word.is_some_and(|word| words.contains(word));
        let near = |one: &Found<Amount>| {
            let behind: String = text
                .get(one.at.end..)
                .unwrap_or("")
                .chars()
                .take(24)
                .collect();
            touches(prompt::words(line_before(text, one.at.start)).last())
                || touches(prompt::words(&behind).first())
        };
        facts::amounts(text)
            .into_iter()
            .find(near)
            .map(|one| one.value.value)
    }

    /// The entries of a list of texts.
    pub fn texts(&self, field: &str) -> Option<Vec<String>> {
        let words = words_of(field);
        let has = |list: &str| prompt::has_any(&words, list);
        let text = self.text();
        let owned = |found: Vec<&str>| found.into_iter().map(str::to_owned).collect();
        if has("skills languages competences") {
            Some(history::skills(text))
        } else if has("emails addresses") {
            Some(owned(facts::emails(text)))
        } else if has("urls links") {
            Some(owned(facts::addresses(text)))
        } else if has("phones numbers") {
            Some(owned(facts::phones(text)))
        } else if has("dates days") {
            Some(self.dates.iter().map(|one| one.value.to_string()).collect())
        } else if has("names people persons participants authors") {
            Some(names::people(text))
        } else if has("keywords tags topics") {
            Some(prompt::subject_words(text).into_iter().take(5).collect())
        } else {
            None
        }
    }

    /// The entries of a list of objects, by what the names of their fields ask for.
    pub fn objects(&self, schema: &Value) -> Option<Vec<Value>> {
        let properties = schema.get("properties")?.as_object()?;
        let columns: Vec<&str> = properties.keys().map(String::as_str).collect();
        let has = |list: &str| columns.iter().any(|column| prompt::listed(column, list));
        let text = self.text();
        if has("employer title company position role")
            && has("from to start end start_year end_year")
        {
            return Some(
                history::jobs(text)
                    .iter()
                    .map(|job| stage(job, properties))
                    .collect(),
            );
        }
        if has("degree school university institution") {
            return Some(
                history::education(text)
                    .iter()
                    .map(|one| stage(one, properties))
                    .collect(),
            );
        }
        let records = rows::records(text, &columns);
        if !records.is_empty() {
            return Some(
                records
                    .into_iter()
                    .map(|row| typed(row, properties))
                    .collect(),
            );
        }
        if has("amount price total unit_price cost") {
            let rows = rows::priced(text);
            let objects = rows.iter().map(|row| {
                let fields = columns
                    .iter()
                    .map(|name| ((*name).to_owned(), row.column(name).unwrap_or(Value::Null)));
                Value::Object(fields.collect())
            });
            return Some(objects.collect());
        }
        None
    }
}

/// `Order number: 12-A` for the field `order_number`.
fn labelled(words: &[String], text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (left, right) = line.split_once(':').or_else(|| line.split_once(" is "))?;
        let value = right.trim().trim_end_matches(['.', ',', ';']);
        let fits = prompt::words(left).ends_with(words) && !words.is_empty();
        (fits && !value.is_empty()).then(|| value.chars().take(TEXT_MAX).collect())
    })
}

/// What a text field that must have a value probably asks for, found anywhere in the prompt.
pub fn likely(field: &str, text: &str) -> Option<String> {
    let words = words_of(field);
    let has = |list: &str| prompt::has_any(&words, list);
    let first = |found: Vec<&str>| found.first().map(ToString::to_string);
    if let Some(labelled) = labelled(&words, text) {
        Some(labelled)
    } else if has("email mail") {
        first(facts::emails(text))
    } else if has("url link website") {
        first(facts::addresses(text))
    } else if has("date day when due") {
        facts::dates(text).first().map(|day| day.value.to_string())
    } else if has("city location place country name person company vendor title") {
        names::capitalised(text)
    } else if has("query text question message prompt content description task") {
        Some(text.trim().chars().take(TEXT_MAX).collect())
    } else {
        None
    }
}

/// The last amount of a line, those with decimals first, as money has.
fn last_amount(line: &str) -> Option<f64> {
    let amounts = facts::amounts(line);
    let money = |decimals: bool| {
        amounts
            .iter()
            .rfind(|one| !one.value.percent && one.value.decimals == decimals)
            .map(|one| one.value.value)
    };
    money(true).or_else(|| money(false))
}

fn stage(stage: &history::Stage, properties: &Map<String, Value>) -> Value {
    let fields = properties.keys().map(|name| {
        let value = match name.as_str() {
            "title" | "position" | "role" | "degree" | "subject" => json!(stage.what),
            "employer" | "company" | "school" | "university" | "institution" | "organization" => {
                json!(stage.place)
            }
            "from" | "start" | "start_year" => json!(stage.from),
            "to" | "end" | "end_year" | "year" | "graduation_year" => json!(stage.to),
            _ => Value::Null,
        };
        (name.clone(), value)
    });
    Value::Object(fields.collect())
}

/// The cells of a record as the types of their columns.
fn typed(row: Map<String, Value>, properties: &Map<String, Value>) -> Value {
    let fields = row.into_iter().map(|(name, cell)| {
        let kind = properties.get(&name).map_or("", type_of);
        let text = cell.as_str().unwrap_or("").to_owned();
        let value = match kind {
            "number" | "integer" => facts::amounts(&text)
                .first()
                .and_then(|one| number(one.value.value))
                .unwrap_or(Value::Null),
            "boolean" => json!(["yes", "true", "x", "1"].contains(&text.to_lowercase().as_str())),
            _ => json!(text),
        };
        (name, value)
    });
    Value::Object(fields.collect())
}

#[cfg(test)]
mod tests;
