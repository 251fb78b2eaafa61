//! Words and sentences of a text, and the patterns that are looked for in it.
//!
//! A list of words is one string with spaces or lines between them. Promise: work is linear in the text; every
//! sentence given stands in it.

use regex::{Captures, Regex};
use rust_stemmers::{Algorithm, Stemmer};

const STOP_WORDS: &str = include_str!("text/stop_words.txt");
/// A prompt of megabytes must not make a comparison of words quadratic.
const SUBJECT_WORDS_MAX: usize = 64;

/// Compiles a pattern of this crate.
#[expect(
    clippy::expect_used,
    reason = "constants of this crate, each compiled by a test"
)]
pub fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("a pattern of this crate compiles")
}

/// Patterns of this crate, each compiled when it is first used.
macro_rules! patterns {
    ($($(#[$about:meta])* $name:ident = $source:expr;)+) => {
        $($(#[$about])* static $name: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| $crate::text::pattern($source));)+
    };
}
pub(crate) use patterns;

/// What a group of a match holds; empty where the group took no part.
pub fn group<'t>(caps: &Captures<'t>, at: usize) -> &'t str {
    caps.get(at).map_or("", |one| one.as_str())
}

/// The first group of the first match.
pub fn captured<'t>(pattern: &Regex, text: &'t str) -> Option<&'t str> {
    Some(pattern.captures(text)?.get(1)?.as_str())
}

/// The lower-cased words of a text: runs of letters and digits.
pub fn words(text: &str) -> Vec<String> {
    let runs = text.split(|c: char| !c.is_alphanumeric());
    let words = runs.filter(|run| !run.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The words of an identifier: `unit_price` and `unitPrice` are two.
pub fn words_of_name(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    for c in name.chars() {
        if c.is_uppercase() && spaced.ends_with(char::is_lowercase) {
            spaced.push(' ');
        }
        spaced.push(c);
    }
    words(&spaced)
}

pub fn listed(word: &str, list: &str) -> bool {
    list.split_whitespace().any(|one| one == word)
}

/// Whether one of the words is in the list.
pub fn has_any(words: &[String], list: &str) -> bool {
    words.iter().any(|word| listed(word, list))
}

/// Whether the text holds a word of a list, whole and in any case.
pub fn has_word(text: &str, list: &str) -> bool {
    has_any(&words(text), list)
}

/// The words that carry the text's subject, each once, in order: longer than two letters and no filler.
pub fn subject_words(text: &str) -> Vec<String> {
    let mut subject: Vec<String> = Vec::new();
    for word in words(text) {
        if word.chars().count() > 2 && !listed(&word, STOP_WORDS) && !subject.contains(&word) {
            subject.push(word);
            if subject.len() == SUBJECT_WORDS_MAX {
                break;
            }
        }
    }
    subject
}

/// The stem of an English word in lower case.
pub fn stem(word: &str) -> String {
    let stemmer = Stemmer::create(Algorithm::English);
    stemmer.stem(&word.to_lowercase()).into_owned()
}

/// The stems of a text's words, in order.
pub fn stems(text: &str) -> Vec<String> {
    words(text).iter().map(|word| stem(word)).collect()
}

/// `3` and `three`, from one to ten as a word.
pub fn count(word: &str) -> Option<usize> {
    const NAMES: &str = "one two three four five six seven eight nine ten";
    let named = NAMES.split(' ').position(|name| name == word);
    named.map(|at| at + 1).or_else(|| word.parse().ok())
}

/// The text cut at sentence ends and line ends.
pub fn sentences_of(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    for line in text.lines() {
        let mut start = 0;
        for (at, end) in line.match_indices(['.', '!', '?']) {
            let behind = line.get(at + end.len()..).unwrap_or("");
            if behind.is_empty() || behind.starts_with(char::is_whitespace) {
                sentences.extend(line.get(start..at + end.len()));
                start = at + end.len();
            }
        }
        sentences.extend(line.get(start..));
    }
    sentences.retain(|sentence| !sentence.trim().is_empty());
    sentences.into_iter().map(str::trim).collect()
}

/// The first letter as a capital.
pub fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars).collect()
}

/// The lines of a file of this crate below each heading in brackets; lines with a `#` in front are comments.
pub fn sections(file: &'static str) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in file.lines().map(str::trim) {
        let heading = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'));
        match (heading, sections.last_mut()) {
            (Some(heading), _) => sections.push((heading, Vec::new())),
            (None, Some((_, lines))) if !line.is_empty() && !line.starts_with('#') => {
                lines.push(line)
            }
            _ => {}
        }
    }
    sections
}
