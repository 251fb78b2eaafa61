//! Grading a list: how well each entry is what was asked for.
//!
//! Words in common and meaning in common, as reranking sees them; then what a query limits by figures and by
//! exclusion, and whether an entry has the kind of answer that the question wants.
//! Promise: every entry has a grade in the range; the best has the highest.

use super::{
    answering::ExpectedAnswer,
    facts, form,
    given::{Item, PromptParts},
    skill::{Skill, Skills},
    text::{self, captured, group, patterns},
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
    /// `65w`, which is `65 w`.
    UNIT = r"(\d)(\p{L})";
}

/// A grade for each entry, within the `minimum` and the `maximum` of the schema, else from 0 to 1.
pub fn grades(
    given: &PromptParts,
    items: &[Item],
    schema: &Value,
    skills: Skills,
) -> Map<String, Value> {
    let edge = |name: &str| schema.get(name).and_then(Value::as_f64);
    let (low, high) = (
        edge("minimum").unwrap_or(0.0),
        edge("maximum").unwrap_or(1.0),
    );
    // In whole steps or in hundredths.
    let steps = if form::type_of(schema) == "integer" {
        1.0
    } else {
        100.0
    };
    let scores = scores(given, items, skills);
    let best = scores.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let grade = |score: f64| {
        let grade = low + (high - low) * (score / best).clamp(0.0, 1.0);
        form::number((grade * steps).round() / steps).unwrap_or(Value::Null)
    };
    let grades = items.iter().zip(scores);
    grades
        .map(|(item, score)| (item.id.clone(), grade(score)))
        .collect()
}

/// The entries' ids, best first.
pub fn order(given: &PromptParts, items: &[Item], skills: Skills) -> Vec<String> {
    let mut ranked: Vec<(&Item, f64)> = items.iter().zip(scores(given, items, skills)).collect();
    // A stable sort: equals stay in the order of the request.
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked.iter().map(|(item, _)| item.id.clone()).collect()
}

fn scores(given: &PromptParts, items: &[Item], skills: Skills) -> Vec<f64> {
    let spelled = |text: &str| UNIT.replace_all(text, "$1 $2").into_owned();
    let texts: Vec<String> = items.iter().map(|item| spelled(&item.text)).collect();
    let query = spelled(&given.question());
    let mut scores = vec![0.0; items.len()];
    for ranked in ranking::rank(&query, &texts) {
        if let Some(score) = scores.get_mut(ranked.index) {
            *score = ranked.score;
        }
    }
    let wanted = ExpectedAnswer::of(&query);
    for (score, text) in scores.iter_mut().zip(&texts) {
        if skills.has(Skill::Limits) {
            *score += within_limits(&query, text);
        }
        *score = score.max(0.0) + if wanted.is_in(text) { ANSWERS } else { 0.0 };
    }
    scores
}

/// What the figures and exclusions of query and text add or take.
fn within_limits(query: &str, text: &str) -> f64 {
    let asked = text::stems(query);
    let exclusions = EXCLUSION.captures_iter(text);
    let excluded = exclusions
        .filter(|caps| asked.contains(&text::stem(group(caps, 1))))
        .count();
    let limit = |of: &Regex| captured(of, query)?.parse::<f64>().ok();
    let (most, least) = (limit(&AT_MOST), limit(&AT_LEAST));
    let price = facts::numbers(text).last().copied();
    let bounds = match price.filter(|_| most.is_some() || least.is_some()) {
        Some(price) if most.is_some_and(|most| price > most) => -WRONG_FIGURE,
        Some(price) if least.is_some_and(|least| price < least) => -WRONG_FIGURE,
        Some(_) => FITTING_FIGURE,
        None => 0.0,
    };
    bounds - EXCLUDED * excluded as f64
}

#[cfg(test)]
mod tests;
