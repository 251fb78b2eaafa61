//! Summaries made of a text's own sentences: those that are like most others, as TextRank finds them.
//!
//! Promise: whole sentences of the text in its order; the same for the same text.

use super::{skill::Skills, text};
use crate::embedding;

/// Sentences that are compared; each with each.
const SENTENCES_MAX: usize = 150;
const DIMENSIONS: usize = 512;
const DAMPING: f64 = 0.85;
const ROUNDS: usize = 30;
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
    if !skills.meaning {
        sentences.truncate(most);
        return sentences.join(" ");
    }
    let ranks = ranks(&sentences);
    let mut order: Vec<(usize, f64)> = ranks
        .into_iter()
        .enumerate()
        .map(|(at, rank)| (at, rank * (1.0 + LEAD / (at + 1) as f64)))
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

/// How much each sentence is like the others that are like others.
fn ranks(sentences: &[&str]) -> Vec<f64> {
    let vectors: Vec<Vec<f32>> = sentences
        .iter()
        .map(|one| embedding::of_text(one, DIMENSIONS))
        .collect();
    let alike: Vec<Vec<f64>> = vectors
        .iter()
        .enumerate()
        .map(|(at, one)| {
            let row = vectors.iter().enumerate().map(|(other, two)| {
                if at == other {
                    0.0
                } else {
                    embedding::cosine(one, two).max(0.0)
                }
            });
            row.collect()
        })
        .collect();
    let sums: Vec<f64> = alike
        .iter()
        .map(|row| row.iter().sum::<f64>().max(f64::MIN_POSITIVE))
        .collect();
    let share = 1.0 / sentences.len() as f64;
    let mut ranks = vec![share; sentences.len()];
    for _ in 0..ROUNDS {
        ranks = (0..sentences.len())
            .map(|at| {
                let given: f64 = alike
                    .iter()
                    .zip(&sums)
                    .zip(&ranks)
                    .map(|((row, sum), rank)| row.get(at).copied().unwrap_or(0.0) / sum * rank)
                    .sum();
                (1.0 - DAMPING) * share + DAMPING * given
            })
            .collect();
    }
    ranks
}

#[cfg(test)]
mod tests;
