//! A life in work and school: jobs, education and skills of a resume.
//!
//! Promise: years are years that stand in the line; the present is no year.

use super::names;
use crate::{facts::patterns, text::sentences_of};

patterns! {
    /// A span of years, "since" a year, or a year alone.
    YEARS = r"(?i)\(?\b(?:from\s+)?(since\s+)?((?:19|20)\d{2})(?:\s*(?:-|–|—|to|until|till)\s*((?:19|20)\d{2}|today|now|present|current))?\b\)?";
    BETWEEN = r"\s*(?:[,|;·:]|\s[-–—]\s)\s*";
    AT = r"^(.*?\S)\s+(?:at|with|for|@|of|from)\s+(\p{Lu}.*)$";
    HEADING = r"(?i)^(?:work experience|experience|education|employment|jobs?|career|studies)\s*:\s*";
    SKILLS = r"(?i)(?:^|\n|\. )\s*(?:key |core |technical )?(?:skills|languages|competences|tools|i speak)\s*[:-]?\s+([^.\n]+)";
}

/// Words of a degree or a school: more are half a sentence.
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
fn units(text: &str) -> impl Iterator<Item = &str> {
    let clauses = text.lines().flat_map(|line| line.split("; "));
    let clauses = clauses.flat_map(|line| line.split(", then "));
    clauses.flat_map(sentences_of).map(|unit| {
        let heading = HEADING.find(unit).map_or(0, |heading| heading.end());
        unit.get(heading..).unwrap_or(unit).trim_end_matches('.')
    })
}

/// What one unit says beside its years.
fn stage(unit: &str) -> Option<Stage> {
    let rest = YEARS.replace_all(unit, " , ");
    let parts: Vec<&str> = BETWEEN
        .split(&rest)
        .map(|part| part.trim_matches(|c: char| "(), .".contains(c)))
        .filter(|part| part.chars().filter(|c| c.is_alphabetic()).count() > 1)
        .collect();
    let (first, second) = (*parts.first()?, parts.get(1).copied());
    let studied = names::is_school(unit);
    if studied
        && parts
            .iter()
            .any(|part| part.split(' ').count() > PART_WORDS_MAX)
    {
        return None;
    }
    let at = AT.captures(first).filter(|_| !studied || second.is_none());
    let (what, place) = match (at, second) {
        (Some(caps), _) => (caps.get(1)?.as_str(), caps.get(2)?.as_str()),
        (None, Some(second))
            if names::is_organization(first) && !names::is_organization(second) =>
        {
            (second, first)
        }
        (None, second) => (first, second?),
    };
    let years = YEARS.captures(unit);
    let year = |at| years.as_ref()?.get(at)?.as_str().parse().ok();
    Some(Stage {
        what: what.to_owned(),
        place: place.to_owned(),
        from: year(2),
        to: year(3),
    })
}

/// Units with a span of years that speak of no school.
pub fn jobs(text: &str) -> Vec<Stage> {
    let spans = |unit: &&str| {
        let years = YEARS.captures(unit);
        years.is_some_and(|caps| caps.get(1).or(caps.get(3)).is_some())
    };
    units(text)
        .filter(|unit| !names::is_school(unit))
        .filter(spans)
        .filter_map(stage)
        .collect()
}

/// Units that speak of a school; the year is the one that it ended in.
pub fn education(text: &str) -> Vec<Stage> {
    let stages = units(text)
        .filter(|unit| names::is_school(unit))
        .filter_map(stage);
    stages
        .map(|stage| Stage {
            to: stage.to.or(stage.from),
            from: None,
            ..stage
        })
        .collect()
}

/// What stands behind "Skills:" or "Languages:", else the last line that is a bare list.
pub fn skills(text: &str) -> Vec<String> {
    let mut lists: Vec<&str> = SKILLS
        .captures_iter(text)
        .filter_map(|caps| caps.get(1))
        .map(|one| one.as_str())
        .collect();
    if lists.is_empty() {
        let listed = |line: &&str| line.contains([',', ';']) && !YEARS.is_match(line);
        lists.extend(text.lines().rev().find(listed));
    }
    let mut skills: Vec<String> = Vec::new();
    for part in lists
        .iter()
        .flat_map(|list| list.split([',', ';']))
        .flat_map(|part| part.split(" and "))
    {
        let skill = part.trim().trim_end_matches('.').to_owned();
        if !skill.is_empty() && !skills.contains(&skill) {
            skills.push(skill);
        }
    }
    skills
}

#[cfg(test)]
mod tests;
