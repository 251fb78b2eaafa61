//! Errors in the dialect's form: `{"type": "error", "error": {"type", "message"}}`.
//!
//! Promise: the dialect's type follows from the status, bursar's own code stays, and no word of the service's is lost.

use serde_json::{Map, Value};

use crate::protocol::body::detail;

/// What bursar's and the service's errors say, whatever their form.
struct Words {
    message: Option<String>,
    code: Option<String>,
    param: Option<String>,
    request_id: Option<String>,
}

/// The dialect's form of an error that bursar or the service answers with. `body` is its JSON, `{"error": {"message",
/// "code"}}` or `{"detail"}`, either with a `request_id` or without; what is neither is not repeated.
pub fn body(status: u16, body: &[u8]) -> Vec<u8> {
    let words = Words::of(body);
    let message = words.message;
    let message = message.unwrap_or_else(|| format!("The request failed with status {status}."));
    let mut error = Map::new();
    error.insert("type".to_owned(), kind(status).into());
    error.insert("message".to_owned(), message.into());
    for (name, word) in [("code", words.code), ("param", words.param)] {
        if let Some(word) = word {
            error.insert(name.to_owned(), word.into());
        }
    }
    let mut body = Map::new();
    body.insert("type".to_owned(), "error".into());
    body.insert("error".to_owned(), error.into());
    if let Some(id) = words.request_id {
        body.insert("request_id".to_owned(), id.into());
    }
    Value::from(body).to_string().into_bytes()
}

/// The dialect's word for a status.
pub fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

// === impl Words ===

impl Words {
    fn of(body: &[u8]) -> Self {
        let parsed: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |value: Option<&Value>| {
            let text = value
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        let error = parsed.get("error");
        let word = |name: &str| text(error.and_then(|error| error.get(name)));
        Self {
            // Some servers have a text for an error.
            message: word("message")
                .or_else(|| detail(body))
                .or_else(|| text(error)),
            code: word("code"),
            param: word("param"),
            request_id: text(parsed.get("request_id")),
        }
    }
}

#[cfg(test)]
mod tests;
