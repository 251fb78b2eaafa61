//! What an app is given of the service's answer where that is not the answer itself: a stream that is
//! made of a whole agent turn (`[streams] agent_receipts = "exact"`: the interface names the price of
//! whole turns only), the answer in the app's own dialect, or one of bursar's own making: a model of the list.
//!
//! Promise: what is made is made of a settled answer, before a byte goes out, but for what a live translation gives
//! of a stream's text while it comes; an error stays the error that it
//! is, with its status. No head goes out early: it would have to say 200 before that is known, and an
//! error inside a stream is one that SDKs neither show as their own kind nor retry. A document is kept for a
//! repeat as a document, and each app is given it in the form that it asks for.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use pingora::http::ResponseHeader;

use crate::ledger::GivenAs;
use crate::protocol::Dialect;
use crate::protocol::body::as_event_stream;
use crate::protocol::translate::models::NoModel;
use crate::protocol::translate::responses::live::Live;
use crate::protocol::translate::responses::memory;
use crate::protocol::translate::{self, AnswerFacts, Rendering, Unrendered, audio, models};
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::upstream::heads;

/// What the app is given of the service's answer.
#[derive(Debug)]
pub enum Given {
    /// The answer as it comes.
    Served,
    /// The app wants a stream, and a whole turn was asked for, which names its price.
    MadeStream,
    /// The app speaks a dialect.
    Translated(Rendering),
    /// The app speaks OpenAI's form of the speech routes.
    Audio(audio::Turn),
    /// The app asks for the list of models, or for one of it, as the service does not have it.
    Models(models::Asked),
}

/// Behind an answer of a route without a key.
const BILLED_AGAIN: &str = "It was billed, and a repeat of the request runs and is billed again.";

// === impl Given ===

impl Given {
    /// A document has to be whole before any of it is given.
    pub fn is_remade(&self) -> bool {
        !matches!(self, Self::Served)
    }

    /// It is translated while it comes.
    pub fn is_live(&self) -> bool {
        matches!(self, Self::Translated(rendering) if rendering.is_live())
    }

