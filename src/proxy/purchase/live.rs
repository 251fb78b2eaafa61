//! A logical request that is running, seen from both sides: the connection that leads it, and at
//! most one follower that takes its answer over when the first app connection has left.
//!
//! Promise: nothing is recorded while the leading app is there; what is recorded for nobody is at
//! most 1 MiB; with a follower the leader waits for it instead of piling up. A follower that hung up
//! before it was given anything has its place taken by the next, noticed or not.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pingora::http::ResponseHeader;
use tokio::sync::watch;

use super::claimant::is_apps_own;
use crate::clock::SharedClock;
use crate::ledger::entry::{EntryId, EntryKey};
use crate::ledger::undelivered::FirstSent;
use crate::proxy::downstream::connection::Sight;
use crate::proxy::purchase::claimant::{Claimant, Mark};
use crate::proxy::refuse::{Code, Refusal};

/// One running request.
#[derive(Debug)]
pub struct Live {
    pub mark: Mark,
    pub entry: EntryId,
    pub key: Option<EntryKey>,
    /// When the key was first used.
    pub first: FirstSent,
    /// How often the key was taken over.
    pub adoptions: u32,
    /// Its app said that it is a retry.
    pub(super) marked_retry: bool,
    /// See [`Claimant::keeps_answer`].
    may_be_kept: bool,
    /// Whether the ledger takes this request for undelivered; `None` while it is open there.
    pub(super) told: Mutex<Option<bool>>,
    /// The connection of the leading app.
    app: OnceLock<Sight>,
    /// When somebody began to be given the answer, on the monotonic clock; the last one counts.
    given_at: Mutex<Option<Duration>>,
    clock: SharedClock,
    /// Nothing but its connection's reset keeps it from the service any more.
    going: AtomicBool,
    /// bursar's stop cut the giving: nobody has the answer to its end.
    cut_short: AtomicBool,
    tape: Mutex<Tape>,
    /// Ticks whenever the tape changes.
    changed: watch::Sender<()>,
    /// The table's: ticks when an app leaves.
    left: watch::Sender<()>,
}

/// What the follower is to write.
#[derive(Debug, Default)]
struct Tape {
    /// The leading app has left before it was given anything that counts as delivered.
    open: bool,
    /// The leading app is being given the answer, or was given an error: nobody may follow.
    taken: bool,
    /// A body byte of a flowing answer went out, or the whole answer did.
    handed_out: bool,
    /// The leading app is being given an error: what it is about ends in a moment.
    failing: bool,
    followed: bool,
    /// Which follower it is, counted from 1.
    follower: u64,
    /// Its connection.
    follower_app: Option<Sight>,
    /// It was given a piece of the answer.
    follower_reads: bool,
    /// The answer outgrew what is kept for nobody, or its beginning went to an app that did not get
    /// its end: it can be adopted, not joined.
    given_up: bool,
    head: Option<Arc<ResponseHeader>>,
    /// The answer comes piece by piece.
    flowing: bool,
    /// A follower has taken the beginning of a document, which counts as delivered when whole.
    begun: bool,
    chunks: VecDeque<Bytes>,
    chunk_bytes: usize,
    /// Chunks were given to a follower and dropped: the beginning is gone.
    consumed: bool,
    end: Option<TapeEnd>,
}

/// How an answer ended.
#[derive(Clone, Debug)]
pub enum TapeEnd {
    Complete,
    Broken(Refusal),
}

/// What a follower gets next.
#[derive(Debug)]
pub enum TapeItem {
    Head {
        head: Arc<ResponseHeader>,
        flowing: bool,
    },
    Chunk(Bytes),
    End(TapeEnd),
}

/// A connection that takes the answer over. Dropping it lets another one follow, as long as
/// nothing was handed out.
#[derive(Debug)]
pub struct Follower {
    pub live: Arc<Live>,
    number: u64,
    changed: watch::Receiver<()>,
    next: usize,
    head_given: bool,
}

/// What became of a request's answer, as the table has to remember it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The app has it, or nothing ran: nothing to remember.
    Closed,
    /// The app never received it, and the service may have run it.
    Undelivered,
    /// Nothing was sent under a key that was adopted: the request before it is undelivered as it was.
    /// `in_ledger`: this one's intent is in the ledger, and stands for both there.
    Unsent { in_ledger: bool },
}

/// "A complete undelivered answer up to 1 MiB is kept".
const TAPE_BYTES_MAX: usize = 1024 * 1024;

// === impl Tape ===

impl Tape {
    fn is_error(&self) -> bool {
        let is_error = match (&self.head, &self.end) {
            (_, None) => false,
            (Some(head), Some(_)) => !head.status.is_success(),
            (None, Some(end)) => matches!(end, TapeEnd::Broken(_)),
        };
        is_error && !self.handed_out
    }

    /// Somebody follows, and is there as far as the kernel knows. Who reads may have read it all, and
    /// left for that.
    fn has_follower(&self) -> bool {
        let hung_up = || self.follower_app.as_ref().is_some_and(Sight::has_hung_up);
        self.followed && (self.follower_reads || !hung_up())
    }
}

// === impl Live ===

