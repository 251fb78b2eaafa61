//! What the tests of the dialect share: one request, one answer, and the facts beside it.

use serde_json::{Value, json};

use super::super::{Turn, answer, request};
use crate::money::MicroUsd;
use crate::protocol::translate::{AnswerFacts, Translated, Unrendered, Untranslatable};

pub const ENTRY: &str = "0123456789abcdef0123456789abcdef";

pub fn facts() -> AnswerFacts<'static> {
    AnswerFacts {
        entry: ENTRY,
        created_s: 1_700_000_000,
        cost: Some(MicroUsd::new(1_857)),
    }
}

/// A document as a value; the tests compare what is said, not how it is spaced.
pub fn value(json: impl AsRef<[u8]>) -> Value {
    let json = json.as_ref();
    let read = serde_json::from_slice(json);
    read.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(json)))
}

/// A request without anything earlier.
pub fn asked(body: &str) -> Result<Translated<Turn>, Untranslatable> {
    request::translate(body.as_bytes(), &|_| None)
}

pub fn turn(body: &str) -> Turn {
    asked(body).expect("a request that is translated").turn
}

/// The chat completion with these members in its first choice.
pub fn completion(finish: &str, message: &str) -> String {
    format!(
        r#"{{"id":"c","object":"chat.completion","model":"auto","created":1764000000,
            "choices":[{{"index":0,"finish_reason":"{finish}","message":{message}}}],
            "usage":{{"prompt_tokens":11,"completion_tokens":4,"total_tokens":15}}}}"#
    )
}

/// The message of an assistant that makes one call.
pub fn calling(name: &str, arguments: &str) -> String {
    let call = json!({
        "id": "call_1",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    });
    json!({"role": "assistant", "content": null, "tool_calls": [call]}).to_string()
}

/// The document of an answer.
pub fn answered(turn: &Turn, completion: &str) -> Result<Value, Unrendered> {
    answer::translate(turn, completion.as_bytes(), facts()).map(value)
}
