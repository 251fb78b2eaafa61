//! The way to the writer: bounded, async for the senders, blocking for its thread.
//! Everything that is waiting is taken at once, which is what makes a group commit.
//!
//! Promise: at most [`JOBS_MAX`] jobs wait, and as many are being committed; a later sender waits
//! without holding memory. When the writer is gone no sender waits for ever.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, oneshot};

use crate::ledger::delivery::{Handover, Remembered, Undelivered};
use crate::ledger::entry::{Intent, Outcome, Settlement};
use crate::ledger::error::LedgerError;
use crate::ledger::fingerprint::Fingerprint;
use crate::ledger::fold::keys::KeyStanding;
use crate::ledger::id::EntryId;
use crate::ledger::kept_key::KeptKey;
use crate::money::MicroUsd;

/// Most jobs that wait. A commit takes a millisecond, so this is a second of the fastest load.
const JOBS_MAX: usize = 2_048;

/// What the ledger is asked to write.
#[derive(Debug)]
pub enum Job {
    Intend(Arc<Intent>),
    /// One that waited: its request was sent, so it is written also when the disk is almost full.
    IntendLate(Arc<Intent>),
    Settle(Arc<Outcome>),
    ReconcileRun {
        run_id: String,
        billed: MicroUsd,
    },
    Deliver(Box<Undelivered>, Handover),
    /// Writes nothing.
    Remember,
    /// What this key is to a request of this fingerprint. Writes nothing.
    KeyStands(Box<KeptKey>, Fingerprint),
}

/// What it answers once that is durable.
#[derive(Clone, Debug)]
pub enum Acknowledged {
    Intended,
    Settled(Settlement),
    Reconciled(Option<EntryId>),
    Noted,
    Remembered(Remembered),
    KeyStands(KeyStanding),
}

pub type Reply = Result<Acknowledged, LedgerError>;

/// A job with the way back.
#[derive(Debug)]
pub struct Queued {
    pub job: Job,
    reply: oneshot::Sender<Reply>,
}

/// What the sender of a job waits for.
#[derive(Debug)]
pub struct Answer(oneshot::Receiver<Reply>);

/// The queue itself.
#[derive(Debug, Default)]
pub struct JobQueue {
    inner: Mutex<WaitingJobs>,
    arrived: Condvar,
    /// What waited was taken, or nothing more is.
    has_room: Notify,
}

#[derive(Debug, Default)]
struct WaitingJobs {
    waiting: Vec<Queued>,
    /// Nothing more is taken in; what waits is still served.
    closed: bool,
}

// === impl Job ===

impl Job {
    /// Writes nothing.
    pub fn is_question(&self) -> bool {
        matches!(self, Self::Remember | Self::KeyStands(..))
    }
}

// === impl JobQueue ===

impl JobQueue {
    /// Hands a job over, when there is room for it. True: nothing waited before it, so it is for this caller
    /// to see to it that somebody takes it.
    pub async fn hand_over(&self, job: Job) -> Result<(bool, Answer), LedgerError> {
        let (reply, answer) = oneshot::channel();
        let mut queued = Queued { job, reply };
        loop {
            // Before the look: room that is made between the two is not missed.
            let has_room = self.has_room.notified();
            match self.push(queued) {
                Ok(is_first) => return Ok((is_first, Answer(answer))),
                Err(_) if self.inner.lock().closed => return Err(LedgerError::Closed),
                Err(refused) => queued = refused,
            }
            has_room.await;
        }
    }

    /// Hands a job to the writer and waits for nothing. False when there is no room, or the writer
    /// is gone.
    pub fn post(&self, job: Job) -> bool {
        let (reply, _) = oneshot::channel();
        let posted = self.push(Queued { job, reply });
        if matches!(posted, Ok(true)) {
            self.wake();
        }
        posted.is_ok()
    }

    /// Gives it back when there is no room, or nothing more is taken in. True: nothing waited before it.
    fn push(&self, queued: Queued) -> Result<bool, Queued> {
        let mut inner = self.inner.lock();
        if inner.closed || inner.waiting.len() >= JOBS_MAX {
            return Err(queued);
        }
        inner.waiting.push(queued);
        Ok(inner.waiting.len() == 1)
    }

    /// Has the thread look at what waits. No system call while it is awake.
    pub fn wake(&self) {
        self.arrived.notify_one();
    }

    /// Waits until there is something to take, for at most `patience`. False: closed and empty.
    pub fn wait(&self, patience: Duration) -> bool {
        let mut inner = self.inner.lock();
        let has_nothing = |inner: &mut WaitingJobs| inner.waiting.is_empty() && !inner.closed;
        self.arrived
            .wait_while_for(&mut inner, has_nothing, patience);
        !(inner.waiting.is_empty() && inner.closed)
    }

    pub fn is_empty(&self) -> bool {
        self.inner.lock().waiting.is_empty()
    }

    /// Everything that waits.
    pub fn take(&self) -> Vec<Queued> {
        let taken = std::mem::take(&mut self.inner.lock().waiting);
        if taken.len() >= JOBS_MAX {
            self.has_room.notify_waiters();
        }
        taken
    }

    /// Takes nothing more in.
    pub fn close(&self) {
        self.inner.lock().closed = true;
        self.arrived.notify_one();
        self.has_room.notify_waiters();
    }

    /// Takes nothing more in and drops what waits: for a writer that is gone.
    pub fn abandon(&self) {
        self.close();
        self.inner.lock().waiting.clear();
    }
}

// === impl Answer ===

impl Answer {
    /// Waits for it.
    pub async fn given(self) -> Reply {
        self.0.await.unwrap_or_else(|_| {
            Err(LedgerError::Unavailable {
                why: "its writer stopped before it answered; see the log, then restart".to_owned(),
            })
        })
    }
}

// === impl Queued ===

impl Queued {
    /// Answers. The sender may have gone; the books are right all the same. It is the last to hold what was
    /// written, so the memory goes back where it came from.
    pub fn answer(self, reply: Reply) {
        drop(self.job);
        let _ = self.reply.send(reply);
    }
}

#[cfg(test)]
mod tests;