impl Live {
    pub(super) fn new(
        claimant: &Claimant,
        key: Option<EntryKey>,
        first: FirstSent,
        adoptions: u32,
        clock: SharedClock,
        left: watch::Sender<()>,
    ) -> Arc<Self> {
        Arc::new(Self {
            mark: claimant.mark.clone(),
            entry: claimant.entry,
            key,
            first,
            adoptions,
            marked_retry: claimant.marked_retry,
            may_be_kept: claimant.keeps_answer,
            told: Mutex::new(None),
            app: OnceLock::new(),
            given_at: Mutex::new(None),
            clock,
            going: AtomicBool::new(false),
            cut_short: AtomicBool::new(false),
            tape: Mutex::new(Tape::default()),
            changed: watch::Sender::new(()),
            left,
        })
    }

    /// The connection that leads. Once.
    pub fn led_by(&self, app: Sight) {
        // A second one would be another request's.
        let _ = self.app.set(app);
    }

    /// An equal request has come. When the leading app hung up before it, and nobody has noticed yet,
    /// this is its retry: the kernel knows the order.
    pub(super) fn look_at_app(&self) {
        if !self.is_open() && self.app.get().is_some_and(Sight::has_hung_up) {
            self.app_left();
        }
    }

    /// The leading app has left, or is suspected to: from now on a follower may take over.
    pub fn app_left(&self) {
        self.tape.lock().open = true;
        self.changed.send_replace(());
        self.left.send_replace(());
    }

    /// The leader is about to write to its own app. `false`: somebody follows, write to the tape.
    /// After `true` nobody can follow, until the write has failed.
    pub fn take(&self) -> bool {
        let mut tape = self.tape.lock();
        tape.taken = !tape.followed;
        if tape.taken {
            self.is_being_given();
        }
        tape.taken
    }

    /// Before a byte of it goes out: an app that has read it cannot have asked again before this.
    fn is_being_given(&self) {
        *self.given_at.lock() = Some(self.clock.monotonic());
    }

    pub(super) fn given_at(&self) -> Option<Duration> {
        *self.given_at.lock()
    }

    /// A request of which nothing was sent is to end, for whatever reason. `false`: somebody follows,
    /// and is to be told why. After `true` nobody can follow, and an equal request that comes looks
    /// again when this one's end is in the table.
    pub fn gives_up(&self) -> bool {
        let mut tape = self.tape.lock();
        let ends = !tape.followed;
        if ends {
            tape.taken = true;
            tape.failing = true;
        }
        ends
    }

