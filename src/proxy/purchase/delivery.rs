//! Which app has what of one request's answer: its own, that of an equal request that follows, or none.
//!
//! | state | its app is given the answer | that write failed | its app has it | an equal request comes, its app has left | the follower has its first piece | the follower leaves | too much to keep, or the follower stalls |
//! |---|---|---|---|---|---|---|---|
//! | kept | leading | – | – | followed: nothing | – | – | given up |
//! | leading | leading | kept | delivered; of a document that has begun: begun | – | – | – | – |
//! | begun | begun | – | delivered | – | – | – | – |
//! | followed: nothing | refused | – | – | in its place, where it hung up unread | followed: beginning, or answer | kept | given up |
//! | followed: beginning | refused | – | – | – | followed: answer, with its end | given up | given up |
//! | followed: answer | refused | – | – | – | – | delivered | delivered |
//! | given up | – | – | – | – | – | – | – |
//! | delivered | – | – | – | – | – | – | – |
//!
//! What counts as an answer had is the first byte of a stream, and the last of a document. *Kept*, *followed:
//! nothing* and *given up* are undelivered: the first two can be joined or kept, *begun* and *given up* can
//! only be adopted, under their key, when the request has ended.
//!
//! Promise: pure. At most one connection is given the answer at a time; what was given to no app is kept up to
//! 1 MiB, of an answer that was read whole up to 16 MiB, and what one app has begun to take is kept for no other.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use pingora::http::ResponseHeader;

use crate::proxy::refuse::{Code, Refusal};

/// One request's answer, and which app has it.
#[derive(Debug, Default)]
pub struct DeliveryState {
    /// Its own app has left before it was given anything that counts.
    app_left: bool,
    /// bursar's stop cut the giving: no app has the answer to its end.
    cut_short: bool,
    state: DeliveryPhase,
    replay: ReplayBuffer,
    /// Followers that ever came: the number of the last.
    followers: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum DeliveryPhase {
    /// No app is given any of it. With its app gone, what comes is recorded.
    #[default]
    Kept,
    /// Its own app is being given it: no request may follow.
    Leading(Gives),
    /// Its own app has the beginning of a document.
    Begun,
    /// An equal request takes it in the app's place.
    Followed {
        has: Received,
        /// It was given a piece: it may have read it all, and left for that.
        reads: bool,
    },
    GivenUp,
    Delivered,
}

/// What its own app is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gives {
    Answer,
    /// The end is a moment away, and the app may ask again before.
    Error,
}

/// What a follower has of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    Nothing,
    /// Of a document.
    Beginning,
    /// A byte that counts as the answer, or the whole of it.
    Answer,
}

/// What is recorded of an answer.
#[derive(Debug, Default)]
struct ReplayBuffer {
    head: Option<Arc<ResponseHeader>>,
    /// The answer comes piece by piece.
    flowing: bool,
    chunks: VecDeque<Bytes>,
    chunk_bytes: usize,
    end: Option<ReplayEnd>,
}

/// How an answer ended.
#[derive(Clone, Debug)]
pub enum ReplayEnd {
    Complete,
    Broken(Refusal),
}

/// What a follower gets next.
#[derive(Debug)]
pub enum ReplayItem {
    Head {
        head: Arc<ResponseHeader>,
        flowing: bool,
    },
    Chunk(Bytes),
    End(ReplayEnd),
}

/// How far a follower has read.
#[derive(Debug)]
pub struct Cursor {
    number: u64,
    next_chunk: usize,
    head_given: bool,
}

/// "A complete undelivered answer up to 1 MiB is kept".
const REPLAY_BYTES_MAX: usize = 1024 * 1024;

/// The same of an answer that was read whole: larger ones than 1 MiB are translated, or streams made of a turn,
/// and what their apps repeat is the same purchase.
const WHOLE_REPLAY_BYTES_MAX: usize = 16 * 1024 * 1024;

// === impl DeliveryState ===

impl DeliveryState {
    /// Its own app has left, or is suspected to: from now on an equal request may follow.
    pub fn app_leaves(&mut self) {
        self.app_left = true;
    }

    pub fn has_app_left(&self) -> bool {
        self.app_left
    }

    /// The leader is about to write to its own app. `false`: an equal request follows, and gets it. After `true`
    /// none can follow, until the write has failed.
    pub fn take(&mut self) -> bool {
        if self.state == DeliveryPhase::Kept {
            self.state = DeliveryPhase::Leading(Gives::Answer);
        }
        !self.is_followed()
    }

    /// After [`Self::take`]: what is written is an error.
    pub fn fails(&mut self) {
        if let DeliveryPhase::Leading(_) = self.state {
            self.state = DeliveryPhase::Leading(Gives::Error);
        }
    }

    /// A request of which nothing was sent is to end. `false`: an equal one follows, and is given the reason.
    pub fn ends_unsent(&mut self) -> bool {
        let ends = self.take();
        self.fails();
        ends
    }

