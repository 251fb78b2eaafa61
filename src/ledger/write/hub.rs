//! What the writer and all others look at: the queue, the sums, the health.
//!
//! Promise: reading never waits for a disk. Sums are published only when they are durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use crate::ledger::fold::books::WaitingRun;
use crate::ledger::fold::totals::Totals;
use crate::ledger::fold::usage::{CapUsage, OnUsage, UsageUpdate};
use crate::ledger::index::tree::Index;
use crate::ledger::write::backlog::{Backlog, OUTCOMES_MAX};
use crate::ledger::write::load::Loaded;
use crate::ledger::write::queue::JobQueue;

/// Whether the ledger works, for `/readyz`, the watchdog and metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerHealth {
    /// Why nothing can be written now; `None` when it can.
    pub unavailable: Option<String>,
    /// Unix milliseconds of the last commit of this process.
    pub last_commit_ms: Option<u64>,
    /// Commits of this process: batches, not records.
    pub commits: u64,
    pub journal_bytes: u64,
    /// Records that are not in the index yet.
    pub index_lag_records: u64,
    /// Time since the writer thread last showed that it lives. It does so twice a second.
    pub heartbeat_age: Duration,
    /// Indexes rebuilt by this process because the one found was not believed.
    pub index_rebuilds: u64,
    /// Damaged journal ranges that lie in `quarantine/`.
    pub quarantined: u64,
    /// Keys forgotten before their 24 hours were over, or of which the entries that wait for an amount were.
    pub keys_dropped: u64,
    /// The totals lack what is not read yet of the journal, which is added up beside requests.
    pub is_adding_up: bool,
    /// Metered requests are sent although the ledger cannot be written.
    pub serves_unwritten: bool,
    /// Entries that wait in memory until it can be.
    pub waiting: usize,
    /// Entries that found no place to wait: in doubt after the next start.
    pub dropped: u64,
}

/// The sums, and whether they are those of the whole journal. They are read together, so that they fit each other.
#[derive(Clone, Debug, Default)]
struct Published {
    totals: Arc<Totals>,
    is_whole: bool,
}

#[derive(Debug)]
pub struct Hub {
    queue: JobQueue,
    backlog: Backlog,
    published: RwLock<Published>,
    usage: Mutex<Watched>,
    runs: watch::Sender<Arc<[WaitingRun]>>,
    runs_revision: AtomicU64,
    index: RwLock<Option<Index>>,
    unavailable: RwLock<Option<String>>,
    last_commit_ms: AtomicU64,
    commits: AtomicU64,
    journal_bytes: AtomicU64,
    index_lag_records: AtomicU64,
    heartbeat_ms: AtomicU64,
    index_rebuilds: AtomicU64,
    quarantined: AtomicU64,
    keys_dropped: AtomicU64,
    serves_unwritten: AtomicBool,
    /// The ledger is closed after the last request, and not only let go of.
    ends_in_order: AtomicBool,
    /// A test's kill -9.
    #[cfg(test)]
    killed: AtomicBool,
}

/// The usage reported last, and the function that gets it.
#[derive(Default)]
struct Watched {
    usage: CapUsage,
    on_usage: Option<OnUsage>,
}

// === impl Watched ===

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched")
            .field("is_watched", &self.on_usage.is_some())
            .finish_non_exhaustive()
    }
}

// === impl LedgerHealth ===

impl LedgerHealth {
    pub fn is_writable(&self) -> bool {
        self.unavailable.is_none()
    }

    /// It cannot be written, and requests are sent all the same.
    pub fn is_serving_unwritten(&self) -> bool {
        self.serves_unwritten && !self.is_writable() && self.waiting < OUTCOMES_MAX
    }
}

// === impl Hub ===

impl Default for Hub {
    fn default() -> Self {
        Self {
            queue: JobQueue::default(),
            backlog: Backlog::default(),
            published: RwLock::default(),
            usage: Mutex::default(),
            runs: watch::Sender::new(Arc::from([])),
            runs_revision: AtomicU64::new(0),
            index: RwLock::default(),
            unavailable: RwLock::default(),
            last_commit_ms: AtomicU64::default(),
            commits: AtomicU64::default(),
            journal_bytes: AtomicU64::default(),
            index_lag_records: AtomicU64::default(),
            heartbeat_ms: AtomicU64::default(),
            index_rebuilds: AtomicU64::default(),
            quarantined: AtomicU64::default(),
            keys_dropped: AtomicU64::default(),
            serves_unwritten: AtomicBool::default(),
            ends_in_order: AtomicBool::default(),
            #[cfg(test)]
            killed: AtomicBool::default(),
        }
    }
}

impl Hub {
    pub fn queue(&self) -> &JobQueue {
        &self.queue
    }

    pub fn backlog(&self) -> &Backlog {
        &self.backlog
    }

    pub fn totals(&self) -> Arc<Totals> {
        Arc::clone(&self.published.read().totals)
    }

    pub fn waiting_runs(&self) -> watch::Receiver<Arc<[WaitingRun]>> {
        self.runs.subscribe()
    }

