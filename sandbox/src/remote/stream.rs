//! A chat completion as it is written: the deltas of a server's event stream.
//!
//! Promise: a stream that breaks, falls silent, or ends before its finish is reported as broken, never as
//! whole.

mod calls;

use super::reply::{self, ANSWER_BYTES_MAX};
use crate::{
    clock::Clock,
    models::{Draft, Usage},
    spec,
};
use calls::Calls;
use serde_json::{Map, Value};
use std::{collections::VecDeque, time::Duration};

/// An open stream, its first piece already read.
#[derive(Debug)]
pub struct Deltas {
    response: reqwest::Response,
    lines: Lines,
    ready: VecDeque<Piece>,
    silence_max: Duration,
    clock: Clock,
    content: String,
    /// `None` if no tool was offered.
    calls: Option<Calls>,
    finish: Option<String>,
    usage: Option<Value>,
    bytes: usize,
    ended: bool,
}

/// One delta, as it is relayed: `content` alone, and the `logprobs` that came with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    pub content: String,
    pub logprobs: Option<Value>,
}

/// Why a stream is not whole, for the log.
#[derive(Clone, Copy, Debug)]
pub struct Broken(pub &'static str);

// === impl Deltas ===

impl Deltas {
    pub async fn open(
        response: reqwest::Response,
        may_call: bool,
        silence_max: Duration,
        clock: Clock,
    ) -> Result<Self, Broken> {
        let mut deltas = Self {
            response,
            lines: Lines::default(),
            ready: VecDeque::new(),
            silence_max,
            clock,
            content: String::new(),
            calls: may_call.then(Calls::default),
            finish: None,
            usage: None,
            bytes: 0,
            ended: false,
        };
        while deltas.ready.is_empty() && !deltas.ended {
            deltas.read().await?;
        }
        Ok(deltas)
    }

    /// Whether it ended without a word.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.content.is_empty() && !self.is_calling()
    }

    /// Whether a tool call, or the beginning of one, has arrived.
    pub fn is_calling(&self) -> bool {
        self.calls.as_ref().is_some_and(|calls| !calls.is_empty())
    }

    /// The next piece; `None` when the stream is whole.
    pub async fn next(&mut self) -> Result<Option<Piece>, Broken> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(Some(piece));
            }
            if self.ended {
                return Ok(None);
            }
            let (clock, silence_max) = (self.clock.clone(), self.silence_max);
            tokio::select! {
                read = self.read() => read?,
                () = clock.sleep(silence_max) => return Err(Broken("it fell silent")),
            }
        }
    }

    /// The whole text, and the usage if the server reported a plausible one.
    pub fn finish(self) -> Result<(Draft, Option<Usage>), Broken> {
        let calls = self.calls.map_or_else(|| Some(Vec::new()), Calls::whole);
        let tool_calls = calls.ok_or(Broken("a tool call without a name"))?;
        // Beside tool calls an empty text counts as none, as in a whole answer.
        let content = (tool_calls.is_empty() || !self.content.is_empty()).then_some(self.content);
        let finish = self.finish.as_deref();
        let draft = Draft {
            content,
            tool_calls,
            cut_by_length: finish == Some("length"),
            filtered: finish == Some("content_filter"),
            ..Draft::default()
        };
        let usage = self
            .usage
            .and_then(|reported| reply::usage(&reported, &draft));
        Ok((draft, usage))
    }

    /// Reads what the next bytes hold.
    async fn read(&mut self) -> Result<(), Broken> {
        let bytes = self
            .response
            .chunk()
            .await
            .map_err(|_| Broken("the stream broke off"))?;
        let Some(bytes) = bytes else {
            // Not every server writes [DONE]; a finish reason means the same.
            if self.finish.is_none() {
                return Err(Broken("the stream ended before its finish"));
            }
            self.ended = true;
            return Ok(());
        };
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > ANSWER_BYTES_MAX {
            return Err(Broken("a stream over 32 MiB"));
        }
        for event in self.lines.events(&bytes) {
            self.event(&event)?;
            if self.ended {
                break;
            }
        }
        Ok(())
    }

    fn event(&mut self, event: &[u8]) -> Result<(), Broken> {
        if event == spec::DONE.as_bytes() {
            if self.finish.is_none() {
                return Err(Broken("[DONE] came before the finish"));
            }
            self.ended = true;
            return Ok(());
        }
        let chunk: Map<String, Value> =
            serde_json::from_slice(event).map_err(|_| Broken("a chunk that is no JSON object"))?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Broken("the server reported an error in the stream"));
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Some(usage.clone());
        }
        let choice = chunk
            .get("choices")
            .and_then(Value::as_array)
            .and_then(|choices| choices.first());
        let Some(choice) = choice else {
            return Ok(());
        };
        let delta = choice.get("delta");
        let pieces = delta
            .and_then(|delta| delta.get("tool_calls"))
            .and_then(Value::as_array);
        for piece in pieces.into_iter().flatten() {
            let Some(calls) = &mut self.calls else {
                return Err(Broken("a tool call where no tool was offered"));
            };
            if !calls.add(piece) {
                return Err(Broken("a tool call of no known form"));
            }
        }
        let content = delta
            .and_then(|delta| delta.get("content"))
            .and_then(Value::as_str)
            .unwrap_or("");
        if !content.is_empty() {
            self.content.push_str(content);
            self.ready.push_back(Piece {
                content: content.to_owned(),
                logprobs: choice
                    .get("logprobs")
                    .filter(|value| value.is_object())
                    .cloned(),
            });
        }
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(finish.to_owned());
        }
        Ok(())
    }
}

/// Bytes to events: the values of the `data:` lines up to an empty line, joined as the standard says.
#[derive(Debug, Default)]
struct Lines {
    line: Vec<u8>,
    event: Vec<u8>,
    has_event: bool,
    after_return: bool,
}

// === impl Lines ===

impl Lines {
    fn events(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        for byte in bytes {
            // A line ends with CR, LF, or both.
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(*byte),
            }
        }
        events
    }

    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_event).then_some(event);
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            if std::mem::replace(&mut self.has_event, true) {
                self.event.push(b'\n');
            }
            self.event.extend_from_slice(value);
        }
        None
    }
}

#[cfg(test)]
mod tests;
