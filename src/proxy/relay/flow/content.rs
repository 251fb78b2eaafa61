//! The bytes of a flowing answer between the service and the app: what of them may go out, and what they
//! contain for the receipt.
//!
//! Promise: what goes out is what came, without the organization's key (rule I9) and with what it cost, where the app
//! asks for that; the bytes that may begin
//! `data: [DONE]`, and the last chunk of a document, are held until they are asked for (rule I2). Of an answer that is
//! translated while it comes goes out what [`Live`] makes of it, and its end when it is asked for.

use bytes::Bytes;
use memchr::memchr;

use super::redactor::Redactor;
use crate::config::ApiKey;
use crate::money::MicroUsd;
use crate::protocol::body::{AnswerPeek, JsonFieldScanner, add_usage_cost, priced_chunk};
use crate::protocol::sse::{HoldBack, SseEvent, SseScanner, StreamKind};
use crate::protocol::translate::responses::live::{HEARD_BYTES_MAX, Live};
use crate::proxy::purchase::event::EndMark;
use crate::proxy::refuse::Refusal;
use crate::proxy::settings::Settings;
use crate::proxy::settle::Gathered;

/// One answer's bytes.
pub(super) struct Content {
    redactor: Redactor,
    form: ContentForm,
}

enum ContentForm {
    /// A large body.
    Document {
        fields: JsonFieldScanner,
        /// The chunk that waits for its successor.
        last: Option<Bytes>,
    },
    /// An event stream in a coding that was not asked for. It passes as it is, and nothing in it can be read.
    Coded,
    Events {
        scanner: SseScanner,
        hold: HoldBack,
        /// Its comments are receipt lines.
        has_comments: bool,
        /// What the last chunk with `usage` says, where it takes a cost.
        usage: Option<Vec<u8>>,
        tail: Option<Tail>,
    },
    /// A stream that is given in another dialect.
    Live {
        scanner: SseScanner,
        has_comments: bool,
        live: Box<Live>,
    },
}

/// What was held when the end mark came.
struct Tail {
    held: Bytes,
    /// It begins with a chunk that has `usage`.
    has_usage: bool,
}

/// What goes out behind the outcome of a stream that is translated while it comes.
pub(super) struct LiveEnd {
    pub events: Bytes,
    /// The answer as a whole, where it is one.
    pub document: Option<Vec<u8>>,
}

/// What became of bytes that came.
pub(super) struct PassedBytes {
    pub bytes: usize,
    /// What may go out now.
    pub piece: Option<Bytes>,
    pub end_mark: EndMark,
}

/// What an event of the service's stream says for the receipt.
fn absorb(event: SseEvent<'_>, has_comments: bool, gathered: &mut Gathered, settings: &Settings) {
    match event {
        SseEvent::Comment { name, value } if has_comments => {
            gathered.absorb_comment(settings, name, value);
        }
        SseEvent::Usage(usage) => gathered.absorb_usage(usage),
        _ => {}
    }
}

// === impl Content ===

impl Content {
    pub fn document(key: ApiKey) -> Self {
        Self::of(
            key,
            ContentForm::Document {
                fields: JsonFieldScanner::default(),
                last: None,
            },
        )
    }

    pub fn coded(key: ApiKey) -> Self {
        Self::of(key, ContentForm::Coded)
    }

    /// `takes_cost`: the last chunk with `usage` is for [`Self::with_cost`], and waits for it where it is the last of all.
    pub fn events(key: ApiKey, kind: StreamKind, has_comments: bool, takes_cost: bool) -> Self {
        let scanner = SseScanner::new(kind);
        Self::of(
            key,
            ContentForm::Events {
                scanner: match takes_cost {
                    true => scanner.holding_usage(),
                    false => scanner,
                },
                hold: HoldBack::new(),
                has_comments,
                usage: None,
                tail: None,
            },
        )
    }

    /// A stream that `live` translates.
    pub fn live(key: ApiKey, has_comments: bool, live: Live) -> Self {
        let scanner = SseScanner::new(StreamKind::Data).giving_lines(HEARD_BYTES_MAX);
        // The redactor sees lines, and an app joins the texts of two.
        let secret = key.clone();
        let live = live.without(Box::new(move |text, more_comes| {
            secret.redacted_chunk(text, more_comes)
        }));
        Self::of(
            key,
            ContentForm::Live {
                scanner,
                has_comments,
                live: Box::new(live),
            },
        )
    }

    fn of(key: ApiKey, form: ContentForm) -> Self {
        Self {
            redactor: Redactor::new(key),
            form,
        }
    }

    /// Takes the next chunk; `None` is the end, behind which the redactor holds nothing.
    pub fn pass(
        &mut self,
        chunk: Option<Bytes>,
        gathered: &mut Gathered,
        settings: &Settings,
    ) -> PassedBytes {
        let clean = match chunk {
            Some(chunk) => self.redactor.pass(chunk),
            None => self.redactor.rest(),
        };
        let bytes = clean.len();
        gathered.passed(bytes);
        let (piece, end_mark) = if clean.is_empty() {
            (None, EndMark::None)
        } else {
            self.read(clean, gathered, settings)
        };
        PassedBytes {
            bytes,
            piece,
            end_mark,
        }
    }

