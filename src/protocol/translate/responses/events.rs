//! A Response document as the event stream that would have led to it; [`super::live`] gives the beginning of one
//! before the document is there.
//!
//! Promise: a pure function of the document, so a whole and a streamed repeat are one purchase. Joining the
//! deltas gives the texts and arguments again, escape by escape; the last event holds the document itself. The
//! stream ends with `response.completed`, `response.incomplete` or `response.failed`; there is no `[DONE]`, as
//! OpenAI sends none.

use serde_json::value::RawValue;

use super::json::Text;
use super::tree::{Node, Shape, Tree};
use crate::protocol::translate::Unrendered;
use crate::protocol::translate::escaped::pieces;

/// Bytes of a text in one delta, escapes included. A delta goes on to the end of its last character.
const PIECE_BYTES: usize = 1024;

/// What is looked into of a document.
const DOCUMENT: &[(&str, Shape)] = &[(
    "output",
    Shape::List(&Shape::Object(&[(
        "content",
        Shape::List(&Shape::Object(&[])),
    )])),
)];

/// The stream so far.
#[derive(Debug, Default)]
pub(super) struct Stream {
    out: String,
    /// Of the next event.
    sequence: u64,
    text: LiveText,
}

/// The answer's text, which is the first part of its first item, before the document is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LiveText {
    /// It is given with the document.
    #[default]
    Unbegun,
    /// It was given in deltas; what closes it comes with the document.
    Given,
}

/// Where an event belongs.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// A JSON string.
    item_id: &'a str,
    output_index: usize,
    content_index: Option<usize>,
}

/// The events of a whole document, as `answer::translate` made it.
pub fn of(document: &[u8]) -> Result<Vec<u8>, Unrendered> {
    events(document).ok_or_else(|| Unrendered::new("The document is not a Response."))
}

fn events(document: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(document).ok()?;
    let response = read(text)?;
    let mut stream = Stream {
        out: String::with_capacity(document.len() * 4),
        ..Stream::default()
    };
    stream.begin(&begun(&response));
    stream.rest(&response, text)?;
    Some(stream.take())
}

/// A document as it is given. `None`: it is none.
pub(super) fn read(document: &str) -> Option<Tree<'_>> {
    Tree::read(document, DOCUMENT)
}

/// The document before anything was put out.
fn begun(response: &Tree<'_>) -> String {
    changed(response, |name, _| match name {
        "status" => Some("\"in_progress\""),
        "output" => Some("[]"),
        "usage" | "error" | "incomplete_details" | "completed_at" => Some("null"),
        _ => None,
    })
}

/// An object with other values where `change` names one.
fn changed(object: &Tree<'_>, change: impl Fn(&str, &Node<'_>) -> Option<&'static str>) -> String {
    let mut out = String::new();
    for (name, node) in object.iter() {
        out.push(if out.is_empty() { '{' } else { ',' });
        out.push('"');
        out.push_str(name);
        out.push_str("\":");
        match change(name, node) {
            Some(value) => out.push_str(value),
            None => node.write(&mut out),
        }
    }
    out.push('}');
    out
}

/// An object as it is.
fn json(object: &Tree<'_>) -> String {
    let mut out = String::new();
    object.write(&mut out);
    out
}

// === impl Stream ===

