//! Writing: sentences chosen from a text, and sentences made from its words.
//!
//! Promise: deterministic for a given [`Rng`]; every sentence made here holds words of the prompt.

use super::{prompt, rng::Rng};
use std::collections::HashMap;

const OPENINGS: &[&str] = &[
    "In short",
    "Put plainly",
    "To begin with",
    "As far as one can tell",
    "Looking closer",
    "Broadly",
    "In practice",
    "At first sight",
    "On balance",
    "Seen from a distance",
    "To be exact",
    "By most accounts",
];
const VERBS: &[&str] = &[
    "depends on",
    "grows out of",
    "explains",
    "shapes",
    "limits",
    "follows from",
    "supports",
    "precedes",
    "competes with",
    "rests on",
    "answers to",
    "borrows from",
    "clarifies",
    "outlasts",
    "begins with",
    "enables",
];
const QUALITIES: &[&str] = &[
    "a steady",
    "an early",
    "a careful",
    "an ordinary",
    "a measurable",
    "a quiet",
    "a second",
    "a practical",
    "a visible",
    "an honest",
    "a narrow",
    "a shared",
    "a simple",
    "a lasting",
    "a local",
    "a plain",
];
const NOUNS: &[&str] = &[
    "choice", "limit", "pattern", "habit", "signal", "trade", "question", "plan", "record",
    "reason", "measure", "order", "source", "margin", "rule", "step", "shape", "route", "balance",
    "detail", "result", "cause",
];
const ENDINGS: &[&str] = &[
    "in most cases",
    "when time is short",
    "for the people involved",
    "over the years",
    "under pressure",
    "without much noise",
    "and rarely alone",
    "as the evidence suggests",
    "before anything else",
    "in the long run",
    "at a modest cost",
    "on close reading",
    "where it matters",
    "by a small margin",
];

/// A sentence about the given words. About fifty million can be made from one prompt.
pub fn sentence(subject: &[String], rng: &mut Rng) -> String {
    let fallback = "the matter".to_owned();
    let about = rng.choose(subject).unwrap_or(&fallback).clone();
    let opening = rng.word(OPENINGS);
    let verb = rng.word(VERBS);
    let quality = rng.word(QUALITIES);
    let noun = rng.word(NOUNS);
    let ending = rng.word(ENDINGS);
    match rng.below(3) {
        0 => format!("{opening}, {about} {verb} {quality} {noun}, {ending}."),
        1 => format!("{opening}, {quality} {noun} {verb} {about}, {ending}."),
        _ => {
            let other = rng.choose(subject).unwrap_or(&fallback);
            format!("{opening}, {about} {verb} {other} through {quality} {noun}, {ending}.")
        }
    }
}

/// `n` sentences about the given words.
pub fn paragraph(subject: &[String], n: u64, rng: &mut Rng) -> String {
    let sentences: Vec<String> = (0..n).map(|_| sentence(subject, rng)).collect();
    sentences.join(" ")
}

/// The sentences of the text that hold most of its frequent words, in the text's order.
pub fn summarise(text: &str, sentences_max: usize) -> String {
    let sentences = sentences_of(text);
    let mut frequency: HashMap<String, u64> = HashMap::new();
    for word in prompt::words(text) {
        if word.chars().count() > 3 {
            *frequency.entry(word).or_default() += 1;
        }
    }
    let mut scored: Vec<(usize, u64)> = sentences
        .iter()
        .enumerate()
        .map(|(at, sentence)| {
            let words = prompt::words(sentence);
            let sum: u64 = words.iter().filter_map(|word| frequency.get(word)).sum();
            // In thousandths: the mean weight of a word, so that long sentences do not win by length.
            (
                at,
                (sum * 1000).checked_div(words.len() as u64).unwrap_or(0),
            )
        })
        .collect();
    scored.sort_by_key(|(at, score)| (std::cmp::Reverse(*score), *at));
    scored.truncate(sentences_max.max(1));
    scored.sort_by_key(|(at, _)| *at);
    let chosen: Vec<&str> = scored
        .iter()
        .filter_map(|(at, _)| sentences.get(*at).copied())
        .collect();
    chosen.join(" ")
}

/// The text cut at sentence ends and line ends.
pub fn sentences_of(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    for line in text.lines() {
        let mut start = 0;
        let mut chars = line.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next_is_space = chars.peek().is_none_or(|(_, next)| next.is_whitespace());
            if matches!(c, '.' | '!' | '?') && next_is_space {
                sentences.extend(line.get(start..at + c.len_utf8()));
                start = at + c.len_utf8();
            }
        }
        sentences.extend(line.get(start..));
    }
    sentences
        .iter()
        .map(|s| s.trim())
        .filter(|s| !s.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_made_of_sentences_of_the_text() {
        let text = "Rivers carve valleys. A cat slept. Rivers feed valleys and rivers feed farms. It rained.";

        let summary = summarise(text, 2);

        assert_eq!(sentences_of(&summary).len(), 2);
        assert!(sentences_of(&summary).iter().all(|one| text.contains(one)));
        assert!(summary.contains("Rivers"));
    }
}
