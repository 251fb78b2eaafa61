//! Choosing a label: which of some names fits a text best.
//!
//! A label speaks for itself by its name; by the words that go with what it means (`cues.txt`); by meaning,
//! as the embeddings see it; and by examples in the prompt. Promise: one of the given choices, the same for
//! the same text; no choice is known beforehand.

mod named;

pub use named::labels;

use super::{given::Given, prompt, skill::Skills};
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
    /// Names labels may have for it.
    names: BTreeSet<String>,
    /// What it is the contrary of.
    contrary: Option<String>,
    cues: BTreeMap<String, f64>,
}

fn read(text: &str) -> Vec<Meaning> {
    let mut meanings: Vec<Meaning> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(heading) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            let (names, contrary) = match heading.split_once('!') {
                Some((names, contrary)) => (names, Some(stem(contrary.trim()))),
                None => (heading, None),
            };
            meanings.push(Meaning {
                names: names.split_whitespace().map(stem).collect(),
                contrary,
                cues: BTreeMap::new(),
            });
            continue;
        }
        let Some(meaning) = meanings.last_mut() else {
            continue;
        };
        for cue in line.split(',').map(str::trim) {
            let stems: Vec<String> = cue.split_whitespace().map(stem).collect();
            // A phrase says more than a word.
            let weight = if stems.len() > 1 { 1.5 } else { 1.0 };
            meaning.cues.insert(stems.join(" "), weight);
        }
    }
    meanings
}

fn stem(word: &str) -> String {
    Stemmer::create(Algorithm::English)
        .stem(&word.to_lowercase().replace(['\'', '’'], ""))
        .into_owned()
}

fn stems(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    text.to_lowercase()
        .replace(['\'', '’'], "")
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| stemmer.stem(word).into_owned())
        .collect()
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
    let mut scored: Vec<(usize, f64)> = labels
        .iter()
        .enumerate()
        .map(|(at, label)| {
            let mut score = read.score(label);
            if skills.meaning && !is_rest(label) {
                let name = embedding::of_text(&label.replace(['_', '-'], " "), DIMENSIONS);
                score += MEANING * embedding::cosine(&vector, &name).max(0.0);
            }
            let nearest = examples
                .iter()
                .filter(|(own, _)| own == label)
                .map(|(_, example)| {
                    embedding::cosine(&vector, &embedding::of_text(example, DIMENSIONS))
                })
                .fold(0.0, f64::max);
            if nearest > EXAMPLE_NEAR {
                score += EXAMPLE * nearest;
            }
            (at, score)
        })
        .collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let (best, score) = scored.first().copied()?;
    let rest = labels.iter().position(|label| is_rest(label));
    let at = match rest {
        Some(rest) if score < CLEAR => rest,
        _ => best,
    };
    choices.get(at).cloned()
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

/// A text as stems, with where its negations and its turn stand.
struct Read {
    stems: Vec<String>,
    negated: Vec<bool>,
    /// What stands before the turn counts half.
    turn: usize,
    /// What stands before the turn is conceded: it speaks for its contrary.
    concedes: bool,
    /// A nuisance that is praised.
    ironic: bool,
}

// === impl Read ===

impl Read {
    fn new(text: &str, skills: Skills) -> Self {
        let stems = stems(text);
        let negates = |stem: &String| prompt::listed(stem, NEGATIONS);
        let negated = (0..stems.len())
            .map(|at| {
                let reach = stems.get(at.saturating_sub(3)..at).unwrap_or_default();
                skills.negation && reach.iter().any(negates)
            })
            .collect();
        let turn = stems
            .iter()
            .rposition(|stem| skills.negation && prompt::listed(stem, TURNS))
            .unwrap_or(0);
        let mut read = Self {
            stems,
            negated,
            turn,
            concedes: skills.between_lines,
            ironic: false,
        };
        if skills.between_lines {
            let of = |name: &str| read.told(&stem(name)).0;
            read.ironic = of("nuisance") > 0.0 && of("positive") > 0.0;
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
        let mut score = if own.is_empty() {
            0.0
        } else {
            NAME * named as f64 / own.len() as f64
        };
        for name in &own {
            let (told, against) = self.told(name);
            // A negated cue of the contrary speaks for the label: "not bad".
            score += CUE * told + CUE * against;
        }
        if self.ironic {
            let is = |name: &str| own.iter().any(|own| self.means(own, name));
            if is("positive") {
                score = 0.0;
            } else if is("negative") {
                score += CUE;
            }
        }
        score
    }

    fn means(&self, name: &str, meaning: &str) -> bool {
        let meaning = stem(meaning);
        MEANINGS
            .iter()
            .any(|one| one.names.contains(&meaning) && one.names.contains(name))
    }

    /// How much of the text speaks for a meaning, and how much of what is said against its contrary.
    fn told(&self, name: &str) -> (f64, f64) {
        let mut told = 0.0;
        let mut against = 0.0;
        for meaning in MEANINGS.iter() {
            if meaning.names.contains(name) {
                told += self.cues(meaning, false);
            } else if meaning.contrary.as_deref().is_some_and(|contrary| {
                MEANINGS
                    .iter()
                    .any(|one| one.names.contains(contrary) && one.names.contains(name))
            }) {
                against += self.cues(meaning, true);
            }
        }
        (told, against)
    }

    fn cues(&self, meaning: &Meaning, negated: bool) -> f64 {
        let mut sum = 0.0;
        for at in 0..self.stems.len() {
            for length in 1..=4 {
                let Some(run) = self.stems.get(at..at + length) else {
                    break;
                };
                let Some(weight) = meaning.cues.get(&run.join(" ")) else {
                    continue;
                };
                let is_conceded = self.concedes && at < self.turn;
                let is_negated = length == 1 && self.negated.get(at) == Some(&true);
                if (is_negated != is_conceded) == negated {
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
}

#[cfg(test)]
mod tests;