    /// What the service is asked to answer with. `None`: what the app asks for.
    pub fn accepted(&self) -> Option<&'static str> {
        match self {
            Self::Served => None,
            Self::Translated(_) if self.is_live() => Some("text/event-stream"),
            Self::MadeStream | Self::Translated(_) | Self::Audio(_) | Self::Models(_) => {
                Some("application/json")
            }
        }
    }

    /// How often the answer stands in memory when it is given. The events of a Response have a text five times.
    pub fn copies(&self) -> usize {
        match self {
            Self::Served => 1,
            Self::Translated(rendering) if rendering.wants_stream() => 7,
            Self::MadeStream => 3,
            Self::Translated(_) | Self::Audio(_) | Self::Models(_) => 2,
        }
    }

    /// What is made of the answer has so many bytes of the request.
    pub fn echoed_bytes(&self) -> usize {
        match self {
            Self::Translated(rendering) => rendering.echoed_bytes(),
            Self::Served | Self::MadeStream | Self::Audio(_) | Self::Models(_) => 0,
        }
    }

    /// Whether this kind of answer is given as it flows.
    pub fn takes_flowing(&self, head: &ResponseHeader) -> bool {
        let is_event_stream = heads::is_event_stream(&head.headers);
        match self {
            Self::Served => true,
            Self::MadeStream => is_event_stream,
            // In a coding that was not asked for it can only pass.
            Self::Translated(_) => {
                let is_read = is_event_stream && !heads::is_encoded(&head.headers);
                is_read && self.is_live() && head.status.is_success()
            }
            Self::Audio(_) | Self::Models(_) => false,
        }
    }

    /// An answer that is translated while it comes. `entry` and `created_s` are those of [`AnswerFacts`].
    pub(super) fn live(&self, entry: String, created_s: u64) -> Option<Live> {
        match self {
            Self::Translated(rendering) => rendering.live(entry, created_s),
            _ => None,
        }
    }

    /// For the fingerprint.
    pub fn kind(&self) -> GivenAs {
        match self {
            Self::Served => GivenAs::Served,
            Self::MadeStream => GivenAs::MadeStream,
            Self::Translated(rendering) => {
                GivenAs::rendered(rendering.dialect(), &rendering.asked())
            }
            Self::Audio(turn) => GivenAs::rendered(Dialect::Audio, &format!("{turn:?}")),
            // They make no entry.
            Self::Models(_) => GivenAs::Served,
        }
    }

    pub fn dialect(&self) -> Dialect {
        match self {
            Self::Translated(rendering) => rendering.dialect(),
            Self::Audio(_) => Dialect::Audio,
            Self::Models(asked) => asked.dialect,
            Self::Served | Self::MadeStream => Dialect::Chat,
        }
    }

    /// The body that goes with this head, made of the service's. It is the form in which an answer is kept.
    /// `None`: it is the service's. A refusal takes its place.
    pub(super) fn made(
        &self,
        head: &mut ResponseHeader,
        body: &Bytes,
        facts: AnswerFacts<'_>,
    ) -> Result<Option<Bytes>, Refusal> {
        let is_success = head.status.is_success();
        match self {
            Self::MadeStream if is_success => Ok(as_event_stream(body).map(|stream| {
                becomes_stream(head);
                Bytes::from(stream)
            })),
            Self::Translated(rendering) if is_success => {
                let document = rendering.document(body, facts).map_err(unrendered)?;
                set(&mut *head, CONTENT_TYPE, "application/json");
                Ok(Some(Bytes::from(document)))
            }
            Self::Audio(turn) if is_success => {
                let rendered = audio::answer(turn, body).map_err(|unrendered| {
                    let words = format!("{} {BILLED_AGAIN}", unrendered.message);
                    Refusal::saying(Code::AnswerUntranslatable, words)
                })?;
                set(&mut *head, CONTENT_TYPE, rendered.content_type);
                Ok(Some(Bytes::from(rendered.body)))
            }
            Self::Models(asked) if is_success => {
                let answer = asked.answer(body).map_err(no_model)?;
                set(&mut *head, CONTENT_TYPE, "application/json");
                Ok(Some(Bytes::from(answer)))
            }
            Self::Translated(_) | Self::Models(_) => {
                let error = translate::error(self.dialect(), head.status.as_u16(), body);
                Ok(error.map(|error| {
                    set(&mut *head, CONTENT_TYPE, "application/json");
                    Bytes::from(error)
                }))
            }
            Self::Audio(_) | Self::Served | Self::MadeStream => Ok(None),
        }
    }

    /// Whether this app reads a kept answer with this head as events.
    pub(super) fn reads_as_events(&self, head: &ResponseHeader) -> bool {
        let Self::Translated(rendering) = self else {
            return false;
        };
        head.status.is_success()
            && rendering.wants_stream()
            && !heads::is_event_stream(&head.headers)
    }

    /// The head of a document that is given as events.
    pub(super) fn event_head(head: &ResponseHeader) -> ResponseHeader {
        let mut head = head.clone();
        head.remove_header(&CONTENT_LENGTH);
        becomes_stream(&mut head);
        head
    }

    /// The document as events. One that [`Self::made`] made always can be.
    pub(super) fn events(&self, document: &Bytes) -> Option<Bytes> {
        match self {
            Self::Translated(rendering) => Some(Bytes::from(rendering.events(document).ok()?)),
            Self::Served | Self::MadeStream | Self::Audio(_) | Self::Models(_) => None,
        }
    }

    /// What the app's next request may refer to of a document.
    pub(super) fn leaves(&self, status: StatusCode, document: &[u8]) -> Option<memory::Given> {
        match self {
            Self::Translated(rendering) if status.is_success() => rendering.given(document),
            _ => None,
        }
    }

    /// The answer is a stream to its app.
    pub(super) fn is_stream(&self, headers: &HeaderMap) -> bool {
        match self {
            Self::Translated(rendering) => rendering.wants_stream(),
            Self::Audio(_) | Self::Models(_) => false,
            Self::Served | Self::MadeStream => heads::is_event_stream(headers),
        }
    }
}

fn unrendered(unrendered: Unrendered) -> Refusal {
    Refusal::because(Code::AnswerUntranslatable, unrendered.message)
}

/// Of a free route: nothing was billed.
fn no_model(none: NoModel) -> Refusal {
    match none {
        NoModel::Unknown => Code::ModelUnknown.into(),
        NoModel::Unrendered(unrendered) => {
            Refusal::saying(Code::UpstreamBroken, unrendered.message)
        }
    }
}

fn becomes_stream(head: &mut ResponseHeader) {
    set(head, CONTENT_TYPE, "text/event-stream; charset=utf-8");
    set(head, CACHE_CONTROL, "no-cache");
}

fn set(head: &mut ResponseHeader, name: http::HeaderName, value: &'static str) {
    let inserted = head.insert_header(name, HeaderValue::from_static(value));
    debug_assert!(inserted.is_ok(), "a static header is valid");
}
