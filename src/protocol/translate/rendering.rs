//! The dialects behind one door: which of them translates a request, and what its answer is made with.
//!
//! Why: the proxy has one way for all of them; a further dialect is a further arm here.
//!
//! Promise: as of [`super`].

use super::responses::memory::Given;
use super::responses::request::Earlier;
use super::{AnswerFacts, Translated, Unrendered, Untranslatable, messages, responses};
use crate::protocol::Dialect;

/// What was asked for in a dialect, as far as its answer depends on it.
#[derive(Debug)]
pub struct Rendering {
    turn: Turn,
    wants_stream: bool,
}

#[derive(Debug)]
enum Turn {
    Responses(responses::Turn),
    Messages(messages::Turn),
}

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
            Some(translated.map(|translated| rendered(translated, Turn::Responses)))
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
            wants_stream: of.wants_stream,
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

    /// The app reads events.
    pub fn wants_stream(&self) -> bool {
        self.wants_stream
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
