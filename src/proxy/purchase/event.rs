//! What happens to an answer on its way to an app, and what is to be done about it: the words in which
//! [`super::answer`] speaks with the shells that move bytes.
//!
//! Promise: data only.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pingora::http::ResponseHeader;

use super::client::{Presence, Written};
use super::lost::Cause;
use crate::ledger::entry::{AttemptEnd, InDoubt};
use crate::proxy::refuse::Code;

/// What is known of a flowing answer before its first piece.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub form: AnswerForm,
    pub is_metered: bool,
    /// The app wants no stream to be read on when it leaves.
    pub is_cancelled: bool,
    /// How long a stream is read without a reader.
    pub stream_time: Duration,
    /// How long a document is read without a reader: as long as a silence of the service may last.
    pub document_time: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// Written at once.
    Whole,
    /// Written at once, and not the answer that the app wanted.
    Error,
    /// Larger than what is written at once; delivered with its last byte.
    Document,
    /// Delivered with its first byte.
    Stream,
    /// A stream that ends with an end mark, and in which an app reads an error.
    Chat,
    /// The same, given in another dialect while it comes. That has no end mark, so its app reads to the body's end, and
    /// what says why it breaks is given with its outcome.
    Translated,
}

/// What the caller has to do, and answer with an [`Event`].
#[derive(Clone, Debug)]
pub enum Action {
    /// Answered by [`Event::Read`], [`Event::Changed`] or [`Event::TimeUp`].
    Read(Wait),
    /// Reads on without a reader, if there is room for one more: [`Event::Did`] or [`Event::Refused`].
    Drain,
    /// Writes the head, where there is one, and the piece: [`Event::Wrote`] or [`Event::Lost`].
    Write {
        head: Option<Arc<ResponseHeader>>,
        piece: Bytes,
    },
    /// Writes all of an answer at once: [`Event::Did`] or [`Event::Lost`].
    WriteWhole(Bytes),
    /// Writes an event that says why the stream breaks: [`Event::Wrote`] or [`Event::Lost`].
    Warn(Bytes),
    /// Records the piece for a repeat: [`Event::Did`] or [`Event::Lost`].
    Keep(Bytes),
    /// Writes the outcome: [`Event::Did`], [`Event::Settled`], [`Event::Refused`] or [`Event::Unwritten`].
    Settle {
        ending: AnswerEnd,
        /// No app has shown to be there for it.
        is_drained: bool,
    },
    /// The service is done: its place goes back. [`Event::Did`].
    FreePlace,
    /// Ends the exchange with the service. [`Event::Did`].
    Leave(Leave),
    /// Ends the body cleanly: [`Event::Did`] or [`Event::Lost`].
    Finish,
    /// Breaks the app's connection, when it has taken what is kept for it. [`Event::Did`].
    Break,
    /// Nothing went out: the app is given this refusal in place of the answer, and all is done.
    Refuse(Code),
    Done(Done),
}

/// How long to wait for the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Until the reader changes.
    Long,
    /// The same, for a follower alone: until it has left, which it may have done by now.
    WhileFollowed,
    AtMost(Duration),
    /// For this long at most, and for the end alone: what else comes is not wanted.
    TheEnd(Duration),
}

/// How the exchange with the service ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Its connection can carry the next request.
    Released,
    /// The receipt is in, and the rest is worth nothing.
    Abandoned,
    /// What is missing is not read.
    GivenUp,
}

/// How the answer ended at the service, for its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerEnd {
    Complete,
    Broke(Cause),
    Stopped(Stop),
}

/// Why bursar reads no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Shutdown,
    /// A request that waited has its place at the service.
    Displaced,
    /// Beyond the bounds of a drain.
    Bounds,
    Cancelled,
    /// As many are drained as may be.
    NoRoom,
    /// It costs nothing, and no app reads it.
    Unread,
}

/// How all ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The app has the whole of it: its connection can be kept.
    pub is_whole: bool,
    /// Why it was broken off.
    pub code: Option<Code>,
}

#[derive(Clone, Debug)]
pub enum Event {
    Read(Read),
    /// The reader has changed.
    Changed,
    TimeUp,
    Wrote(Written),
    /// The action was carried out.
    Did,
    /// The outcome is written, and this goes out first, in place of what was held, if anything was.
    Settled(Bytes),
    /// A write failed, or what was to be kept was not.
    Lost(Loss),
    /// The ledger could not write, or there is no room.
    Refused,
    /// The ledger could not write, and this says so to the app of a stream in another dialect.
    Unwritten(Bytes),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    AppGone,
    /// bursar's stop was out of patience.
    Cut,
}

/// What was read of the service.
#[derive(Clone, Debug)]
pub struct Read {
    pub bytes: usize,
    /// What may go out now.
    pub piece: Option<Bytes>,
    pub end_mark: EndMark,
    pub then: Then,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndMark {
    None,
    /// The receipt is whole. What is held goes out behind it.
    Came {
        held: Option<Bytes>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    More,
    Ended {
        /// What was held back to this end.
        rest: Vec<Bytes>,
        /// It named its amount.
        is_priced: bool,
    },
    Broke(Cause),
    /// bursar's shutdown ended the reading.
    Stopped,
}

/// The app and the clock as they are when an event comes.
#[derive(Clone, Debug)]
pub struct AppView {
    /// Monotonic.
    pub now: Duration,
    pub presence: Presence,
    /// A suspect that took bytes since.
    pub is_proven: bool,
    /// What was taken for writing and waits for its successor.
    pub held: Option<Bytes>,
    /// A waiting request was given the place of this drain.
    pub is_displaced: bool,
}

// === impl AnswerForm ===

impl AnswerForm {
    pub fn is_stream(self) -> bool {
        matches!(self, Self::Stream | Self::Chat | Self::Translated)
    }

    /// The service ends it with one: without, more may have been meant to come.
    pub fn has_end_mark(self) -> bool {
        matches!(self, Self::Chat | Self::Translated)
    }

    /// It is written piece by piece.
    pub fn flows(self) -> bool {
        self == Self::Document || self.is_stream()
    }
}

// === impl AnswerEnd ===

impl AnswerEnd {
    /// How the ledger has it: the end of its attempt, the cause, and why bursar cut it.
    pub fn recorded(self) -> (AttemptEnd, Option<&'static str>, Option<InDoubt>) {
        match self {
            Self::Complete => (AttemptEnd::Answered, None, None),
            Self::Broke(cause) => (AttemptEnd::Broken, Some(cause.as_str()), None),
            Self::Stopped(stop) => (AttemptEnd::Broken, Some("stopped"), Some(stop.in_doubt())),
        }
    }

    /// What the app learns of an answer that ended so.
    pub fn code(self) -> Code {
        match self {
            Self::Stopped(Stop::Shutdown) => Code::ShuttingDown,
            Self::Complete | Self::Broke(_) | Self::Stopped(_) => Code::UpstreamBroken,
        }
    }
}

// === impl Stop ===

impl Stop {
    fn in_doubt(self) -> InDoubt {
        match self {
            Self::Shutdown => InDoubt::Shutdown,
            Self::Displaced | Self::Bounds | Self::Cancelled | Self::NoRoom | Self::Unread => {
                InDoubt::ClientGone
            }
        }
    }

    /// How the counter of drains has it, where it was one.
    pub fn drain_word(self) -> Option<&'static str> {
        match self {
            Self::Displaced => Some("displaced"),
            Self::Bounds => Some("cut"),
            Self::Cancelled => Some("cancelled"),
            Self::NoRoom => Some("refused"),
            Self::Shutdown | Self::Unread => None,
        }
    }
}
