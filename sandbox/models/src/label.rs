//! Choosing a label: which of some names fits a text best.
//!
//! A label speaks for itself by its name; by the words that go with what it means (`cues.txt`); by meaning,
//! as the embeddings see it; and by examples in the prompt. Promise: one of the given choices, the same for
//! the same text; no choice is known beforehand.

mod named;

pub use named::labels;

use super::{
    given::Given,
    prompt,
    skill::{Pass, Skills},
};
use crate::embedding;
use rust_stemmers::{Algorithm, Stemmer};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

const CUES: &str = include_str!("label/cues.txt");
const DIMENSIONS: usize = 1_024;
/// What the parts of a score are worth.
const NAME: f64 = 1.5;
const CUE: f64 = 1.0;
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

/// Stems, and two in a row, that speak for what a label means.
static MEANINGS: LazyLock<Vec<Meaning>> = LazyLock::new(|| read(CUES));

struct Meaning {
    /// Stems of the names that labels may have for it.
    names: BTreeSet<String>,
    /// Those of its contrary.
    contrary: BTreeSet<String>,
    /// A phrase says more than a word.
    cues: BTreeMap<String, f64>,
}

fn read(text: &str) -> Vec<Meaning> {
    let mut meanings: Vec<Meaning> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let heading = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'));
        if let Some(heading) = heading {
            let (names, contrary) = heading.split_once('!').unwrap_or((heading, ""));
            meanings.push(Meaning {
                names: stems(names).into_iter().collect(),
                contrary: stems(contrary).into_iter().collect(),
                cues: BTreeMap::new(),
            });
        } else if let Some(meaning) = meanings.last_mut() {
            let cues = line.split(',').map(stems).filter(|stems| !stems.is_empty());
            let weighed =
                cues.map(|stems| (stems.join(" "), if stems.len() > 1 { 1.5 } else { 1.0 }));
            meaning.cues.extend(weighed);
        }
    }
    // A heading names its contrary by one word; the others come from that word's own heading.
    let names: Vec<BTreeSet<String>> = meanings
        .iter()
        .map(|meaning| meaning.names.clone())
        .collect();
    for meaning in &mut meanings {
        let others = names
            .iter()
            .filter(|names| !names.is_disjoint(&meaning.contrary));
        meaning.contrary = others.flatten().cloned().collect();
    }
    meanings
}

fn stems(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let words = prompt::words(&text.replace(['\'', '’'], ""));
    words
        .iter()
        .map(|word| stemmer.stem(word).into_owned())
        .collect()
}

/// What labels of one meaning go by, by any of its names.
fn names_of(name: &str) -> Option<&'static Meaning> {
    MEANINGS.iter().find(|meaning| meaning.names.contains(name))
}

