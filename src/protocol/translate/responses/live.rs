//! The service's stream as a Response's events while it comes (`[streams] translated = "live"`).
//!
//! Why: an app that shows text as it is written does not wait for a whole turn. What an app could act on waits all
//! the same: tool calls, refusals and the end are made of the whole answer, by [`super::answer`], once its price is known.
//!
//! Promise: the text's deltas are the service's, in its order. What ends a stream is the document that the same answer
//! would have had whole. An answer that cannot be given so ends with `response.failed`; nothing is made up for what did
//! not come. Memory is bounded by [`HEARD_BYTES_MAX`]. No I/O and no clock.

mod redact;

use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

pub use self::redact::Redact;
use self::redact::RedactedText;
use super::events::Stream;
use super::json::{Object, Text, array};
use super::turn::{Phase, Reply, Turn};
use super::{answer, events};
use crate::money::MicroUsd;
use crate::protocol::translate::{AnswerFacts, Unrendered};

/// Most bytes of one answer that are kept until its end, and of one line: of the 131,072 tokens that the interface
/// names for an agent turn, 32 each.
pub const HEARD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The code that keeps Codex from buying an answer again that would be no better: behind any other it asks five
/// more times (measured; `docs/dialects.md`).
const NO_REPEAT: &str = "invalid_prompt";

/// The code of what went wrong at the service, in the dialect's words.
const SERVICE_ERROR: &str = "server_error";

/// Most calls in one answer; each piece of one is looked for among them.
const CALLS_MAX: usize = 1024;

/// Most characters that are given of what the service says of an error.
const ERROR_CHARS_MAX: usize = 500;

/// One answer while it comes.
pub struct Live {
    turn: Arc<Turn>,
    entry: String,
    created_s: u64,
    heard: Heard,
    text: RedactedText,
    stream: Stream,
    progress: Progress,
}

/// What the app was given.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    Nothing,
    Begun,
    /// It will end with `response.failed`.
    Fails {
        code: &'static str,
        why: Unrendered,
    },
    Over,
}

/// What the service has said so far. Texts are JSON as they came.
#[derive(Default)]
struct Heard {
    created: Option<u64>,
    /// A JSON string.
    model: Option<String>,
    /// The inside of a JSON string.
    content: String,
    /// The same.
    refusal: String,
    /// Elements, each followed by a comma.
    logprobs: String,
    calls: Vec<HeardCall>,
    finish_reason: Option<String>,
    usage: Option<Box<RawValue>>,
}

/// A tool call in its pieces.
#[derive(Default)]
struct HeardCall {
    /// `None`: the service numbers none.
    index: Option<u64>,
    /// A JSON string.
    id: Option<String>,
    /// A JSON string.
    name: Option<String>,
    /// The inside of a JSON string.
    arguments: String,
}

/// The end of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Ending {
    pub events: Vec<u8>,
    /// The answer as a whole. `None`: it failed.
    pub document: Option<Vec<u8>>,
}

// === impl Live ===

impl Live {
    /// `entry` and `created_s` are those of [`AnswerFacts`].
    pub fn new(turn: Arc<Turn>, entry: String, created_s: u64) -> Self {
        Self {
            turn,
            entry,
            created_s,
            heard: Heard::default(),
            text: RedactedText::default(),
            stream: Stream::default(),
            progress: Progress::Nothing,
        }
    }

    /// What `redact` strikes out is given in no piece of the text, nor in two together.
    pub fn without(self, redact: Redact) -> Self {
        Self {
            text: RedactedText::without(redact),
            ..self
        }
    }

