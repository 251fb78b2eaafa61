//! Translation word by word, with a small dictionary of five languages.
//!
//! Forms are met by their stems, names and figures kept. No grammar: what comes out is
//! understood more than it is well said. Promise: a word that is not known stands as it stood.

use super::{
    given::PromptParts,
    text::{group, listed, patterns, words},
};
use regex::Captures;
use rust_stemmers::{Algorithm, Stemmer};
use std::{collections::HashMap, sync::LazyLock};

/// A line for each meaning: English, German, French, Spanish, Italian, separated by bars; the first of several
/// forms is the one that is written.
const WORDS: &str = include_str!("translation/words.txt");

patterns! {
    WORD = r"[\p{L}\p{N}]+";
    /// The first letter of a sentence.
    BEGINNING = r"(?:^|[.!?]\s+)\p{Ll}";
}

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

/// The first form of a meaning in each language.
type Translations = [&'static str; LANGUAGES.len()];

/// Meanings by language and word: as it stands, and by its stems behind a `~`.
static MEANINGS: LazyLock<HashMap<(usize, String), Translations>> = LazyLock::new(|| {
    let mut meanings = HashMap::new();
    for line in WORDS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let columns: Vec<Vec<&str>> = line
            .split('|')
            .map(|column| column.split(',').map(str::trim).collect())
            .collect();
        let first = |of: usize| Some(*columns.get(of)?.first()?);
        let meaning = std::array::from_fn(|of| first(of).unwrap_or(""));
        for (of, forms) in columns.iter().enumerate() {
            for form in forms
                .iter()
                .filter(|form| !form.is_empty())
                .map(|form| form.to_lowercase())
            {
                meanings.entry((of, stemmed(&form, of))).or_insert(meaning);
                meanings.entry((of, form)).or_insert(meaning);
            }
        }
    }
    meanings
});

/// The number of a language by its code or name.
fn language(name: &str) -> Option<usize> {
    let name = name.trim().to_lowercase();
    LANGUAGES.iter().position(|(names, _)| listed(&name, names))
}

fn stemmed(word: &str, of: usize) -> String {
    let algorithm = LANGUAGES
        .get(of)
        .map_or(Algorithm::English, |(_, algorithm)| *algorithm);
    let stemmer = Stemmer::create(algorithm);
    format!("~{}", stemmer.stem(word))
}

/// The first form in the other language; `Some("")` is a word that it does without.
fn translated(word: &str, from: usize, to: usize) -> Option<&'static str> {
    let meaning = MEANINGS.get(&(from, word.to_owned()));
    meaning
        .or_else(|| MEANINGS.get(&(from, stemmed(word, from))))?
        .get(to)
        .copied()
}

/// The language that knows most of the words.
fn language_of(text: &str) -> usize {
    let words = words(text);
    let known = |of: &usize| {
        words
            .iter()
            .filter(|word| MEANINGS.contains_key(&(*of, (*word).clone())))
            .count()
    };
    (0..LANGUAGES.len()).rev().max_by_key(known).unwrap_or(0)
}

/// The text in the other language; `None` where the language asked for is not known.
pub fn write(given: &PromptParts) -> Option<String> {
    let text = given
        .value(&["text", "source", "sentence"])
        .unwrap_or(&given.text);
    let to = match given.value(&["target_language", "target", "to"]) {
        Some(name) => language(name)?,
        None => words(&given.instruction)
            .iter()
            .rev()
            .find_map(|word| language(word))
            .unwrap_or(0),
    };
    let named = given.value(&["source_language", "from"]).and_then(language);
    let from = named.unwrap_or_else(|| language_of(text));
    if from == to {
        return Some(text.to_owned());
    }
    let lines = text.lines().map(|line| translate(line, from, to));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

fn translate(line: &str, from: usize, to: usize) -> String {
    let word = |caps: &Captures<'_>| {
        let word = group(caps, 0);
        let known = translated(&word.to_lowercase(), from, to);
        known.unwrap_or(word).to_owned()
    };
    // A word that was left out leaves no second space.
    let words = WORD.replace_all(line, word).replace("  ", " ");
    let begun = BEGINNING.replace_all(words.trim_start(), |caps: &Captures<'_>| {
        group(caps, 0).to_uppercase()
    });
    begun.into_owned()
}

#[cfg(test)]
mod tests;
