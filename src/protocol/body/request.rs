//! What a request's JSON body contains: the requested model, and whether a stream is wanted.

use std::ops::Range;

use serde_json::value::RawValue;

use super::field;

/// Longest kept model name, in characters. Longer ones are cut: the name goes to the ledger.
const MODEL_CHARS_MAX: usize = 128;

/// The fields of a request that rules need. Only top-level members count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestPeek {
    /// `model`, cut to 128 characters; the last one if it occurs twice.
    pub model: Option<String>,
    /// The position of the value of `model` in the body, quotes included. `None` if it is not a
    /// string or occurs twice: there is then no single place to edit.
    pub model_span: Option<Range<usize>>,
    /// `stream` is exactly `true`.
    pub stream: bool,
    /// `stream_options.include_usage` is exactly `true`.
    pub wants_usage: bool,
    /// `input`, and no `messages`: a body of the Responses API.
    pub is_of_responses: bool,
}

#[derive(Default)]
struct RequestMembers<'de> {
    models: Vec<&'de RawValue>,
    stream: bool,
    wants_usage: bool,
    has_input: bool,
    has_messages: bool,
    /// One of them is not there as it came.
    is_cut: bool,
}

// === impl RequestPeek ===

impl RequestPeek {
    /// Reads a JSON request. Anything that is not one complete JSON object has no fields.
    pub fn read(body: &[u8]) -> Self {
        Self::read_object(body, |_| false).unwrap_or_default()
    }

    /// `None`: it is not one complete JSON object, or a value that was read is cut.
    pub(super) fn read_object(body: &[u8], is_cut: impl Fn(&Range<usize>) -> bool) -> Option<Self> {
        let wanted = ["model", "stream", "stream_options", "input", "messages"];
        let members =
            field::read_object::<RequestMembers<'_>>(body, &wanted, |members, key, value| {
                match key {
                    "input" => return members.has_input = value.get() != "null",
                    "messages" => return members.has_messages = value.get() != "null",
                    _ => {}
                }
                members.is_cut |= span_in(body, value).is_some_and(|span| is_cut(&span));
                match key {
                    "model" => keep_two(&mut members.models, value),
                    "stream" => members.stream = value.get() == "true",
                    _ => members.wants_usage = wants_usage(value),
                }
            });
        let members = members.filter(|members| !members.is_cut)?;
        let model_span = match members.models.as_slice() {
            [only] if only.get().starts_with('"') => span_in(body, only),
            _ => None,
        };
        Some(Self {
            model: members
                .models
                .last()
                .and_then(|model| field::text(model))
                .map(|model| model.chars().take(MODEL_CHARS_MAX).collect()),
            model_span,
            stream: members.stream,
            wants_usage: members.wants_usage,
            is_of_responses: members.has_input && !members.has_messages,
        })
    }
}

fn wants_usage(options: &RawValue) -> bool {
    let options = options.get().as_bytes();
    let wanted = field::read_object::<bool>(options, &["include_usage"], |wanted, _, value| {
        *wanted = value.get() == "true";
    });
    wanted.unwrap_or(false)
}

/// Two are enough to know that a member occurs twice; more would cost memory.
pub(super) fn keep_two<'de>(values: &mut Vec<&'de RawValue>, value: &'de RawValue) {
    values.truncate(1);
    values.push(value);
}

/// The position of a borrowed value in the body it was borrowed from.
pub(super) fn span_in(body: &[u8], value: &RawValue) -> Option<Range<usize>> {
    let text = value.get();
    let start = text.as_ptr().addr().checked_sub(body.as_ptr().addr())?;
    let span = start..start.checked_add(text.len())?;
    (body.get(span.clone()) == Some(text.as_bytes())).then_some(span)
}
