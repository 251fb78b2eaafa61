//! Documents on their way to the disk.
//!
//! A document is queued where it changes, and [`Keep::commit`], which the front calls between the end of the work
//! and the head of the answer, writes the whole queue in one transaction; of a document that changed twice, only
//! the last state. A debit, the sums that it is part of and its key are queued as one unit, so that a kill at any
//! instant can neither bill a purchase twice nor lose a debit that a client received. Several requests share one
//! transaction when they end together. A request whose write fails gets an error and takes its debit back
//! ([`crate::books::Books::withdraw`]); everything else stays queued until the disk works.
//! Promise: without a state directory nothing is queued and a commit costs nothing; with one, every answer that
//! was sent is on disk, and every debit on disk was answered.

use crate::store::{Batch, Store, StoreError, Table};
use parking_lot::Mutex;
use serde::Serialize;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::OwnedMutexGuard;

pub const DEBITS: Table = Table("debits");
pub const KEYS: Table = Table("idempotency-keys");
pub const PINS: Table = Table("pins");
/// One document each: the totals of the books, the clock, the limits, the settings, the steps done.
pub const SINGLES: Table = Table("service");
pub const ROLLUP_HOURS: Table = Table("rollup_hours");
pub const ENDPOINT_HOURS: Table = Table("endpoint_hours");
pub const ORGANIZATIONS: Table = Table("organizations");
pub const TOTALS: &str = "totals";
pub const CLOCK: &str = "clock";
pub const LIMITS: &str = "limits";
pub const SETTINGS: &str = "settings";
pub const COUNTERS: &str = "counters";
pub const STEPS: &str = "steps";

const TABLES: [Table; 7] = [
    DEBITS,
    KEYS,
    PINS,
    SINGLES,
    ROLLUP_HOURS,
    ENDPOINT_HOURS,
    ORGANIZATIONS,
];

/// One thing to write.
#[derive(Debug)]
pub enum Mutation {
    Put(Table, String, Vec<u8>),
    Remove(Table, String),
    /// Everything that is kept is removed.
    Clear,
}

#[derive(Clone, Debug)]
pub struct Keep {
    /// `None` keeps nothing.
    queue: Option<Arc<WriteQueue>>,
}

#[derive(Debug)]
struct WriteQueue {
    store: Store,
    unwritten: Mutex<Unwritten>,
    /// How many of the pushes are on disk; held while a transaction is written.
    written: Arc<tokio::sync::Mutex<u64>>,
}

/// What the disk does not hold yet.
#[derive(Debug, Default)]
struct Unwritten {
    /// All tables are cleared first.
    clears: bool,
    /// By table and id; `None` removes the document.
    documents: BTreeMap<(Table, String), Option<Vec<u8>>>,
    /// Pushes so far.
    pushes: u64,
}

// === impl Mutation ===

impl Mutation {
    /// A document to write. One that is not JSON cannot be written, and the log says so.
    pub fn put(table: Table, id: impl Into<String>, document: &impl Serialize) -> Option<Self> {
        match serde_json::to_vec(document) {
            Ok(bytes) => Some(Self::Put(table, id.into(), bytes)),
            Err(error) => {
                tracing::error!(%error, table = table.0, "a document cannot be written");
                None
            }
        }
    }

    /// The same; without a document its row is removed.
    pub fn put_or_remove(
        table: Table,
        id: String,
        document: Option<impl Serialize>,
    ) -> Option<Self> {
        match document {
            Some(document) => Self::put(table, id, &document),
            None => Some(Self::Remove(table, id)),
        }
    }
}

// === impl Unwritten ===

impl Unwritten {
    fn is_empty(&self) -> bool {
        !self.clears && self.documents.is_empty()
    }

    fn push(&mut self, mutation: Mutation) {
        match mutation {
            Mutation::Put(table, id, bytes) => self.documents.insert((table, id), Some(bytes)),
            Mutation::Remove(table, id) => self.documents.insert((table, id), None),
            Mutation::Clear => {
                self.clears = true;
                self.documents.clear();
                None
            }
        };
    }

    /// All of it, to be written; the count of pushes stays.
    fn take(&mut self) -> Self {
        let pushes = self.pushes;
        std::mem::replace(
            self,
            Self {
                pushes,
                ..Self::default()
            },
        )
    }

