//! The hand-made lexicon: which words mean nearly the same, and which topic they belong to.
//!
//! `lexicon.txt` is part of the program and read once. Promise: a word that stands in several groups
//! belongs to each; a word that stands in none has no concept, and still counts by its stem.

use super::words;
use std::{collections::HashMap, sync::LazyLock};

const TEXT: &str = include_str!("lexicon.txt");

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::parse(TEXT));

/// A group of synonyms and its topic, by their place in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concept {
    pub group: u32,
    pub topic: u32,
}

pub struct Lexicon {
    by_stem: HashMap<String, Vec<Concept>>,
}

// === impl Lexicon ===

impl Lexicon {
    pub fn get() -> &'static Self {
        &LEXICON
    }

    fn parse(text: &str) -> Self {
        let mut by_stem: HashMap<String, Vec<Concept>> = HashMap::new();
        let mut topic = 0;
        let mut group = 0;
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.starts_with('[') {
                topic += 1;
                continue;
            }
            group += 1;
            for word in line.split_whitespace() {
                let concepts = by_stem.entry(words::stem(word)).or_default();
                // Two forms of one stem in a line are one word.
                if concepts.iter().all(|known| known.group != group) {
                    concepts.push(Concept { group, topic });
                }
            }
        }
        Self { by_stem }
    }

    pub fn concepts(&self, stem: &str) -> &[Concept] {
        self.by_stem.get(stem).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests;
