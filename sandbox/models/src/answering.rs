//! Questions about a text: the best sentence, and the part of it that answers.
//!
//! Promise: an answer is a part of the text, character for character.

use super::{
    facts,
    form::names,
    given::PromptParts,
    text::{self, captured, has_any, patterns, sentences_of},
};
use crate::embedding::ranking;
use regex::Regex;
use std::sync::LazyLock;

/// Sentences that are looked at.
const SENTENCES_MAX: usize = 400;
/// What the kind of answer is worth beside the rank of a sentence.
const KIND: f64 = 0.35;

patterns! {
    DURATION = r"(?i)\b(?:about |up to |at least |at most )?(?:\d+(?:[.,]\d+)?(?:\s*(?:to|-|–)\s*\d+)?|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fourteen|twenty|thirty|half an?)(?:\s+(?:to|or)\s+\w+)?[ -]+(?:working |business |calendar )?(?:seconds?|minutes?|hours?|days?|nights?|weeks?|months?|years?|decades?)\b";
    OFTEN = r"(?i)\b(?:every\s+(?:\w+\s+)?(?:\w+)|(?:once|twice|\w+ times)\s+(?:an?|per|every)\s+\w+|daily|weekly|monthly|yearly|annually|hourly)\b";
    CLOCK = r"(?i)\b(?:\d{1,2}:\d{2}(?:\s*[ap]m)?|\d{1,2}\s*[ap]m|(?:on\s+)?(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:in\s+)?(?:19|20)\d{2}|noon|midnight|today|tomorrow)\b";
    MEASURE = r"-?\d+(?:[.,]\d+)?(?:\s*(?:to|-|–|x)\s*-?\d+(?:[.,]\d+)?)?\s*(?:l/min|km/h|m/s|kWh|mAh|kg|mg|km|cm|mm|ml|kW|MW|GB|TB|MB|GHz|Hz|bar|psi|dB|lb|oz|g|t|m|l|W|V|A|C|F|K|%)(?:\s+(?:DC|AC))?\b";
    NUMBER = r"\d[\d.,]*(?: [^\s,;().]+){0,2}";
    CHANGED = r"(?i)\bfrom\s+\S+\s+to\s+([^(),;.]+)";
    EXCEPT = r"(?i)\b(?:other than|except(?: for)?|apart from|but not)\s+(\p{L}+)";
    NEVER = r"(?i)\b(?:never(?: use)?|do not use|not|no)\s+([^,;.]+)";
}

/// What a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedAnswer {
    Person,
    Day,
    Duration,
    Often,
    Number,
    Measure,
    Words,
}

/// Words and pairs of words of questions, and what they ask for.
#[rustfmt::skip]
const WANTED: &[(&str, ExpectedAnswer)] = &[
    ("how-often frequency interval", ExpectedAnswer::Often),
    ("how-long duration", ExpectedAnswer::Duration),
    ("weigh weight heavy weighs voltage volts power watts current temperature hot cold pressure flow noise speed fast", ExpectedAnswer::Measure),
    ("capacity volume memory storage tall height wide width length deep depth far distance diameter percent", ExpectedAnswer::Measure),
    ("who whom whose", ExpectedAnswer::Person),
    ("when deadline date time day year", ExpectedAnswer::Day),
    ("how-many how-much cost costs price fee rent number", ExpectedAnswer::Number),
];

/// Words of questions, and where a sentence holds what they ask for.
static SPECIAL: [(&str, &LazyLock<Regex>); 3] = [
    ("not never forbidden avoid", &NEVER),
    ("new now", &CHANGED),
    ("without except allowed", &EXCEPT),
];

// === impl ExpectedAnswer ===

impl ExpectedAnswer {
    pub fn of(question: &str) -> Self {
        let mut words = text::words(question);
        let pairs: Vec<String> = words.windows(2).map(|pair| pair.join("-")).collect();
        words.extend(pairs);
        let found = WANTED.iter().find(|(names, _)| has_any(&words, names));
        found.map_or(Self::Words, |(_, wanted)| *wanted)
    }

    /// The part of a text that is of this kind.
    fn find(self, text: &str) -> Option<String> {
        let first = |pattern: &Regex| Some(pattern.find(text)?.as_str().trim().to_owned());
        match self {
            Self::Person => {
                let person = names::people(text).into_iter().next();
                person.or_else(|| names::organization(text))
            }
            Self::Day => {
                let day = facts::dates(text).into_iter().next();
                let day = day.and_then(|day| text.get(day.at));
                day.map(str::to_owned).or_else(|| first(&CLOCK))
            }
            Self::Duration => first(&DURATION),
            Self::Often => first(&OFTEN),
            Self::Number => first(&NUMBER),
            Self::Measure => first(&MEASURE),
            Self::Words => None,
        }
    }

    pub fn is_in(self, text: &str) -> bool {
        self.find(text).is_some()
    }
}

/// The answer in as few words as it takes; `None` of an empty text.
pub fn answer(given: &PromptParts) -> Option<String> {
    let question = given.question();
    let source = given.source();
    let wanted = ExpectedAnswer::of(&question);
    let sentences = sentences_of(&source).into_iter().take(SENTENCES_MAX);
    let sentences: Vec<String> = sentences.map(str::to_owned).collect();
    let mut best: Option<(f64, &str)> = None;
    for ranked in ranking::rank(&question, &sentences) {
        let sentence = sentences.get(ranked.index)?;
        let score = ranked.score + if wanted.is_in(sentence) { KIND } else { 0.0 };
        if best.is_none_or(|(best, _)| score > best) {
            best = Some((score, sentence.as_str()));
        }
    }
    let sentence = best?.1.trim().trim_end_matches('.');
    Some(part(sentence, &question, wanted))
}

/// The part of the best sentence that answers.
fn part(sentence: &str, question: &str, wanted: ExpectedAnswer) -> String {
    let asked = text::subject_words(question);
    let special = SPECIAL
        .iter()
        .find(|(names, _)| text::has_word(question, names));
    if let Some(part) = special.and_then(|(_, pattern)| captured(pattern, sentence)) {
        return part.trim().to_owned();
    }
    // "Notice: three months" answers what is asked of the notice.
    if let Some((label, value)) = sentence.split_once(": ")
        && text::words(label).iter().any(|word| asked.contains(word))
    {
        let found = match wanted {
            ExpectedAnswer::Person | ExpectedAnswer::Duration => None,
            other => other.find(value),
        };
        return found.unwrap_or_else(|| value.trim().to_owned());
    }
    wanted
        .find(sentence)
        .unwrap_or_else(|| unasked(sentence, &asked))
}

/// The longest run of words that the question does not hold.
fn unasked(sentence: &str, asked: &[String]) -> String {
    let asked: Vec<String> = asked.iter().map(|word| text::stem(word)).collect();
    let is_asked = |word: &&str| text::stems(word).iter().any(|stem| asked.contains(stem));
    let is_small = |word: &&&str| {
        text::subject_words(word).is_empty() && !word.contains(|c: char| c.is_ascii_digit())
    };
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let runs = words.split(is_asked);
    let run = runs.max_by_key(|run| run.iter().filter(|word| !is_small(word)).count());
    let run: Vec<&str> = run
        .unwrap_or_default()
        .iter()
        .skip_while(is_small)
        .copied()
        .collect();
    let answer = if run.is_empty() {
        words.join(" ")
    } else {
        run.join(" ")
    };
    answer.trim_matches([',', ';', ':', '.']).to_owned()
}

#[cfg(test)]
mod tests;
