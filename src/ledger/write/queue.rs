//! The way into the writer thread: bounded, async for the senders, blocking for the one reader.
//! Everything that is waiting is taken at once, which is what makes a group commit.
//!
//! Promise: at most [`JOBS_MAX`] jobs wait or are being committed; a later sender waits
//! without holding memory. When the writer is gone no sender waits for ever.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::ledger::delivery::{Handover, Remembered, Undelivered};
use crate::ledger::entry::{Intent, Outcome, Settlement};
use crate::ledger::error::LedgerError;
use crate::ledger::fingerprint::Fingerprint;
use crate::ledger::fold::keys::KeyCharge;
use crate::ledger::id::EntryId;
use crate::ledger::kept_key::KeptKey;
use crate::money::MicroUsd;

/// Most jobs accepted and not answered. A commit takes a millisecond, so this is seconds of
/// the fastest load.
pub const JOBS_MAX: usize = 4_096;

/// What the ledger is asked to write.
#[derive(Debug)]
pub enum Job {
    Intend(Box<Intent>),
    /// One that waited: its request was sent, so it is written also when the disk is almost full.
    IntendLate(Box<Intent>),
    Settle(Box<Outcome>),
    ReconcileRun {
        run_id: String,
        billed: MicroUsd,
    },
    Deliver(Box<Undelivered>, Handover),
    /// Writes nothing.
    Remember,
    /// What is charged under this key for a request of this fingerprint. Writes nothing.
    KeyCharged(Box<KeptKey>, Fingerprint),
}

/// What it answers once that is durable.
#[derive(Clone, Debug)]
pub enum Acknowledged {
    Intended,
    Settled(Settlement),
    Reconciled(Option<EntryId>),
    Noted,
    Remembered(Remembered),
    KeyCharged(Option<KeyCharge>),
}

pub type Reply = Result<Acknowledged, LedgerError>;

/// A job with the way back.
#[derive(Debug)]
pub struct Queued {
    pub job: Job,
    reply: oneshot::Sender<Reply>,
    _permit: OwnedSemaphorePermit,
}

/// The queue itself.
#[derive(Debug)]
pub struct JobQueue {
    inner: Mutex<WaitingJobs>,
    arrived: Condvar,
    room: Arc<Semaphore>,
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
        matches!(self, Self::Remember | Self::KeyCharged(..))
    }
}

// === impl JobQueue ===

impl Default for JobQueue {
    fn default() -> Self {
        Self {
            inner: Mutex::default(),
            arrived: Condvar::new(),
            room: Arc::new(Semaphore::new(JOBS_MAX)),
        }
    }
}

impl JobQueue {
    /// Hands a job to the writer and waits for its answer. Once handed over it is carried out
    /// even when the caller stops waiting.
    pub async fn ask(&self, job: Job) -> Reply {
        let room = Arc::clone(&self.room).acquire_owned().await;
        let permit = room.map_err(|_| LedgerError::Closed)?;
        let (reply, answer) = oneshot::channel();
        {
            let mut inner = self.inner.lock();
            if inner.closed {
                return Err(LedgerError::Closed);
            }
            inner.waiting.push(Queued {
                job,
                reply,
                _permit: permit,
            });
        }
        self.arrived.notify_one();
        answer.await.unwrap_or_else(|_| {
            Err(LedgerError::Unavailable {
                why: "its writer stopped before it answered; see the log, then restart".to_owned(),
            })
        })
    }

    /// Hands a job to the writer and waits for nothing. False when there is no room, or the writer
    /// is gone.
    pub fn post(&self, job: Job) -> bool {
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
            return false;
        };
        let (reply, _) = oneshot::channel();
        {
            let mut inner = self.inner.lock();
            if inner.closed {
                return false;
            }
            inner.waiting.push(Queued {
                job,
                reply,
                _permit: permit,
            });
        }
        self.arrived.notify_one();
        true
    }

    /// Everything that waits, after at most `patience`. `None`: closed and empty.
    pub fn take(&self, patience: Duration) -> Option<Vec<Queued>> {
        let mut inner = self.inner.lock();
        if inner.waiting.is_empty() && !inner.closed {
            self.arrived.wait_for(&mut inner, patience);
        }
        if inner.waiting.is_empty() && inner.closed {
            return None;
        }
        Some(std::mem::take(&mut inner.waiting))
    }

    /// Takes nothing more in.
    pub fn close(&self) {
        self.inner.lock().closed = true;
        self.arrived.notify_one();
        self.room.close();
    }

    /// Takes nothing more in and drops what waits: for a writer that is gone.
    pub fn abandon(&self) {
        self.close();
        self.inner.lock().waiting.clear();
    }
}

// === impl Queued ===

impl Queued {
    /// Answers. The sender may have gone; the books are right all the same.
    pub fn answer(self, reply: Reply) {
        let _ = self.reply.send(reply);
    }
}
