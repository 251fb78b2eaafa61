//! The form of one message of a transcript.
//!
//! Interface, POST /v1/chat/completions: "messages | array of `{role, content}` | OpenAI message format". A
//! message that no model can read must not run and be billed.
//! Promise: what OpenAI's clients send passes, whatever else a message holds; what is wrong is named by its
//! place and never by its value.

use serde_json::{Map, Value};

const ROLES: &[&str] = &[
    "system",
    "developer",
    "user",
    "assistant",
    "tool",
    "function",
];

/// What is wrong, to be written behind `messages[n]`.
pub fn check(message: &Value) -> Result<(), String> {
    let Value::Object(message) = message else {
        return Err(" must be an object with role and content".to_owned());
    };
    let role = message.get("role").and_then(Value::as_str);
    let Some(role) = role.filter(|role| ROLES.contains(role)) else {
        return Err(format!(".role must be one of {}", ROLES.join(", ")));
    };
    match message.get("content") {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) if !parts.is_empty() => {
            for (at, one) in parts.iter().enumerate() {
                part(one).map_err(|wrong| format!(".content[{at}]{wrong}"))?;
            }
            Ok(())
        }
        None | Some(Value::Null) if does_without(role, message) => Ok(()),
        None | Some(Value::Null) => Err(".content is required".to_owned()),
        Some(_) => Err(".content must be a string or a non-empty array of parts".to_owned()),
    }
}

/// OpenAI: an assistant's message has content unless it calls, refuses or speaks; a function's may be null.
fn does_without(role: &str, message: &Map<String, Value>) -> bool {
    let has = |name: &str| match message.get(name) {
        None | Some(Value::Null) => false,
        Some(Value::Array(calls)) => !calls.is_empty(),
        Some(_) => true,
    };
    match role {
        "assistant" => ["tool_calls", "function_call", "refusal", "audio"]
            .iter()
            .any(|name| has(name)),
        "function" => message.contains_key("content"),
        _ => false,
    }
}

/// A part has one of OpenAI's types (`input_text`, `input_image` and `input_file` are those of its newer
/// interface) and what that type is about.
fn part(part: &Value) -> Result<(), String> {
    let text = |name: &str| {
        let there = part.get(name).is_some_and(Value::is_string);
        there
            .then_some(())
            .ok_or_else(|| format!(".{name} must be a string"))
    };
    let object = |name: &str| {
        let there = part.get(name).is_some_and(Value::is_object);
        there
            .then_some(())
            .ok_or_else(|| format!(".{name} must be an object"))
    };
    match part.get("type").and_then(Value::as_str) {
        Some("text" | "input_text") => text("text"),
        Some("refusal") => text("refusal"),
        // Some clients write the address itself in the place of `{url}`.
        Some("image_url") => text("image_url").or_else(|_| object("image_url")),
        Some("input_audio") => object("input_audio"),
        Some("file") => object("file"),
        Some("input_image" | "input_file") => Ok(()),
        _ => Err(
            ".type must be one of text, image_url, input_audio, file, refusal, input_text, \
             input_image, input_file"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests;
