//! Changes on their way to the disk.
//!
//! Changes are queued where they happen and written in one transaction by [`Keep::commit`], which the front
//! calls between the end of the work and the head of the answer. A debit and its effect on its key are queued
//! as one unit, so that a kill at any instant can neither bill a purchase twice nor lose a debit that a client
//! received. Several requests share one transaction when they end together. A request whose write fails gets an
//! error and takes its debit back, see [`Keep::commit_or`]; everything else waits for a disk that works.
//! Promise: without a state directory nothing is queued and a commit costs nothing; with one, every answer that
//! was sent is on disk, and every debit on disk was answered.

use super::{change::Mutation, debit::Debit};
use crate::{
    key_id::KeyId,
    store::{Store, StoreError},
};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

#[derive(Clone, Debug)]
pub struct Keep {
    /// `None` keeps nothing.
    inner: Option<Arc<WriteQueue>>,
}

#[derive(Debug)]
struct WriteQueue {
    store: Store,
    queue: Mutex<Vec<Mutation>>,
    queued: AtomicU64,
    /// How many queued changes are on disk; held while a transaction is written.
    written: Arc<tokio::sync::Mutex<u64>>,
}

/// A debit that is not on disk and never will be.
#[derive(Debug)]
pub struct TakenBack {
    pub debit: Debit,
    pub key: Option<KeyId>,
    /// The balance was set since, to what the debit is no part of.
    pub is_balance_set: bool,
    /// The books were reset since.
    pub is_cleared: bool,
}

// === impl Keep ===

impl Keep {
    pub fn new(store: &Store, durable: bool) -> Self {
        Self {
            inner: durable.then(|| {
                Arc::new(WriteQueue {
                    store: store.clone(),
                    queue: Mutex::default(),
                    queued: AtomicU64::new(0),
                    written: Arc::default(),
                })
            }),
        }
    }

    /// Keeps nothing.
    pub fn off() -> Self {
        Self { inner: None }
    }

    pub fn is_on(&self) -> bool {
        self.inner.is_some()
    }

    /// Queues changes that belong together: they reach the disk at the same instant.
    pub fn push(&self, changes: impl IntoIterator<Item = Mutation>) {
        let Some(inner) = &self.inner else {
            return;
        };
        let mut queue = inner.queue.lock();
        let before = queue.len();
        queue.extend(changes);
        let more = queue.len().saturating_sub(before);
        inner
            .queued
            .fetch_add(u64::try_from(more).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// Whether something waits to be written.
    pub fn is_dirty(&self) -> bool {
        self.inner
            .as_ref()
            .is_some_and(|inner| !inner.queue.lock().is_empty())
    }

    /// Returns when everything queued before the call is on disk. A failed write stays queued.
    pub async fn commit(&self) -> Result<(), StoreError> {
        self.commit_or(|| ()).await
    }

    /// The same. `undo` is called if the write failed, before anything else is written, so that it can
    /// [take back](Keep::take_back) what the caller queued.
    pub async fn commit_or(&self, undo: impl FnOnce()) -> Result<(), StoreError> {
        let Some(inner) = &self.inner else {
            return Ok(());
        };
        let wanted = inner.queued.load(Ordering::SeqCst);
        if let Ok(written) = inner.written.try_lock()
            && *written >= wanted
        {
            return Ok(());
        }
        // A task of its own: dropping a waiting caller must not lose changes that were taken from the queue.
        let attempt = tokio::spawn(attempt(Arc::clone(inner), wanted)).await;
        let (_written, result) =
            attempt.map_err(|error| StoreError::Directory(std::io::Error::other(error)))?;
        if result.is_err() {
            undo();
        }
        result
    }

    /// Takes a request's debit out of the queue. `None` if the queue has none of it.
    ///
    /// Only from `undo` of [`Keep::commit_or`]: otherwise another task may be writing it.
    pub fn take_back(&self, request_id: &str) -> Option<TakenBack> {
        let mut queue = self.inner.as_ref()?.queue.lock();
        let is_wanted = |change: &Mutation| matches!(change, Mutation::Debit { debit, .. } if debit.request_id == request_id);
        let at = queue.iter().position(is_wanted)?;
        let (before, later) = queue.split_at_mut(at.saturating_add(1));
        let place = before.last_mut()?;
        let Mutation::Debit {
            debit,
            dropped,
            key,
        } = std::mem::replace(place, Mutation::Clear)
        else {
            return None;
        };
        let taken = TakenBack {
            is_balance_set: later
                .iter()
                .any(|change| matches!(change, Mutation::Balance(org, _) if *org == debit.org)),
            is_cleared: later.iter().any(|change| matches!(change, Mutation::Clear)),
            debit: (*debit).clone(),
            key,
        };
        *place = Mutation::Withdrawn { debit, dropped };
        Some(taken)
    }
}

/// Writes the queue, unless the wanted change is on disk by now. Returns the turn to write, still held.
async fn attempt(
    inner: Arc<WriteQueue>,
    wanted: u64,
) -> (tokio::sync::OwnedMutexGuard<u64>, Result<(), StoreError>) {
    let mut written = Arc::clone(&inner.written).lock_owned().await;
    if *written >= wanted {
        return (written, Ok(()));
    }
    let changes = Arc::new(std::mem::take(&mut *inner.queue.lock()));
    let n = u64::try_from(changes.len()).unwrap_or(u64::MAX);
    let (store, writing) = (inner.store.clone(), Arc::clone(&changes));
    let work = tokio::task::spawn_blocking(move || {
        store.write(|batch| writing.iter().try_for_each(|one| one.apply(batch)))
    });
    let result = match work.await {
        Ok(result) => result,
        Err(error) => Err(StoreError::Directory(std::io::Error::other(error))),
    };
    if result.is_ok() {
        *written = written.saturating_add(n);
    } else {
        // The task is over, so no other task holds them.
        let changes = Arc::into_inner(changes).unwrap_or_default();
        let mut queue = inner.queue.lock();
        let newer = std::mem::replace(&mut *queue, changes);
        queue.extend(newer);
    }
    (written, result)
}
