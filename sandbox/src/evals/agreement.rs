//! Whether a prompt is about the rows that it comes with, and what it could say instead.
//!
//! Interface, `POST /v1/eval-sets`, prompt: "if it does not line up with the data the set is refused with
//! suggestions".
//!
//! Assumed (eval-prompt): the prompt lines up when one of its words has its stem in common with a field
//! name of the rows, with a short expected value (a label), with the task's words, or with a word for what
//! the task does. Fillers count for nothing, but a name or label that is nothing else counts in
//! quotes, and when no field has another name, naming all of them does. A prompt that does not is 422.
//! Promise: a refusal suggests something, and each suggestion would be taken.

use super::rows::EvalRow;
use crate::{catalog::Task, error::ServiceError, spec};
use rust_stemmers::{Algorithm, Stemmer};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Values of more words are text, not labels.
pub const LABEL_WORDS_MAX: usize = 3;
const LABELS_MAX: usize = 200;
const FIELD_DEPTH_MAX: u32 = 4;

const FILLERS: &[&str] = &[
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "does",
    "each", "every", "for", "from", "give", "has", "have", "how", "i", "in", "into", "is", "it",
    "its", "me", "my", "no", "not", "of", "on", "one", "or", "our", "out", "please", "row", "rows",
    "should", "some", "tell", "than", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "those", "to", "us", "was", "we", "what", "when", "where", "which", "who",
    "will", "with", "would", "you", "your",
];

/// What people write for what a scoring strategy does.
fn verbs(strategy: &str) -> &'static str {
    match strategy {
        "extraction" => "extract find parse pull read list identify",
        "classification" => "classify categorize categorise label detect decide tag assign",
        "ranking" => "rank order sort",
        "summarization" => "summarize summarise summary shorten condense",
        "transcription" => "transcribe transcript",
        "question_answering" => "answer question",
        _ => "",
    }
}

/// Whether a prompt asks for what a scoring strategy does, in the words that people write for it.
pub fn asks_for(prompt: &str, strategy: &str) -> bool {
    !stems(prompt).is_disjoint(&stems(verbs(strategy)))
}

/// The stems of a text's words, fillers left out; names are split at `_`, `-` and capitals.
pub fn stems(text: &str) -> BTreeSet<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    words(text)
        .iter()
        .filter(|word| !FILLERS.contains(&word.as_str()))
        .map(|word| stemmer.stem(word).into_owned())
        .collect()
}

fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_lower = false;
    for c in text.chars() {
        if !c.is_alphanumeric() || (before_lower && c.is_uppercase()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        before_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The words that name a task.
fn words_of(task: &Task) -> String {
    format!(
        "{} {} {} {}",
        task.id.replace('-', " "),
        task.title,
        task.scoring_strategy.replace('_', " "),
        task.synonyms.join(" ")
    )
}

/// 422 with suggestions when the prompt does not line up.
pub fn check(prompt: &str, rows: &[EvalRow], task: &Task) -> Result<(), ServiceError> {
    if lines_up(prompt, rows, task) {
        return Ok(());
    }
    let suggested: Vec<String> = suggestions(rows, task)
        .iter()
        .map(|one| format!("\"{one}\""))
        .collect();
    Err(ServiceError::invalid(format!(
        "prompt does not line up with the data; try {}",
        suggested.join(" or ")
    )))
}

fn lines_up(prompt: &str, rows: &[EvalRow], task: &Task) -> bool {
    let asked = stems(prompt);
    let shares = |text: &str| !asked.is_disjoint(&stems(text));
    if shares(&words_of(task)) || asks_for(prompt, &task.scoring_strategy) {
        return true;
    }
    let fields =
        |of: fn(&EvalRow) -> Option<&Map<String, Value>>| shares(&names(rows, of).join(" "));
    fields(input)
        || fields(expected)
        || shares(&labels(rows).join(" "))
        || names_fillers(prompt, rows)
}

/// Whether the prompt names fields or labels that are fillers and nothing else, as `a`, `i` and `no` are.
fn names_fillers(prompt: &str, rows: &[EvalRow]) -> bool {
    let mut fields = names(rows, input);
    fields.extend(names(rows, expected));
    let is_quoted = |name: &String| {
        let between = |open: char, close: char| prompt.contains(&format!("{open}{name}{close}"));
        says_nothing(name)
            && (between('"', '"') || between('\'', '\'') || between('`', '`') || between('“', '”'))
    };
    if fields.iter().chain(&labels(rows)).any(is_quoted) {
        return true;
    }
    let said = words(prompt);
    let mut all = fields.iter().map(|name| words(name)).peekable();
    all.peek().is_some()
        && all.all(|name| {
            let is_filler = |word: &String| FILLERS.contains(&word.as_str());
            !name.is_empty()
                && name
                    .iter()
                    .all(|word| is_filler(word) && said.contains(word))
        })
}

/// A name without a word that counts.
fn says_nothing(name: &str) -> bool {
    !name.trim().is_empty() && stems(name).is_empty()
}

fn input(row: &EvalRow) -> Option<&Map<String, Value>> {
    row.input.as_ref()
}

fn expected(row: &EvalRow) -> Option<&Map<String, Value>> {
    Some(&row.expected_output)
}

/// What could be asked of these rows, in at most three sentences.
fn suggestions(rows: &[EvalRow], task: &Task) -> Vec<String> {
    let given = match top_names(rows, input).as_slice() {
        [] => task
            .blob_field
            .as_deref()
            .map_or_else(|| "input".to_owned(), plain),
        names => and(names),
    };
    let wanted = top_names(rows, expected);
    let wanted_text = if wanted.is_empty() {
        "output".to_owned()
    } else {
        and(&wanted)
    };
    let labels = labels(rows);
    let first = match task.scoring_strategy.as_str() {
        "extraction" => format!("Extract {wanted_text} from the {given}."),
        "ranking" => format!("Rank by relevance: {wanted_text} for the {given}."),
        "summarization" => format!("Summarize the {given}."),
        "transcription" => format!("Transcribe the {given}."),
        "question_answering" => format!("Answer the question about the {given}."),
        _ if (2..=6).contains(&labels.len()) => {
            format!("Classify the {given} as {}.", or(&labels))
        }
        "classification" => format!("Classify the {given} by {wanted_text}."),
        _ => format!("Write the {wanted_text} for the {given}."),
    };
    let second = format!("Give {wanted_text} for each {given}.");
    let mut all = vec![first, second];
    all.retain(|one| {
        one.chars().count() <= spec::EVAL_PROMPT_CHARS_MAX && lines_up(one, rows, task)
    });
    if all.is_empty() {
        // The task's own words line up with any rows.
        all.push(format!("{}: give the output for each input.", task.title));
    }
    all
}

/// The names of the fields at the top, in the order they come, as plain words.
fn top_names(rows: &[EvalRow], of: fn(&EvalRow) -> Option<&Map<String, Value>>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in rows.iter().filter_map(of).flat_map(|map| map.keys()) {
        let name = plain(name);
        if !name.is_empty() && !found.contains(&name) && found.len() < 6 {
            found.push(name);
        }
    }
    found
}

/// A name of fillers is put in quotes, so that it counts.
fn plain(name: &str) -> String {
    if says_nothing(name) && name.chars().count() <= 64 && !name.contains(['"', '`']) {
        return format!("`{name}`");
    }
    let name: String = words(name).join(" ");
    name.chars().take(64).collect()
}

/// Every field name, those of nested objects included.
fn names(rows: &[EvalRow], of: fn(&EvalRow) -> Option<&Map<String, Value>>) -> Vec<String> {
    fn walk(value: &Value, depth: u32, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) if depth < FIELD_DEPTH_MAX => {
                for (name, value) in map {
                    found.insert(name.clone());
                    walk(value, depth + 1, found);
                }
            }
            Value::Array(items) if depth < FIELD_DEPTH_MAX => {
                items.iter().for_each(|item| walk(item, depth + 1, found));
            }
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    for map in rows.iter().filter_map(of) {
        for (name, value) in map {
            found.insert(name.clone());
            walk(value, 1, &mut found);
        }
    }
    found.into_iter().collect()
}

/// The short texts among the expected values, each once.
fn labels(rows: &[EvalRow]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for value in rows.iter().flat_map(|row| row.expected_output.values()) {
        if let Value::String(text) = value
            && (1..=LABEL_WORDS_MAX).contains(&words(text).len())
            && !found.contains(text)
            && found.len() < LABELS_MAX
        {
            found.push(text.clone());
        }
    }
    found
}

fn and(all: &[String]) -> String {
    join(all, "and")
}

fn or(all: &[String]) -> String {
    join(all, "or")
}

fn join(all: &[String], word: &str) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [before @ .., last] => format!("{} {word} {last}", before.join(", ")),
    }
}

#[cfg(test)]
mod tests;
