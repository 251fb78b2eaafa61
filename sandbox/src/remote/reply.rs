//! A whole chat completion, as a model server writes it, read for what the router needs.
//!
//! Servers differ: some give arguments as an object, some no ids, some no usage.
//! Promise: the result has the OpenAI shape; an answer that cannot be brought into it is not a
//! reply.

use crate::models::{Draft, ToolCall, Usage};
use serde_json::Value;

/// What one answer may be long, whole or streamed.
pub const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// More than any window there is: beyond it a usage is a mistake of the server.
const TOKENS_MAX: u64 = 100_000_000;

#[derive(Clone, Debug)]
pub struct Reply {
    pub draft: Draft,
    /// `None` if the server reports none, or an impossible one: then it is counted here.
    pub usage: Option<Usage>,
}

/// The `logprobs` of a choice.
pub struct Logprobs<'a>(pub &'a Value);

// === impl Reply ===

impl Reply {
    /// `None` if it is not a chat completion.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let body: Value = serde_json::from_slice(bytes).ok()?;
        let choice = body.pointer("/choices/0")?;
        let message = choice
            .get("message")
            .filter(|message| message.is_object())?;
        let mut tool_calls = Vec::new();
        for call in message
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            tool_calls.push(tool_call(call, tool_calls.len())?);
        }
        let content = match message.get("content") {
            None | Some(Value::Null) => None,
            // Beside tool calls some servers send an empty text instead of none.
            Some(Value::String(text)) if text.is_empty() && !tool_calls.is_empty() => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => return None,
        };
        let finish = choice.get("finish_reason").and_then(Value::as_str);
        let draft = Draft {
            content,
            tool_calls,
            cut_by_length: finish == Some("length"),
            filtered: finish == Some("content_filter"),
            logprobs: choice
                .get("logprobs")
                .filter(|value| value.is_object())
                .cloned(),
        };
        Some(Self {
            usage: body
                .get("usage")
                .and_then(|reported| usage(reported, &draft)),
            draft,
        })
    }
}

/// The usage that a server reports, if it is plausible: whole numbers, and no zero where there are
/// words.
pub fn usage(reported: &Value, draft: &Draft) -> Option<Usage> {
    let count = |name| {
        reported
            .get(name)
            .and_then(Value::as_u64)
            .filter(|n| *n <= TOKENS_MAX)
    };
    let usage = Usage {
        prompt_tokens: count("prompt_tokens").filter(|n| *n > 0)?,
        completion_tokens: count("completion_tokens")?,
    };
    let wrote = draft
        .content
        .as_deref()
        .is_some_and(|text| !text.is_empty())
        || !draft.tool_calls.is_empty();
    (usage.completion_tokens > 0 || !wrote).then_some(usage)
}

/// One call of a message; its index replaces a missing id.
pub fn tool_call(call: &Value, at: usize) -> Option<ToolCall> {
    let function = call.get("function")?;
    let name = function.get("name").and_then(Value::as_str)?;
    let arguments = match function.get("arguments") {
        Some(Value::String(text)) => text.clone(),
        Some(object @ Value::Object(_)) => object.to_string(),
        // A function without parameters, as some servers call it.
        None | Some(Value::Null) => "{}".to_owned(),
        Some(_) => return None,
    };
    let id = call
        .get("id")
        .and_then(Value::as_str)
        .filter(|id| !id.is_empty());
    Some(ToolCall {
        id: id.map_or_else(|| format!("call_{at}"), str::to_owned),
        name: name.to_owned(),
        arguments,
    })
}

// === impl Logprobs ===

impl Logprobs<'_> {
    /// The geometric mean of the tokens' probabilities; `None` when there is no token.
    pub fn mean_probability(&self) -> Option<f64> {
        let tokens = self.0.get("content").and_then(Value::as_array)?;
        let logprobs: Vec<f64> = tokens
            .iter()
            .filter_map(|token| token.get("logprob").and_then(Value::as_f64))
            .collect();
        if logprobs.is_empty() {
            return None;
        }
        let count = u32::try_from(logprobs.len()).ok()?;
        Some((logprobs.iter().sum::<f64>() / f64::from(count)).exp())
    }
}

#[cfg(test)]
mod tests;
