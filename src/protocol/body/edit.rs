//! The edits of one place that bursar may make to a body.

use std::ops::Range;

use http::StatusCode;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::field;
use super::request::{keep_two, span_in};
use crate::money::MicroUsd;

/// `error.type` of the object added beside `detail`. Not `invalid_request_error`: litellm turns
/// that into a 400, whatever the status.
const ERROR_TYPE: &str = "service_error";

#[derive(Default)]
struct UsageMembers {
    has_any: bool,
    has_cost: bool,
}

#[derive(Default)]
struct ErrorMembers<'de> {
    detail: Option<&'de RawValue>,
    has_error: bool,
}

/// The body with `model` as the JSON string at `span` (of [`super::RequestPeek::model_span`]), every
/// other byte as it was. A span outside the body changes nothing.
pub fn replace_model(body: &[u8], span: Range<usize>, model: &str) -> Vec<u8> {
    let (Some(before), Some(_), Some(after)) = (
        body.get(..span.start),
        body.get(span.clone()),
        body.get(span.end..),
    ) else {
        return body.to_vec();
    };
    let value = Value::from(model).to_string();
    [before, value.as_bytes(), after].concat()
}

/// The JSON object with `cost`, in USD, as the last member of its `usage`; every other byte as it was. The digits
/// are those of the integer. `None`: there is no one `usage` object in it, or that has a `cost` of its own.
pub fn add_usage_cost(body: &[u8], cost: MicroUsd) -> Option<Vec<u8>> {
    let mut usages = Vec::new();
    let is_whole = field::members(
        body,
        |key| key == "usage",
        |_, value| keep_two(&mut usages, value),
    );
    let ([usage], true) = (usages.as_slice(), is_whole) else {
        return None;
    };
    let mut found = UsageMembers::default();
    let is_object = field::members(
        usage.get().as_bytes(),
        |_| true,
        |key, _| {
            found.has_any = true;
            found.has_cost |= key == "cost";
        },
    );
    if !is_object || found.has_cost {
        return None;
    }
    let end = span_in(body, usage)?.end.checked_sub(1)?;
    let (before, after) = body.split_at_checked(end)?;
    let comma = if found.has_any { "," } else { "" };
    let member = format!("{comma}\"cost\":{}", cost.to_usd());
    Some([before, member.as_bytes(), after].concat())
}

/// A chunk with `usage` once more, for the end of a stream: with `cost`, and without choices, for they were given. All
/// else stays. `None`: as of [`add_usage_cost`], or it has not one list of choices.
pub fn priced_chunk(chunk: &[u8], cost: MicroUsd) -> Option<Vec<u8>> {
    let priced = add_usage_cost(chunk, cost)?;
    let mut choices = Vec::new();
    field::members(
        &priced,
        |key| key == "choices",
        |_, value| keep_two(&mut choices, value),
    );
    let [choices] = choices.as_slice() else {
        return None;
    };
    let span = span_in(&priced, choices)?;
    let (before, after) = (priced.get(..span.start)?, priced.get(span.end..)?);
    Some([before, b"[]", after].concat())
}

/// The error body with `error: {message, type, code, param}` added, if it is a JSON object that has
/// `detail` and no `error`: openai-node and the Vercel SDK drop `detail`, and with it the service's
/// whole message. Every byte before the closing brace stays. `None`: nothing to add.
pub fn add_error_object(body: &[u8], status: u16) -> Option<Vec<u8>> {
    add_error_object_with_hint(body, status, None)
}

/// As [`add_error_object`], with bursar's own hint appended to `error.message`.
pub fn add_error_object_with_hint(body: &[u8], status: u16, hint: Option<&str>) -> Option<Vec<u8>> {
    let wanted = ["detail", "error"];
    let members =
        field::read_object::<ErrorMembers<'_>>(body, &wanted, |members, key, value| match key {
            "detail" => members.detail = Some(value),
            _ => members.has_error = true,
        })?;
    let detail = members.detail.filter(|_| !members.has_error)?;
    let end = body.iter().rposition(|byte| *byte == b'}')?;
    let (before, after) = body.split_at_checked(end)?;

    let mut message = message(detail, status);
    if let Some(hint) = hint {
        if !message.ends_with(['.', '!', '?']) {
            message.push('.');
        }
        message.push(' ');
        message.push_str(hint);
    }
    let error = json!({
        "message": message,
        "type": ERROR_TYPE,
        "code": status_word(status),
        "param": null,
    });
    Some([before, b",\"error\":", error.to_string().as_bytes(), after].concat())
}

/// `detail` as text: SDKs print a string and nothing else.
fn message(detail: &RawValue, status: u16) -> String {
    match (field::text(detail), detail.get()) {
        (Some(text), _) if !text.is_empty() => text,
        (Some(_), _) | (None, "null") => status_word(status).replace('_', " "),
        (None, json) => json.to_owned(),
    }
}

/// The status as a word: `not_found`, `too_many_requests`; `http_599` for a status without a name.
fn status_word(status: u16) -> String {
    StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .map_or_else(
            || format!("http_{status}"),
            |reason| reason.to_ascii_lowercase().replace([' ', '-'], "_"),
        )
}
