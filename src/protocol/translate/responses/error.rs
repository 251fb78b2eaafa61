//! The dialect's error body: `{"error": {"message", "type", "param", "code"}}`.
//!
//! Promise: the text of a refusal or failure is where every SDK looks for it, and no member of the body that it
//! came in is lost.

use super::json::{Object, Text, quote};

/// The `type` of a failure that names none.
const SERVICE_ERROR: &str = "service_error";

/// What is still missing of the four members.
const MEMBERS: [&str; 4] = ["message", "type", "param", "code"];

/// An error of the service (`{"detail"}`) or of bursar (`{"detail", "error"}`) as the dialect has it.
pub fn body(status: u16, body: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(body).unwrap_or_default();
    let known = Object::read(text);
    let error = known
        .as_ref()
        .and_then(|known| Object::read(known.get("error")?.get()));
    let mut out = "{\"error\":{".to_owned();
    if let Some(error) = &error {
        for (name, value) in error.iter() {
            put(&mut out, name, value.get());
        }
    }
    let is_missing = |name: &str| {
        error
            .as_ref()
            .is_none_or(|error| error.iter().all(|(known, _)| known != name))
    };
    for name in MEMBERS.into_iter().filter(|name| is_missing(name)) {
        let value = match name {
            "message" => message(status, text, known.as_ref()),
            "type" => quoted(SERVICE_ERROR),
            _ => "null".to_owned(),
        };
        put(&mut out, name, &value);
    }
    out.push('}');
    if let Some(known) = &known {
        for (name, value) in known.iter().filter(|(name, _)| *name != "error") {
            put(&mut out, name, value.get());
        }
    }
    out.push('}');
    out.into_bytes()
}

/// A text to show: `detail`, or an `error` that is one, or the body if it is short, or the status.
fn message(status: u16, body: &str, known: Option<&Object<'_>>) -> String {
    let Some(known) = known else {
        let body = body.trim();
        return match body.is_empty() || body.len() > 500 {
            true => quoted(&format!("The service answered with status {status}.")),
            false => quoted(body),
        };
    };
    let words = ["detail", "error", "message"].into_iter();
    let found = words.filter_map(|name| known.get(name)).next();
    match found {
        Some(value) if Text::of(value).is_some() => value.get().to_owned(),
        Some(value) => quoted(value.get()),
        None => quoted(&format!("The service answered with status {status}.")),
    }
}

/// Appends a member.
fn put(out: &mut String, name: &str, value: &str) {
    if !out.ends_with('{') {
        out.push(',');
    }
    quote(out, name);
    out.push(':');
    out.push_str(value);
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    quote(&mut out, text);
    out
}

#[cfg(test)]
mod tests;