    pub fn index(&self) -> Option<Index> {
        self.index.read().clone()
    }

    pub fn health(&self, now: Duration) -> LedgerHealth {
        self.totals_and_health(now).1
    }

    /// Both as of one moment.
    pub fn totals_and_health(&self, now: Duration) -> (Arc<Totals>, LedgerHealth) {
        let published = self.published.read().clone();
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let beat = Duration::from_millis(read(&self.heartbeat_ms));
        let last_commit_ms = read(&self.last_commit_ms);
        let health = LedgerHealth {
            unavailable: self.unavailable.read().clone(),
            last_commit_ms: (last_commit_ms > 0).then_some(last_commit_ms),
            commits: read(&self.commits),
            journal_bytes: read(&self.journal_bytes),
            index_lag_records: read(&self.index_lag_records),
            heartbeat_age: now.saturating_sub(beat),
            index_rebuilds: read(&self.index_rebuilds),
            quarantined: read(&self.quarantined),
            keys_dropped: read(&self.keys_dropped),
            is_adding_up: !published.is_whole,
            serves_unwritten: self.serves_unwritten.load(Ordering::Relaxed),
            waiting: self.backlog.len(),
            dropped: self.backlog.dropped(),
        };
        (published.totals, health)
    }

    pub fn beat(&self, now: Duration) {
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.heartbeat_ms.store(now_ms, Ordering::Relaxed);
    }

    pub fn committed(&self, now_ms: u64) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.last_commit_ms.store(now_ms, Ordering::Relaxed);
    }

    pub fn loaded(&self, loaded: &Loaded) {
        self.quarantined
            .store(loaded.quarantined, Ordering::Relaxed);
        let rebuilds = u64::from(loaded.rebuilt);
        self.index_rebuilds.fetch_add(rebuilds, Ordering::Relaxed);
        self.index_lag_records.store(0, Ordering::Relaxed);
        self.set_index(loaded.index.clone());
        // Books that were read again count their changes from the beginning.
        self.runs_revision.store(u64::MAX, Ordering::Relaxed);
    }

    pub fn set_index(&self, index: Option<Index>) {
        *self.index.write() = index;
    }

    /// What was made anew beside the writer is whole. Before the totals are published.
    pub fn added_up(&self, loaded: &Loaded) {
        self.quarantined
            .store(loaded.quarantined, Ordering::Relaxed);
        self.set_index(loaded.index.clone());
    }

    /// This many records are not in the index.
    pub fn lagging(&self, records: u64) {
        self.index_lag_records.fetch_add(records, Ordering::Relaxed);
    }

    /// Why nothing can be written now.
    pub fn set_unavailable(&self, why: Option<String>) {
        *self.unavailable.write() = why;
    }

    /// Shows what became durable.
    pub fn publish(&self, loaded: &mut Loaded) {
        let bytes = loaded.journal.bytes();
        self.journal_bytes.store(bytes, Ordering::Relaxed);
        let dropped = loaded.books.keys_dropped();
        // Books that were read again may have dropped fewer.
        self.keys_dropped.fetch_max(dropped, Ordering::Relaxed);
        {
            let mut published = self.published.write();
            loaded.books.update_totals(&mut published.totals);
            published.is_whole = loaded.is_whole();
        }
        let revision = loaded.books.runs_revision();
        if self.runs_revision.swap(revision, Ordering::Relaxed) != revision {
            self.runs.send_replace(loaded.books.waiting_runs().into());
        }
    }

    /// Reports what became durable.
    pub fn update_usage(&self, update: &UsageUpdate) {
        let mut watched = self.usage.lock();
        match update {
            UsageUpdate::All { usage, .. } => watched.usage = usage.clone(),
            UsageUpdate::Records(records) => records
                .iter()
                .for_each(|charged| watched.usage.add(charged)),
        }
        if let Some(on_usage) = &watched.on_usage {
            on_usage(update);
        }
    }

    pub fn watch_usage(&self, on_usage: OnUsage) {
        let mut watched = self.usage.lock();
        on_usage(&UsageUpdate::All {
            usage: watched.usage.clone(),
            ended: Vec::new(),
        });
        watched.on_usage = Some(on_usage);
    }

    pub fn serve_unwritten(&self) {
        self.serves_unwritten.store(true, Ordering::Relaxed);
    }

    pub fn end_in_order(&self) {
        self.ends_in_order.store(true, Ordering::Relaxed);
    }

    pub fn ends_in_order(&self) -> bool {
        self.ends_in_order.load(Ordering::Relaxed)
    }

    pub fn stopped(&self) {
        self.serves_unwritten.store(false, Ordering::Relaxed);
        *self.index.write() = None;
        self.set_unavailable(Some("its writer has stopped".to_owned()));
    }

    #[cfg(test)]
    pub fn kill(&self) {
        self.killed.store(true, Ordering::SeqCst);
    }

    #[cfg(test)]
    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::SeqCst)
    }
}
