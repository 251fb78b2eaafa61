//! How a ledger is opened, and what "durable" means.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::SharedClock;
pub use crate::config::{Durability, OnFailure};

/// Size at which a new segment is begun.
pub const SEGMENT_BYTES_MAX: u64 = 64 << 20;

/// About 30,000 entries, which are added up in less than a second.
pub const REBUILD_BESIDE_BYTES: u64 = 32 << 20;

/// Called after each commit with its duration, on the thread that made it.
pub type OnCommit = Arc<dyn Fn(Duration) + Send + Sync>;

/// Called while the index is rebuilt: the number of the record that was read, and of the last one.
pub type OnProgress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// How a ledger is opened.
#[derive(Clone)]
pub struct LedgerOptions {
    /// Created with mode 0700 when it is missing; refused when others may enter it.
    pub state_dir: PathBuf,
    pub durability: Durability,
    pub on_failure: OnFailure,
    /// Default [`SEGMENT_BYTES_MAX`].
    pub segment_bytes_max: u64,
    pub clock: SharedClock,
    /// For `journal_commit_seconds`.
    pub on_commit: Option<OnCommit>,
    /// Rebuild the index from the whole journal, and report the progress.
    pub rebuild: Option<OnProgress>,
    /// Without a sound index a journal of more bytes than this is added up while requests are served, and
    /// a shorter one before. Default [`REBUILD_BESIDE_BYTES`].
    pub rebuild_beside_bytes: u64,
    /// How long entries are kept one by one; then only their sums are. `None`: for ever. Less than
    /// two days counts as two days.
    pub retention: Option<Duration>,
    /// Where copies of the lines are made: what is not copied stays one by one. `None`: nowhere.
    pub copied: Option<Arc<Copied>>,
}

/// How far a copy of the journal has come, and how long lines stay all the same.
#[derive(Debug)]
pub struct Copied {
    /// The last line that the copy has.
    seq: AtomicU64,
    /// How long lines stay one by one, so that a copy that lost something can be made whole.
    pub stays: Duration,
}

// === impl LedgerOptions ===

impl LedgerOptions {
    pub fn new(state_dir: impl Into<PathBuf>, clock: SharedClock) -> Self {
        Self {
            state_dir: state_dir.into(),
            durability: Durability::Power,
            on_failure: OnFailure::Refuse,
            segment_bytes_max: SEGMENT_BYTES_MAX,
            clock,
            on_commit: None,
            rebuild: None,
            rebuild_beside_bytes: REBUILD_BESIDE_BYTES,
            retention: None,
            copied: None,
        }
    }
}

// === impl Copied ===

impl Copied {
    /// Nothing is known to be copied yet.
    pub fn new(stays: Duration) -> Arc<Self> {
        Arc::new(Self {
            seq: AtomicU64::new(0),
            stays,
        })
    }

    /// The copy has everything up to this line.
    pub fn up_to(&self, seq: u64) {
        self.seq.store(seq, Ordering::Relaxed);
    }

    pub fn seq(&self) -> u64 {
        self.seq.load(Ordering::Relaxed)
    }
}
