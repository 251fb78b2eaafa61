//! A whole chat completion as the event stream that it would have been. The app requested a stream,
//! but bursar requested the whole turn, because only a whole turn carries its price.
//!
//! Promise: joining the chunks gives the message again, member by member; values are the service's
//! own text, so no number changes; each line stays below 64 KiB wherever the protocol can divide it,
//! as line readers demand. A body that is not a completion is not turned into a stream.

use serde_json::Value;
use serde_json::value::RawValue;

use super::field;

/// The members of an object in their order.
struct Object<'de>(Vec<(String, &'de RawValue)>);

/// The stream so far, and what each of its chunks repeats.
struct Stream {
    text: String,
    /// Members of the completion, each followed by a comma.
    repeated: String,
    /// The same for members that need to be in one chunk only.
    once: String,
}

/// Members of a completion that each chunk carries; others go with the first.
const REPEATED: [&str; 5] = [
    "id",
    "created",
    "model",
    "service_tier",
    "system_fingerprint",
];

/// Bytes of text in one chunk. Escaped they become six times as many at most.
const PIECE_BYTES: usize = 8 * 1024;

/// The completion as server-sent events, from the role chunk to `data: [DONE]`. `None`: the body is
/// not a chat completion.
pub fn as_event_stream(body: &[u8]) -> Option<Vec<u8>> {
    let completion = Object::read(body)?;
    let choices = array(completion.get("choices")?)?;
    let mut stream = Stream::of(&completion);
    for (position, choice) in choices.iter().enumerate() {
        stream.choice(position, &object(choice)?)?;
    }
    if let Some(usage) = completion.get("usage").filter(|usage| has_value(usage)) {
        stream.chunk("[]", &format!(",\"usage\":{usage}"));
    }
    stream.text.push_str("data: [DONE]\n\n");
    Some(stream.text.into_bytes())
}

// === impl Stream ===

impl Stream {
    fn of(completion: &Object<'_>) -> Self {
        let mut stream = Self {
            text: String::new(),
            repeated: "\"object\":\"chat.completion.chunk\",".to_owned(),
            once: String::new(),
        };
        for (key, value) in &completion.0 {
            let to = match key.as_str() {
                "object" | "choices" | "usage" => continue,
                key if REPEATED.contains(&key) => &mut stream.repeated,
                _ => &mut stream.once,
            };
            to.push_str(&member(key, value.get()));
            to.push(',');
        }
        stream
    }

    /// All chunks of one choice.
    fn choice(&mut self, position: usize, choice: &Object<'_>) -> Option<()> {
        let message = object(choice.get("message")?)?;
        let index = choice
            .get("index")
            .map_or_else(|| position.to_string(), |index| index.get().to_owned());
        let mut logprobs = choice
            .get("logprobs")
            .map(|logprobs| member("logprobs", logprobs.get()));

        self.delta(&index, &opening(&message), "");
        for (key, value) in message.0.iter().filter(|(_, value)| has_value(value)) {
            match (key.as_str(), field::text(value)) {
                ("role", _) => {}
                // The two texts that SDKs put together piece by piece.
                ("content" | "refusal", Some(text)) => {
                    for piece in pieces(&text) {
                        let with = logprobs
                            .take()
                            .map_or_else(String::new, |it| format!(",{it}"));
                        self.delta(&index, &member(key, &json(piece)), &with);
                    }
                }
                ("tool_calls", _) => self.tool_calls(&index, value),
                _ => self.delta(&index, &member(key, value.get()), ""),
            }
        }

        let finish = choice.get("finish_reason").map_or("null", RawValue::get);
        let mut with = format!(",{}", member("finish_reason", finish));
        if let Some(logprobs) = logprobs {
            with.push_str(&format!(",{logprobs}"));
        }
        for (key, value) in &choice.0 {
            if !["index", "message", "logprobs", "finish_reason"].contains(&key.as_str()) {
                with.push_str(&format!(",{}", member(key, value.get())));
            }
        }
        self.chunk(&format!("[{{\"index\":{index},\"delta\":{{}}{with}}}]"), "");
        Some(())
    }

