//! Translation word by word, with a small dictionary of five languages.
//!
//! Phrases before words, forms met by their stems, names and figures kept. No grammar: what comes out is
//! understood more than it is well said. Promise: a word that is not known stands as it stood.

use super::{
    given::Given,
    prompt,
    skill::{Pass, Skills},
};
use rust_stemmers::{Algorithm, Stemmer};
use std::{collections::HashMap, sync::LazyLock};

/// A line for each meaning: English, German, French, Spanish, Italian, separated by bars; the first of several
/// forms is the one that is written.
const WORDS: &str = include_str!("translation/words.txt");
/// Words of the longest phrase.
const PHRASE_MAX: usize = 3;

const LANGUAGES: [(&str, Algorithm); 5] = [
    ("en english englisch anglais", Algorithm::English),
    ("de german deutsch allemand", Algorithm::German),
    ("fr french französisch français", Algorithm::French),
    ("es spanish spanisch espagnol español", Algorithm::Spanish),
    (
        "it italian italienisch italien italiano",
        Algorithm::Italian,
    ),
];

/// The forms of one meaning in each language.
type Meaning = [Vec<&'static str>; LANGUAGES.len()];

static MEANINGS: LazyLock<Vec<Meaning>> = LazyLock::new(|| {
    let lines = WORDS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let forms = |column: &'static str| {
        column
            .split(',')
            .map(str::trim)
            .filter(|form| !form.is_empty())
    };
    lines
        .map(|line| {
            let mut columns = line.split('|');
            std::array::from_fn(|_| forms(columns.next().unwrap_or("")).collect())
        })
        .collect()
});
/// Meanings by a phrase as it stands, and by its stems behind a `~`; one map for each language.
static BY_PHRASE: LazyLock<[HashMap<String, usize>; LANGUAGES.len()]> = LazyLock::new(|| {
    std::array::from_fn(|of| {
        let mut by_phrase = HashMap::new();
        for (at, meaning) in MEANINGS.iter().enumerate() {
            for form in meaning.get(of).into_iter().flatten() {
                by_phrase.entry(form.to_lowercase()).or_insert(at);
                by_phrase
                    .entry(stemmed(&form.to_lowercase(), of))
                    .or_insert(at);
            }
        }
        by_phrase
    })
});

/// The number of a language by its code or name.
fn language(name: &str) -> Option<usize> {
    let name = name.trim().to_lowercase();
    LANGUAGES
        .iter()
        .position(|(names, _)| prompt::listed(&name, names))
}

fn stemmed(phrase: &str, of: usize) -> String {
    let algorithm = LANGUAGES
        .get(of)
        .map_or(Algorithm::English, |(_, algorithm)| *algorithm);
    let stemmer = Stemmer::create(algorithm);
    let stems: Vec<_> = phrase.split(' ').map(|word| stemmer.stem(word)).collect();
    format!("~{}", stems.join(" "))
}

/// The first form in the other language; `Some("")` is a word that it does without.
fn translated(phrase: &str, from: usize, to: usize) -> Option<&'static str> {
    let by_phrase = BY_PHRASE.get(from)?;
    let found = by_phrase
        .get(phrase)
        .or_else(|| by_phrase.get(&stemmed(phrase, from)));
    let forms = MEANINGS.get(*found?)?.get(to)?;
    Some(forms.first().copied().unwrap_or(""))
}

/// The language that knows most of the words.
fn language_of(text: &str) -> usize {
    let words = prompt::words(text);
    let known = |by_phrase: &HashMap<String, usize>| {
        words
            .iter()
            .filter(|word| by_phrase.contains_key(*word))
            .count()
    };
    let counts = BY_PHRASE.iter().map(known).enumerate().rev();
    counts
        .max_by_key(|(_, known)| *known)
        .map_or(0, |(of, _)| of)
}

/// The text in the other language; `None` where the language asked for is not known.
pub fn write(given: &Given, skills: Skills) -> Option<String> {
    let text = given
        .value(&["text", "source", "sentence"])
        .unwrap_or(&given.text);
    let to = match given.value(&["target_language", "target", "to"]) {
        Some(name) => language(name)?,
        None => {
            let asked = prompt::words(&given.instruction);
            asked
                .iter()
                .rev()
                .find_map(|word| language(word))
                .unwrap_or(0)
        }
    };
    let named = given.value(&["source_language", "from"]).and_then(language);
    let from = named.unwrap_or_else(|| language_of(text));
    if from == to {
        return Some(text.to_owned());
    }
    let lines = text.lines().map(|line| translate(line, from, to, skills));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

fn translate(line: &str, from: usize, to: usize, skills: Skills) -> String {
    let chars: Vec<char> = line.chars().collect();
    // Words, and what stands between them.
    let pieces = chars.chunk_by(|a, b| a.is_alphanumeric() == b.is_alphanumeric());
    let pieces: Vec<String> = pieces.map(|piece| piece.iter().collect()).collect();
    // Without the sense for several words at a time each stands alone.
    let longest = if skills.has(Pass::Relations) {
        PHRASE_MAX
    } else {
        1
    };
    let mut out = String::new();
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        let found = (1..=longest).rev().find_map(|words| {
            let run = pieces.get(at..at + 2 * words - 1)?;
            let word = translated(&run.concat().to_lowercase(), from, to)?;
            Some((word, run.len()))
        });
        let (word, taken) = found.unwrap_or((piece, 1));
        // A word that was left out leaves no second space.
        let doubled = out.is_empty() || out.ends_with(' ');
        out.push_str(if doubled { word.trim_start() } else { word });
        at += taken;
    }
    capitalised(&out)
}

/// Sentences begin with a capital.
fn capitalised(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut begins = true;
    for c in text.chars() {
        if begins && c.is_alphabetic() {
            out.extend(c.to_uppercase());
            begins = false;
        } else {
            out.push(c);
            begins = matches!(c, '.' | '!' | '?') || begins && !c.is_alphanumeric();
        }
    }
    out
}

#[cfg(test)]
mod tests;