    /// Takes what one data line says; [`Self::events`] has what follows of it.
    pub fn hear(&mut self, line: &[u8]) {
        if self.progress == Progress::Over {
            return;
        }
        let heard = std::str::from_utf8(line).ok();
        let chunk = heard.and_then(|text| Object::read(text.trim()));
        if matches!(self.progress, Progress::Fails { .. }) {
            // Its counts come last, and are paid for.
            if let Some(chunk) = chunk {
                self.heard.of_all(&chunk);
            }
            return;
        }
        let Some(chunk) = chunk else {
            return self.fails("a part of it is not a JSON object");
        };
        // Assumed: an error inside a stream has OpenAI's form, or that of the service's error bodies.
        let detail = || {
            chunk
                .get("detail")
                .filter(|_| chunk.get("choices").is_none())
        };
        if let Some(error) = chunk.get("error").or_else(detail) {
            return self.fails_with(SERVICE_ERROR, &error_words(error));
        }
        self.heard.of_all(&chunk);
        if self.progress == Progress::Nothing {
            self.begin();
        }
        let choices = chunk.get("choices").and_then(array).unwrap_or_default();
        for choice in choices {
            let Some(choice) = Object::read(choice.get()) else {
                return self.fails("one of its choices is no object");
            };
            // One choice was asked for.
            if choice.get("index").is_some_and(|index| index.get() != "0") {
                continue;
            }
            match self.heard.choice(&choice) {
                Ok(Some(piece)) => {
                    let piece = self.text.pass(piece.escaped());
                    self.give_text(&piece);
                }
                Ok(None) => {}
                Err(what) => return self.fails(what),
            }
        }
        if self.heard.bytes() > HEARD_BYTES_MAX {
            self.fails("it is too large");
        }
    }

    /// A data line came that was too long to be read.
    pub fn missed(&mut self) {
        if matches!(self.progress, Progress::Nothing | Progress::Begun) {
            self.fails("a part of it is too large");
        }
    }

    /// The events since the last call. `None`: there are none.
    pub fn events(&mut self) -> Option<Vec<u8>> {
        Some(self.stream.take()).filter(|events| !events.is_empty())
    }

    /// The service's stream is complete, and settled at this price, if it is known.
    pub fn ends(&mut self, cost: Option<MicroUsd>) -> Ending {
        if self.progress == Progress::Nothing {
            self.begin();
        }
        let document = match std::mem::replace(&mut self.progress, Progress::Over) {
            Progress::Fails { code, why } => Err((code, why)),
            _ => self.give_rest(cost).map_err(|why| (NO_REPEAT, why)),
        };
        let document = match document {
            Ok(document) => Some(document),
            Err((code, why)) => {
                self.give_failure(code, &why.message, cost);
                None
            }
        };
        self.heard = Heard::default();
        Ending {
            events: self.stream.take(),
            document,
        }
    }

    /// The stream breaks. `None`: nothing was given of it, or all.
    pub fn breaks(&mut self, code: &str, message: &str) -> Option<Vec<u8>> {
        match std::mem::replace(&mut self.progress, Progress::Over) {
            nothing_or_all @ (Progress::Nothing | Progress::Over) => {
                self.progress = nothing_or_all;
                return None;
            }
            Progress::Begun => self.give_failure(code, message, None),
            // What failed it before it broke says more.
            Progress::Fails { code, why } => self.give_failure(code, &why.message, None),
        }
        self.heard = Heard::default();
        self.events()
    }

    /// Bytes of the answer that are kept until its end.
    pub fn heard_bytes(&self) -> usize {
        self.heard.bytes()
    }

    fn give_text(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.heard.content.push_str(piece);
            self.stream.text_delta(&self.entry, piece);
        }
    }

    fn begin(&mut self) {
        let begun = self.turn.document(&self.reply(Phase::InProgress, None));
        self.stream.begin(&begun);
        self.progress = Progress::Begun;
    }

    fn fails(&mut self, what: &str) {
        self.fails_with(NO_REPEAT, what);
    }

    fn fails_with(&mut self, code: &'static str, what: &str) {
        if self.progress == Progress::Nothing {
            self.begin();
        }
        self.progress = Progress::Fails {
            code,
            why: answer::unrendered(what),
        };
        // Nothing of it will be given.
        self.heard.forget();
    }

    fn give_failure(&mut self, code: &str, message: &str, cost: Option<MicroUsd>) {
        let is_known = self.heard.usage.is_some() || cost.is_some();
        let usage = is_known.then(|| answer::usage(self.heard.usage.as_deref(), cost));
        let failed = Phase::Failed { code, message };
        let document = self.turn.document(&self.reply(failed, usage.as_deref()));
        self.stream.fail(&document);
    }

    fn reply<'a>(&'a self, phase: Phase<'a>, usage: Option<&'a str>) -> Reply<'a> {
        Reply {
            entry: &self.entry,
            created_at: self.heard.created.unwrap_or(self.created_s),
            phase,
            model: self.heard.model.as_deref(),
            output: "[]",
            usage,
        }
    }

    /// Gives what was not given yet, with the document of the whole answer, which is returned.
    fn give_rest(&mut self, cost: Option<MicroUsd>) -> Result<Vec<u8>, Unrendered> {
        // "unknown" would read as a whole answer, and a call that was cut behind its name as one without arguments.
        if self.heard.finish_reason.is_none() {
            return Err(answer::unrendered("it has no end"));
        }
        let rest = self.text.rest();
        self.give_text(&rest);
        let facts = AnswerFacts {
            entry: &self.entry,
            created_s: self.created_s,
            cost,
        };
        let completion = self.heard.completion();
        let document = answer::translate(&self.turn, completion.as_bytes(), facts)?;
        let text = std::str::from_utf8(&document).ok();
        let given = text.and_then(|text| self.stream.rest(&events::read(text)?, text));
        given.ok_or_else(|| answer::unrendered("it has no end"))?;
        Ok(document)
    }
}

