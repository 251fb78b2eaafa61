//! How a ledger is opened, and what "durable" means.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::SharedClock;

/// Size at which a new segment is begun.
pub const SEGMENT_BYTES_MAX: u64 = 64 << 20;

/// What "durable" means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// On the disk: survives a power cut. One fdatasync a batch.
    #[default]
    Power,
    /// Handed to the kernel: survives kill -9 of this process, not a power cut.
    Process,
}

/// What becomes of metered requests while the ledger cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// They are refused before they are sent (rule I1).
    #[default]
    Refuse,
    /// They are sent; intent and outcome wait in memory. `intend` and `settle` then answer `Ok` for
    /// what is not durable, and what waits is lost when the process dies before it is written.
    Serve,
}

/// Called after each commit with its duration, on the writer's thread.
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
    /// Make the index anew from the whole journal, and tell how far it is.
    pub rebuild: Option<OnProgress>,
    /// How long entries are kept one by one; then only their sums are. `None`: for ever. Less than
    /// two days counts as two days.
    pub retention: Option<Duration>,
}

// === impl LedgerOptions ===

impl LedgerOptions {
    pub fn new(state_dir: impl Into<PathBuf>, clock: SharedClock) -> Self {
        Self {
            state_dir: state_dir.into(),
            durability: Durability::default(),
            on_failure: OnFailure::default(),
            segment_bytes_max: SEGMENT_BYTES_MAX,
            clock,
            on_commit: None,
            rebuild: None,
            retention: None,
        }
    }
}
