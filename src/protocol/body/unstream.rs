//! The edit that asks for a whole answer where the app asked for a stream: an agent stream carries no
//! amount, a whole turn does.
//!
//! Promise: the value of `stream` becomes `false`, the member `stream_options` goes, and every other
//! byte stays. A body in which there is no one place to edit is not edited.

use std::ops::Range;

use serde_json::value::RawValue;

use super::field;
use super::request::{keep_two, span_in};

#[derive(Default)]
struct StreamMembers<'de> {
    streams: Vec<&'de RawValue>,
    options: Vec<&'de RawValue>,
}

/// The body that requests the same without a stream. `None`: it requests no stream, is not a JSON
/// object, has one of the two members twice, or has options that the service is to refuse.
pub fn without_stream(body: &[u8]) -> Option<Vec<u8>> {
    let wanted = ["stream", "stream_options"];
    let members = field::read_object::<StreamMembers<'_>>(body, &wanted, |members, key, value| {
        let values = match key {
            "stream" => &mut members.streams,
            _ => &mut members.options,
        };
        keep_two(values, value);
    })?;
    let [stream] = members.streams.as_slice() else {
        return None;
    };
    if stream.get() != "true" {
        return None;
    }
    let stream = span_in(body, stream)?;
    let options = match members.options.as_slice() {
        [] => None,
        // Without its options a request that is wrong would be right, and billed.
        [only] if !are_options(only) => return None,
        [only] => Some(member_span(body, span_in(body, only)?)?),
        _ => return None,
    };
    let mut edited = body.to_vec();
    match options {
        // The later edit first, so that the place of the earlier one stays.
        Some(options) if options.start > stream.start => {
            edited.drain(options);
            edited.splice(stream, *b"false");
        }
        options => {
            edited.splice(stream, *b"false");
            options.map(|options| edited.drain(options));
        }
    }
    Some(edited)
}

/// Whether these are `stream_options` as OpenAI defines them: an object or null, with or without a
/// flag.
fn are_options(options: &RawValue) -> bool {
    match serde_json::from_str(options.get()) {
        Ok(serde_json::Value::Null) => true,
        Ok(serde_json::Value::Object(options)) => options
            .get("include_usage")
            .is_none_or(|flag| flag.is_boolean() || flag.is_null()),
        _ => false,
    }
}

/// The span of the member whose value is at `value`: its key, its value, and the comma that is not
/// needed without it.
fn member_span(body: &[u8], value: Range<usize>) -> Option<Range<usize>> {
    let before = body.get(..value.start)?.trim_ascii_end();
    let before = before.strip_suffix(b":")?.trim_ascii_end();
    // A key that is spelled `stream_options`, in any escapes, has no quote inside.
    let key = before.strip_suffix(b"\"")?;
    let start = key.iter().rposition(|byte| *byte == b'"')?;
    let after = body.get(value.end..)?;
    let blank = after.len().checked_sub(after.trim_ascii_start().len())?;
    if after.get(blank) == Some(&b',') {
        return Some(start..value.end.checked_add(blank)?.checked_add(1)?);
    }
    let earlier = body.get(..start)?.trim_ascii_end();
    let start = match earlier.strip_suffix(b",") {
        Some(earlier) => earlier.len(),
        None => start,
    };
    Some(start..value.end)
}

#[cfg(test)]
mod tests;
