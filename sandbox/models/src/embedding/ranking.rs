//! Which documents fit a query best: words in common, and meaning in common.
//!
//! Half of a score is BM25 over stemmed words and their synonyms, as a part of the most this query can get;
//! the other half is the cosine of the embeddings, so that a document which says it in other words is found.
//! Promise: a score is in [0,1]; the same query and documents give the same order; equals stand by index.

use super::{
    cosine,
    lexicon::Lexicon,
    of_text,
    words::{self, Says, Word},
};
use std::collections::{BTreeSet, HashMap};

/// How soon a word said again stops counting.
const K1: f64 = 1.2;
/// How much a long document is held against itself.
const B: f64 = 0.75;
const WORDS_SHARE: f64 = 0.5;
/// What a synonym in the document is worth beside the word itself.
const SYNONYM: f64 = 0.6;
/// Enough room that features hardly meet; nobody sees these vectors.
const DIMENSIONS: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// The document's place in the request.
    pub index: usize,
    pub score: f64,
}

struct Document {
    stems: HashMap<String, usize>,
    /// By the number of the group of synonyms.
    groups: HashMap<u32, usize>,
    length: usize,
}

/// All documents, best first.
pub fn rank(query: &str, documents: &[String]) -> Vec<Ranked> {
    let asked = stems(query);
    let read: Vec<Document> = documents.iter().map(|text| Document::read(text)).collect();
    let common = word_scores(&asked, &read);
    let meant = of_text(query, DIMENSIONS);
    let mut ranked: Vec<Ranked> = documents
        .iter()
        .zip(common)
        .enumerate()
        .map(|(index, (text, words))| {
            let meaning = cosine(&meant, &of_text(text, DIMENSIONS)).max(0.0);
            let score = WORDS_SHARE * words + (1.0 - WORDS_SHARE) * meaning;
            Ranked {
                index,
                score: score.clamp(0.0, 1.0),
            }
        })
        .collect();
    // A stable sort: equals stay in the order of the request.
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
    ranked
}

/// BM25 of each document, as a part of the most that the query could get.
fn word_scores(asked: &BTreeSet<String>, documents: &[Document]) -> Vec<f64> {
    let total: usize = documents.iter().map(|document| document.length).sum();
    let usual = (total as f64 / documents.len().max(1) as f64).max(1.0);
    let rarities: Vec<(&String, f64)> = asked
        .iter()
        .map(|stem| {
            let with = documents
                .iter()
                .filter(|document| document.count(stem) > 0.0)
                .count() as f64;
            let without = documents.len() as f64 - with;
            (stem, (1.0 + (without + 0.5) / (with + 0.5)).ln())
        })
        .collect();
    let most: f64 = rarities.iter().map(|(_, rarity)| rarity * (K1 + 1.0)).sum();
    documents
        .iter()
        .map(|document| {
            let held_against = 1.0 - B + B * document.length as f64 / usual;
            let sum: f64 = rarities
                .iter()
                .map(|(stem, rarity)| {
                    let count = document.count(stem);
                    rarity * count * (K1 + 1.0) / (count + K1 * held_against)
                })
                .sum();
            if most > 0.0 { sum / most } else { 0.0 }
        })
        .collect()
}

/// What the query asks for. A query of small words alone asks for those.
fn stems(query: &str) -> BTreeSet<String> {
    let words = words::words(query);
    let telling = |word: &&Word| word.says != Says::Nothing;
    let only_small = words.iter().all(|word| word.says == Says::Nothing);
    words
        .iter()
        .filter(|word| only_small || telling(word))
        .map(|word| word.stem.clone())
        .collect()
}

// === impl Document ===

impl Document {
    fn read(text: &str) -> Self {
        let words = words::words(text);
        let length = words.len();
        let mut stems = HashMap::new();
        let mut groups = HashMap::new();
        for word in words {
            for concept in Lexicon::get().concepts(&word.stem) {
                *groups.entry(concept.group).or_insert(0) += 1;
            }
            *stems.entry(word.stem).or_insert(0) += 1;
        }
        Self {
            stems,
            groups,
            length,
        }
    }

    /// How often the word or a synonym stands here.
    fn count(&self, stem: &str) -> f64 {
        if let Some(count) = self.stems.get(stem) {
            return *count as f64;
        }
        let synonyms = Lexicon::get()
            .concepts(stem)
            .iter()
            .filter_map(|concept| self.groups.get(&concept.group))
            .max();
        synonyms.map_or(0.0, |count| SYNONYM * *count as f64)
    }
}

#[cfg(test)]
mod tests;
