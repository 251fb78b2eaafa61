//! Summaries made of a text's own sentences: those that are most like the whole text.
//!
//! Promise: whole sentences of the text in its order; the same for the same text.

use super::{
    skill::{Skill, Skills},
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
    let length = |sentence: &str| sentence.split_whitespace().count();
    let mut sentences = text::sentences_of(source);
    sentences.retain(|one| length(one) > 2);
    sentences.truncate(SENTENCES_MAX);
    if sentences.is_empty() {
        return source.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    let vector = |text: &str| embedding::of_text(text, DIMENSIONS);
    let whole = vector(&sentences.join(" "));
    let weight = |at: usize, sentence: &str| match skills.has(Skill::Meaning) {
        true => embedding::cosine(&whole, &vector(sentence)) * (1.0 + LEAD / (at + 1) as f64),
        false => 0.0,
    };
    let weighed = sentences.iter().enumerate();
    let mut order: Vec<(f64, usize, &str)> = weighed
        .map(|(at, one)| (weight(at, one), at, *one))
        .collect();
    // A stable sort: equals stay in the order of the text.
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut chosen: Vec<(usize, &str)> = Vec::new();
    let mut words = 0;
    for (_, at, sentence) in order {
        let too_long = asked.is_none() && words > 0 && words + length(sentence) > WORDS_MAX;
        if chosen.len() < asked.unwrap_or(2) && !too_long {
            chosen.push((at, sentence));
            words += length(sentence);
        }
    }
    chosen.sort_unstable();
    let chosen: Vec<&str> = chosen.into_iter().map(|(_, sentence)| sentence).collect();
    chosen.join(" ")
}

#[cfg(test)]
mod tests;
