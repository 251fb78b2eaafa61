//! The chat completion object, its id and usage: the same on every chat route.
//!
//! Promise: the shapes are OpenAI's; what the interface adds is in headers.

use crate::{clock::Clock, models::Served};
use serde_json::{Value, json};

pub fn completion_id(clock: &Clock) -> String {
    format!("chatcmpl-{}", clock.new_id())
}

/// The chat completion object.
pub fn whole(clock: &Clock, served: &Served, id: &str, model: &str) -> Value {
    let mut message = json!({"role": "assistant", "content": served.draft.content});
    if !served.draft.tool_calls.is_empty() {
        let calls: Vec<Value> = served
            .draft
            .tool_calls
            .iter()
            .map(|call| {
                json!({
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                })
            })
            .collect();
        if let Some(message) = message.as_object_mut() {
            message.insert("tool_calls".to_owned(), Value::Array(calls));
        }
    }
    let mut choice = json!({
        "index": 0,
        "message": message,
        "finish_reason": served.draft.finish_reason(),
    });
    if let (Some(logprobs), Some(choice)) = (&served.draft.logprobs, choice.as_object_mut()) {
        choice.insert("logprobs".to_owned(), logprobs.clone());
    }
    json!({
        "id": id,
        "object": "chat.completion",
        "created": clock.unix_s(),
        "model": model,
        "choices": [choice],
        "usage": usage(served),
    })
}

pub fn usage(served: &Served) -> Value {
    let usage = served.usage;
    json!({
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens.saturating_add(usage.completion_tokens),
    })
}
