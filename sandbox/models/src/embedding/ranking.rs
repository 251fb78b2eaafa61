//! Which documents fit a query best: words in common, and meaning in common.
//!
//! Half of a score is the share of the query's stemmed words that a document or its synonyms say, rare ones first;
//! the other half is the cosine of the embeddings, so that a document which says it in other words is found.
//! Promise: a score is in [0,1]; the same query and documents give the same order; equals stand by index.

use super::{
    cosine, of_text,
    words::{self, Word},
};
use std::collections::{BTreeMap, HashSet};

/// What a synonym in the document is worth beside the word itself.
const SYNONYM: f64 = 0.6;
/// Enough room that features hardly meet; these vectors stay inside.
const DIMENSIONS: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// The document's place in the request.
    pub index: usize,
    pub score: f64,
}

/// The stems of a document, and the groups of synonyms that they belong to.
struct BagOfWords {
    stems: HashSet<String>,
    groups: HashSet<u32>,
}

/// All documents, best first.
pub fn rank(query: &str, documents: &[String]) -> Vec<Ranked> {
    let read: Vec<BagOfWords> = documents
        .iter()
        .map(|text| BagOfWords::read(text))
        .collect();
    let rarities = rarities(query, &read);
    let most: f64 = rarities.values().sum();
    let meant = of_text(query, DIMENSIONS);
    let score = |text: &String, document: &BagOfWords| {
        let said = rarities
            .iter()
            .map(|(stem, rarity)| rarity * document.says(stem));
        let words = said.sum::<f64>() / most.max(f64::MIN_POSITIVE);
        let meaning = cosine(&meant, &of_text(text, DIMENSIONS)).max(0.0);
        f64::midpoint(words, meaning).clamp(0.0, 1.0)
    };
    let scores = documents
        .iter()
        .zip(&read)
        .map(|(text, document)| score(text, document));
    let mut ranked: Vec<Ranked> = scores
        .enumerate()
        .map(|(index, score)| Ranked { index, score })
        .collect();
    // A stable sort: equals stay in the order of the request.
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
    ranked
}

/// The stems that the query asks for, and what each counts: the more, the fewer documents say it. A query of small
/// words alone asks for those.
fn rarities(query: &str, documents: &[BagOfWords]) -> BTreeMap<String, f64> {
    let words = words::words(query);
    let only_small = words.iter().all(Word::is_stop_word);
    let asked = words
        .into_iter()
        .filter(|word| only_small || !word.is_stop_word());
    let rarity = |word: Word| {
        let with = documents
            .iter()
            .filter(|document| document.says(&word.stem) > 0.0)
            .count();
        let rarity = (1.0 + documents.len() as f64 / (with as f64 + 0.5)).ln();
        (word.stem, rarity)
    };
    asked.map(rarity).collect()
}

// === impl BagOfWords ===

impl BagOfWords {
    fn read(text: &str) -> Self {
        let words = words::words(text);
        let concepts = words.iter().flat_map(|word| words::concepts(&word.stem));
        Self {
            groups: concepts.map(|(group, _)| *group).collect(),
            stems: words.into_iter().map(|word| word.stem).collect(),
        }
    }

    /// 1 where the word stands here, less where a synonym does.
    fn says(&self, stem: &str) -> f64 {
        let mut concepts = words::concepts(stem).iter();
        if self.stems.contains(stem) {
            1.0
        } else if concepts.any(|(group, _)| self.groups.contains(group)) {
            SYNONYM
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests;
