//! Tool use: which tools a turn calls, with what arguments, and what it says once results are there.
//!
//! Assumed (tool-rule): a tool is called when its name, description and parameters fit the last user message, a
//! further one when a result asks for it; `tool_choice` overrides both ways. No tool is called by itself twice for
//! one message, so that a loop of turns ends.
//! Promise: arguments are JSON that conforms to the tool's schema, or the turn is escalated, or refused.

use super::{
    category::Category, prompt::Prompt, reader::PromptReader, rng::Rng, schema, skill::Skills,
    talk, text,
};
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
/// Characters of a result that an answer repeats.
const RESULT_CHARS_MAX: usize = 400;

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
    let source = format!("{}\n{}", prompt.tool_results.join("\n"), prompt.user);
    let reader = PromptReader::plain(source.trim(), skills);
    let call = |tool: &Tool| ToolCall {
        id: format!("call_{:016x}{:08x}", rng.number(), rng.below(1 << 32)),
        name: tool.name.clone(),
        arguments: schema::fill(&tool.parameters, &reader, rng).to_string(),
    };
    chosen(toolbox, prompt).into_iter().map(call).collect()
}

fn chosen<'a>(toolbox: Toolbox<'a>, prompt: &Prompt) -> Vec<&'a Tool> {
    let tools = toolbox.tools.iter();
    let fits: Vec<(&Tool, Fit)> = tools
        .map(|tool| (tool, Fit::of(tool, &prompt.user)))
        .collect();
    let best = || fits.iter().rev().max_by_key(|(_, fit)| fit.score());
    let fitting = |is_called: &dyn Fn(&Tool, &Fit) -> bool| -> Vec<&'a Tool> {
        let called = fits.iter().filter(|(tool, fit)| is_called(tool, fit));
        called.map(|(tool, _)| *tool).collect()
    };
    let mut chosen = match toolbox.choice {
        ToolChoice::None => return Vec::new(),
        ToolChoice::Named(name) => return fitting(&|tool, _| tool.name == *name),
        ToolChoice::Required => return best().map(|(tool, _)| *tool).into_iter().collect(),
        ToolChoice::Auto if !prompt.tool_results.is_empty() => fitting(&|tool, fit| {
            !prompt.called.contains(&tool.name) && is_asked_for(tool, fit, prompt)
        }),
        // "Cancel the order" is for `cancel_order`, and not for `get_order` as well.
        ToolChoice::Auto => fitting(&|_, fit| {
            let is_named = |name: &BTreeSet<String>| fit.name.is_subset(name) && fit.name != *name;
            !fit.name.is_empty() && !fits.iter().any(|(_, other)| is_named(&other.name))
        }),
    };
    if chosen.is_empty() && prompt.tool_results.is_empty() {
        let best = best().filter(|(_, fit)| fit.score() >= FITS);
        chosen.extend(best.map(|(tool, _)| *tool));
    }
    if !toolbox.parallel {
        chosen.truncate(1);
    }
    chosen
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
        let said = stems(text);
        let mut name = stems(&tool.name);
        if name.iter().any(|word| !text::listed(word, VERBS)) {
            name.retain(|word| !text::listed(word, VERBS));
        }
        let properties = tool.parameters.get("properties").and_then(Value::as_object);
        let parameters = properties.into_iter().flatten();
        let names: Vec<&str> = parameters.clone().map(|(name, _)| name.as_str()).collect();
        let about = stems(&format!("{} {}", tool.description, names.join(" ")));
        let about = about
            .difference(&name)
            .filter(|word| said.contains(*word))
            .count();
        let stands = |(_, schema): &(&String, &Value)| {
            let choices = schema.get("enum").and_then(Value::as_array);
            let mut choices = choices.into_iter().flatten().filter_map(Value::as_str);
            choices.any(|choice| says(text, choice)) || !schema::matches(schema, text).is_empty()
        };
        let values = parameters.filter(stands).count();
        name.retain(|word| said.contains(word));
        Self {
            name,
            about,
            values,
        }
    }

    fn score(&self) -> usize {
        FITS * (self.name.len() + self.values) + self.about
    }
}

/// Whether the text holds the words of a choice, one behind the other.
fn says(text: &str, choice: &str) -> bool {
    let (words, wanted) = (text::words(text), text::words(choice));
    !wanted.is_empty() && words.windows(wanted.len()).any(|run| run == wanted)
}

/// Whether the results ask for one more tool: they name it, or they hold a parameter that it needs and the message
/// does not, and the message fits it.
fn is_asked_for(tool: &Tool, fit: &Fit, prompt: &Prompt) -> bool {
    let results = prompt.tool_results.join("\n");
    let needed = tool.parameters.get("required").and_then(Value::as_array);
    let mut needed = needed.into_iter().flatten().filter_map(Value::as_str);
    let is_new =
        |name: &str| results.contains(&format!("\"{name}\"")) && !prompt.user.contains(name);
    results.contains(&tool.name) || fit.score() > 0 && needed.any(is_new)
}

/// The stems of the words that carry a text's subject.
fn stems(text: &str) -> BTreeSet<String> {
    let words = text::subject_words(&text.replace('_', " "));
    words.iter().map(|word| text::stem(word)).collect()
}

/// What a turn says when the transcript ends with tool results.
pub fn answer_from_results(prompt: &Prompt, rng: &mut Rng) -> String {
    let shown = |result: &String| {
        let line = result.split_whitespace().collect::<Vec<_>>().join(" ");
        line.chars().take(RESULT_CHARS_MAX).collect::<String>()
    };
    let results = prompt
        .tool_results
        .iter()
        .map(shown)
        .collect::<Vec<_>>()
        .join("; ");
    let end = if results.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    let closing = talk::closing(Category::GeneralChat, rng);
    let opening = rng.word(&["The tool says:", "The result is:", "The tool returned:"]);
    format!("{opening} {results}{end} {closing}")
}

#[cfg(test)]
mod tests;
