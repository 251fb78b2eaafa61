//! Which documents fit a query best: words in common, and meaning in common.
//!
//! Half of a score is the share of the query's stemmed words that a document or its synonyms say, rare ones first;
//! the other half is the cosine of the embeddings, so that a document which says it in other words is found.
//! Promise: a score is in [0,1]; the same query and documents give the same order; equals stand by index.

use super::{
    cosine,
    lexicon::Lexicon,
    of_text,
    words::{self, Says, Word},
};
use std::collections::{BTreeSet, HashSet};

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

/// The stems of a document, and the groups of synonyms that they belong to.
struct Document {
    stems: HashSet<String>,
    groups: HashSet<u32>,
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

/// How much of the query each document says; a word counts the more, the fewer documents say it.
fn word_scores(asked: &BTreeSet<String>, documents: &[Document]) -> Vec<f64> {
    let rarity = |stem: &String| {
        let with = documents
            .iter()
            .filter(|document| document.says(stem) > 0.0)
            .count();
        (1.0 + documents.len() as f64 / (with as f64 + 0.5)).ln()
    };
    let rarities: Vec<(&String, f64)> = asked.iter().map(|stem| (stem, rarity(stem))).collect();
    let most: f64 = rarities.iter().map(|(_, rarity)| rarity).sum();
    let score = |document: &Document| {
        let said = rarities
            .iter()
            .map(|(stem, rarity)| rarity * document.says(stem));
        said.sum::<f64>() / most.max(f64::MIN_POSITIVE)
    };
    documents.iter().map(score).collect()
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
        let concepts = words
            .iter()
            .flat_map(|word| Lexicon::get().concepts(&word.stem));
        Self {
            groups: concepts.map(|concept| concept.group).collect(),
            stems: words.into_iter().map(|word| word.stem).collect(),
        }
    }

    /// 1 where the word stands here, less where a synonym does.
    fn says(&self, stem: &str) -> f64 {
        let mut concepts = Lexicon::get().concepts(stem).iter();
        if self.stems.contains(stem) {
            1.0
        } else if concepts.any(|concept| self.groups.contains(&concept.group)) {
            SYNONYM
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests;
