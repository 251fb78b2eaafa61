//! A text as words: lower case, stemmed, the small ones light, each with the words that mean nearly the same.
//!
//! Embeddings and reranking read texts through the same glasses. The lexicon (`lexicon.txt`) is made by hand and part
//! of the program. Promise: no word is lost; a letter of any script is a letter; a word that stands in several groups
//! of synonyms belongs to each, and one that stands in none still counts by its stem.

use crate::text;
use std::{collections::HashMap, sync::LazyLock};

/// Words that say nothing about what a text is about.
const STOP_WORDS: &str = include_str!("words/stop.txt");
/// Words that stand in sentences about anything: they say a little of what a text is about.
const COMMON_WORDS: &str = include_str!("words/common.txt");
/// What such words are worth beside one like "river".
const STOP: f64 = 0.1;
const COMMON: f64 = 0.4;

/// A group of synonyms and its topic, by their place in the lexicon.
pub type Concept = (u32, u32);

static WEIGHTS: LazyLock<HashMap<&str, f64>> = LazyLock::new(|| {
    let common = COMMON_WORDS.split_whitespace().map(|word| (word, COMMON));
    let stop = STOP_WORDS.split_whitespace().map(|word| (word, STOP));
    common.chain(stop).collect()
});
static CONCEPTS: LazyLock<HashMap<String, Vec<Concept>>> =
    LazyLock::new(|| lexicon(include_str!("lexicon.txt")));

fn lexicon(file: &'static str) -> HashMap<String, Vec<Concept>> {
    let mut concepts: HashMap<String, Vec<Concept>> = HashMap::new();
    let mut group = 0;
    for (topic, (_, lines)) in (1..).zip(text::sections(file)) {
        for line in lines {
            group += 1;
            for stem in text::stems(line) {
                let known = concepts.entry(stem).or_default();
                // Two forms of one stem in a line are one word.
                if !known.contains(&(group, topic)) {
                    known.push((group, topic));
                }
            }
        }
    }
    concepts
}

/// The groups that a stem belongs to.
pub fn concepts(stem: &str) -> &'static [Concept] {
    CONCEPTS.get(stem).map_or(&[], Vec::as_slice)
}

#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// As it stands in the text, in lower case.
    pub text: String,
    pub stem: String,
    /// How much it says of what its text is about, to 1.
    pub weight: f64,
}

// === impl Word ===

impl Word {
    pub fn is_stop_word(&self) -> bool {
        self.weight <= STOP
    }

    pub fn concepts(&self) -> &'static [Concept] {
        if self.is_stop_word() {
            &[]
        } else {
            concepts(&self.stem)
        }
    }
}

pub fn words(text: &str) -> Vec<Word> {
    let word = |text: String| Word {
        stem: text::stem(&text),
        weight: WEIGHTS.get(text.as_str()).copied().unwrap_or(1.0),
        text,
    };
    text::words(text).into_iter().map(word).collect()
}

/// Three letters in a row, with the ends of the word marked; where a letter may be a word (scripts without
/// spaces) one and two in a row.
pub fn runs_of_letters(word: &str) -> Vec<String> {
    let letters: Vec<char> = format!("^{word}$").chars().collect();
    let lengths: &[usize] = if word.contains(is_ideograph) {
        &[1, 2]
    } else {
        &[3]
    };
    let runs = lengths.iter().flat_map(|length| letters.windows(*length));
    runs.map(|run| run.iter().collect()).collect()
}

/// Han, kana and Hangul.
fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c), 0x3040..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7af | 0x2_0000..=0x3_ffff)
}

#[cfg(test)]
mod tests;
