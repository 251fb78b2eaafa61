//! sled's database behind a guard. sled panics on some damage, and when its last handle is let go and
//! its file cannot be synced: on a disk that fails, that would end the ledger's writer. Here both are
//! errors as any other.
//!
//! Promise: letting go never panics. A panic behind the guard, or on a thread of sled's own, prints
//! nothing; every other one does what it did before.

use std::cell::Cell;
use std::fs::File;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// sled counts pages as they lie on the disk; in memory they are three times as large, and each page
/// that is not cached takes 300 bytes more. Measured: 16 MiB are 45 MiB more than this, and no faster.
const CACHE_BYTES: u64 = 4 << 20;

/// The file that sled locks while it has an index open.
const LOCKED: &str = "db";

/// How often that file is looked at before sled opens it: some ten milliseconds, and longer on a busy machine.
const LOOKS_MAX: u32 = 10_000;

/// How sled names its threads.
const SLEDS_THREADS: &str = "sled-";

/// Why an index is not believed.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("{}", plain(.0))]
    Sled(#[from] sled::Error),
    #[error("it cannot be read")]
    Panicked,
    #[error("no thread to write it: {0}")]
    NoThread(std::io::Error),
    #[error("a row is damaged")]
    DamagedRow,
    #[error("it belongs to another ledger or format")]
    Foreign,
    #[error("its rows do not add up to its own count")]
    Incomplete,
    #[error("more apps and operations than it can number")]
    TooManyLines,
    /// It is sound, and the journal has to answer.
    #[error("the question needs the journal's lines")]
    Unfit,
    #[error("a row cannot be encoded: {0}")]
    Encode(#[from] serde_json::Error),
}

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// An open database, until it is dropped.
#[derive(Clone, Debug)]
pub(super) struct Handle(Option<sled::Db>);

/// Runs what may panic in sled.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, IndexError>) -> Result<T, IndexError> {
    static HUSHED: Once = Once::new();
    HUSHED.call_once(hush);
    let was_guarded = IS_GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(was_guarded);
    done.unwrap_or(Err(IndexError::Panicked))
}

/// The words of such a panic are for sled's authors; the caller that opens the index says what it means.
fn hush() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let thread = std::thread::current();
        let is_sleds = thread
            .name()
            .is_some_and(|name| name.starts_with(SLEDS_THREADS));
        if !is_sleds && !IS_GUARDED.get() {
            before(info);
        }
    }));
}

// === impl Handle ===

impl Handle {
    pub(super) fn new(db: sled::Db) -> Self {
        Self(Some(db))
    }

    /// The database. Every handle that can be reached has one.
    pub(super) fn db(&self) -> Result<&sled::Db, IndexError> {
        self.0.as_ref().ok_or(IndexError::Panicked)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let db = self.0.take();
        let closed = guarded(move || {
            drop(db);
            Ok(())
        });
        if closed.is_err() {
            tracing::warn!(
                "the index could not be closed; the next start completes it from the journal"
            );
        }
    }
}

// === impl IndexError ===

impl IndexError {
    /// A full disk or a missing right says nothing about what is in the index.
    pub(super) fn is_of_the_system(&self) -> bool {
        use std::io::ErrorKind::{
            PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
        };
        matches!(
            self,
            Self::Sled(sled::Error::Io(error)) if matches!(
                error.kind(),
                PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull
            )
        )
    }
}

/// sled's own words for damage are an offset and a backtrace.
fn plain(error: &sled::Error) -> String {
    match error {
        sled::Error::Corruption { .. } => IndexError::Panicked.to_string(),
        other => other.to_string(),
    }
}

/// Waits for an index that this process has just closed: a thread of sled's may hold its file for a moment after
/// the last handle is gone, and a file that is locked looks like a damaged one.
fn until_closed(path: &Path, mut pause: impl FnMut()) {
    let Ok(file) = File::open(path.join(LOCKED)) else {
        return;
    };
    for _ in 0..LOOKS_MAX {
        // Let go of with the file.
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => pause(),
            _ => return,
        }
    }
}

pub(super) fn open_sled(path: &Path) -> sled::Result<sled::Db> {
    // A snapshot that was being written when the process died makes sled refuse to open.
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("snap.") && name.ends_with(".generating") {
            std::fs::remove_file(entry.path())?;
        }
    }
    until_closed(path, std::thread::yield_now);
    sled::Config::new()
        .path(path)
        .cache_capacity(CACHE_BYTES)
        .open()
}

#[cfg(test)]
mod tests;
