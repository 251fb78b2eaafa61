//! What of the running service goes to the state directory: debits, balances, keys, pins, the clock.
//!
//! Changes are queued where they happen and written in one transaction by [`Keep::commit`], which the front
//! calls between the end of the work and the head of the answer. A debit and what it makes of its key are
//! queued as one unit, so that a kill at any instant can neither bill a purchase twice nor lose a debit that
//! a client was told of. Several requests share one transaction when they end together.
//! Promise: without a state directory nothing is queued and a commit costs nothing; with one, what was
//! answered is on disk.

mod resume;

pub use resume::{Kept, KeptClock, Totals};

use crate::{
    books::Debit,
    money::MicroUsd,
    store::{Batch, Store, StoreError, Table},
};
use parking_lot::Mutex;
use serde::Serialize;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

pub const DEBITS: Table = Table("debits");
pub const KEYS: Table = Table("idempotency-keys");
pub const PINS: Table = Table("pins");
/// One document each: the totals of the books, the clock, the limits, the settings, the steps done.
pub const SINGLES: Table = Table("service");
pub const ORGANIZATIONS: Table = Table("organizations");
pub const TOTALS: &str = "totals";
pub const CLOCK: &str = "clock";
pub const LIMITS: &str = "limits";
pub const SETTINGS: &str = "settings";
pub const COUNTERS: &str = "counters";
pub const STEPS: &str = "steps";

/// One thing to write. Amounts are differences, so that the order of two requests does not matter.
#[derive(Debug)]
pub enum Change {
    /// A debit's line, its amount off the balance, and the oldest line when there are too many.
    Debit {
        debit: Box<Debit>,
        dropped: Option<String>,
    },
    /// A balance that was set, by organization.
    Balance(String, MicroUsd),
    Put(Table, String, Vec<u8>),
    Remove(Table, String),
}

#[derive(Clone, Debug)]
pub struct Keep {
    /// `None` keeps nothing.
    inner: Option<Arc<Inner>>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    queue: Mutex<Vec<Change>>,
    queued: AtomicU64,
    /// How many queued changes are on disk; held while a transaction is written.
    written: tokio::sync::Mutex<u64>,
}

// === impl Change ===

impl Change {
    /// A document to write. One that is no JSON cannot be, and is told in the log.
    pub fn put(table: Table, id: impl Into<String>, document: &impl Serialize) -> Option<Self> {
        match serde_json::to_vec(document) {
            Ok(bytes) => Some(Self::Put(table, id.into(), bytes)),
            Err(error) => {
                tracing::error!(%error, table = table.0, "a document cannot be written");
                None
            }
        }
    }
}

// === impl Keep ===

impl Keep {
    pub fn new(store: &Store, durable: bool) -> Self {
        Self {
            inner: durable.then(|| {
                Arc::new(Inner {
                    store: store.clone(),
                    queue: Mutex::default(),
                    queued: AtomicU64::new(0),
                    written: tokio::sync::Mutex::new(0),
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

    /// Queues changes that belong together: they come to be on disk at the same instant.
    pub fn push(&self, changes: impl IntoIterator<Item = Change>) {
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

    /// Removes everything that is kept here, what is queued included.
    pub async fn clear(&self) -> Result<(), StoreError> {
        let Some(inner) = &self.inner else {
            return Ok(());
        };
        let mut written = inner.written.lock().await;
        inner.queue.lock().clear();
        *written = inner.queued.load(Ordering::SeqCst);
        let store = inner.store.clone();
        let work = tokio::task::spawn_blocking(move || {
            store.write(|batch| {
                let mut all = [DEBITS, KEYS, PINS, SINGLES, ORGANIZATIONS].into_iter();
                all.try_for_each(|table| batch.clear(table))
            })
        });
        work.await
            .map_err(|error| StoreError::Directory(std::io::Error::other(error)))?
    }

    /// Whether something waits to be written.
    pub fn is_dirty(&self) -> bool {
        self.inner
            .as_ref()
            .is_some_and(|inner| !inner.queue.lock().is_empty())
    }

    /// Returns when everything queued before the call is on disk. A failed write stays queued.
    pub async fn commit(&self) -> Result<(), StoreError> {
        let Some(inner) = &self.inner else {
            return Ok(());
        };
        let wanted = inner.queued.load(Ordering::SeqCst);
        let mut written = inner.written.lock().await;
        if *written >= wanted {
            return Ok(());
        }
        let changes = std::mem::take(&mut *inner.queue.lock());
        let n = u64::try_from(changes.len()).unwrap_or(u64::MAX);
        let store = inner.store.clone();
        let work = tokio::task::spawn_blocking(move || {
            let result = store.write(|batch| changes.iter().try_for_each(|one| one.apply(batch)));
            (result, changes)
        });
        let (result, changes) = work
            .await
            .map_err(|error| StoreError::Directory(std::io::Error::other(error)))?;
        match result {
            Ok(()) => {
                *written = written.saturating_add(n);
                Ok(())
            }
            Err(error) => {
                let mut queue = inner.queue.lock();
                let newer = std::mem::replace(&mut *queue, changes);
                queue.extend(newer);
                Err(error)
            }
        }
    }
}

impl Change {
    fn apply(&self, batch: &mut Batch<'_>) -> Result<(), StoreError> {
        match self {
            Self::Debit { debit, dropped } => {
                let mut totals: Totals = batch.get(SINGLES, TOTALS)?.unwrap_or_default();
                let balance = totals.balances.entry(debit.org.clone()).or_default();
                let amount = debit.amount_micro_usd;
                *balance = balance.checked_sub(amount).unwrap_or(*balance);
                totals.debited = totals.debited.checked_add(amount).unwrap_or(totals.debited);
                totals.debits_made += 1;
                batch.put(SINGLES, TOTALS, &totals)?;
                if let Some(dropped) = dropped {
                    batch.remove(DEBITS, dropped)?;
                }
                batch.put(DEBITS, &debit_id(debit), debit)
            }
            Self::Balance(org, amount) => {
                let mut totals: Totals = batch.get(SINGLES, TOTALS)?.unwrap_or_default();
                totals.balances.insert(org.clone(), *amount);
                batch.put(SINGLES, TOTALS, &totals)
            }
            Self::Put(table, id, bytes) => batch.put_bytes(*table, id, bytes),
            Self::Remove(table, id) => batch.remove(*table, id),
        }
    }
}

/// Sorts by number; the request id keeps two debits apart whose number a kill made equal.
pub fn debit_id(debit: &Debit) -> String {
    format!("{:020}-{}", debit.n, debit.request_id)
}
