//! What a text means, as a vector: feature hashing of its words, their concepts and their letters.
//!
//! There is no learned model here. A word counts by its stem, by the group of synonyms it belongs to
//! (`lexicon.txt`), by the topic of that group, and by its runs of letters, so that a misspelt word or a word
//! of another language is still near itself. Each feature adds to one dimension or takes from it.
//! Promise: equal texts give equal vectors on every machine, of length one; texts that say the same in
//! other words are mostly nearer than texts that only look alike, which the triples in `tests/meaning` measure.

mod lexicon;
pub mod ranking;
mod words;

use lexicon::Lexicon;
use std::collections::BTreeMap;
use words::{Says, Word};

/// How much each kind of feature says. Tuned on `tests/meaning/given.tsv` and on nothing else.
mod weight {
    /// Of a word that has synonyms: most of what it says is in its concept.
    pub const WORD: f64 = 0.6;
    pub const WORD_ALONE: f64 = 1.2;
    /// Shared by the groups of a word that stands in several.
    pub const CONCEPT: f64 = 1.2;
    pub const TOPIC: f64 = 0.5;
    /// All runs of letters of one word together.
    pub const LETTERS: f64 = 0.3;
    /// Two words in a row: the order of words says a little.
    pub const NEIGHBOURS: f64 = 0.1;
    /// What a word like "the" is worth beside one like "river", and one like "again".
    pub const SAYS_NOTHING: f64 = 0.1;
    pub const SAYS_LITTLE: f64 = 0.4;
}

/// What a feature is of; the same text as a word and as a concept are two features.
#[derive(Clone, Copy)]
enum Kind {
    Word = 1,
    Concept = 2,
    Topic = 3,
    Letters = 4,
    Neighbours = 5,
    Token = 6,
    Sign = 7,
}

/// The squares of the weights, by feature.
#[derive(Default)]
struct Features(BTreeMap<u64, f64>);

/// The vector of a text: `dimensions` numbers, of length one.
pub fn of_text(text: &str, dimensions: usize) -> Vec<f32> {
    let mut features = Features::default();
    let words = words::words(text);
    let mut before: Option<&Word> = None;
    for word in &words {
        features.add_word(word);
        if let Some(before) = before {
            let both = format!("{} {}", before.stem, word.stem);
            features.add(Kind::Neighbours, both.as_bytes(), weight::NEIGHBOURS);
        }
        before = Some(word);
    }
    if words.is_empty() {
        for sign in text.chars().filter(|c| !c.is_whitespace()) {
            features.add(Kind::Sign, sign.to_string().as_bytes(), 1.0);
        }
    }
    features.into_vector(dimensions)
}

/// The vector of a text that came as token numbers. Assumed (embeddings): a number is a word of its own.
pub fn of_tokens(tokens: &[u64], dimensions: usize) -> Vec<f32> {
    let mut features = Features::default();
    for token in tokens {
        features.add(Kind::Token, &token.to_le_bytes(), 1.0);
    }
    features.into_vector(dimensions)
}

/// How near two vectors of [`of_text`] are, from -1 to 1.
pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| f64::from(*a) * f64::from(*b))
        .sum()
}

// === impl Features ===

impl Features {
    fn add(&mut self, kind: Kind, name: &[u8], weight: f64) {
        // Squares add up, so that a word said four times counts twice, not four times.
        *self.0.entry(hash(kind, name)).or_default() += weight * weight;
    }

    fn add_word(&mut self, word: &Word) {
        let share = match word.says {
            Says::Much => 1.0,
            Says::Little => weight::SAYS_LITTLE,
            Says::Nothing => weight::SAYS_NOTHING,
        };
        let concepts = match word.says {
            Says::Nothing => &[],
            Says::Little | Says::Much => Lexicon::get().concepts(&word.stem),
        };
        let own = if concepts.is_empty() {
            weight::WORD_ALONE
        } else {
            weight::WORD
        };
        self.add(Kind::Word, word.stem.as_bytes(), own * share);
        let part = share / (concepts.len().max(1) as f64).sqrt();
        for concept in concepts {
            let number = concept.group.to_le_bytes();
            self.add(Kind::Concept, &number, weight::CONCEPT * part);
            let number = concept.topic.to_le_bytes();
            self.add(Kind::Topic, &number, weight::TOPIC * part);
        }
        let runs = words::runs_of_letters(&word.text);
        let each = weight::LETTERS * share / (runs.len() as f64).sqrt();
        for run in &runs {
            self.add(Kind::Letters, run.as_bytes(), each);
        }
    }

    /// Interface is silent on dimensions; any number of them holds the same features, more or less crowded.
    fn into_vector(self, dimensions: usize) -> Vec<f32> {
        let mut sums = vec![0.0_f64; dimensions];
        for (feature, square) in self.0 {
            let at = usize::try_from(feature >> 1)
                .unwrap_or(usize::MAX)
                .checked_rem(dimensions);
            if let Some(sum) = at.and_then(|at| sums.get_mut(at)) {
                *sum += if feature & 1 == 1 {
                    square.sqrt()
                } else {
                    -square.sqrt()
                };
            }
        }
        let length = sums.iter().map(|x| x * x).sum::<f64>().sqrt();
        if length > 0.0 {
            return sums.iter().map(|x| (x / length) as f32).collect();
        }
        // Everything cancelled out, as it may in very few dimensions.
        (0..dimensions)
            .map(|at| if at == 0 { 1.0 } else { 0.0 })
            .collect()
    }
}

/// FNV-1a with a last mixing step: the same number on every machine and in every release.
fn hash(kind: Kind, name: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in std::iter::once(&(kind as u8)).chain(name) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests;
