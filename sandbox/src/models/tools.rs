//! Tool use: which tools a turn calls, with what arguments, and what it says once results are there.
//!
//! Assumed (tool-rule): a model calls a tool when the last user message shares a word with the tool's name or
//! description and no result has come back since; `tool_choice` overrides both ways.
//! Promise: arguments are JSON that conforms to the tool's schema, or the turn is escalated, or refused.

use super::{
    ToolCall,
    prompt::{self, Prompt},
    reader::Reader,
    request::{ChatRequest, Tool, ToolChoice},
    rng::Rng,
    schema,
    skill::Skills,
    text,
};

/// The calls this turn makes; none means that the turn answers in words.
pub fn calls(
    request: &ChatRequest,
    prompt: &Prompt,
    skills: Skills,
    rng: &mut Rng,
) -> Vec<ToolCall> {
    let reader = Reader::plain(&prompt.user, skills);
    chosen(request, prompt)
        .into_iter()
        .map(|tool| ToolCall {
            id: format!("call_{:016x}{:08x}", rng.next(), rng.below(1 << 32)),
            name: tool.name.clone(),
            arguments: schema::fill(&tool.parameters, &reader, rng).to_string(),
        })
        .collect()
}

fn chosen<'a>(request: &'a ChatRequest, prompt: &Prompt) -> Vec<&'a Tool> {
    let after_results = !prompt.tool_results.is_empty();
    match &request.tool_choice {
        ToolChoice::None => Vec::new(),
        ToolChoice::Named(name) => request
            .tools
            .iter()
            .filter(|tool| tool.name == *name)
            .collect(),
        ToolChoice::Required => {
            let best = request
                .tools
                .iter()
                .max_by_key(|tool| overlap(tool, prompt));
            best.into_iter().collect()
        }
        ToolChoice::Auto if after_results => Vec::new(),
        ToolChoice::Auto => {
            let words = prompt::words(&prompt.user);
            let mut named: Vec<&Tool> = request
                .tools
                .iter()
                .filter(|tool| {
                    prompt::subject_words(&tool.name)
                        .iter()
                        .any(|word| words.contains(word))
                })
                .collect();
            if named.is_empty() {
                let best = request
                    .tools
                    .iter()
                    .max_by_key(|tool| overlap(tool, prompt));
                named.extend(best.filter(|tool| overlap(tool, prompt) > 0));
            }
            if !request.parallel_tool_calls {
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