    /// Its own app did not take what was written.
    pub fn write_failed(&mut self) {
        if let DeliveryPhase::Leading(_) = self.state {
            self.state = DeliveryPhase::Kept;
        }
    }

    /// Its own app has what counts as the answer.
    pub fn is_delivered_to_app(&mut self) {
        self.state = DeliveryPhase::Delivered;
        self.replay = ReplayBuffer::default();
    }

    /// Its own app has the beginning of a document.
    pub fn begins(&mut self) {
        self.state = DeliveryPhase::Begun;
        self.replay = ReplayBuffer::default();
    }

    /// bursar's stop ends the answer, or the giving of one of which an app has a part.
    pub fn cut_short(&mut self) {
        self.cut_short = true;
    }

    pub fn record_head(&mut self, head: Arc<ResponseHeader>, flowing: bool) {
        if self.records() {
            self.replay.head = Some(head);
            self.replay.flowing = flowing;
        }
    }

    /// Gives the chunk back where a slow follower is to be waited for. What would be too much to keep for
    /// no app is given up.
    pub fn record_chunk(&mut self, chunk: Bytes) -> Result<(), Bytes> {
        if !self.records() {
            return Ok(());
        }
        let is_followed = self.is_followed();
        if self.replay.has_room_for(&chunk) || (is_followed && self.replay.chunks.is_empty()) {
            self.replay.push(chunk);
        } else if is_followed {
            return Err(chunk);
        } else {
            self.give_up(None);
        }
        Ok(())
    }

    /// A follower that was given up has its end: the answer's own is not for it.
    pub fn record_end(&mut self, end: ReplayEnd) {
        if self.app_left {
            self.replay.end.get_or_insert(end);
        }
    }

    /// The leader is done. A follower that still waits for an end gets an internal error.
    pub fn close(&mut self) {
        self.replay
            .end
            .get_or_insert_with(|| ReplayEnd::Broken(Code::Internal.into()));
    }

    /// What comes is recorded: for a follower, or for one that may come yet.
    fn records(&self) -> bool {
        match self.state {
            DeliveryPhase::Kept => self.app_left,
            DeliveryPhase::Followed { .. } => true,
            DeliveryPhase::Leading(_)
            | DeliveryPhase::Begun
            | DeliveryPhase::GivenUp
            | DeliveryPhase::Delivered => false,
        }
    }

    /// No request can join any more; the last follower is shown `end`.
    fn give_up(&mut self, end: Option<ReplayEnd>) {
        let head = self.replay.head.take().filter(|_| end.is_some());
        let end = end.or(self.replay.end.take());
        self.replay = ReplayBuffer {
            head,
            end,
            ..ReplayBuffer::default()
        };
        self.state = match self.state {
            DeliveryPhase::Followed {
                has: Received::Answer,
                ..
            } => DeliveryPhase::Delivered,
            _ => DeliveryPhase::GivenUp,
        };
    }

    /// An equal request comes to follow. `hung_up`: whether the one that follows has, as far as the kernel
    /// knows.
    pub fn follow(&mut self, hung_up: impl FnOnce() -> bool) -> Option<Cursor> {
        let is_free = match self.state {
            DeliveryPhase::Kept => self.app_left,
            DeliveryPhase::Followed { reads, .. } => !reads && hung_up(),
            DeliveryPhase::Leading(_)
            | DeliveryPhase::Begun
            | DeliveryPhase::GivenUp
            | DeliveryPhase::Delivered => false,
        };
        if !is_free {
            return None;
        }
        self.state = DeliveryPhase::Followed {
            has: Received::Nothing,
            reads: false,
        };
        self.followers += 1;
        Some(Cursor {
            number: self.followers,
            next_chunk: 0,
            head_given: false,
        })
    }

    /// Whether no other has come to follow since.
    pub fn is_last(&self, cursor: &Cursor) -> bool {
        self.followers == cursor.number
    }

    /// The next piece for a follower. `None`: there is none yet, or another has taken its place.
    pub fn read(&mut self, cursor: &mut Cursor) -> Option<ReplayItem> {
        if !self.is_last(cursor) {
            return None;
        }
        if let DeliveryPhase::Followed { reads, .. } = &mut self.state {
            *reads |= self.replay.head.is_some() || self.replay.end.is_some();
        }
        if !cursor.head_given {
            if let Some(head) = self.replay.head.clone() {
                cursor.head_given = true;
                let flowing = self.replay.flowing;
                return Some(ReplayItem::Head { head, flowing });
            }
        } else if let DeliveryPhase::Followed {
            has: Received::Nothing,
            ..
        } = self.state
        {
            if let Some(chunk) = self.replay.chunks.get(cursor.next_chunk).cloned() {
                cursor.next_chunk += 1;
                return Some(ReplayItem::Chunk(chunk));
            }
        } else if let Some(chunk) = self.replay.pop() {
            // What one app has is not kept for another.
            return Some(ReplayItem::Chunk(chunk));
        }
        self.replay.end.clone().map(ReplayItem::End)
    }

