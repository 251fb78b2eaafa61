//! Answers in words: what both models write where no form is asked for.
//!
//! Promise: the answer is computed from the prompt: a sum is worked out, a summary is made of the text's own
//! sentences, an extraction of facts that stand in it; of labels that are named the answer is one, and nothing else.
//! Where an answer is made of words alone the frontier model never writes what the specialist writes.

use super::{
    arithmetic,
    category::Category,
    code, facts,
    form::names,
    prompt::Prompt,
    reader::{PromptReader, TaskKind},
    rng::Rng,
    skill::Tier,
    talk, text,
};
use serde_json::{Map, Value, json};

/// Numbers that an extraction lists.
const NUMBERS_MAX: usize = 8;

/// `fixed`: the request asks for the same answer each time.
pub fn write(
    category: Category,
    tier: Tier,
    prompt: &Prompt,
    reader: &PromptReader<'_>,
    fixed: bool,
    rng: &mut Rng,
) -> String {
    if let Some(label) = reader.named_label() {
        return label;
    }
    let body = match definite(category, prompt, reader) {
        Some(body) if fixed => return body,
        Some(body) => body,
        None if tier == Tier::Frontier => {
            let said = talk::sentences(&prompt.user, 5, rng);
            let lines = said.iter().zip(1..).map(|(one, at)| format!("{at}. {one}"));
            lines.collect::<Vec<_>>().join("\n")
        }
        None => {
            let most = 3 + usize::try_from(rng.below(2)).unwrap_or(0);
            talk::sentences(&prompt.user, most, rng).join(" ")
        }
    };
    // The closing sentence is where sampling shows: work that has one right answer still differs by run.
    let closing = match tier {
        Tier::Specialist => talk::closing(category, rng).to_owned(),
        Tier::Frontier => talk::closings(category, rng),
    };
    format!("{body}\n\n{closing}")
}

/// The answer to work that has one; `None` for talk.
fn definite(category: Category, prompt: &Prompt, reader: &PromptReader<'_>) -> Option<String> {
    let done = |work: TaskKind| reader.done(work, sentences_asked(&prompt.user));
    let named = || reader.work_in_words().and_then(done);
    match category {
        Category::GeneralChat => named().or_else(|| {
            let (sum, value) = arithmetic::solve(&prompt.user)?;
            Some(format!("{sum} = {value}."))
        }),
        Category::Coding => named().or_else(|| Some(code::write(&prompt.user))),
        Category::Vision => named().or_else(|| Some(seen(prompt))),
        Category::Extraction => Some(extracted(&prompt.user)),
        Category::Summarization => done(TaskKind::Summary),
    }
}

fn seen(prompt: &Prompt) -> String {
    let seen = match prompt.pictures.as_slice() {
        [] => "There is no picture here.".to_owned(),
        several => format!("I see {}.", several.join(" and ")),
    };
    match prompt.pages.as_slice() {
        [] => seen,
        pages => format!("{seen} It reads:\n{}", pages.join("\n")),
    }
}

/// Facts of a text by their names.
fn fields(text: &str) -> Vec<(&'static str, String)> {
    let first = |found: Vec<&str>| found.first().map(ToString::to_string);
    let mut fields = Vec::new();
    let mut add = |name, found: Option<String>| fields.extend(found.map(|found| (name, found)));
    add("email", first(facts::emails(text)));
    add("url", first(facts::addresses(text)));
    let day = facts::dates(text).into_iter().next();
    add(
        "date",
        day.and_then(|day| Some(text.get(day.at)?.to_owned())),
    );
    add("name", names::capitalised(text));
    fields
}

fn extracted(text: &str) -> String {
    let fields = fields(text).into_iter();
    let mut lines: Vec<String> = fields
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let numbers = facts::numbers(text).into_iter().take(NUMBERS_MAX);
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    if !numbers.is_empty() {
        lines.push(format!("numbers: {}", numbers.join(", ")));
    }
    if lines.is_empty() {
        return "No fields were found.".to_owned();
    }
    lines.join("\n")
}

/// The schema of a `json_object` answer, which has none: one field per kind of fact.
pub fn free_object(prompt: &Prompt) -> Value {
    let fields = fields(&prompt.user).into_iter();
    let names = fields.map(|(name, _)| name).chain(["answer"]);
    let properties = names.map(|name| (name.to_owned(), json!({"type": "string"})));
    json!({"type": "object", "properties": Map::from_iter(properties)})
}

/// `in two sentences`, `in 3 sentences`; `None` when nothing says how many.
fn sentences_asked(text: &str) -> Option<usize> {
    let words = text::words(text);
    let mut pairs = words.iter().zip(words.iter().skip(1));
    let (count, _) = pairs.find(|(_, unit)| unit.starts_with("sentence"))?;
    text::count(count).filter(|count| (1..=20).contains(count))
}