    fn read(
        &mut self,
        chunk: Bytes,
        gathered: &mut Gathered,
        settings: &Settings,
    ) -> (Option<Bytes>, EndMark) {
        match &mut self.form {
            ContentForm::Document { fields, last } => {
                fields.feed(&chunk);
                (last.replace(chunk), EndMark::None)
            }
            ContentForm::Coded => (Some(chunk), EndMark::None),
            ContentForm::Events {
                scanner,
                hold,
                has_comments,
                usage,
                tail,
            } => {
                let scan = scanner.feed(&chunk, &mut |event| match event {
                    SseEvent::Line(line) => *usage = Some(line.to_vec()),
                    event => absorb(event, *has_comments, gathered, settings),
                });
                let piece = hold.push(chunk, &scan);
                let Some(bytes) = scanner.bytes_to_end_mark() else {
                    return (piece, EndMark::None);
                };
                // How much is behind it in this chunk is chance.
                gathered.ended_after(bytes);
                let held = hold.take();
                if tail.is_none() {
                    *tail = held.clone().map(|held| Tail {
                        held,
                        has_usage: scanner.holds_usage(),
                    });
                }
                (piece, EndMark::Came { held })
            }
            ContentForm::Live {
                scanner,
                has_comments,
                live,
            } => {
                scanner.feed(&chunk, &mut |event| match event {
                    SseEvent::Line(line) => live.hear(line),
                    SseEvent::LineLost => live.missed(),
                    event => absorb(event, *has_comments, gathered, settings),
                });
                let piece = live.events().map(Bytes::from);
                let Some(bytes) = scanner.bytes_to_end_mark() else {
                    return (piece, EndMark::None);
                };
                gathered.ended_after(bytes);
                (piece, EndMark::Came { held: None })
            }
        }
    }

    /// The end of a stream that is translated while it comes, once it is settled at this cost, if that is shown.
    /// `None`: it is no such stream.
    pub fn live_end(&mut self, cost: Option<MicroUsd>, key: &ApiKey) -> Option<LiveEnd> {
        let ContentForm::Live { live, .. } = &mut self.form else {
            return None;
        };
        let ending = live.ends(cost);
        // What was taken out of JSON has lost the escapes that may have hidden the key, and pieces are joined.
        let without_key = |text: Vec<u8>| key.redacted(&text).unwrap_or(text);
        Some(LiveEnd {
            events: Bytes::from(without_key(ending.events)),
            document: ending.document.map(without_key),
        })
    }

    /// The event that says in its dialect why such a stream breaks. `None`: it is no such stream, or nothing of it was
    /// given, or its end was.
    pub fn live_break(&mut self, refusal: &Refusal) -> Option<Bytes> {
        let ContentForm::Live { live, .. } = &mut self.form else {
            return None;
        };
        let event = live.breaks(refusal.code.as_str(), &refusal.detail);
        event.map(Bytes::from)
    }

    /// Bytes that are kept until the end of a stream that is translated while it comes.
    pub fn live_bytes(&self) -> usize {
        match &self.form {
            ContentForm::Live { live, .. } => live.heard_bytes(),
            _ => 0,
        }
    }

    /// What was held when the end mark came, with what it cost: in the chunk with `usage` that it begins with; behind one
    /// that was followed by others, in a chunk more that repeats its counts. `None`: there is no `usage` that could take
    /// that.
    pub fn with_cost(&self, cost: MicroUsd) -> Option<Bytes> {
        let ContentForm::Events {
            usage: Some(usage),
            tail: Some(tail),
            ..
        } = &self.form
        else {
            return None;
        };
        let held = &tail.held;
        if !tail.has_usage {
            let chunk = priced_chunk(usage.trim_ascii(), cost)?;
            return Some(Bytes::from(
                [b"data: ", &*chunk, b"\n\n", held.as_ref()].concat(),
            ));
        }
        let (line, rest) = held.split_at_checked(memchr(b'\n', held)?)?;
        let json = line.strip_prefix(b"data:")?;
        let edited = add_usage_cost(json, cost)?;
        Some(Bytes::from([b"data:", &*edited, rest].concat()))
    }

    /// What was held to the end.
    pub fn rest(&mut self) -> Vec<Bytes> {
        match &mut self.form {
            ContentForm::Document { last, .. } => last.take().into_iter().collect(),
            ContentForm::Coded | ContentForm::Live { .. } => Vec::new(),
            ContentForm::Events { hold, .. } => hold.take().into_iter().collect(),
        }
    }

    /// What a document contains, as far as it has come.
    pub fn peek(&self) -> Option<AnswerPeek> {
        match &self.form {
            ContentForm::Document { fields, .. } => Some(fields.peek()),
            ContentForm::Coded | ContentForm::Events { .. } | ContentForm::Live { .. } => None,
        }
    }
}
