//! A life in work and school: jobs, education and skills of a resume.
//!
//! Promise: years are years that stand in the line; the present is no year.

use super::names;
use crate::facts::pattern;
use regex::Regex;
use std::sync::LazyLock;

static SPAN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\(?\b(?:from\s+)?((?:19|20)\d{2})\s*(?:-|–|—|to|until|till)\s*((?:19|20)\d{2}|today|now|present|current|date)\b\)?",
    )
});
static SINCE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\(?\bsince\s+((?:19|20)\d{2})\b\)?"));
static YEAR: LazyLock<Regex> = LazyLock::new(|| pattern(r"\(?\b((?:19|20)\d{2})\b\)?"));
static BETWEEN: LazyLock<Regex> = LazyLock::new(|| pattern(r"\s*(?:,|\||;|·|\s[-–—]\s|:)\s*"));
static AT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)^(.*?\S)\s+(?:at|with|for|@|of)\s+(\p{Lu}.*)$"));
static STUDIED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:bsc|msc|ba|ma|mba|phd|bachelor|bachelors|master|masters|degree|diploma|diplom|certificate|apprenticeship|studied|graduated|university|college|school|institute|academy|hochschule|polytechnic)\b",
    )
});
static HEADING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)^(?:work experience|experience|education|employment|jobs?|career|studies)\s*:\s*")
});
static SKILLS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:^|\n)\s*(?:key |core |technical )?(?:skills|languages|competences|competencies|tools|i speak|knows)\s*(?::|-)?\s+(.+)",
    )
});

/// Words of a title, a degree or a place.
const PART_WORDS_MAX: usize = 7;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// Title or degree.
    pub what: String,
    /// Employer or school.
    pub place: String,
    pub from: Option<i64>,
    /// `None` is the present, or unknown.
    pub to: Option<i64>,
}

/// The lines, and the sentences and clauses of lines that are prose.
fn units(text: &str) -> Vec<String> {
    text.lines()
        .flat_map(|line| line.split("; "))
        .flat_map(|line| line.split(", then "))
        .flat_map(crate::text::sentences_of)
        .map(|unit| {
            HEADING
                .replace(unit.trim().trim_end_matches('.'), "")
                .into_owned()
        })
        .filter(|unit| !unit.is_empty())
        .collect()
}

/// What stands in a unit beside its years.
fn parts(unit: &str) -> Vec<String> {
    let rest = SPAN.replace(unit, " , ");
    let rest = SINCE.replace(&rest, " , ");
    let rest = YEAR.replace(&rest, " , ");
    BETWEEN
        .split(&rest)
        .map(|part| part.trim_matches(|c: char| "(), .".contains(c)).to_owned())
        .filter(|part| part.chars().filter(|c| c.is_alphabetic()).count() > 1)
        .collect()
}

/// Which of the parts is the place, and what the other says.
fn what_and_place(parts: &[String], is_place: impl Fn(&str) -> bool) -> Option<(String, String)> {
    match parts {
        [] => None,
        [only] => {
            let caps = AT.captures(only)?;
            Some((
                caps.get(1)?.as_str().to_owned(),
                caps.get(2)?.as_str().to_owned(),
            ))
        }
        [first, second, ..] => {
            if let Some(caps) = AT.captures(first) {
                return Some((
                    caps.get(1)?.as_str().to_owned(),
                    caps.get(2)?.as_str().to_owned(),
                ));
            }
            let swap = is_place(first) && !is_place(second);
            let (what, place) = if swap {
                (second, first)
            } else {
                (first, second)
            };
            Some((what.clone(), place.clone()))
        }
    }
}

fn year(text: &str) -> Option<i64> {
    text.parse().ok()
}

pub fn jobs(text: &str) -> Vec<Stage> {
    units(text)
        .iter()
        .filter_map(|unit| {
            let (from, to) = if let Some(caps) = SPAN.captures(unit) {
                (year(caps.get(1)?.as_str()), year(caps.get(2)?.as_str()))
            } else if let Some(caps) = SINCE.captures(unit) {
                (year(caps.get(1)?.as_str()), None)
            } else {
                return None;
            };
            let parts = parts(unit);
            if parts.iter().any(|part| names::is_school(part)) && STUDIED.is_match(unit) {
                return None;
            }
            let (what, place) = what_and_place(&parts, names::is_organization)?;
            Some(Stage {
                what,
                place,
                from,
                to,
            })
        })
        .collect()
}

pub fn education(text: &str) -> Vec<Stage> {
    units(text)
        .iter()
        .filter(|unit| STUDIED.is_match(unit))
        .filter_map(|unit| {
            let parts = parts(unit);
            // A part that is half a sentence is no degree and no school.
            if parts
                .iter()
                .any(|part| part.split(' ').count() > PART_WORDS_MAX)
            {
                return None;
            }
            let school = parts.iter().position(|part| names::is_school(part))?;
            let (what, place) = if parts.len() == 1 {
                what_and_place(&parts, names::is_school)?
            } else {
                let what = parts.iter().enumerate().find(|(at, _)| *at != school)?.1;
                (what.clone(), parts.get(school)?.clone())
            };
            let to = YEAR
                .captures_iter(unit)
                .last()
                .and_then(|caps| year(caps.get(1)?.as_str()));
            Some(Stage {
                what,
                place,
                from: None,
                to,
            })
        })
        .collect()
}

/// What stands behind "Skills:" or "Languages:", else the last line that is a bare list.
pub fn skills(text: &str) -> Vec<String> {
    let labelled: Vec<&str> = SKILLS
        .captures_iter(text)
        .filter_map(|caps| caps.get(1))
        .map(|one| one.as_str())
        .collect();
    let listed = |line: &&str| line.split([',', ';']).count() > 1 && !YEAR.is_match(line);
    let lines = if labelled.is_empty() {
        text.lines().rev().find(listed).into_iter().collect()
    } else {
        labelled
    };
    let mut skills: Vec<String> = Vec::new();
    for line in lines {
        let line = crate::text::sentences_of(line)
            .first()
            .copied()
            .unwrap_or(line);
        for skill in line.split([',', ';']).flat_map(|part| part.split(" and ")) {
            let skill = skill.trim().trim_end_matches('.').to_owned();
            if !skill.is_empty() && !skills.contains(&skill) {
                skills.push(skill);
            }
        }
    }
    skills
}

#[cfg(test)]
mod tests;
