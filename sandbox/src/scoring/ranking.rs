//! nDCG@10: whether the best come first.
//!
//! Interface, Task: "nDCG@10 for ranking".
//! Assumed (ndcg-gain): the gain is linear (the grade itself) and the discount log2(place + 1), as
//! scikit-learn's `ndcg_score`; equal scores share the mean of their places.
//! Promise: an id that is not ranked gains nothing; one that is not known takes a place and gains nothing;
//! one that occurs twice counts where it is best.

use super::score::{LEAVES_MAX, Score, Unscored, number};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// How many places count.
const PLACES: usize = 10;
/// Where an entry that is an object has its id, and its grade or score.
const IDS: [&str; 2] = ["id", "index"];
const GRADES: [&str; 4] = ["relevance", "grade", "score", "relevance_score"];
/// Fields of an expected output that hold the grades, where several could.
const FIELDS: [&str; 2] = ["relevance", "ranking"];

/// An id and its grade (expected) or score (answered); more is better.
type Rated = (String, f64);

pub fn score(expected: &Value, answer: &Value) -> Score {
    let (field, expected) = ranking_of(expected)
        .ok_or_else(|| Unscored::because("the expected output holds no ranking"))?;
    let grades = unique(read(expected)?);
    if let Some((id, _)) = grades.iter().find(|(_, grade)| *grade < 0.0) {
        return Err(Unscored::because(format!(
            "the expected grade of {id} is below zero"
        )));
    }
    let answered =
        answered(answer, field).ok_or_else(|| Unscored::because("the answer holds no ranking"))?;
    let answered = unique(read(answered)?);
    let ideal = discounted(&grades.iter().map(|(_, grade)| *grade).collect::<Vec<_>>());
    if ideal <= 0.0 {
        return Ok(0.0);
    }
    let grade_of: HashMap<&str, f64> = grades
        .iter()
        .map(|(id, grade)| (id.as_str(), *grade))
        .collect();
    let gained: Vec<(f64, f64)> = answered
        .iter()
        .map(|(id, score)| (*score, grade_of.get(id.as_str()).copied().unwrap_or(0.0)))
        .collect();
    Ok((tied(&gained) / ideal).clamp(0.0, 1.0))
}

fn discount(place: usize) -> f64 {
    1.0 / number(place + 2).log2()
}

/// Of gains in order of worth, the first [`PLACES`]; `unique` has put them in that order.
fn discounted(gains: &[f64]) -> f64 {
    gains
        .iter()
        .take(PLACES)
        .enumerate()
        .map(|(place, gain)| gain * discount(place))
        .sum()
}

/// Of (score, gain) by falling score: each of a group of equal scores has the group's mean gain.
fn tied(rated: &[(f64, f64)]) -> f64 {
    let mut place = 0;
    let mut sum = 0.0;
    #[expect(clippy::float_cmp, reason = "only equal scores are tied")]
    for group in rated.chunk_by(|one, two| one.0 == two.0) {
        let gain: f64 = group.iter().map(|(_, gain)| gain).sum();
        let discounts: f64 = (place..(place + group.len()).min(PLACES))
            .map(discount)
            .sum();
        sum += gain / number(group.len()) * discounts;
        place += group.len();
    }
    sum
}

/// Best first, each id once, where it is best. The sort is stable.
fn unique(mut rated: Vec<Rated>) -> Vec<Rated> {
    rated.sort_by(|one, two| two.1.total_cmp(&one.1));
    let mut seen = HashSet::new();
    rated.retain(|(id, _)| seen.insert(id.clone()));
    rated
}

// === reading ===

fn grades_by_id(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|fields| !fields.is_empty() && fields.values().all(Value::is_number))
}

/// The field with the ranking; the object itself when it is grades by id.
fn ranking_of(expected: &Value) -> Option<(Option<&str>, &Value)> {
    if expected.is_array() {
        return Some((None, expected));
    }
    let fields = expected.as_object()?;
    let holds = |value: &Value| value.is_array() || grades_by_id(value);
    let named = FIELDS
        .iter()
        .find_map(|name| fields.get_key_value(*name))
        .filter(|(_, value)| holds(value));
    let mut found = fields.iter().filter(|(_, value)| holds(value));
    let field = named.or_else(|| found.next().filter(|_| found.next().is_none()));
    match field {
        Some((name, value)) => Some((Some(name.as_str()), value)),
        None => grades_by_id(expected).then_some((None, expected)),
    }
}

/// The same field of the answer, else its only ranking, else the answer itself.
fn answered<'a>(answer: &'a Value, field: Option<&str>) -> Option<&'a Value> {
    if let Some(found) = field.and_then(|name| answer.get(name)) {
        return Some(found);
    }
    match answer {
        Value::String(_) => Some(answer),
        _ => ranking_of(answer).map(|(_, value)| value),
    }
}

fn read(value: &Value) -> Result<Vec<Rated>, Unscored> {
    let rated = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(id, grade)| Some((id.trim().to_owned(), grade.as_f64()?)))
            .collect(),
        Value::Array(entries) => list(entries),
        Value::String(text) => Some(in_order(listed(text))),
        _ => None,
    };
    let rated = rated.ok_or_else(|| Unscored::because("a ranking has entries without an id"))?;
    if rated.len() > LEAVES_MAX {
        return Err(Unscored::because(format!(
            "a ranking of {} entries; {LEAVES_MAX} are compared at most",
            rated.len()
        )));
    }
    Ok(rated)
}

/// Entries with a grade each count by it; otherwise the order is the ranking.
fn list(entries: &[Value]) -> Option<Vec<Rated>> {
    let ids: Vec<String> = entries.iter().map(id).collect::<Option<_>>()?;
    let grades: Option<Vec<f64>> = entries
        .iter()
        .map(|entry| GRADES.iter().find_map(|name| entry.get(name)?.as_f64()))
        .collect();
    Some(match grades {
        Some(grades) => ids.into_iter().zip(grades).collect(),
        None => in_order(ids),
    })
}

fn id(entry: &Value) -> Option<String> {
    match entry {
        Value::String(id) => Some(id.trim().to_owned()),
        Value::Number(id) => Some(id.to_string()),
        Value::Object(fields) => IDS
            .iter()
            .find_map(|name| fields.get(*name))
            .filter(|id| !id.is_object())
            .and_then(id),
        _ => None,
    }
}

/// The first of n has n, the last 1.
fn in_order(ids: Vec<String>) -> Vec<Rated> {
    let count = ids.len();
    ids.into_iter()
        .enumerate()
        .map(|(at, id)| (id, number(count - at)))
        .collect()
}

/// Ids in a text: one a line, or separated by commas or `>`; numbers and bullets of a list are left out.
fn listed(text: &str) -> Vec<String> {
    text.split(['\n', ',', '>'])
        .map(|part| {
            let part = part.trim().trim_start_matches(['-', '*', '•']).trim_start();
            let unnumbered = part
                .split_once(['.', ')'])
                .filter(|(count, rest)| {
                    !count.is_empty()
                        && count.bytes().all(|byte| byte.is_ascii_digit())
                        && rest.starts_with(' ')
                })
                .map_or(part, |(_, rest)| rest);
            unnumbered.trim().to_owned()
        })
        .filter(|part| !part.is_empty())
        .collect()
}
