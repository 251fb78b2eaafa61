//! What can go wrong with the ledger, one case a cause. Each message is one line that says what to
//! do; it goes to the operator, never to an app.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::ledger::id::EntryId;

/// Cloneable, because one failed commit answers every request of its batch.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LedgerError {
    #[error(
        "the ledger is locked by process {pid}: stop that daemon, or give this one its own \
         --state-dir"
    )]
    Locked { pid: u32 },

    #[error("the state directory {} is not safe to use: {why}", path.display())]
    UnsafeDir { path: PathBuf, why: String },

    #[error("cannot use {}: {source}{}", path.display(), remedy(source))]
    Io {
        path: PathBuf,
        source: Arc<io::Error>,
    },

    #[error("{} was not written by this ledger: {why}", path.display())]
    ForeignFormat { path: PathBuf, why: String },

    #[error("the groups are more than {max}: ask for a shorter time, or group by fewer words")]
    TooManyRows { max: usize },

    #[error("the ledger was compacted while it was read: ask again")]
    Compacted,

    #[error("the journal cannot be compacted: {why}")]
    CannotCompact { why: String },

    #[error("the ledger is closed: the daemon is shutting down")]
    Closed,

    #[error("the ledger cannot write now: {why}")]
    Unavailable { why: String },

    #[error("entry {id} has no intent in this ledger: only an intended request can be settled")]
    UnknownEntry { id: EntryId },

    #[error("entry {id} has an intent already: take a new entry id for each request")]
    DuplicateEntry { id: EntryId },
}

/// What helps where the cause alone does not say it.
fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            ". Use sudo where the ledger is the system service's, or name a directory of your own with --state-dir"
        }
        _ => "",
    }
}

// === impl LedgerError ===

impl LedgerError {
    pub(crate) fn io(path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io {
            path: path.to_owned(),
            source: Arc::new(source.into()),
        }
    }

    /// The ledger may take the same outcome at another time.
    pub fn is_passing(&self) -> bool {
        !matches!(
            self,
            Self::Closed | Self::UnknownEntry { .. } | Self::DuplicateEntry { .. }
        )
    }

    /// There is no such file or directory.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The disk or the quota is used up: the one failure that a reserve can bridge.
    pub(crate) fn is_full(&self) -> bool {
        matches!(
            self,
            Self::Io { source, .. } if matches!(
                source.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            )
        )
    }
}
