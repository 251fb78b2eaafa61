//! The keyword scorer: which task a description is about, by its words.
//!
//! Interface, `POST /v1/tasks/match`: "a deterministic keyword scorer". How it scores is not shown.
//! Assumed (match-keyword): a description's stems, and pairs of neighbours among them, are looked up in each
//! task's title, synonyms, description and instruction. A stem weighs more the fewer entries contain it (idf).
//! The score is the weight found divided by the total weight, damped when little was found. Lanes, and things
//! that no lane serves, are scored by the same rule, so the best entry decides the type.
//! Promise: the same description gives the same result; every score lies in [0, 1].

use super::{
    Task,
    lanes::{self, Capability},
    tasks, words,
};
use std::{
    cmp::Ordering,
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

/// A task's score for a description.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    pub task: &'static Task,
    pub score: f64,
}

/// What an entry is about, and so a description that matches it best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Subject {
    Task(&'static Task),
    Capability(&'static Capability),
    Unsupported,
}

/// How much a stem counts, by the field that contains it.
const BY_TITLE: f64 = 1.3;
const BY_NAME: f64 = 1.0;
const BY_DESCRIPTION: f64 = 0.7;
/// What a pair adds, as a part of the weight of its rarer half.
const PAIR: f64 = 0.6;
/// A stem that only other entries have counts this much of its weight against this one.
const ELSEWHERE: f64 = 0.7;
/// A stem no entry has counts this much of the rarest one: it is neither for nor against any entry.
const UNKNOWN: f64 = 0.35;
/// Found weight at which half of the damping is gone.
const HALF_DAMPED: f64 = 0.9;
/// The least score of an entry that decides the type.
pub const BAR: f64 = 0.22;

struct Entry {
    subject: Subject,
    /// Weight by stem and by pair.
    features: HashMap<String, f64>,
}

struct Index {
    entries: Vec<Entry>,
    idf: HashMap<String, f64>,
    rarest: f64,
}

static INDEX: LazyLock<Index> = LazyLock::new(Index::new);

/// The subject of the best entry, if one is good enough, and every task with a score above zero, the best first.
pub fn scored(query: &str) -> (Option<Subject>, Vec<Scored>) {
    let stems = words::stems(query);
    let mut ranked = Vec::new();
    let mut best = (BAR, None);
    for entry in &INDEX.entries {
        let score = INDEX.score(&stems, entry);
        if let Subject::Task(task) = entry.subject
            && score > 0.0
        {
            ranked.push(Scored { task, score });
        }
        // The first of equals wins: tasks come before lanes, lanes before things that no lane
        // serves.
        if score > best.0 || (score >= best.0 && best.1.is_none()) {
            best = (score, Some(entry.subject));
        }
    }
    // A stable sort: equals keep the order of the catalog.
    ranked.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal));
    (best.1, ranked)
}

// === impl Entry ===

impl Entry {
    fn new(subject: Subject, title: &str, names: &[&str], descriptions: &[&str]) -> Self {
        let mut entry = Self {
            subject,
            features: HashMap::new(),
        };
        for (texts, weight) in [
            (&[title][..], BY_TITLE),
            (names, BY_NAME),
            (descriptions, BY_DESCRIPTION),
        ] {
            for text in texts {
                let stems = words::stems(text);
                for feature in words::pairs(&stems).chain(stems.iter().cloned()) {
                    let held = entry.features.entry(feature).or_insert(weight);
                    *held = held.max(weight);
                }
            }
        }
        entry
    }
}

// === impl Index ===

impl Index {
    fn new() -> Self {
        let mut entries = Vec::new();
        for task in tasks() {
            let names: Vec<&str> = task.synonyms.iter().map(String::as_str).collect();
            let descriptions = [task.description.as_str(), task.instruction.as_str()];
            entries.push(Entry::new(
                Subject::Task(task),
                &task.title,
                &names,
                &descriptions,
            ));
        }
        for lane in lanes::capabilities() {
            let subject = Subject::Capability(lane);
            entries.push(Entry::new(subject, lane.label, lane.words, &[lane.desc]));
        }
        for beyond in lanes::beyond() {
            entries.push(Entry::new(
                Subject::Unsupported,
                beyond.label,
                beyond.words,
                &[],
            ));
        }
        let mut held: HashMap<&String, u32> = HashMap::new();
        for entry in &entries {
            for feature in entry.features.keys() {
                *held.entry(feature).or_default() += 1;
            }
        }
        let all = f64::from(u32::try_from(entries.len()).unwrap_or(u32::MAX));
        let weight = |held: f64| (1.0 + all / held).ln() / (1.0 + all).ln();
        let idf = held
            .into_iter()
            .map(|(feature, n)| (feature.clone(), weight(f64::from(n))))
            .collect();
        Self {
            entries,
            idf,
            rarest: weight(1.0),
        }
    }

    fn score(&self, stems: &[String], entry: &Entry) -> f64 {
        let mut found = 0.0;
        let mut there = 0.0;
        for stem in stems.iter().collect::<BTreeSet<_>>() {
            match self.idf.get(stem) {
                Some(idf) => match entry.features.get(stem) {
                    Some(weight) => {
                        there += idf;
                        found += idf * weight;
                    }
                    None => there += ELSEWHERE * idf,
                },
                None => there += UNKNOWN * self.rarest,
            }
        }
        for pair in words::pairs(stems).collect::<BTreeSet<_>>() {
            if let (Some(idf), Some(weight)) = (self.idf.get(&pair), entry.features.get(&pair)) {
                found += PAIR * idf * weight;
            }
        }
        if found <= 0.0 || there <= 0.0 {
            return 0.0;
        }
        (found / there).min(1.0) * found / (found + HALF_DAMPED)
    }
}
