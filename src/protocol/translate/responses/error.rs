//! The dialect's error body: `{"error": {"message", "type", "param", "code"}}`.
//!
//! Promise: the text of a refusal or failure is where every SDK looks for it, and no member of the body that it
//! came in is lost.

use super::json::{Object, Path, Text, quote};
use crate::protocol::translate::{Unrendered, Untranslatable};

/// The `type` for a failure that names none, and for what this side could not render.
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

/// A request that is not translated: a 400.
pub fn refused(refused: &Untranslatable) -> Vec<u8> {
    let is_unknown = refused.param == Path::Body.member("previous_response_id").to_string();
    let code = is_unknown.then_some("previous_response_not_found");
    let param = Some(refused.param.as_str()).filter(|param| !param.is_empty());
    whole(&refused.message, "invalid_request_error", param, code)
}

/// An answer that cannot be rendered: a 502.
pub fn unrendered(unrendered: &Unrendered) -> Vec<u8> {
    whole(
        &unrendered.message,
        SERVICE_ERROR,
        None,
        Some("answer_not_renderable"),
    )
}

fn whole(message: &str, kind: &str, param: Option<&str>, code: Option<&str>) -> Vec<u8> {
    let or_null = |word: Option<&str>| word.map_or_else(|| "null".to_owned(), quoted);
    let mut out = "{\"error\":{".to_owned();
    put(&mut out, "message", &quoted(message));
    put(&mut out, "type", &quoted(kind));
    put(&mut out, "param", &or_null(param));
    put(&mut out, "code", &or_null(code));
    out.push_str("}}");
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
