//! What of a request a model server gets beside the transcript.
//!
//! Promise: a field that passes is passed as it came, its value untouched.

use super::lane::Lane;
use crate::spec;
use serde_json::{Map, Value};

/// The fields that are this service's matter and not a model's.
const OWN: &[&str] = &["model", "messages", "stream", "stream_options"];

/// Interface, agent lane, request body: what passes through.
const AGENT_FORWARDED: &[&str] = &[
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logprobs",
    "top_logprobs",
    "response_format",
];

/// Interface, agent lane: the fields it names are "forwarded unchanged", any other is "ignored"; `max_tokens`
/// defaults to 8192. On `/v1` all that are taken are forwarded.
pub fn fields(fields: Map<String, Value>, lane: Lane) -> Map<String, Value> {
    let mut forwarded: Map<String, Value> = fields
        .into_iter()
        .filter(|(name, _)| match lane {
            Lane::Inference => !OWN.contains(&name.as_str()),
            Lane::Agent => AGENT_FORWARDED.contains(&name.as_str()),
        })
        .collect();
    let has_most = ["max_tokens", "max_completion_tokens"]
        .iter()
        .any(|name| forwarded.get(*name).is_some_and(|most| !most.is_null()));
    if lane == Lane::Agent && !has_most {
        forwarded.insert(
            "max_tokens".to_owned(),
            Value::from(spec::MAX_TOKENS_DEFAULT),
        );
    }
    forwarded
}

#[cfg(test)]
mod tests;
