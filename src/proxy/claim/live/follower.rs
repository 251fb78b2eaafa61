//! The connection that takes over the answer of an equal request.
//!
//! Promise: it is given each piece once and in order; when it is dropped before it was given anything
//! that counts, the next equal request can take its place.

use std::sync::Arc;

use tokio::sync::watch;

use super::{Live, Tape, TapeEnd, TapeItem};
use crate::proxy::accept::connection::Sight;

/// A connection that takes the answer over. Dropping it lets another one follow, as long as
/// nothing was handed out.
#[derive(Debug)]
pub struct Follower {
    pub live: Arc<Live>,
    pub(super) number: u64,
    pub(super) changed: watch::Receiver<()>,
    pub(super) next: usize,
    pub(super) head_given: bool,
}

// === impl Follower ===

impl Follower {
    /// The connection that follows: an equal request that comes asks the kernel whether it is there.
    pub fn reads_on(&self, app: Sight) {
        let mut tape = self.live.tape.lock();
        if tape.follower == self.number {
            tape.follower_app = Some(app);
        }
    }

    /// The next piece of the answer. Pends for ever when another has taken its place, which comes of
    /// its app's having hung up.
    pub async fn next(&mut self) -> TapeItem {
        loop {
            self.changed.mark_unchanged();
            if let Some(item) = self.take() {
                return item;
            }
            if self.changed.changed().await.is_err() {
                return TapeItem::End(TapeEnd::Broken(crate::proxy::refuse::Code::Internal.into()));
            }
        }
    }

    fn take(&mut self) -> Option<TapeItem> {
        let mut tape = self.live.tape.lock();
        if tape.follower != self.number {
            return None;
        }
        tape.follower_reads |= tape.head.is_some() || tape.end.is_some();
        if !self.head_given {
            if let Some(head) = tape.head.clone() {
                self.head_given = true;
                self.live.is_being_given();
                let flowing = tape.flowing;
                return Some(TapeItem::Head { head, flowing });
            }
        } else if tape.handed_out || tape.begun {
            // What was handed out is not kept for anybody else.
            if let Some(chunk) = tape.chunks.pop_front() {
                tape.chunk_bytes = tape.chunk_bytes.saturating_sub(chunk.len());
                tape.consumed = true;
                drop(tape);
                self.live.changed.send_replace(());
                return Some(TapeItem::Chunk(chunk));
            }
        } else if let Some(chunk) = tape.chunks.get(self.next).cloned() {
            self.next += 1;
            return Some(TapeItem::Chunk(chunk));
        }
        tape.end.clone().map(TapeItem::End)
    }

    /// This connection took a byte that counts as delivered, or the whole answer.
    pub fn handed_out(&mut self) {
        self.is_given(|tape| tape.handed_out = true);
    }

    /// This connection took the beginning of a document, which counts as delivered when whole.
    pub fn begins(&mut self) {
        self.is_given(|tape| tape.begun = true);
    }

    fn is_given(&mut self, mark: impl FnOnce(&mut Tape)) {
        let mut tape = self.live.tape.lock();
        mark(&mut tape);
        // Chunks that were given by index are gone for good now.
        for _ in 0..self.next {
            if let Some(chunk) = tape.chunks.pop_front() {
                tape.chunk_bytes = tape.chunk_bytes.saturating_sub(chunk.len());
            }
        }
        tape.consumed = self.next > 0 || tape.consumed;
        self.next = 0;
        drop(tape);
        self.live.changed.send_replace(());
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut tape = self.live.tape.lock();
        if tape.follower == self.number {
            tape.followed = false;
            if tape.begun && !tape.handed_out {
                *tape = Tape {
                    open: true,
                    given_up: true,
                    follower: tape.follower,
                    end: tape.end.take(),
                    ..Tape::default()
                };
            }
        }
        drop(tape);
        self.live.changed.send_replace(());
        // An equal request may wait for what becomes of this one.
        self.live.left.send_replace(());
    }
}