    /// What the follower has by now.
    pub fn follower_received(&mut self, cursor: &mut Cursor, now_has: Received) {
        match &mut self.state {
            DeliveryPhase::Followed { has, .. } => *has = now_has,
            // It was given up while it took the piece.
            _ if now_has == Received::Answer => self.state = DeliveryPhase::Delivered,
            _ => {}
        }
        // Chunks that were given by index are gone for good now.
        for _ in 0..std::mem::take(&mut cursor.next_chunk) {
            self.replay.pop();
        }
    }

    /// A follower has gone.
    pub fn unfollow(&mut self, cursor: &Cursor) {
        if !self.is_last(cursor) {
            return;
        }
        if let DeliveryPhase::Followed { has, .. } = self.state {
            match has {
                Received::Nothing => self.state = DeliveryPhase::Kept,
                Received::Beginning | Received::Answer => self.give_up(None),
            }
        }
    }

    /// The follower takes nothing, and is in the way of others: it is shown a break.
    pub fn give_up_follower(&mut self) {
        if self.is_followed() {
            self.give_up(Some(ReplayEnd::Broken(Refusal::saying(
                Code::UpstreamBroken,
                "The answer was given up: its app took nothing of it for a while, and another request waited \
                 for its place at the service.",
            ))));
        }
    }

    pub fn is_followed(&self) -> bool {
        matches!(self.state, DeliveryPhase::Followed { .. })
    }

    /// An app has what counts as the answer.
    pub fn is_delivered(&self) -> bool {
        match self.state {
            DeliveryPhase::Delivered => true,
            DeliveryPhase::Followed { has, .. } => has == Received::Answer,
            DeliveryPhase::Kept
            | DeliveryPhase::Leading(_)
            | DeliveryPhase::Begun
            | DeliveryPhase::GivenUp => false,
        }
    }

    /// An app has a part that counts, and the end is not to come, or not yet: as long as bursar lives that is
    /// delivered, and to the process after it, it is not.
    pub fn lacks_end(&self) -> bool {
        let is_being_read = matches!(
            self.state,
            DeliveryPhase::Followed {
                has: Received::Answer,
                ..
            }
        );
        self.cut_short || is_being_read
    }

    /// No app gets more of it, and nothing that was given counts beyond this process.
    pub fn is_cut_short(&self) -> bool {
        self.cut_short
    }

    /// What is written to its own app counts as given only if its connection, whose input has ended, does
    /// not refuse it. That shows in a moment.
    pub fn is_given_in_doubt(&self) -> bool {
        self.app_left && matches!(self.state, DeliveryPhase::Leading(_) | DeliveryPhase::Begun)
    }

    /// Its end is a moment away.
    pub fn is_failing(&self) -> bool {
        self.state == DeliveryPhase::Leading(Gives::Error) || self.is_error()
    }

    /// All there is for a follower is an error: an app that has read it may ask again at once, also before its end is
    /// recorded here.
    pub fn is_error(&self) -> bool {
        let is_error = match (&self.replay.head, &self.replay.end) {
            (Some(head), _) => !head.status.is_success(),
            (None, Some(end)) => matches!(end, ReplayEnd::Broken(_)),
            (None, None) => false,
        };
        is_error && !self.is_delivered()
    }

    /// No request can join it, its app has left, and it is read on.
    pub fn is_only_adoptable(&self) -> bool {
        self.app_left && matches!(self.state, DeliveryPhase::Begun | DeliveryPhase::GivenUp)
    }

    /// A complete answer that no app has. An error is no answer.
    pub fn holds_answer(&self) -> bool {
        let has_nothing = match self.state {
            DeliveryPhase::Kept => self.app_left,
            DeliveryPhase::Followed { has, .. } => has == Received::Nothing,
            DeliveryPhase::Leading(_)
            | DeliveryPhase::Begun
            | DeliveryPhase::GivenUp
            | DeliveryPhase::Delivered => false,
        };
        let head = self.replay.head.as_ref();
        has_nothing
            && head.is_some_and(|head| head.status.is_success())
            && matches!(self.replay.end, Some(ReplayEnd::Complete))
    }

    /// Bytes that are kept now.
    pub fn kept_bytes(&self) -> usize {
        self.replay.chunk_bytes
    }
}

// === impl ReplayBuffer ===

impl ReplayBuffer {
    fn has_room_for(&self, chunk: &Bytes) -> bool {
        let bytes_max = match self.flowing {
            true => REPLAY_BYTES_MAX,
            false => WHOLE_REPLAY_BYTES_MAX,
        };
        self.chunk_bytes.saturating_add(chunk.len()) <= bytes_max
    }

    fn push(&mut self, chunk: Bytes) {
        self.chunk_bytes = self.chunk_bytes.saturating_add(chunk.len());
        self.chunks.push_back(chunk);
    }

    fn pop(&mut self) -> Option<Bytes> {
        let chunk = self.chunks.pop_front()?;
        self.chunk_bytes = self.chunk_bytes.saturating_sub(chunk.len());
        Some(chunk)
    }
}

#[cfg(test)]
mod tests;
