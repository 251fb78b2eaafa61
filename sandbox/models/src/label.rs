//! Choosing a label: which of some names fits a text best.
//!
//! A label speaks for itself by its name; by the words that go with what it means (`cues.txt`); by meaning,
//! as the embeddings see it; and by examples in the prompt. Promise: one of the given choices, the same for
//! the same text; no choice is known beforehand.

mod named;

pub use named::labels;

use super::{
    given::PromptParts,
    skill::{Skill, Skills},
    text::{self, listed},
};
use crate::embedding;
use serde_json::Value;
use std::{
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

const DIMENSIONS: usize = 1_024;
/// What the parts of a score are worth.
const NAME: f64 = 1.5;
const MEANING: f64 = 0.8;
const EXAMPLE: f64 = 3.0;
/// An example nearer than this speaks for its label.
const EXAMPLE_NEAR: f64 = 0.25;
/// What must speak for a label before one that stands for the rest is left.
const CLEAR: f64 = 0.45;

/// Labels that stand for the rest.
const REST: &str = "other others none neutral ok okay unknown misc miscellaneous general normal clean safe \
    not_applicable na no";
const NEGATIONS: &str = "not no never nothing without hardly isnt wasnt dont doesnt didnt cant wont cannot neither \
    nor nobody none";
/// What stands behind these counts more than what stands before.
const TURNS: &str = "but however";

static MEANINGS: LazyLock<Vec<Meaning>> =
    LazyLock::new(|| meanings(include_str!("label/cues.txt")));

struct Meaning {
    /// Stems of the names that labels may have for it.
    names: BTreeSet<String>,
    /// Those of its contrary.
    contrary: BTreeSet<String>,
    /// Stems, and up to four in a row, that speak for it; a phrase says more than a word.
    cues: HashMap<String, f64>,
}

fn meanings(file: &'static str) -> Vec<Meaning> {
    let sections = text::sections(file);
    let names = |heading: &str| BTreeSet::from_iter(stems(heading.split('!').next().unwrap_or("")));
    let cue = |cue: &str| {
        let stems = stems(cue);
        (stems.join(" "), if stems.len() > 1 { 1.5 } else { 1.0 })
    };
    let meaning = |(heading, lines): &(&str, Vec<&str>)| {
        // A heading names its contrary by one word; the others come from that word's own heading.
        let contrary = BTreeSet::from_iter(stems(heading.split('!').nth(1).unwrap_or("")));
        let others = sections.iter().map(|(heading, _)| names(heading));
        let cues = lines.iter().flat_map(|line| line.split(',')).map(cue);
        Meaning {
            names: names(heading),
            contrary: others
                .filter(|names| !names.is_disjoint(&contrary))
                .flatten()
                .collect(),
            cues: cues.filter(|(cue, _)| !cue.is_empty()).collect(),
        }
    };
    sections.iter().map(meaning).collect()
}

/// `isn't` is one word.
fn stems(text: &str) -> Vec<String> {
    text::stems(&text.replace(['\'', '’'], ""))
}

/// The words of a label.
fn spelled(label: &str) -> String {
    label.replace(['_', '-'], " ")
}

/// The choice that fits the material best.
pub fn choose(given: &PromptParts, all: &str, choices: &[Value], skills: Skills) -> Option<Value> {
    let labels: Vec<&str> = choices.iter().map(Value::as_str).collect::<Option<_>>()?;
    let read = StemmedText::new(&given.text, skills);
    let examples = examples(all, &labels, &given.text);
    let vector = |text: &str| embedding::of_text(text, DIMENSIONS);
    let own = vector(&given.text);
    let near = |text: &str| embedding::cosine(&own, &vector(text));
    let is_rest = |label: &str| listed(&label.to_lowercase(), REST);
    let score = |label: &str| {
        let mut score = read.score(label);
        if skills.has(Skill::Meaning) && !is_rest(label) {
            score += MEANING * near(&spelled(label)).max(0.0);
        }
        let examples = examples.iter().filter(|(own, _)| *own == label);
        let nearest = examples
            .map(|(_, example)| near(example))
            .fold(0.0, f64::max);
        score
            + if nearest > EXAMPLE_NEAR {
                EXAMPLE * nearest
            } else {
                0.0
            }
    };
    let scored = labels
        .iter()
        .enumerate()
        .rev()
        .map(|(at, label)| (at, score(label)));
    let (best, score) = scored.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let rest = labels.iter().position(|label| is_rest(label));
    choices
        .get(rest.filter(|_| score < CLEAR).unwrap_or(best))
        .cloned()
}

/// Pairs of a label and its text that the prompt gives: `text -> label`, or `text` and `label:` on lines.
fn examples<'a>(all: &'a str, labels: &[&'a str], own: &str) -> Vec<(&'a str, &'a str)> {
    let label_of = |text: &str| {
        let bare = text.trim().trim_matches(['"', '\'', '`', '*', '.']);
        labels
            .iter()
            .copied()
            .find(|label| label.eq_ignore_ascii_case(bare))
    };
    let arrows = ["->", "=>", "→", "\t", "|"];
    let mut examples = Vec::new();
    let mut before = "";
    for line in all.lines().filter(|line| !line.trim().is_empty()) {
        let arrow = arrows.iter().find_map(|arrow| line.rsplit_once(arrow));
        let (text, label) = arrow
            .or_else(|| Some((before, line.split_once(':')?.1)))
            .unwrap_or_default();
        examples.extend(label_of(label).map(|label| (label, text)));
        before = line.split_once(": ").map_or(line, |(_, text)| text);
    }
    examples.retain(|(_, text)| !text.is_empty() && !own.starts_with(text.trim()));
    examples
}

/// A text as stems, with what turns them.
struct StemmedText {
    stems: Vec<String>,
    skills: Skills,
    /// What stands before the turn counts half; read between the lines it is conceded and speaks for its contrary.
    turn: usize,
    /// A nuisance is praised.
    ironic: bool,
}

// === impl StemmedText ===

impl StemmedText {
    fn new(text: &str, skills: Skills) -> Self {
        let stems = stems(text);
        let turn = stems.iter().rposition(|stem| listed(stem, TURNS));
        let mut read = Self {
            turn: turn.filter(|_| skills.has(Skill::Negation)).unwrap_or(0),
            stems,
            skills,
            ironic: false,
        };
        let says = |name: &str| {
            let mut meanings = MEANINGS
                .iter()
                .filter(|meaning| meaning.names.contains(name));
            meanings.any(|meaning| read.cues(meaning, false) > 0.0)
        };
        read.ironic = skills.has(Skill::BetweenLines) && says("nuisanc") && says("posit");
        read
    }

    /// What speaks for a label: its own words, and the words that go with what it means.
    fn score(&self, label: &str) -> f64 {
        let own = stems(&spelled(label));
        let is_here = |stem: &&String| stem.len() > 2 && self.stems.contains(stem);
        let named = own.iter().filter(is_here).count();
        let mut score = NAME * named as f64 / own.len().max(1) as f64;
        for meaning in MEANINGS.iter() {
            let is_in = |names: &BTreeSet<String>| {
                own.iter().filter(|name| names.contains(*name)).count() as f64
            };
            // A negated cue of the contrary speaks for the label: "not bad".
            score += is_in(&meaning.names) * self.cues(meaning, false);
            score += is_in(&meaning.contrary) * self.cues(meaning, true);
            if self.ironic && is_in(&meaning.names) > 0.0 {
                if meaning.names.contains("posit") {
                    return 0.0;
                }
                score += f64::from(meaning.names.contains("negat"));
            }
        }
        score
    }

    /// How much of the text speaks for a meaning, or of what speaks for it is turned into its contrary.
    fn cues(&self, meaning: &Meaning, turned: bool) -> f64 {
        let mut sum = 0.0;
        for at in 0..self.stems.len() {
            let runs = (1..=4).filter_map(|length| self.stems.get(at..at + length));
            let is_before = at < self.turn;
            for run in runs {
                let weight = meaning.cues.get(&run.join(" ")).copied().unwrap_or(0.0);
                let is_conceded = is_before && self.skills.has(Skill::BetweenLines);
                let is_negated = run.len() == 1 && self.is_negated(at);
                if (is_negated != is_conceded) == turned {
                    sum += if is_before { weight / 2.0 } else { weight };
                }
            }
        }
        sum
    }

    /// Whether one of the three words before it negates.
    fn is_negated(&self, at: usize) -> bool {
        let before = self.stems.get(at.saturating_sub(3)..at).unwrap_or_default();
        self.skills.has(Skill::Negation) && text::has_any(before, NEGATIONS)
    }
}

#[cfg(test)]
mod tests;
