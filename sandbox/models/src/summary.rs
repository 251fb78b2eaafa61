//! Summaries made of a text's own sentences: those that are most like the whole text.
//!
//! Promise: whole sentences of the text in its order; the same for the same text.

use super::{
    skill::{Pass, Skills},
    text,
};
use crate::embedding;

/// Sentences that are looked at.
const SENTENCES_MAX: usize = 150;
const DIMENSIONS: usize = 512;
/// What standing first is worth: news and letters begin with what matters.
const LEAD: f64 = 0.8;
/// Words of a summary, when none says how long.
const WORDS_MAX: usize = 45;

/// So many sentences of the text; without a number as many as make a short summary, one or two.
pub fn of(source: &str, asked: Option<usize>, skills: Skills) -> String {
    let most = asked.unwrap_or(2);
    let mut sentences = text::sentences_of(source);
    sentences.retain(|one| one.split_whitespace().count() > 2);
    sentences.truncate(SENTENCES_MAX);
    if sentences.is_empty() {
        return source.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if !skills.has(Pass::Meaning) {
        sentences.truncate(most);
        return sentences.join(" ");
    }
    let whole = embedding::of_text(&sentences.join(" "), DIMENSIONS);
    let near = |one: &&str| embedding::cosine(&whole, &embedding::of_text(one, DIMENSIONS));
    let mut order: Vec<(usize, f64)> = sentences
        .iter()
        .map(near)
        .enumerate()
        .map(|(at, near)| (at, near * (1.0 + LEAD / (at + 1) as f64)))
        .collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut chosen: Vec<usize> = Vec::new();
    let mut words = 0;
    for (at, _) in order {
        let length = sentences
            .get(at)
            .map_or(0, |one| one.split_whitespace().count());
        let too_long = asked.is_none() && !chosen.is_empty() && words + length > WORDS_MAX;
        if chosen.len() < most && !too_long {
            chosen.push(at);
            words += length;
        }
    }
    chosen.sort_unstable();
    let chosen: Vec<&str> = chosen
        .iter()
        .filter_map(|at| sentences.get(*at).copied())
        .collect();
    chosen.join(" ")
}

#[cfg(test)]
mod tests;
