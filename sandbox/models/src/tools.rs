//! Tool use: which tools a turn calls, with what arguments, and what it says once results are there.
//!
//! Assumed (tool-rule): a tool is called when its name, description and parameters fit the last user message, a
//! further one when a result asks for it; `tool_choice` overrides both ways. No tool is called by itself twice for
//! one message, so that a loop of turns ends.
//! Promise: arguments are JSON that conforms to the tool's schema, or the turn is escalated, or refused.

use super::{
    category::Category,
    prompt::{self, Prompt},
    reader::Reader,
    rng::Rng,
    schema,
    skill::Skills,
    talk,
};
use rust_stemmers::{Algorithm, Stemmer};
use serde_json::Value;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// A JSON Schema.
    pub parameters: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    None,
    Auto,
    Required,
    Named(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// JSON text, as the OpenAI shape carries it.
    pub arguments: String,
}

/// The tools a turn may call.
#[derive(Clone, Copy, Debug)]
pub struct Toolbox<'a> {
    pub tools: &'a [Tool],
    pub choice: &'a ToolChoice,
    /// Several calls in one turn are welcome.
    pub parallel: bool,
}

/// What a tool must fit to be called: a word of its name, or two other signs.
const FITS: usize = 2;

/// Words of tools' names that say nothing of what a tool is about.
const VERBS: &str = "get find search list fetch lookup look create update set send call make run read add show \
    check query tool function api";

/// The calls this turn makes; none means that the turn answers in words.
pub fn calls(
    toolbox: Toolbox<'_>,
    prompt: &Prompt,
    skills: Skills,
    rng: &mut Rng,
) -> Vec<ToolCall> {
    // A further round takes its arguments from the results, too.
    let mut source = prompt.tool_results.clone();
    source.push(prompt.user.clone());
    let source = source.join("\n");
    let reader = Reader::plain(&source, skills);
    chosen(toolbox, prompt)
        .into_iter()
        .map(|tool| ToolCall {
            id: format!("call_{:016x}{:08x}", rng.number(), rng.below(1 << 32)),
            name: tool.name.clone(),
            arguments: schema::fill(&tool.parameters, &reader, rng).to_string(),
        })
        .collect()
}

fn chosen<'a>(toolbox: Toolbox<'a>, prompt: &Prompt) -> Vec<&'a Tool> {
    let tools = toolbox.tools;
    let fits: Vec<(&Tool, Fit)> = tools
        .iter()
        .map(|tool| (tool, Fit::of(tool, &prompt.user)))
        .collect();
    let best = || fits.iter().rev().max_by_key(|(_, fit)| fit.score());
    let mut named: Vec<&Tool> = match toolbox.choice {
        ToolChoice::None => return Vec::new(),
        ToolChoice::Named(name) => return tools.iter().filter(|tool| tool.name == *name).collect(),
        ToolChoice::Required => return best().map(|(tool, _)| *tool).into_iter().collect(),
        ToolChoice::Auto if !prompt.tool_results.is_empty() => fits
            .iter()
            .filter(|(tool, fit)| {
                !prompt.called.contains(&tool.name) && asked_for(tool, fit, prompt)
            })
            .map(|(tool, _)| *tool)
            .collect(),
        ToolChoice::Auto => {
            let named = fits.iter().filter(|(_, fit)| !fit.name.is_empty());
            // "Cancel the order" is for `cancel_order`, and not for `get_order` as well.
            let told_better = |fit: &Fit| {
                fits.iter().any(|(_, other)| {
                    other.name.len() > fit.name.len()
                        && fit.name.iter().all(|word| other.name.contains(word))
                })
            };
            named
                .filter(|(_, fit)| !told_better(fit))
                .map(|(tool, _)| *tool)
                .collect()
        }
    };
    if named.is_empty() && prompt.tool_results.is_empty() {
        let best = best().filter(|(_, fit)| fit.score() >= FITS);
        named.extend(best.map(|(tool, _)| *tool));
    }
    if !toolbox.parallel {
        named.truncate(1);
    }
    named
}

/// What of a tool a text speaks of.
#[derive(Debug, Default)]
struct Fit {
    /// Stems of its name.
    name: BTreeSet<String>,
    /// Stems of its description, and of its parameters' names.
    about: usize,
    /// Parameters whose value stands in the text: a choice of an `enum`, or what fits a `pattern`.
    values: usize,
}

// === impl Fit ===

impl Fit {
    fn of(tool: &Tool, text: &str) -> Self {
        let said: BTreeSet<String> = stems(text);
        let mut name = stems(&tool.name);
        if name.iter().any(|word| !prompt::listed(word, VERBS)) {
            name.retain(|word| !prompt::listed(word, VERBS));
        }
        let properties = tool.parameters.get("properties").and_then(Value::as_object);
        let parameters = properties.into_iter().flatten();
        let names: Vec<&str> = parameters.clone().map(|(name, _)| name.as_str()).collect();
        let about = stems(&format!("{} {}", tool.description, names.join(" ")));
        let values = parameters
            .filter(|(_, schema)| {
                let choices = schema.get("enum").and_then(Value::as_array);
                let mut choices = choices.into_iter().flatten().filter_map(Value::as_str);
                let has_choice = choices.any(|choice| says(text, choice));
                has_choice || !schema::matches(schema, text).is_empty()
            })
            .count();
        Self {
            about: about
                .difference(&name)
                .filter(|word| said.contains(*word))
                .count(),
            name: name
                .into_iter()
                .filter(|word| said.contains(word))
                .collect(),
            values,
        }
    }

    fn score(&self) -> usize {
        FITS * (self.name.len() + self.values) + self.about
    }
}

/// Whether the text holds the words of a choice, one behind the other.
fn says(text: &str, choice: &str) -> bool {
    let (words, wanted) = (prompt::words(text), prompt::words(choice));
    !wanted.is_empty() && words.windows(wanted.len()).any(|run| run == wanted)
}

/// Whether the results ask for one more tool: they name it, or they tell a parameter that it needs and the message
/// does not, and the message fits it.
fn asked_for(tool: &Tool, fit: &Fit, prompt: &Prompt) -> bool {
    let told = prompt.tool_results.join("\n");
    let needed = tool.parameters.get("required").and_then(Value::as_array);
    let mut needed = needed.into_iter().flatten().filter_map(Value::as_str);
    let told_now =
        |name: &str| told.contains(&format!("\"{name}\"")) && !prompt.user.contains(name);
    told.contains(&tool.name) || (fit.score() > 0 && needed.any(told_now))
}

/// The stems of the words that carry a text's subject.
fn stems(text: &str) -> BTreeSet<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    prompt::subject_words(&text.replace('_', " "))
        .iter()
        .map(|word| stemmer.stem(word).into_owned())
        .collect()
}

/// What a turn says when the transcript ends with tool results.
pub fn answer_from_results(prompt: &Prompt, rng: &mut Rng) -> String {
    let told: Vec<String> = prompt
        .tool_results
        .iter()
        .map(|result| {
            let shown: String = result.split_whitespace().collect::<Vec<_>>().join(" ");
            shown.chars().take(400).collect()
        })
        .collect();
    let told = told.join("; ");
    let end = if told.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    let closing = talk::closing(Category::GeneralChat, rng);
    format!(
        "{} {told}{end} {closing}",
        rng.word(&["The tool says:", "The result is:", "The tool returned:"])
    )
}

#[cfg(test)]
mod tests;
