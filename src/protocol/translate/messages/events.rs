//! A message as the stream of events that says the same.
//!
//! Promise: a function of the message's bytes. One `message_start` with all counts, each block in one piece of its own
//! between its start and its stop, `message_stop` at the end and never after an error. `message_start` counts no output yet
//! and has no cost, because programs add its counts to those of `message_delta`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json;
use super::usage::Tokens;
use crate::protocol::translate::escaped::pieces;

/// Most bytes of a text in one event.
const PIECE_BYTES: usize = 1024;

/// A message as [`super::answer::translate`] makes it.
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    model: &'a RawValue,
    #[serde(borrow)]
    content: Vec<Block<'a>>,
    #[serde(borrow)]
    stop_reason: &'a RawValue,
    #[serde(borrow)]
    stop_sequence: &'a RawValue,
    #[serde(borrow)]
    usage: &'a RawValue,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Text,
    ToolUse,
}

/// The counts, and the price as it is written.
#[derive(Deserialize)]
struct Usage<'a> {
    #[serde(borrow, default)]
    cost: Option<&'a RawValue>,
}

/// The events of a message. What is no message of [`super::answer`] becomes one error event.
pub fn of(document: &[u8]) -> Vec<u8> {
    let broken = || error(500, b"");
    let Ok(message) = serde_json::from_slice::<Document<'_>>(document) else {
        return broken();
    };
    let tokens = serde_json::from_str::<Tokens>(message.usage.get());
    let usage = serde_json::from_str::<Usage<'_>>(message.usage.get());
    let (Ok(tokens), Ok(usage)) = (tokens, usage) else {
        return broken();
    };
    let texts = [message.id, message.model, message.stop_reason];
    let is_text = |value: &RawValue| json::inside(value).is_some();
    let has_end = message.stop_sequence.get() == "null" || is_text(message.stop_sequence);
    // A price is a number; nothing else may stand on an event's line.
    let is_price = |cost: &RawValue| cost.get().starts_with(|first: char| first.is_ascii_digit());
    if !texts.into_iter().all(is_text) || !has_end || !usage.cost.is_none_or(is_price) {
        return broken();
    }
    let mut out = Vec::with_capacity(document.len().saturating_mul(2));

    begin(&mut out, "message_start");
    json::push(&mut out, &[",\"message\":{\"id\":", message.id.get()]);
    json::push(
        &mut out,
        &[",\"type\":\"message\",\"role\":\"assistant\",\"model\":"],
    );
    json::push(
        &mut out,
        &[message.model.get(), ",\"content\":[],\"stop_reason\":null"],
    );
    json::push(
        &mut out,
        &[",\"stop_sequence\":null,\"stop_details\":null,\"usage\":"],
    );
    tokens.at_the_start().push(&mut out, None);
    out.push(b'}');
    end(&mut out);

    for (index, block) in message.content.iter().enumerate() {
        if block.push(&mut out, &index.to_string()).is_none() {
            return broken();
        }
    }

    begin(&mut out, "message_delta");
    let reason = message.stop_reason.get();
    json::push(
        &mut out,
        &[
            ",\"delta\":{\"stop_reason\":",
            reason,
            ",\"stop_sequence\":",
        ],
    );
    json::push(
        &mut out,
        &[message.stop_sequence.get(), ",\"stop_details\":null}"],
    );
    json::push(&mut out, &[",\"usage\":"]);
    tokens.push(&mut out, usage.cost.map(RawValue::get));
    end(&mut out);

    begin(&mut out, "message_stop");
    end(&mut out);
    out
}

/// The event that ends a stream which cannot be ended well; `body` as [`super::error::body`] has it.
fn error(status: u16, body: &[u8]) -> Vec<u8> {
    let body = super::error::body(status, body);
    [b"event: error\ndata: ", body.as_slice(), b"\n\n"].concat()
}

/// An event up to its members behind `type`.
fn begin(out: &mut Vec<u8>, name: &str) {
    json::push(out, &["event: ", name, "\ndata: {\"type\":\"", name, "\""]);
}

fn end(out: &mut Vec<u8>) {
    json::push(out, &["}\n\n"]);
}

// === impl Block ===

impl Block<'_> {
    /// `None`: a member is missing that a block of its kind has.
    fn push(&self, out: &mut Vec<u8>, index: &str) -> Option<()> {
        let said = match self.kind {
            Kind::Text => json::inside(self.text?)?,
            Kind::ToolUse => self.input?.get(),
        };
        begin(out, "content_block_start");
        json::push(out, &[",\"index\":", index, ",\"content_block\":"]);
        match self.kind {
            Kind::Text => json::push(out, &["{\"type\":\"text\",\"text\":\"\"}"]),
            Kind::ToolUse => {
                let (id, name) = (json::inside(self.id?)?, json::inside(self.name?)?);
                json::push(
                    out,
                    &["{\"type\":\"tool_use\",\"id\":\"", id, "\",\"name\":\""],
                );
                json::push(out, &[name, "\",\"input\":{}}"]);
            }
        }
        end(out);
        for piece in pieces(said, PIECE_BYTES) {
            begin(out, "content_block_delta");
            json::push(out, &[",\"index\":", index, ",\"delta\":"]);
            match self.kind {
                Kind::Text => {
                    json::push(out, &["{\"type\":\"text_delta\",\"text\":\"", piece, "\"}"]);
                }
                Kind::ToolUse => {
                    json::push(out, &["{\"type\":\"input_json_delta\",\"partial_json\":"]);
                    json::push_text(out, piece);
                    out.push(b'}');
                }
            }
            end(out);
        }
        begin(out, "content_block_stop");
        json::push(out, &[",\"index\":", index]);
        end(out);
        Some(())
    }
}

#[cfg(test)]
mod tests;
