//! A life in work and school: jobs, education and skills of a resume.
//!
//! Promise: years are years that stand in the line; the present is no year.

use super::names;
use crate::facts::FieldValues;
use crate::text::{captured, group, patterns, sentences_of};
use serde_json::json;

patterns! {
    /// A span of years, "since" a year, or a year alone.
    YEARS = r"(?i)\(?\b(?:from\s+)?(since\s+)?((?:19|20)\d{2})(?:\s*(?:-|–|—|to|until|till)\s*((?:19|20)\d{2}|today|now|present|current))?\b\)?";
    BETWEEN = r"\s*(?:[,|;·:]|\s[-–—]\s|\b(?:at|with|for|@|of|from)\s+\b)\s*";
    SKILLS = r"(?i)(?:^|\n|\. )\s*(?:key |core |technical )?(?:skills|languages|competences|tools|i speak)\s*[:-]?\s+([^.\n]+)";
}

/// A clause as a job or a degree: its first two parts, the organization as the place, and its years.
fn stage(clause: &str) -> Option<FieldValues> {
    let years = YEARS.captures(clause);
    let rest = YEARS.replace_all(clause, " , ");
    let parts = BETWEEN
        .split(&rest)
        .map(|part| part.trim_matches([' ', '.', ',', '(', ')']));
    let mut parts = parts.filter(|part| part.chars().filter(|c| c.is_alphabetic()).count() > 1);
    let (first, second) = (parts.next()?, parts.next()?);
    let turned = names::is_organization(first) && !names::is_organization(second);
    let (what, place) = if turned {
        (second, first)
    } else {
        (first, second)
    };
    let year = |at| group(years.as_ref()?, at).parse::<i64>().ok();
    // The year of a degree is the one that it ended in.
    let (from, to) = match (year(2), year(3)) {
        (from, to) if names::is_school(clause) => (None, to.or(from)),
        years => years,
    };
    Some(vec![
        ("title position role degree subject", json!(what)),
        (
            "employer company school university institution organization",
            json!(place),
        ),
        ("from start", json!(from)),
        ("to end year graduation", json!(to)),
    ])
}

fn clauses(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| line.split("; "))
        .flat_map(sentences_of)
}

/// Clauses with a span of years that speak of no school.
pub fn jobs(text: &str) -> Vec<FieldValues> {
    let spans = |clause: &&str| {
        let years = YEARS.captures(clause);
        years.is_some_and(|caps| caps.get(1).or(caps.get(3)).is_some())
    };
    let at_work = clauses(text).filter(|clause| !names::is_school(clause));
    at_work.filter(spans).filter_map(stage).collect()
}

/// Clauses that speak of a school.
pub fn education(text: &str) -> Vec<FieldValues> {
    let at_school = clauses(text).filter(|clause| names::is_school(clause));
    at_school.filter_map(stage).collect()
}

/// What stands behind "Skills:" or "Languages:".
pub fn skills(text: &str) -> Vec<String> {
    let lists = SKILLS
        .find_iter(text)
        .filter_map(|one| captured(&SKILLS, one.as_str()));
    let skills = lists
        .flat_map(|list| list.split([',', ';']))
        .flat_map(|part| part.split(" and "));
    let skills = skills.map(|skill| skill.trim().to_owned());
    skills.filter(|skill| !skill.is_empty()).collect()
}

#[cfg(test)]
mod tests;
