//! Grading a list: how well each entry is what was asked for.
//!
//! Words in common and meaning in common, as reranking sees them; then what a query limits by figures and by
//! exclusion, and whether an entry has the kind of answer that the question wants.
//! Promise: every entry has a grade in the range; the best has the highest.

use super::{
    answering::Wanted,
    facts::{self, patterns},
    given::{Given, Item},
    prompt,
    skill::{Pass, Skills},
};
use crate::embedding::ranking;
use regex::Regex;
use serde_json::{Map, Value};

const FITTING_FIGURE: f64 = 0.15;
const WRONG_FIGURE: f64 = 0.2;
const EXCLUDED: f64 = 0.3;
const ANSWERS: f64 = 0.12;

patterns! {
    AT_MOST = r"(?i)\b(?:under|below|less than|up to|at most|max(?:imum)?|cheaper than)\s+[$€£]?(\d+(?:\.\d+)?)";
    AT_LEAST = r"(?i)\b(?:over|above|more than|at least|min(?:imum)?|from)\s+[$€£]?(\d+(?:\.\d+)?)";
    EXCLUSION = r"(?i)\b(?:not|no|non|without|un)[\s-]+(\p{L}+)";
}

/// A grade for each entry, from `low` to `high`.
pub fn grades(
    given: &Given,
    items: &[Item],
    low: f64,
    high: f64,
    whole: bool,
    skills: Skills,
) -> Map<String, Value> {
    let query = given.question();
    let scores = scores(&query, items, skills);
    let best = scores
        .iter()
        .copied()
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    items
        .iter()
        .zip(scores)
        .map(|(item, score)| {
            let grade = low + (high - low) * (score / best).clamp(0.0, 1.0);
            let grade = if whole {
                grade.round()
            } else {
                (grade * 100.0).round() / 100.0
            };
            let value = super::form::number(grade).unwrap_or(Value::Null);
            (item.id.clone(), value)
        })
        .collect()
}

/// The entries' ids, best first.
pub fn order(given: &Given, items: &[Item], skills: Skills) -> Vec<String> {
    let scores = scores(&given.question(), items, skills);
    let mut ranked: Vec<(&Item, f64)> = items.iter().zip(scores).collect();
    // A stable sort: equals stay in the order of the request.
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked
        .into_iter()
        .map(|(item, _)| item.id.clone())
        .collect()
}

fn scores(query: &str, items: &[Item], skills: Skills) -> Vec<f64> {
    let texts: Vec<String> = items.iter().map(|item| spelled(&item.text)).collect();
    let query = spelled(query);
    let mut scores = vec![0.0; items.len()];
    let asked = prompt::subject_words(&query);
    for (score, text) in scores.iter_mut().zip(&texts) {
        let words = prompt::words(text);
        let shared = asked.iter().filter(|word| words.contains(word)).count();
        *score = shared as f64 / asked.len().max(1) as f64;
    }
    if skills.has(Pass::Meaning) {
        for ranked in ranking::rank(&query, &texts) {
            if let Some(score) = scores.get_mut(ranked.index) {
                *score = f64::midpoint(*score, ranked.score);
            }
        }
    }
    let wanted = Wanted::of(&query);
    for (score, text) in scores.iter_mut().zip(&texts) {
        if skills.has(Pass::Limits) {
            *score += within_limits(&query, text);
        }
        if skills.has(Pass::Inference) || skills.has(Pass::Limits) {
            *score += if wanted.is_in(text) { ANSWERS } else { 0.0 };
        }
        *score = score.max(0.0);
    }
    scores
}

/// `65w` as `65 w`, `USB-C` as `USB C`.
fn spelled(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    for c in text.chars() {
        if before.is_ascii_digit() && c.is_alphabetic() {
            spelled.push(' ');
        }
        spelled.push(c);
        before = c;
    }
    spelled
}

/// What the figures and exclusions of query and text add or take.
fn within_limits(query: &str, text: &str) -> f64 {
    let mut sum = 0.0;
    let asked = prompt::words(query);
    for caps in EXCLUSION.captures_iter(text) {
        let excluded = caps.get(1).map_or("", |one| one.as_str()).to_lowercase();
        if asked.iter().any(|word| {
            word.len() > 3 && (excluded.starts_with(word.as_str()) || word.starts_with(&excluded))
        }) {
            sum -= EXCLUDED;
        }
    }
    sum + bounds(query, text)
}

fn bounds(query: &str, text: &str) -> f64 {
    let limit = |of: &Regex| of.captures(query)?.get(1)?.as_str().parse::<f64>().ok();
    let (most, least) = (limit(&AT_MOST), limit(&AT_LEAST));
    let Some(price) = facts::amounts(text).last().map(|one| one.value.value) else {
        return 0.0;
    };
    if most.is_none() && least.is_none() {
        return 0.0;
    }
    let fits = most.is_none_or(|most| price <= most) && least.is_none_or(|least| price >= least);
    if fits { FITTING_FIGURE } else { -WRONG_FIGURE }
}

#[cfg(test)]
mod tests;