impl fmt::Debug for Live {
    /// No text of an answer is in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("heard_bytes", &self.heard.bytes())
            .finish_non_exhaustive()
    }
}

// === impl Heard ===

impl Heard {
    /// The members of a chunk that are the same in each, or come once.
    fn of_all(&mut self, chunk: &Object<'_>) {
        if self.created.is_none() {
            self.created = chunk
                .get("created")
                .and_then(|created| created.get().parse().ok());
        }
        if self.model.is_none() {
            let model = chunk.get("model").and_then(Text::of);
            self.model = model.map(|model| model.json().to_owned());
        }
        if let Some(usage) = chunk.get("usage") {
            self.usage = Some(usage.to_owned());
        }
    }

    /// Takes a choice, but for its piece of text, which is returned. Fails with what is wrong.
    fn choice<'a>(&mut self, choice: &Object<'a>) -> Result<Option<Text<'a>>, &'static str> {
        if let Some(reason) = choice.get("finish_reason") {
            self.finish_reason = Some(reason.get().to_owned());
        }
        let logprobs = choice.get("logprobs");
        let logprobs = logprobs.and_then(|logprobs| Object::read(logprobs.get())?.get("content"));
        for token in logprobs.and_then(array).unwrap_or_default() {
            self.logprobs.push_str(token.get());
            self.logprobs.push(',');
        }
        let Some(delta) = choice.get("delta") else {
            return Ok(None);
        };
        let delta = Object::read(delta.get()).ok_or("a delta is no object")?;
        for call in delta.get("tool_calls").and_then(array).unwrap_or_default() {
            self.call(call)?;
        }
        if let Some(refusal) = piece(&delta, "refusal")? {
            self.refusal.push_str(refusal.escaped());
        }
        piece(&delta, "content")
    }

    /// Takes a piece of a call: its id and name come once, its arguments in pieces.
    fn call(&mut self, raw: &RawValue) -> Result<(), &'static str> {
        let call = Object::read(raw.get()).ok_or("one of its calls is no object")?;
        let id = piece(&call, "id")?.filter(|id| !id.is_empty());
        let index: Option<u64> = match call.get("index") {
            Some(index) => Some(
                index
                    .get()
                    .parse()
                    .map_err(|_| "a call's index is no number")?,
            ),
            None => None,
        };
        let function = call.get("function");
        let function = function.map(|function| {
            Object::read(function.get()).ok_or("one of its calls is to no function")
        });
        let function = function.transpose()?;
        let name = match &function {
            Some(function) => piece(function, "name")?.filter(|name| !name.is_empty()),
            None => None,
        };
        let place = match self.place_of(index, id, name) {
            Some(place) => place,
            None if self.calls.len() >= CALLS_MAX => return Err("it has too many calls"),
            None => {
                self.calls.push(HeardCall {
                    index,
                    ..HeardCall::default()
                });
                self.calls.len() - 1
            }
        };
        let Some(known) = self.calls.get_mut(place) else {
            return Ok(());
        };
        if known.id.is_none() {
            known.id = id.map(|id| id.json().to_owned());
        }
        let Some(function) = function else {
            return Ok(());
        };
        if known.name.is_none() {
            known.name = name.map(|name| name.json().to_owned());
        }
        if let Some(arguments) = piece(&function, "arguments")? {
            known.arguments.push_str(arguments.escaped());
        }
        Ok(())
    }

    /// Which call a piece belongs to. `None`: it begins one. Some services give every call the same number or none:
    /// an id that is new begins a call, and so does a name where there is one and no id says otherwise.
    fn place_of(
        &self,
        index: Option<u64>,
        id: Option<Text<'_>>,
        name: Option<Text<'_>>,
    ) -> Option<usize> {
        let place = match (index, id) {
            (Some(index), _) => self
                .calls
                .iter()
                .rposition(|known| known.index == Some(index)),
            (None, Some(id)) => {
                let is_of = |known: &HeardCall| known.id.as_deref() == Some(id.json());
                return self.calls.iter().rposition(is_of);
            }
            (None, None) => self.calls.len().checked_sub(1),
        };
        let known = self.calls.get(place?)?;
        let is_another = match (known.id.as_deref(), id) {
            (Some(known), Some(id)) => known != id.json(),
            (_, None) => index.is_none() && name.is_some() && known.name.is_some(),
            (None, Some(_)) => false,
        };
        place.filter(|_| !is_another)
    }

    /// The chat completion that the stream would have been as a whole.
    fn completion(&self) -> String {
        let mut out = String::with_capacity(self.bytes() + 1024);
        out.push_str("{\"choices\":[{\"finish_reason\":");
        out.push_str(self.finish_reason.as_deref().unwrap_or("null"));
        out.push_str(",\"logprobs\":");
        match self.logprobs.strip_suffix(',') {
            Some(tokens) => {
                for part in ["{\"content\":[", tokens, "]}"] {
                    out.push_str(part);
                }
            }
            None => out.push_str("null"),
        }
        out.push_str(",\"message\":{\"role\":\"assistant\",\"content\":\"");
        out.push_str(&self.content);
        out.push_str("\",\"refusal\":\"");
        out.push_str(&self.refusal);
        out.push_str("\",\"tool_calls\":[");
        for (place, call) in self.calls.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            out.push_str("{\"id\":");
            out.push_str(call.id.as_deref().unwrap_or("null"));
            out.push_str(",\"function\":{\"name\":");
            out.push_str(call.name.as_deref().unwrap_or("null"));
            for part in [",\"arguments\":\"", &call.arguments, "\"}}"] {
                out.push_str(part);
            }
        }
        out.push_str("]}}]");
        if let Some(created) = self.created {
            out.push_str(&format!(",\"created\":{created}"));
        }
        if let Some(model) = &self.model {
            out.push_str(",\"model\":");
            out.push_str(model);
        }
        if let Some(usage) = &self.usage {
            out.push_str(",\"usage\":");
            out.push_str(usage.get());
        }
        out.push('}');
        out
    }

    /// What is kept of an answer that is given no further: its counts.
    fn forget(&mut self) {
        *self = Self {
            created: self.created,
            model: self.model.take(),
            usage: self.usage.take(),
            ..Self::default()
        };
    }

    fn bytes(&self) -> usize {
        let calls = self.calls.iter().map(HeardCall::bytes);
        let texts = self.content.len() + self.refusal.len() + self.logprobs.len();
        let words = [&self.model, &self.finish_reason].into_iter().flatten();
        let words: usize = words.map(String::len).sum();
        let usage = self.usage.as_ref().map_or(0, |usage| usage.get().len());
        texts + words + usage + calls.sum::<usize>()
    }
}

// === impl HeardCall ===

impl HeardCall {
    fn bytes(&self) -> usize {
        let words = [&self.id, &self.name].into_iter().flatten();
        let words: usize = words.map(String::len).sum();
        size_of::<Self>() + words + self.arguments.len()
    }
}

/// A member that comes in pieces. Fails where it is no string.
fn piece<'a>(of: &Object<'a>, name: &str) -> Result<Option<Text<'a>>, &'static str> {
    match of.get(name) {
        None => Ok(None),
        Some(value) => Text::of(value)
            .map(Some)
            .ok_or("a piece of text is no string"),
    }
}

/// What the service says of an error in its stream.
fn error_words(error: &RawValue) -> String {
    let message = Object::read(error.get()).and_then(|error| error.get("message"));
    let words = message.unwrap_or(error);
    let text = Text::of(words).and_then(Text::unescaped);
    let text = text.unwrap_or_else(|| words.get().into());
    let text: String = text.chars().take(ERROR_CHARS_MAX).collect();
    format!("the service reports an error in it: {text}")
}

#[cfg(test)]
mod tests;