impl Stream {
    /// What was added since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out).into_bytes()
    }

    /// Begins with the document as it is before anything was put out.
    pub fn begin(&mut self, response: &str) {
        self.response("response.created", response);
        self.response("response.in_progress", response);
    }

    /// A piece of the answer's text, the inside of a JSON string.
    pub fn text_delta(&mut self, entry: &str, piece: &str) {
        let id = format!("\"msg_{entry}\"");
        let item = Place {
            item_id: &id,
            output_index: 0,
            content_index: None,
        };
        let part = Place {
            content_index: Some(0),
            ..item
        };
        if self.text == LiveText::Unbegun {
            self.text = LiveText::Given;
            let message = format!(
                "{{\"id\":{id},\"type\":\"message\",\"status\":\"in_progress\",\"role\":\"assistant\",\"content\":[]}}"
            );
            let whole = Place {
                item_id: "",
                ..item
            };
            self.event(
                "response.output_item.added",
                Some(whole),
                &[("item", &message)],
            );
            let empty =
                "{\"type\":\"output_text\",\"text\":\"\",\"annotations\":[],\"logprobs\":[]}";
            self.event(
                "response.content_part.added",
                Some(part),
                &[("part", empty)],
            );
        }
        let delta = format!("\"{piece}\"");
        let members = [("delta", delta.as_str()), ("logprobs", "[]")];
        self.event("response.output_text.delta", Some(part), &members);
    }

    /// The end of an answer that is not given: its document.
    pub fn fail(&mut self, document: &str) {
        self.response("response.failed", document);
    }

    /// All that was not given yet, with the document itself. `None`: it is no document that ends a stream.
    pub fn rest(&mut self, response: &Tree<'_>, document: &str) -> Option<()> {
        let last = match response.text("status")?.get() {
            "\"completed\"" => "response.completed",
            "\"incomplete\"" => "response.incomplete",
            "\"failed\"" => "response.failed",
            _ => return None,
        };
        for (place, item) in response.list("output")?.iter().enumerate() {
            self.item(item.object()?, place)?;
        }
        self.response(last, document);
        Some(())
    }

    fn response(&mut self, kind: &str, response: &str) {
        self.event(kind, None, &[("response", response)]);
    }

    /// One event. Values are JSON.
    fn event(&mut self, kind: &str, place: Option<Place<'_>>, members: &[(&str, &str)]) {
        let out = &mut self.out;
        for part in ["event: ", kind, "\ndata: {\"type\":\"", kind, "\""] {
            out.push_str(part);
        }
        out.push_str(&format!(",\"sequence_number\":{}", self.sequence));
        if let Some(place) = place {
            if !place.item_id.is_empty() {
                out.push_str(",\"item_id\":");
                out.push_str(place.item_id);
            }
            out.push_str(&format!(",\"output_index\":{}", place.output_index));
            if let Some(index) = place.content_index {
                out.push_str(&format!(",\"content_index\":{index}"));
            }
        }
        for (name, value) in members {
            for part in [",\"", *name, "\":", *value] {
                out.push_str(part);
            }
        }
        out.push_str("}\n\n");
        self.sequence += 1;
    }

    fn item(&mut self, item: &Tree<'_>, output_index: usize) -> Option<()> {
        let place = Place {
            item_id: item.text("id").and_then(Text::of)?.json(),
            output_index,
            content_index: None,
        };
        let whole = Place {
            item_id: "",
            ..place
        };
        if self.text == LiveText::Unbegun {
            let is_string =
                |node: &Node<'_>| matches!(node, Node::Text(text) if Text::of(text).is_some());
            let added = changed(item, |name, node| match name {
                "status" => Some("\"in_progress\""),
                "content" => Some("[]"),
                "arguments" | "input" if is_string(node) => Some("\"\""),
                _ => None,
            });
            self.event(
                "response.output_item.added",
                Some(whole),
                &[("item", &added)],
            );
        }
        match item.text("type").and_then(Text::of)?.escaped() {
            "message" => {
                for (index, part) in item.list("content")?.iter().enumerate() {
                    let place = Place {
                        content_index: Some(index),
                        ..place
                    };
                    self.part(part.object()?, place)?;
                }
            }
            "function_call" => {
                let text = item.text("arguments").and_then(Text::of)?;
                let name = item.text("name")?.get();
                let kind = "response.function_call_arguments";
                let done = [("name", name), ("arguments", text.json())];
                self.text(kind, place, text, &[], &done);
            }
            "custom_tool_call" => {
                let text = item.text("input").and_then(Text::of)?;
                let kind = "response.custom_tool_call_input";
                self.text(kind, place, text, &[], &[("input", text.json())]);
            }
            _ => {}
        }
        self.event(
            "response.output_item.done",
            Some(whole),
            &[("item", &json(item))],
        );
        Some(())
    }

    fn part(&mut self, part: &Tree<'_>, place: Place<'_>) -> Option<()> {
        let (kind, name) = match part.text("type").and_then(Text::of)?.escaped() {
            "output_text" => ("response.output_text", "text"),
            "refusal" => ("response.refusal", "refusal"),
            _ => return None,
        };
        let text = part.text(name).and_then(Text::of)?;
        let given = std::mem::take(&mut self.text);
        if given == LiveText::Unbegun {
            let added = changed(part, |member, _| match member {
                "logprobs" | "annotations" => Some("[]"),
                member if member == name => Some("\"\""),
                _ => None,
            });
            self.event(
                "response.content_part.added",
                Some(place),
                &[("part", &added)],
            );
        }
        match name {
            "text" => {
                let logprobs = part.text("logprobs").map_or("[]", RawValue::get);
                let done = [("text", text.json()), ("logprobs", logprobs)];
                match given {
                    LiveText::Given => {
                        self.event("response.output_text.done", Some(place), &done);
                    }
                    LiveText::Unbegun => {
                        self.text(kind, place, text, &[("logprobs", "[]")], &done);
                    }
                }
            }
            _ => self.text(kind, place, text, &[], &[(name, text.json())]),
        }
        self.event(
            "response.content_part.done",
            Some(place),
            &[("part", &json(part))],
        );
        Some(())
    }

    /// A text in pieces, and the whole of it.
    fn text(
        &mut self,
        kind: &str,
        place: Place<'_>,
        text: Text<'_>,
        with: &[(&str, &str)],
        done: &[(&str, &str)],
    ) {
        let delta = format!("{kind}.delta");
        for piece in pieces(text.escaped(), PIECE_BYTES) {
            let piece = format!("\"{piece}\"");
            let members = [&[("delta", piece.as_str())], with].concat();
            self.event(&delta, Some(place), &members);
        }
        self.event(&format!("{kind}.done"), Some(place), done);
    }
}

#[cfg(test)]
mod tests;