/// The choice that fits the material best.
pub fn choose(given: &Given, all: &str, choices: &[Value], skills: Skills) -> Option<Value> {
    let labels: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
    if labels.is_empty() || labels.len() != choices.len() {
        return None;
    }
    let text = given.text.as_str();
    let read = Read::new(text, skills);
    let examples = examples(all, &labels, text);
    let vector = embedding::of_text(text, DIMENSIONS);
    let near = |text: &str| embedding::cosine(&vector, &embedding::of_text(text, DIMENSIONS));
    let score = |label: &str| {
        let mut score = read.score(label);
        if skills.has(Pass::Meaning) && !is_rest(label) {
            score += MEANING * near(&label.replace(['_', '-'], " ")).max(0.0);
        }
        let own = examples.iter().filter(|(own, _)| *own == label);
        let nearest = own.map(|(_, example)| near(example)).fold(0.0, f64::max);
        if nearest > EXAMPLE_NEAR {
            score += EXAMPLE * nearest;
        }
        score
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

fn is_rest(label: &str) -> bool {
    prompt::listed(&label.to_lowercase(), REST)
}

/// Pairs of a text and its label that the prompt gives: `text -> label`, or `text` and `label:` on lines.
fn examples<'a>(all: &'a str, labels: &[&'a str], own: &str) -> Vec<(&'a str, &'a str)> {
    let label_of = |text: &str| {
        let bare = text.trim().trim_matches(|c: char| "\"'`*.".contains(c));
        labels
            .iter()
            .copied()
            .find(|label| label.eq_ignore_ascii_case(bare))
    };
    let mut examples = Vec::new();
    let mut before = "";
    for line in all.lines().filter(|line| !line.trim().is_empty()) {
        let arrow = ["->", "=>", "→", "\t", "|"]
            .iter()
            .find_map(|arrow| line.rsplit_once(arrow));
        if let Some((text, label)) = arrow.and_then(|(text, label)| Some((text, label_of(label)?)))
        {
            examples.push((label, text));
        } else if let Some(label) = line.split_once(':').and_then(|(_, label)| label_of(label))
            && !before.is_empty()
        {
            examples.push((label, before));
        }
        before = line.split_once(": ").map_or(line, |(_, text)| text);
    }
    examples.retain(|(_, text)| !own.starts_with(text.trim()));
    examples
}

/// A text as stems, with what turns them.
struct Read {
    stems: Vec<String>,
    skills: Skills,
    /// What stands before the turn counts half; read between the lines it is conceded and speaks for its contrary.
    turn: usize,
    /// A nuisance is praised.
    ironic: bool,
}

// === impl Read ===

impl Read {
    fn new(text: &str, skills: Skills) -> Self {
        let mut read = Self {
            stems: stems(text),
            skills,
            turn: 0,
            ironic: false,
        };
        if skills.has(Pass::Negation) {
            let turn = read
                .stems
                .iter()
                .rposition(|stem| prompt::listed(stem, TURNS));
            read.turn = turn.unwrap_or(0);
        }
        if skills.has(Pass::BetweenLines) {
            let says = |name| names_of(name).is_some_and(|meaning| read.cues(meaning, false) > 0.0);
            read.ironic = says("nuisanc") && says("posit");
        }
        read
    }

    /// What speaks for a label: its own words, and the words that go with what it means.
    fn score(&self, label: &str) -> f64 {
        let own = stems(&label.replace(['_', '-'], " "));
        let named = own
            .iter()
            .filter(|stem| stem.len() > 2 && self.stems.contains(stem))
            .count();
        let mut score = NAME * named as f64 / own.len().max(1) as f64;
        for name in &own {
            for meaning in MEANINGS.iter() {
                // A negated cue of the contrary speaks for the label: "not bad".
                if meaning.names.contains(name) {
                    score += CUE * self.cues(meaning, false);
                } else if meaning.contrary.contains(name) {
                    score += CUE * self.cues(meaning, true);
                }
            }
        }
        let means = |name| {
            names_of(name).is_some_and(|meaning| own.iter().any(|one| meaning.names.contains(one)))
        };
        match self.ironic {
            true if means("posit") => 0.0,
            true if means("negat") => score + CUE,
            _ => score,
        }
    }

    /// How much of the text speaks for a meaning, or of what speaks for it is turned into its contrary.
    fn cues(&self, meaning: &Meaning, turned: bool) -> f64 {
        let mut sum = 0.0;
        for at in 0..self.stems.len() {
            let runs = (1..=4).filter_map(|length| self.stems.get(at..at + length));
            for run in runs {
                let Some(weight) = meaning.cues.get(&run.join(" ")) else {
                    continue;
                };
                let is_conceded = self.skills.has(Pass::BetweenLines) && at < self.turn;
                let is_negated = run.len() == 1 && self.is_negated(at);
                if (is_negated != is_conceded) == turned {
                    sum += if at < self.turn {
                        weight / 2.0
                    } else {
                        *weight
                    };
                }
            }
        }
        sum
    }

    /// Whether one of the three words before it negates.
    fn is_negated(&self, at: usize) -> bool {
        let mut reach = self
            .stems
            .get(at.saturating_sub(3)..at)
            .into_iter()
            .flatten();
        self.skills.has(Pass::Negation) && reach.any(|stem| prompt::listed(stem, NEGATIONS))
    }
}

#[cfg(test)]
mod tests;
