//! Questions about a text: the best sentence, and the part of it that answers.
//!
//! Promise: an answer is a part of the text, character for character.

use super::{
    facts::{self, patterns},
    form::names,
    given::Given,
    prompt,
    skill::{Pass, Skills},
    text::sentences_of,
};
use crate::embedding::ranking;
use regex::Regex;

/// Sentences that are looked at.
const SENTENCES_MAX: usize = 400;
/// What the kind of answer is worth beside the rank of a sentence.
const KIND: f64 = 0.35;

patterns! {
    DURATION = r"(?i)\b(?:about |up to |at least |at most )?(?:\d+(?:[.,]\d+)?(?:\s*(?:to|-|–)\s*\d+)?|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fourteen|twenty|thirty|half an?)(?:\s+(?:to|or)\s+\w+)?[ -]+(?:working |business |calendar )?(?:seconds?|minutes?|hours?|days?|nights?|weeks?|months?|years?|decades?)\b";
    OFTEN = r"(?i)\b(?:every\s+(?:\w+\s+)?(?:\w+)|(?:once|twice|\w+ times)\s+(?:an?|per|every)\s+\w+|daily|weekly|monthly|yearly|annually|hourly)\b";
    CLOCK = r"(?i)\b(?:\d{1,2}:\d{2}(?:\s*[ap]m)?|\d{1,2}\s*[ap]m|(?:on\s+)?(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:in\s+)?(?:19|20)\d{2}|noon|midnight|today|tomorrow)\b";
    MEASURE = r"-?\d+(?:[.,]\d+)?(?:\s*(?:to|-|–|x)\s*-?\d+(?:[.,]\d+)?)?\s*(l/min|km/h|m/s|kWh|mAh|kg|mg|km|cm|mm|ml|kW|MW|GB|TB|MB|GHz|Hz|bar|psi|dB|lb|oz|g|t|m|l|W|V|A|C|F|K|%)(?:\s+(?:DC|AC))?\b";
    CHANGED = r"(?i)\bfrom\s+\S+\s+to\s+([^(),;.]+)";
    EXCEPT = r"(?i)\b(?:other than|except(?: for)?|apart from|but not)\s+(\p{L}+)";
    NEVER = r"(?i)\b(?:never(?: use)?|do not use|not|no)\s+([^,;.]+)";
}

/// What a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Person,
    Day,
    Duration,
    Often,
    Number,
    /// A figure in one of these units.
    Measure(&'static str),
    Words,
}

/// Words of questions and the units of their answers.
const MEASURES: &[(&str, &str)] = &[
    ("weigh weight heavy weighs", "kg g t mg lb oz"),
    ("voltage volts volt", "V"),
    ("power watts wattage", "W kW MW"),
    ("current amperes", "A"),
    ("temperature hot cold warm", "C F K"),
    ("pressure", "bar psi"),
    ("flow", "l/min"),
    ("noise loud", "dB"),
    ("speed fast", "km/h m/s"),
    ("capacity volume hold holds", "l ml mAh GB TB"),
    ("memory storage", "GB TB MB"),
    (
        "tall height wide width length deep depth far distance diameter",
        "m cm mm km",
    ),
    ("percentage percent share", "%"),
];

// === impl Wanted ===

impl Wanted {
    pub fn of(question: &str) -> Self {
        let words = prompt::words(question);
        let has = |list: &str| prompt::has_any(&words, list);
        let two = |one: &str, other: &str| {
            words
                .windows(2)
                .any(|pair| matches!(pair, [a, b] if a == one && b == other))
        };
        if two("how", "often") || has("frequency interval") {
            return Self::Often;
        }
        if two("how", "long") || has("duration") {
            return Self::Duration;
        }
        if let Some((_, units)) = MEASURES.iter().find(|(names, _)| has(names)) {
            return Self::Measure(units);
        }
        if has("who whom whose") {
            return Self::Person;
        }
        if has("when deadline date time day year") {
            return Self::Day;
        }
        if two("how", "many") || two("how", "much") || has("cost costs price fee rent number") {
            return Self::Number;
        }
        Self::Words
    }

