//! One answer on its way to an app that follows: its request equals an earlier one, whose own app has left.
//!
//! | doing | event | what follows |
//! |---|---|---|
//! | waiting | a head | write it |
//! | waiting | a chunk | write it |
//! | waiting | the end of a complete answer | finish |
//! | waiting | a break, before any head | give the refusal |
//! | waiting | a break behind a head | an error event where the app reads events, then break the connection |
//! | waiting | its app has left, and has none of the answer that counts | over: the next request may follow |
//! | writing a chunk | written | of a stream, bytes that are out: delivered; of a document: begun |
//! | finishing | the app has it to its end | delivered, unless it is an error |
//! | any | the write failed | over |
//!
//! Promise: no I/O. Nothing is given to an app that is known to have left, as long as nothing counts as
//! delivered; an error is never delivered.

use std::sync::Arc;

use bytes::Bytes;
use pingora::http::ResponseHeader;

use super::client::{Presence, Written};
use super::shared::{Follower, Received, ReplayEnd, ReplayItem};
use crate::proxy::refuse::{Code, Refusal};

/// One answer that is taken over, and what its app has of it.
#[derive(Debug)]
pub struct Following {
    /// The app reads an error in a stream of this route.
    reads_errors: bool,
    head: Option<Head>,
    has: Received,
    ends_in_newline: bool,
    doing: FollowStep,
    end: FollowedEnd,
}

/// What the caller has to do, and answer with a [`FollowEvent`].
#[derive(Clone, Debug)]
pub enum FollowAction {
    /// Waits for the next item, or for the app to leave: [`FollowEvent::Came`] or [`FollowEvent::Left`].
    Wait,
    /// [`FollowEvent::Did`] or [`FollowEvent::Lost`].
    WriteHead(Arc<ResponseHeader>),
    /// [`FollowEvent::Wrote`] or [`FollowEvent::Lost`].
    Write(Bytes),
    /// Ends the body cleanly: [`FollowEvent::Did`] or [`FollowEvent::Lost`].
    Finish,
    /// Gives the app this refusal; all is done.
    Refuse(Refusal),
    /// Writes the event, where there is one, and breaks the connection when the app has taken what is kept
    /// for it; all is done.
    Break(Option<Bytes>),
    Done,
}

#[derive(Debug)]
pub enum FollowEvent {
    Came(ReplayItem),
    Left,
    Wrote(Written),
    Did,
    Lost,
}

/// How it ended for this app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowedEnd {
    /// The app has what counts as the answer.
    pub is_delivered: bool,
    /// The whole of what there was: its connection can be kept.
    pub is_whole: bool,
    /// Why it broke.
    pub code: Option<Code>,
}

/// What its head says of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    is_success: bool,
    form: FollowedForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FollowedForm {
    /// Written at once.
    Whole,
    /// Piece by piece.
    Document,
    Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FollowStep {
    Waiting,
    WritingHead,
    Writing,
    Finishing,
}

// === impl Following ===

impl Following {
    pub fn new(reads_errors: bool) -> Self {
        Self {
            reads_errors,
            head: None,
            has: Received::Nothing,
            ends_in_newline: true,
            doing: FollowStep::Waiting,
            end: FollowedEnd::default(),
        }
    }

    /// Whether it matters just now if this app has hung up: it is looked at before the next event.
    pub fn asks_for_app(&self) -> bool {
        self.doing == FollowStep::Waiting && self.has != Received::Answer
    }

    /// The answer comes piece by piece.
    pub fn is_flowing(&self) -> bool {
        self.head
            .is_some_and(|head| head.form != FollowedForm::Whole)
    }

    /// Its end completes an answer, so the ledger counts on its being given.
    pub fn is_answer(&self) -> bool {
        self.head.is_some_and(|head| head.is_success)
    }

    pub fn end(&self) -> FollowedEnd {
        FollowedEnd {
            is_delivered: self.has == Received::Answer,
            ..self.end
        }
    }

    /// What follows an event. `is_event_stream`: what an answer with this head is.
    pub fn on(
        &mut self,
        event: FollowEvent,
        presence: Presence,
        follower: &mut Follower,
        is_event_stream: impl Fn(&ResponseHeader) -> bool,
    ) -> FollowAction {
        match (self.doing, event) {
            (FollowStep::Waiting, FollowEvent::Came(item)) => {
                // Bytes for an app that has left would count as given.
                if self.has != Received::Answer && presence != Presence::Here {
                    return FollowAction::Done;
                }
                return self.came(item, is_event_stream);
            }
            (FollowStep::WritingHead, FollowEvent::Did) => {}
            (FollowStep::Writing, FollowEvent::Wrote(written)) => self.wrote(written, follower),
            (FollowStep::Finishing, FollowEvent::Did) => {
                self.end.is_whole = true;
                // An error is not the answer that the app wanted, even when it was received.
                if self.is_answer() && self.has != Received::Answer {
                    self.has = Received::Answer;
                    follower.received(self.has);
                }
                return FollowAction::Done;
            }
            _ => return FollowAction::Done,
        }
        self.doing = FollowStep::Waiting;
        FollowAction::Wait
    }

    fn came(
        &mut self,
        item: ReplayItem,
        is_event_stream: impl Fn(&ResponseHeader) -> bool,
    ) -> FollowAction {
        match item {
            ReplayItem::Head { head, flowing } => {
                let form = match (flowing, is_event_stream(&head)) {
                    (false, _) => FollowedForm::Whole,
                    (true, false) => FollowedForm::Document,
                    (true, true) => FollowedForm::Stream,
                };
                let is_success = head.status.is_success();
                self.head = Some(Head { is_success, form });
                self.doing = FollowStep::WritingHead;
                FollowAction::WriteHead(head)
            }
            ReplayItem::Chunk(chunk) => {
                self.ends_in_newline = chunk.last() == Some(&b'\n');
                self.doing = FollowStep::Writing;
                FollowAction::Write(chunk)
            }
            ReplayItem::End(ReplayEnd::Complete) => {
                self.doing = FollowStep::Finishing;
                FollowAction::Finish
            }
            ReplayItem::End(ReplayEnd::Broken(refusal)) => {
                let refusal = of_ones_own(refusal);
                self.end.code = Some(refusal.code);
                let Some(head) = self.head else {
                    return FollowAction::Refuse(refusal);
                };
                let is_read = head.form == FollowedForm::Stream && self.reads_errors;
                FollowAction::Break(is_read.then(|| refusal.event_behind(self.ends_in_newline)))
            }
        }
    }

    fn wrote(&mut self, written: Written, follower: &mut Follower) {
        if self.has != Received::Nothing {
            return;
        }
        self.has = match (self.head.map(|head| head.form), written) {
            (Some(FollowedForm::Stream), Written::Out) => Received::Answer,
            // The beginning need not be out to be gone from the replay buffer: the leader waits for room
            // there.
            (Some(FollowedForm::Document), _) => Received::Beginning,
            _ => return,
        };
        follower.received(self.has);
    }
}

/// The run of the request that was joined is not this one's: what ended it is no answer here.
fn of_ones_own(refusal: Refusal) -> Refusal {
    match refusal.code {
        Code::RunEnded => Refusal::saying(
            Code::RunAwaited,
            "This request had joined an equal one, of a run that has ended. Nothing was sent for it; try again."
                .to_owned(),
        ),
        _ => refusal,
    }
}

#[cfg(test)]
mod tests;
