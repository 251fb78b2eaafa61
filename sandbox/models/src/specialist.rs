//! The specialists: one small writer per category.
//!
//! Promise: the answer is computed from the prompt: a sum is worked out, a summary is made of the text's own
//! sentences, an extraction of facts that stand in it; of labels that are named the answer is one, and nothing else.

use super::{
    arithmetic,
    category::Category,
    code, facts,
    form::names,
    prompt::{self, Prompt},
    reader::{Reader, Work},
    rng::Rng,
    talk,
};
use serde_json::{Value, json};

/// `fixed`: the request asks for the same answer each time.
pub fn write(
    category: Category,
    prompt: &Prompt,
    reader: &Reader<'_>,
    fixed: bool,
    rng: &mut Rng,
) -> String {
    if let Some(label) = reader.named_label() {
        return label;
    }
    match definite(category, prompt, reader) {
        Some(body) if fixed => body,
        // The closing sentence is where sampling shows: work that has one right answer still differs by run.
        Some(body) => format!("{body}\n\n{}", talk::closing(category, rng)),
        None => {
            let most = 3 + usize::try_from(rng.below(2)).unwrap_or(0);
            let body = talk::sentences(&prompt.user, most, rng).join(" ");
            format!("{body}\n\n{}", talk::closing(category, rng))
        }
    }
}

/// The answer to work that has one; `None` for talk.
pub fn definite(category: Category, prompt: &Prompt, reader: &Reader<'_>) -> Option<String> {
    let work = reader.work_in_words();
    let done = |work: Work| reader.done(work, sentences_asked(&prompt.user));
    match category {
        Category::GeneralChat => work.and_then(done).or_else(|| sum(&prompt.user)),
        Category::Coding => work
            .and_then(done)
            .or_else(|| Some(code::write(&prompt.user))),
        Category::Vision => work.and_then(done).or_else(|| Some(see(prompt))),
        Category::Extraction => Some(extract(&prompt.user)),
        Category::Summarization => done(Work::Summary),
    }
}

/// The sum that a message asks for.
fn sum(text: &str) -> Option<String> {
    arithmetic::solve(text).map(|(sum, value)| format!("{sum} = {value}."))
}

pub fn see(prompt: &Prompt) -> String {
    let seen: Vec<String> = prompt
        .pictures
        .iter()
        .map(super::vision::Picture::describe)
        .collect();
    let seen = match seen.as_slice() {
        [] => "There is no picture here.".to_owned(),
        several => format!("I see {}.", several.join(" and ")),
    };
    match prompt.pages.as_slice() {
        [] => seen,
        pages => format!("{seen} It reads:\n{}", pages.join("\n")),
    }
}

pub fn extract(text: &str) -> String {
    let mut lines = Vec::new();
    let mut add = |name: &str, found: Option<String>| {
        lines.extend(found.map(|found| format!("{name}: {found}")))
    };
    let first = |found: Vec<&str>| found.first().map(ToString::to_string);
    let day = facts::dates(text)
        .first()
        .and_then(|day| text.get(day.at.clone()));
    add("email", first(facts::emails(text)));
    add("url", first(facts::addresses(text)));
    add("date", day.map(str::to_owned));
    add("name", names::capitalised(text));
    let numbers: Vec<String> = facts::numbers(text)
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

/// `in two sentences`, `in 3 sentences`; `None` when nothing says how many.
fn sentences_asked(text: &str) -> Option<usize> {
    let words = prompt::words(text);
    words.windows(2).find_map(|pair| match pair {
        [n, unit] if unit.starts_with("sentence") => match n.as_str() {
            "one" | "a" => Some(1),
            "two" => Some(2),
            "three" => Some(3),
            n => n.parse().ok().filter(|n| (1..=20).contains(n)),
        },
        _ => None,
    })
}

/// The schema of a `json_object` answer, which has none: one field per kind of fact.
pub fn free_object(prompt: &Prompt) -> Value {
    let mut properties = serde_json::Map::new();
    let text = prompt.user.as_str();
    for (name, found) in [
        ("email", !facts::emails(text).is_empty()),
        ("date", !facts::dates(text).is_empty()),
        ("name", names::capitalised(text).is_some()),
    ] {
        if found {
            properties.insert(name.to_owned(), json!({"type": "string"}));
        }
    }
    properties.insert("answer".to_owned(), json!({"type": "string"}));
    json!({"type": "object", "properties": properties})
}
