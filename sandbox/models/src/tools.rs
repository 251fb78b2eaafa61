//! Tool use: which tools a turn calls, with what arguments, and what it says once results are there.
//!
//! Assumed (tool-rule): a model calls a tool when the last user message shares a word with the tool's name or
//! description and no result has come back since; `tool_choice` overrides both ways.
//! Promise: arguments are JSON that conforms to the tool's schema, or the turn is escalated, or refused.

use super::{
    prompt::{self, Prompt},
    reader::Reader,
    rng::Rng,
    schema,
    skill::Skills,
    text,
};
use serde_json::Value;

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

/// The calls this turn makes; none means that the turn answers in words.
pub fn calls(
    toolbox: Toolbox<'_>,
    prompt: &Prompt,
    skills: Skills,
    rng: &mut Rng,
) -> Vec<ToolCall> {
    let reader = Reader::plain(&prompt.user, skills);
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
    let after_results = !prompt.tool_results.is_empty();
    match toolbox.choice {
        ToolChoice::None => Vec::new(),
        ToolChoice::Named(name) => toolbox
            .tools
            .iter()
            .filter(|tool| tool.name == *name)
            .collect(),
        ToolChoice::Required => {
            let best = toolbox
                .tools
                .iter()
                .max_by_key(|tool| overlap(tool, prompt));
            best.into_iter().collect()
        }
        ToolChoice::Auto if after_results => Vec::new(),
        ToolChoice::Auto => {
            let words = prompt::words(&prompt.user);
            let mut named: Vec<&Tool> = toolbox
                .tools
                .iter()
                .filter(|tool| {
                    prompt::subject_words(&tool.name)
                        .iter()
                        .any(|word| words.contains(word))
                })
                .collect();
            if named.is_empty() {
                let best = toolbox
                    .tools
                    .iter()
                    .max_by_key(|tool| overlap(tool, prompt));
                named.extend(best.filter(|tool| overlap(tool, prompt) > 0));
            }
            if !toolbox.parallel {
                named.truncate(1);
            }
            named
        }
    }
}

/// How many subject words of the prompt the tool's name and description share.
fn overlap(tool: &Tool, prompt: &Prompt) -> usize {
    let own = prompt::words(&format!("{} {}", tool.name, tool.description));
    prompt::subject_words(&prompt.user)
        .iter()
        .filter(|word| own.contains(word))
        .count()
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
    let subject = prompt::subject_words(&prompt.user);
    format!(
        "The tool says: {}. {}",
        told.join("; "),
        text::sentence(&subject, rng)
    )
}
