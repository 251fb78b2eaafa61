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
mod tests {
    use super::check;
    use serde_json::json;

    // Interface, POST /v1/chat/completions: "messages | array of `{role, content}` | OpenAI message format"
    #[test]
    fn what_clients_send_passes() {
        for message in [
            json!({"role": "system", "content": "Be brief."}),
            json!({"role": "developer", "content": [{"type": "text", "text": "Be brief."}]}),
            json!({"role": "user", "content": "", "name": "ann"}),
            json!({"role": "user", "content": [
                {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
                {"type": "image_url", "image_url": "https://example.org/a.png"},
                {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
                {"type": "file", "file": {"file_id": "f"}},
                {"type": "input_image", "image_url": "https://example.org/a.png"},
            ]}),
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function",
                "function": {"name": "f", "arguments": "{}"}}]}),
            json!({"role": "assistant", "tool_calls": [{"id": "c", "type": "custom"}]}),
            json!({"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}}),
            json!({"role": "assistant", "content": null, "refusal": "No."}),
            json!({"role": "assistant", "audio": {"id": "a"}}),
            json!({"role": "assistant", "content": "", "refusal": null, "annotations": [], "audio": null,
                "function_call": null, "tool_calls": null}),
            json!({"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}),
            json!({"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "18"}]}),
            json!({"role": "function", "name": "f", "content": null}),
        ] {
            assert_eq!(check(&message), Ok(()), "{message}");
        }
    }

    #[test]
    fn what_no_model_can_read_is_refused_by_its_place() {
        for (message, place) in [
            (json!("hi"), " must be an object"),
            (json!({"content": "x"}), ".role must be one of"),
            (json!({"role": 7, "content": "x"}), ".role must be one of"),
            (
                json!({"role": "banana", "content": "x"}),
                ".role must be one of",
            ),
            (json!({"role": "user"}), ".content is required"),
            (
                json!({"role": "user", "content": null}),
                ".content is required",
            ),
            (
                json!({"role": "tool", "tool_call_id": "c"}),
                ".content is required",
            ),
            (
                json!({"role": "function", "name": "f"}),
                ".content is required",
            ),
            (
                json!({"role": "assistant", "content": null}),
                ".content is required",
            ),
            (
                json!({"role": "assistant", "content": null, "tool_calls": []}),
                ".content is required",
            ),
            (json!({"role": "user", "content": 7}), ".content must be"),
            (json!({"role": "user", "content": []}), ".content must be"),
            (
                json!({"role": "user", "content": ["x"]}),
                ".content[0].type",
            ),
            (
                json!({"role": "user", "content": [{"text": "x"}]}),
                ".content[0].type",
            ),
            (
                json!({"role": "user", "content": [{"type": "zzz"}]}),
                ".content[0].type",
            ),
            (
                json!({"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text"}]}),
                ".content[1].text",
            ),
            (
                json!({"role": "user", "content": [{"type": "image_url"}]}),
                ".content[0].image_url",
            ),
            (
                json!({"role": "user", "content": [{"type": "input_audio", "input_audio": "x"}]}),
                ".content[0].input_audio",
            ),
        ] {
            let wrong = check(&message).unwrap_err();
            assert!(wrong.starts_with(place), "{message}: {wrong}");
            assert!(!wrong.contains("banana") && !wrong.contains("zzz"));
        }
    }
}