    /// Each call begins with everything but its arguments; these follow as text.
    fn tool_calls(&mut self, index: &str, calls: &RawValue) {
        let read = array(calls).unwrap_or_default();
        let read: Option<Vec<Object<'_>>> = read.into_iter().map(object).collect();
        let Some(read) = read.filter(|read| !read.is_empty()) else {
            return self.delta(index, &member("tool_calls", calls.get()), "");
        };
        for (number, call) in read.iter().enumerate() {
            let mut begun = format!("\"index\":{number}");
            let mut arguments = None;
            for (key, value) in call.0.iter().filter(|(key, _)| key != "index") {
                let function = object(value).filter(|_| key == "function");
                let text = function
                    .as_ref()
                    .and_then(|function| function.get("arguments"))
                    .and_then(field::text);
                let value = match (function, &text) {
                    (Some(function), Some(_)) => function.with("arguments", "\"\""),
                    _ => value.get().to_owned(),
                };
                arguments = arguments.or(text);
                begun.push_str(&format!(",{}", member(key, &value)));
            }
            self.delta(index, &format!("\"tool_calls\":[{{{begun}}}]"), "");
            let arguments = arguments.filter(|arguments| !arguments.is_empty());
            for piece in arguments.iter().flat_map(|arguments| pieces(arguments)) {
                let function = member("arguments", &json(piece));
                let call = format!("{{\"index\":{number},\"function\":{{{function}}}}}");
                self.delta(index, &format!("\"tool_calls\":[{call}]"), "");
            }
        }
    }

    /// A chunk with these members of a delta, and more members of the choice.
    fn delta(&mut self, index: &str, delta: &str, more: &str) {
        self.chunk(
            &format!("[{{\"index\":{index},\"delta\":{{{delta}}},\"finish_reason\":null{more}}}]"),
            "",
        );
    }

    fn chunk(&mut self, choices: &str, more: &str) {
        let once = std::mem::take(&mut self.once);
        let event = format!(
            "data: {{{}{once}\"choices\":{choices}{more}}}",
            self.repeated
        );
        // A line end can be between tokens only, and would end the event.
        self.text.push_str(&event.replace(['\n', '\r'], " "));
        self.text.push_str("\n\n");
    }
}

/// The role, and the members of the message that have no value.
fn opening(message: &Object<'_>) -> String {
    let role = message.get("role").filter(|role| has_value(role));
    let mut opening = member("role", role.map_or("\"assistant\"", RawValue::get));
    for (key, value) in &message.0 {
        if !has_value(value) && key != "role" {
            opening.push_str(&format!(",{}", member(key, value.get())));
        }
    }
    opening
}

/// A text in pieces; an empty one is one piece.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let at = text.floor_char_boundary(PIECE_BYTES);
        let (piece, more) = text.split_at_checked(at).unwrap_or((text, ""));
        rest = (!more.is_empty()).then_some(more);
        Some(piece)
    })
}

fn has_value(value: &RawValue) -> bool {
    value.get() != "null"
}

fn object(value: &RawValue) -> Option<Object<'_>> {
    Object::read(value.get().as_bytes())
}

fn array(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

fn json(text: &str) -> String {
    Value::from(text).to_string()
}

fn member(key: &str, value: &str) -> String {
    format!("{}:{value}", json(key))
}

// === impl Object ===

impl<'de> Object<'de> {
    fn read(json: &'de [u8]) -> Option<Self> {
        let mut members = Vec::new();
        let push = |key: &str, value| members.push((key.to_owned(), value));
        field::members(json, |_| true, push).then_some(Self(members))
    }

    /// The last one if it occurs twice.
    fn get(&self, name: &str) -> Option<&'de RawValue> {
        let found = self.0.iter().rfind(|(key, _)| key == name);
        found.map(|(_, value)| *value)
    }

    /// As JSON, with another value in one place.
    fn with(&self, name: &str, other: &str) -> String {
        let members = self.0.iter().map(|(key, value)| {
            let value = if key == name { other } else { value.get() };
            member(key, value)
        });
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests;