    /// Puts back what could not be written, behind what was pushed meanwhile.
    fn put_back(&mut self, older: Self) {
        if self.clears {
            return;
        }
        self.clears = older.clears;
        for (place, document) in older.documents {
            self.documents.entry(place).or_insert(document);
        }
    }

    fn write(&self, batch: &mut Batch<'_>) -> Result<(), StoreError> {
        if self.clears {
            TABLES
                .into_iter()
                .try_for_each(|table| batch.clear(table))?;
        }
        for ((table, id), document) in &self.documents {
            match document {
                Some(bytes) => batch.put_bytes(*table, id, bytes)?,
                None => batch.remove(*table, id)?,
            }
        }
        Ok(())
    }
}

// === impl Keep ===

impl Keep {
    pub fn new(store: &Store, durable: bool) -> Self {
        let queue = durable.then(|| WriteQueue {
            store: store.clone(),
            unwritten: Mutex::default(),
            written: Arc::default(),
        });
        Self {
            queue: queue.map(Arc::new),
        }
    }

    /// Keeps nothing.
    pub fn off() -> Self {
        Self { queue: None }
    }

    pub fn is_on(&self) -> bool {
        self.queue.is_some()
    }

    /// Queues documents that belong together: they reach the disk at the same instant.
    pub fn push(&self, mutations: impl IntoIterator<Item = Mutation>) {
        let Some(queue) = &self.queue else {
            return;
        };
        let mut mutations = mutations.into_iter().peekable();
        if mutations.peek().is_some() {
            let mut unwritten = queue.unwritten.lock();
            unwritten.pushes += 1;
            mutations.for_each(|one| unwritten.push(one));
        }
    }

    /// Whether something waits to be written.
    pub fn is_dirty(&self) -> bool {
        let dirty = |queue: &Arc<WriteQueue>| !queue.unwritten.lock().is_empty();
        self.queue.as_ref().is_some_and(dirty)
    }

    /// Whether this document waits to be written. Only from `undo` of [`Keep::commit_or`]: otherwise another task
    /// may be writing it.
    pub fn is_queued(&self, table: Table, id: &str) -> bool {
        let place = (table, id.to_owned());
        let queued = |queue: &Arc<WriteQueue>| {
            let unwritten = queue.unwritten.lock();
            unwritten.documents.get(&place).is_some_and(Option::is_some)
        };
        self.queue.as_ref().is_some_and(queued)
    }

    /// Returns when everything queued before the call is on disk. What a failed write held stays queued.
    pub async fn commit(&self) -> Result<(), StoreError> {
        self.commit_or(|| ()).await
    }

    /// The same. `undo` is called if the write failed, before anything else is written.
    pub async fn commit_or(&self, undo: impl FnOnce()) -> Result<(), StoreError> {
        let Some(queue) = &self.queue else {
            return Ok(());
        };
        let wanted = queue.unwritten.lock().pushes;
        if let Ok(written) = queue.written.try_lock()
            && *written >= wanted
        {
            return Ok(());
        }
        // A task of its own: dropping a waiting caller must not lose what was taken from the queue.
        let attempt = tokio::spawn(attempt(Arc::clone(queue), wanted)).await;
        let (_written, result) =
            attempt.map_err(|error| StoreError::Directory(std::io::Error::other(error)))?;
        if result.is_err() {
            undo();
        }
        result
    }
}

/// Writes the queue, unless the wanted push is on disk by now. Returns the turn to write, still held.
async fn attempt(
    queue: Arc<WriteQueue>,
    wanted: u64,
) -> (OwnedMutexGuard<u64>, Result<(), StoreError>) {
    let mut written = Arc::clone(&queue.written).lock_owned().await;
    if *written >= wanted {
        return (written, Ok(()));
    }
    let taken = Arc::new(queue.unwritten.lock().take());
    let (store, writing) = (queue.store.clone(), Arc::clone(&taken));
    let work = tokio::task::spawn_blocking(move || store.write(|batch| writing.write(batch)));
    let result = match work.await {
        Ok(result) => result,
        Err(error) => Err(StoreError::Directory(std::io::Error::other(error))),
    };
    match result {
        Ok(()) => *written = taken.pushes,
        Err(_) => {
            // The task is over, so no other task holds it.
            let taken = Arc::into_inner(taken).unwrap_or_default();
            queue.unwritten.lock().put_back(taken);
        }
    }
    (written, result)
}
