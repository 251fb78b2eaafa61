//! The dialects behind one door: which of them translates a request, and what its answer is made with.
//!
//! Why: the proxy has one way for all of them; a further dialect is a further arm here.
//!
//! Promise: as of [`super`].

use std::sync::Arc;

use super::responses::live::Live;
use super::responses::memory::Given;
use super::responses::request::Earlier;
use super::{AnswerFacts, Translated, Unrendered, Untranslatable, messages, responses};
use crate::protocol::Dialect;

/// What was asked for in a dialect, as far as its answer depends on it.
#[derive(Debug)]
pub struct Rendering {
    turn: Turn,
    reads: Reads,
}

/// The form in which the app reads its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    Document,
    /// Made of a whole answer.
    Events,
    /// While the service's stream comes.
    LiveEvents,
}

#[derive(Debug)]
enum Turn {
    Responses(Arc<responses::Turn>),
    Messages(messages::Turn),
}

/// What asks the service for a stream with its token counts.
/// Assumed: the inference lane takes `stream_options` as OpenAI does; the interface lists it for the agent lane.
const LIVE_MEMBERS: &[u8] = b",\"stream\":true,\"stream_options\":{\"include_usage\":true}}";

/// Translates a request. `earlier`: what the app was given before, by id. `None`: the dialect is the service's
/// own.
pub fn translate(
    dialect: Dialect,
    body: &[u8],
    earlier: Earlier<'_>,
) -> Option<Result<Translated<Rendering>, Untranslatable>> {
    match dialect {
        Dialect::Chat | Dialect::Audio => None,
        Dialect::Responses => {
            let translated = responses::request::translate(body, earlier);
            Some(
                translated
                    .map(|translated| rendered(translated, |turn| Turn::Responses(Arc::new(turn)))),
            )
        }
        Dialect::Messages => {
            let translated = messages::request::translate(body);
            Some(translated.map(|translated| rendered(translated, Turn::Messages)))
        }
    }
}

/// An error's body in a dialect, whether bursar's own or the service's. `None`: as it is.
pub fn error(dialect: Dialect, status: u16, body: &[u8]) -> Option<Vec<u8>> {
    match dialect {
        Dialect::Chat | Dialect::Audio => None,
        Dialect::Responses => Some(responses::error::body(status, body)),
        Dialect::Messages => Some(messages::error::body(status, body)),
    }
}

fn rendered<T>(of: Translated<T>, turn: impl FnOnce(T) -> Turn) -> Translated<Rendering> {
    Translated {
        body: of.body,
        turn: Rendering {
            turn: turn(of.turn),
            reads: match of.wants_stream {
                true => Reads::Events,
                false => Reads::Document,
            },
        },
        wants_stream: of.wants_stream,
        dropped: of.dropped,
    }
}

// === impl Rendering ===

impl Rendering {
    pub fn dialect(&self) -> Dialect {
        match self.turn {
            Turn::Responses(_) => Dialect::Responses,
            Turn::Messages(_) => Dialect::Messages,
        }
    }

    /// All that the answer takes from the request, as one text: of two requests that are sent alike, one that
    /// differs here is given another answer. Not whether it reads events: an answer is given in both forms.
    pub fn asked(&self) -> String {
        match &self.turn {
            Turn::Responses(turn) => turn.asked(),
            Turn::Messages(turn) => format!("{turn:?}"),
        }
    }

    /// Bytes that are kept of the request until it is answered, beside the body that is sent.
    pub fn kept_bytes(&self) -> usize {
        match &self.turn {
            Turn::Responses(turn) => turn.kept_bytes(),
            Turn::Messages(_) => 0,
        }
    }

    /// Bytes of the request in what is made of the answer: a document, or three events that have one, and the answer that
    /// is kept for a repeat.
    pub fn echoed_bytes(&self) -> usize {
        let documents = if self.wants_stream() { 4 } else { 1 };
        match &self.turn {
            Turn::Responses(turn) => turn.echoed_bytes().saturating_mul(documents),
            Turn::Messages(_) => 0,
        }
    }

    /// The app reads events.
    pub fn wants_stream(&self) -> bool {
        self.reads != Reads::Document
    }

    /// The service is asked for a stream, which is given while it comes. As it is where the app reads no events, or
    /// its dialect begins with what is only known at the end.
    pub fn goes_live(&mut self, body: &mut Vec<u8>) {
        let can_be = matches!(self.turn, Turn::Responses(_)) && self.wants_stream();
        if can_be && body.pop_if(|last| *last == b'}').is_some() {
            body.extend_from_slice(LIVE_MEMBERS);
            self.reads = Reads::LiveEvents;
        }
    }

    /// It reads them while the service's stream comes.
    pub fn is_live(&self) -> bool {
        self.reads == Reads::LiveEvents
    }

    /// The answer while it comes. `entry` and `created_s` are those of [`AnswerFacts`].
    pub fn live(&self, entry: String, created_s: u64) -> Option<Live> {
        match &self.turn {
            Turn::Responses(turn) if self.is_live() => {
                Some(Live::new(Arc::clone(turn), entry, created_s))
            }
            Turn::Responses(_) | Turn::Messages(_) => None,
        }
    }

    /// The service's whole answer as a document of the dialect.
    pub fn document(&self, body: &[u8], facts: AnswerFacts<'_>) -> Result<Vec<u8>, Unrendered> {
        match &self.turn {
            Turn::Responses(turn) => responses::answer::translate(turn, body, facts),
            Turn::Messages(turn) => messages::answer::translate(turn, body, facts),
        }
    }

    /// A document of the dialect as the events that carry it.
    pub fn events(&self, document: &[u8]) -> Result<Vec<u8>, Unrendered> {
        match &self.turn {
            Turn::Responses(_) => responses::events::of(document),
            Turn::Messages(_) => Ok(messages::events::of(document)),
        }
    }

    /// What later requests may refer to of a document that was given.
    pub fn given(&self, document: &[u8]) -> Option<Given> {
        match &self.turn {
            Turn::Responses(turn) => responses::answer::given(turn, document),
            Turn::Messages(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
