//! What a text means, as a vector: feature hashing of its words, their concepts and their letters.
//!
//! There is no learned model here. A word counts by its stem, by the group of synonyms it belongs to
//! (`lexicon.txt`), by the topic of that group, and by its runs of letters, so that a misspelt word or a word
//! of another language is still near itself. Each feature adds to one dimension or takes from it.
//! Promise: equal texts give equal vectors on every machine, of length one; texts that say the same in
//! other words are mostly nearer than texts that only look alike, which the triples in `tests/meaning` measure.

pub mod ranking;
mod words;

use std::collections::BTreeMap;
use words::Word;

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
}

/// What a feature is of; the same text as a word and as a concept are two features.
#[derive(Clone, Copy)]
enum Feature {
    Word = 1,
    Concept = 2,
    Topic = 3,
    Letters = 4,
    Neighbours = 5,
    Token = 6,
    Sign = 7,
}

/// The squares of the weights, by the hash of the feature.
#[derive(Default)]
struct Features(BTreeMap<u64, f64>);

/// The vector of a text: `dimensions` numbers, of length one.
pub fn of_text(text: &str, dimensions: usize) -> Vec<f32> {
    let mut features = Features::default();
    let words = words::words(text);
    for word in &words {
        features.add_word(word);
    }
    for (one, next) in words.iter().zip(words.iter().skip(1)) {
        let both = format!("{} {}", one.stem, next.stem);
        features.add(Feature::Neighbours, both.as_bytes(), weight::NEIGHBOURS);
    }
    if words.is_empty() {
        for sign in text.chars().filter(|c| !c.is_whitespace()) {
            features.add(Feature::Sign, sign.to_string().as_bytes(), 1.0);
        }
    }
    features.into_vector(dimensions)
}

/// The vector of a text that came as token numbers. Assumed (embeddings): a number is a word of its own.
pub fn of_tokens(tokens: &[u64], dimensions: usize) -> Vec<f32> {
    let mut features = Features::default();
    for token in tokens {
        features.add(Feature::Token, &token.to_le_bytes(), 1.0);
    }
    features.into_vector(dimensions)
}

/// How near two vectors of [`of_text`] are, from -1 to 1.
pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
    products.sum()
}

// === impl Features ===

impl Features {
    fn add(&mut self, of: Feature, name: &[u8], weight: f64) {
        // Squares add up, so that a word said four times counts twice, not four times.
        *self.0.entry(hash(of, name)).or_default() += weight * weight;
    }

    fn add_word(&mut self, word: &Word) {
        let concepts = word.concepts();
        let own = match concepts {
            [] => weight::WORD_ALONE,
            _ => weight::WORD,
        };
        self.add(Feature::Word, word.stem.as_bytes(), own * word.weight);
        let part = word.weight / (concepts.len().max(1) as f64).sqrt();
        for (group, topic) in concepts {
            self.add(
                Feature::Concept,
                &group.to_le_bytes(),
                weight::CONCEPT * part,
            );
            self.add(Feature::Topic, &topic.to_le_bytes(), weight::TOPIC * part);
        }
        let runs = words::runs_of_letters(&word.text);
        let each = weight::LETTERS * word.weight / (runs.len() as f64).sqrt();
        for run in &runs {
            self.add(Feature::Letters, run.as_bytes(), each);
        }
    }

    /// Interface is silent on dimensions; any number of them holds the same features, more or less crowded.
    fn into_vector(self, dimensions: usize) -> Vec<f32> {
        let mut sums = vec![0.0_f64; dimensions];
        for (hash, square) in self.0 {
            let at = (hash >> 1).checked_rem(dimensions as u64);
            let at = at.and_then(|at| usize::try_from(at).ok());
            if let Some(sum) = at.and_then(|at| sums.get_mut(at)) {
                *sum += square.sqrt() * if hash & 1 == 1 { 1.0 } else { -1.0 };
            }
        }
        let length = sums.iter().map(|x| x * x).sum::<f64>().sqrt();
        // Everything cancels out, as it may in very few dimensions.
        if length == 0.0
            && let Some(first) = sums.first_mut()
        {
            *first = 1.0;
            return sums.iter().map(|x| *x as f32).collect();
        }
        sums.iter().map(|x| (x / length) as f32).collect()
    }
}

/// FNV-1a with a last mixing step: the same number on every machine and in every release.
fn hash(of: Feature, name: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in std::iter::once(&(of as u8)).chain(name) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests;
