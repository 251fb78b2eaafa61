//! The specialists: one small writer per category.
//!
//! Promise: the answer is computed from the prompt: a sum is worked out, a summary is made of the text's own
//! sentences, an extraction of facts that stand in it.

use super::{arithmetic, code, plan::Category, prompt, prompt::Prompt, rng::Rng, scan, text};
use serde_json::{Value, json};

pub fn write(category: Category, prompt: &Prompt, rng: &mut Rng) -> String {
    let subject = prompt::subject_words(&prompt.user);
    let body = match category {
        Category::GeneralChat => general(prompt, &subject, rng),
        Category::Coding => code::write(&prompt.user),
        Category::Vision => see(prompt),
        Category::Extraction => extract(&prompt.user),
        Category::Summarization => {
            text::summarise(source(&prompt.user), sentences_asked(&prompt.user))
        }
    };
    // The closing sentence is where sampling shows: work that has one right answer still differs by run.
    format!("{body}\n\n{}", text::sentence(&subject, rng))
}

fn general(prompt: &Prompt, subject: &[String], rng: &mut Rng) -> String {
    match arithmetic::solve(&prompt.user) {
        Some((sum, value)) => format!("{sum} = {value}."),
        None => {
            let sentences = 2 + rng.below(3);
            text::paragraph(subject, sentences, rng)
        }
    }
}

pub fn see(prompt: &Prompt) -> String {
    let seen: Vec<String> = prompt
        .pictures
        .iter()
        .map(super::vision::Picture::describe)
        .collect();
    match seen.as_slice() {
        [] => "There is no picture here.".to_owned(),
        several => format!("I see {}.", several.join(" and ")),
    }
}

pub fn extract(text: &str) -> String {
    let mut lines = Vec::new();
    let mut add = |name: &str, found: Option<String>| {
        lines.extend(found.map(|found| format!("{name}: {found}")))
    };
    add("email", scan::email(text));
    add("url", scan::address(text));
    add("date", scan::date(text));
    add("name", scan::proper_name(text));
    let numbers: Vec<String> = scan::numbers(text)
        .iter()
        .take(8)
        .map(f64::to_string)
        .collect();
    add("numbers", (!numbers.is_empty()).then(|| numbers.join(", ")));
    if lines.is_empty() {
        return "No fields were found.".to_owned();
    }
    lines.join("\n")
}

/// The text to work on: what follows the instruction's colon or first line, else everything.
pub fn source(text: &str) -> &str {
    let after_line = text.split_once('\n').map(|(_, rest)| rest.trim());
    let after_colon = text.split_once(':').map(|(_, rest)| rest.trim());
    after_line
        .filter(|rest| !rest.is_empty())
        .or(after_colon.filter(|rest| !rest.is_empty()))
        .unwrap_or(text)
}

/// `in two sentences`, `in 3 sentences`; else one.
fn sentences_asked(text: &str) -> usize {
    let words = prompt::words(text);
    words
        .windows(2)
        .find_map(|pair| match pair {
            [n, unit] if unit.starts_with("sentence") => match n.as_str() {
                "two" => Some(2),
                "three" => Some(3),
                n => n.parse().ok().filter(|n| (1..=20).contains(n)),
            },
            _ => None,
        })
        .unwrap_or(1)
}

/// The schema of a `json_object` answer, which has none: one field per kind of fact.
pub fn free_object(prompt: &Prompt) -> Value {
    let mut properties = serde_json::Map::new();
    for (name, found) in [
        ("email", scan::email(&prompt.user).is_some()),
        ("date", scan::date(&prompt.user).is_some()),
        ("name", scan::proper_name(&prompt.user).is_some()),
    ] {
        if found {
            properties.insert(name.to_owned(), json!({"type": "string"}));
        }
    }
    properties.insert("answer".to_owned(), json!({"type": "string"}));
    json!({"type": "object", "properties": properties})
}