    /// The part of a text that is of this kind.
    fn find(self, text: &str) -> Option<String> {
        match self {
            Self::Person => names::people(text)
                .into_iter()
                .next()
                .or_else(|| names::organization(text, true)),
            Self::Day => facts::dates(text)
                .first()
                .and_then(|day| text.get(day.at.clone()))
                .map(str::to_owned)
                .or_else(|| CLOCK.find(text).map(|one| one.as_str().to_owned())),
            Self::Duration => DURATION.find(text).map(|one| one.as_str().to_owned()),
            Self::Often => OFTEN.find(text).map(|one| one.as_str().to_owned()),
            Self::Number => facts::amounts(text).first().and_then(|one| {
                let rest = text.get(one.at.start..)?;
                let end = rest.find([',', ';', '(', ')']).unwrap_or(rest.len());
                let words: Vec<&str> = rest.get(..end)?.split_whitespace().take(3).collect();
                Some(words.join(" ").trim_end_matches('.').to_owned())
            }),
            Self::Measure(units) => MEASURE
                .captures_iter(text)
                .find(|caps| {
                    let unit = caps.get(1).map_or("", |unit| unit.as_str());
                    units.split(' ').any(|one| one == unit)
                })
                .and_then(|caps| caps.get(0).map(|one| one.as_str().trim().to_owned())),
            Self::Words => None,
        }
    }

    pub fn is_in(self, text: &str) -> bool {
        self.find(text).is_some()
    }
}

/// The answer in as few words as it takes; `None` of an empty text.
pub fn answer(given: &Given, skills: Skills) -> Option<String> {
    let question = given.question();
    let source = given.source();
    let wanted = Wanted::of(&question);
    let sentences = sentences_of(&source).into_iter().take(SENTENCES_MAX);
    let sentences: Vec<String> = sentences.map(str::to_owned).collect();
    let scored = ranking::rank(&question, &sentences)
        .into_iter()
        .filter_map(|ranked| {
            let sentence = sentences.get(ranked.index)?;
            let kind = if wanted.is_in(sentence) { KIND } else { 0.0 };
            Some((
                ranked.score + kind,
                std::cmp::Reverse(ranked.index),
                sentence,
            ))
        });
    let (_, _, sentence) = scored.max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))?;
    let sentence = sentence.trim().trim_end_matches('.');
    let asked = prompt::subject_words(&question);
    Some(part(sentence, &question, &asked, wanted, skills))
}

/// The part of the best sentence that answers.
fn part(
    sentence: &str,
    question: &str,
    asked: &[String],
    wanted: Wanted,
    skills: Skills,
) -> String {
    let found = |regex: &Regex| {
        let caps = regex.captures(sentence)?;
        Some(caps.get(1)?.as_str().trim().to_owned())
    };
    if skills.has(Pass::Inference) || skills.has(Pass::Prose) {
        let words = prompt::words(question);
        let has = |list: &str| prompt::has_any(&words, list);
        let special = if has("not never forbidden avoid") {
            found(&NEVER)
        } else if has("new now") {
            found(&CHANGED)
        } else if has("without except allowed") {
            found(&EXCEPT)
        } else {
            None
        };
        if let Some(special) = special {
            return special;
        }
    }
    // "Notice: three months" answers what is asked of the notice.
    if let Some((label, value)) = sentence.split_once(": ")
        && prompt::words(label).iter().any(|word| asked.contains(word))
    {
        let value = value.trim();
        return match wanted {
            Wanted::Person | Wanted::Duration | Wanted::Words => value.to_owned(),
            other => other.find(value).unwrap_or_else(|| value.to_owned()),
        };
    }
    wanted
        .find(sentence)
        .unwrap_or_else(|| unasked(sentence, asked))
}

/// The longest run of words that the question does not hold.
fn unasked(sentence: &str, asked: &[String]) -> String {
    let is_asked = |word: &&str| {
        let word = prompt::words(word).concat();
        let alike = |one: &String| {
            let long = one.len() > 4 && word.len() > 4;
            *one == word || long && (word.starts_with(one.as_str()) || one.starts_with(&word))
        };
        asked.iter().any(alike)
    };
    let tells = |word: &&&str| !prompt::subject_words(word).is_empty();
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let runs = words.split(is_asked);
    let run = runs
        .max_by_key(|run| run.iter().filter(tells).count())
        .unwrap_or_default();
    let is_small = |word: &&&str| !tells(word) && !word.contains(|c: char| c.is_ascii_digit());
    let skip = run.iter().take_while(is_small).count();
    let rest = run
        .get(skip..)
        .filter(|rest| !rest.is_empty())
        .unwrap_or(&words);
    let answer = rest.join(" ");
    answer.trim_matches(|c: char| ",;:.".contains(c)).to_owned()
}

#[cfg(test)]
mod tests;