    /// It goes to the service: an equal request whose app has left gives way to it.
    pub fn goes(&self) {
        self.going.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_going(&self) -> bool {
        self.going.load(Ordering::Relaxed)
    }

    /// bursar's stop ends the answer, or the giving of one of which something was handed out. Before its
    /// end is told: a first byte counts as delivered only as long as bursar lives.
    pub fn cuts_short(&self) {
        self.cut_short.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_cut_short(&self) -> bool {
        self.cut_short.load(Ordering::Relaxed)
    }

    /// After [`Self::take`]: what is written is an error. Its app may ask again before the table
    /// has heard of the end.
    pub fn fails(&self) {
        self.tape.lock().failing = true;
    }

    /// What is written to the leading app counts as given only if its connection, whose input has ended,
    /// does not refuse it. That shows in a moment.
    pub(super) fn is_given_in_doubt(&self) -> bool {
        let tape = self.tape.lock();
        tape.open && tape.taken && !tape.handed_out
    }

    pub(super) fn is_failing(&self) -> bool {
        let tape = self.tape.lock();
        tape.failing || tape.is_error()
    }

    /// All there is for a follower is an error of ours: who has read it may ask again at once.
    pub(super) fn gives_error(&self) -> bool {
        self.tape.lock().is_error()
    }

    /// The leader's own app did not take what was written.
    pub fn not_taken(&self) {
        self.tape.lock().taken = false;
        self.left.send_replace(());
    }

    /// The app was given what counts as delivered: nobody may join any more.
    pub fn handed_out(&self) {
        *self.tape.lock() = Tape {
            taken: true,
            handed_out: true,
            ..Tape::default()
        };
        // An equal request may have waited to hear of it.
        self.left.send_replace(());
    }

    /// The leading app has the beginning of a document, which counts as delivered when whole: nobody
    /// may join any more, and what was not given to its end can be adopted.
    pub fn begins(&self) {
        let mut tape = self.tape.lock();
        *tape = Tape {
            open: tape.open,
            taken: true,
            given_up: true,
            ..Tape::default()
        };
        drop(tape);
        // Who waits to hear whether it is read waits for its end now.
        self.left.send_replace(());
    }

    /// Nobody can join it, its app has left, and it is read on: when it ends its key can be adopted.
    pub(super) fn is_to_be_adopted(&self) -> bool {
        let tape = self.tape.lock();
        let key = self.key.as_ref();
        tape.open && tape.given_up && !tape.handed_out && key.is_some_and(|key| !is_apps_own(key))
    }

    pub fn is_handed_out(&self) -> bool {
        self.tape.lock().handed_out
    }

    pub fn is_followed(&self) -> bool {
        self.tape.lock().followed
    }

    /// Somebody follows and has what counts as delivered, and not yet the end.
    pub(super) fn is_handed_to_follower(&self) -> bool {
        let tape = self.tape.lock();
        tape.handed_out && tape.followed
    }

    /// Whether written answers have to be recorded.
    pub fn is_open(&self) -> bool {
        self.tape.lock().open
    }

    pub fn record_head(&self, head: Arc<ResponseHeader>, flowing: bool) {
        let mut tape = self.tape.lock();
        if tape.open && !tape.given_up {
            tape.head = Some(head);
            tape.flowing = flowing;
        }
        drop(tape);
        self.changed.send_replace(());
    }

    /// Records a chunk. With a follower that is slow this waits for it; without one, a tape that
    /// would grow beyond its bound is given up (the key can still be adopted).
    pub async fn record_chunk(&self, chunk: Bytes) {
        let mut changed = self.changed.subscribe();
        loop {
            {
                let mut tape = self.tape.lock();
                if !tape.open || tape.given_up {
                    return;
                }
                let fits = tape.chunk_bytes.saturating_add(chunk.len()) <= TAPE_BYTES_MAX;
                if fits || (tape.followed && tape.chunks.is_empty()) {
                    tape.chunk_bytes = tape.chunk_bytes.saturating_add(chunk.len());
                    tape.chunks.push_back(chunk);
                    break;
                }
                if !tape.followed {
                    *tape = Tape {
                        open: true,
                        given_up: true,
                        ..Tape::default()
                    };
                    return;
                }
                changed.mark_unchanged();
            }
            if changed.changed().await.is_err() {
                return;
            }
        }
        self.changed.send_replace(());
    }

    pub fn record_end(&self, end: TapeEnd) {
        let mut tape = self.tape.lock();
        // Who was given up has its end: the answer's own is not for it.
        if tape.open && tape.end.is_none() {
            tape.end = Some(end);
        }
        drop(tape);
        self.changed.send_replace(());
    }

    /// The leader is done. Whoever still waits for an end that it did not write is told so.
    pub(super) fn finish(&self) {
        let mut tape = self.tape.lock();
        if tape.end.is_none() {
            tape.end = Some(TapeEnd::Broken(Code::Internal.into()));
        }
        drop(tape);
        self.changed.send_replace(());
    }

    /// Attaches a follower, if the leading app has left, nothing was handed out, and nobody else
    /// follows.
    pub(super) fn follow(self: &Arc<Self>) -> Option<Follower> {
        let mut tape = self.tape.lock();
        if !tape.open || tape.taken || tape.handed_out || tape.has_follower() || tape.given_up {
            return None;
        }
        tape.followed = true;
        tape.follower += 1;
        tape.follower_app = None;
        tape.follower_reads = false;
        let number = tape.follower;
        drop(tape);
        // The leader may be waiting to learn whether its attempts still have a reader.
        self.changed.send_replace(());
        Some(Follower {
            live: Arc::clone(self),
            number,
            changed: self.changed.subscribe(),
            next: 0,
            head_given: false,
        })
    }

    /// Resolves when nobody follows any more. For a leader that reads on for its follower.
    pub async fn unfollowed(&self) {
        let mut changed = self.changed.subscribe();
        while self.is_followed() {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Resolves when somebody follows.
    pub async fn followed(&self) {
        let mut changed = self.changed.subscribe();
        while !self.is_followed() {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// What the socket of whoever follows has taken: a number that stands still while it takes nothing.
    pub fn follower_went(&self) -> u64 {
        let tape = self.tape.lock();
        tape.follower_app.as_ref().map_or(0, Sight::went)
    }

    /// Whoever follows takes nothing, and is in the way of others: it is shown a break, and nobody may
    /// join any more.
    pub fn gives_up_follower(&self) {
        let mut tape = self.tape.lock();
        if !tape.followed {
            return;
        }
        let given_up = Refusal::saying(
            Code::UpstreamBroken,
            "The answer was given up: its app took nothing of it for a while, and another request waited \
             for its place at the service."
                .to_owned(),
        );
        *tape = Tape {
            open: true,
            given_up: true,
            handed_out: tape.handed_out,
            follower: tape.follower,
            head: tape.head.take(),
            end: Some(TapeEnd::Broken(given_up)),
            ..Tape::default()
        };
        drop(tape);
        self.changed.send_replace(());
        self.left.send_replace(());
    }

    /// Bytes that the tape holds now.
    pub(super) fn kept_bytes(&self) -> usize {
        self.tape.lock().chunk_bytes
    }

    /// A complete answer that nobody took lies here. An error is no answer.
    pub(super) fn keeps_answer(&self) -> bool {
        let tape = self.tape.lock();
        let is_answer = tape
            .head
            .as_ref()
            .is_some_and(|head| head.status.is_success());
        self.may_be_kept
            && tape.open
            && !tape.handed_out
            && !tape.consumed
            && is_answer
            && matches!(tape.end, Some(TapeEnd::Complete))
    }
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
                return TapeItem::End(TapeEnd::Broken(Code::Internal.into()));
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
