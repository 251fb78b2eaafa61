//! The judge: whether an answer holds the quality bar.
//!
//! Assumed (judge): the interface does not say how confidence is found. Ours is a rule that can be applied by
//! hand: a schema or a tool's parameters that the answer does not meet fail, and one that meets them passes; of
//! words alone, those fail whose request begins with the mark `hard:`. The material that a prompt carries does not count.
//! Promise: a structured answer passes only if the `jsonschema` crate calls it valid.

use super::request::ChatRequest;
use bursar_models::{draft::Draft, prompt::Prompt, schema};
use serde_json::Value;

/// Whether the answer has the form that was asked for. Holds for every answer that leaves the house.
pub fn conforms(draft: &Draft, request: &ChatRequest) -> bool {
    if !draft.tool_calls.is_empty() {
        return draft.tool_calls.iter().all(|call| {
            let parameters = request
                .tools
                .iter()
                .find(|tool| tool.name == call.name)
                .map(|tool| &tool.parameters);
            match (parameters, serde_json::from_str::<Value>(&call.arguments)) {
                (Some(parameters), Ok(arguments)) => {
                    schema::conforms(parameters, &arguments).unwrap_or(false)
                }
                _ => false,
            }
        });
    }
    let parsed = || {
        draft
            .content
            .as_deref()
            .and_then(|text| serde_json::from_str::<Value>(text).ok())
    };
    if let Some(wanted) = &request.schema {
        return parsed().is_some_and(|value| schema::conforms(wanted, &value).unwrap_or(false));
    }
    if request.json_object {
        return parsed().is_some_and(|value| value.is_object());
    }
    draft.content.is_some()
}

/// The bar of the built-in judge for an answer in words.
pub fn is_confident(prompt: &Prompt) -> bool {
    !prompt.user.trim_start().to_lowercase().starts_with("hard:")
}
