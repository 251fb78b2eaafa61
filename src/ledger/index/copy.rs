//! A copy of the index, for a process that may not write to it: sled writes when it opens one.
//!
//! Promise: the index itself is not touched; the copy is gone when this is dropped.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::db::IndexError;
use super::tree::{Checkpoint, Index};
use crate::ledger::journal::state_dir::Directory;

/// An index opened on a copy of its files.
#[derive(Debug)]
pub struct IndexCopy {
    pub index: Index,
    pub kept: Checkpoint,
    // Dropped last: the index above is open there.
    _files: ScratchDirectory,
}

/// Why there is no copy.
#[derive(Debug)]
pub enum CopyError {
    Io(std::io::Error),
    Index(IndexError),
}

#[derive(Debug)]
struct ScratchDirectory {
    path: PathBuf,
}

// === impl IndexCopy ===

impl IndexCopy {
    /// Copies the files at `from` and opens and checks them.
    pub fn of(from: &Path, ledger: &str) -> Result<Self, CopyError> {
        let files = ScratchDirectory::of(from).map_err(CopyError::Io)?;
        let (index, kept) = Index::open_checked(&files.path, ledger).map_err(CopyError::Index)?;
        Ok(Self {
            index,
            kept,
            _files: files,
        })
    }

    /// The same of a ledger that no daemon has. `None` where one has it, and where there is no sound index.
    pub fn of_idle(state_dir: &Path) -> Option<Self> {
        let state = Directory::open_to_read(state_dir).ok()?;
        let identity = state.known_identity().ok().flatten().flatten()?;
        let from = state_dir.join("index");
        let is_idle = || matches!(state.is_locked(), Ok(false));
        if !from.is_dir() || !is_idle() {
            return None;
        }
        let copy = Self::of(&from, &identity.ledger.to_string()).ok()?;
        is_idle().then_some(copy)
    }
}

// === impl ScratchDirectory ===

impl ScratchDirectory {
    fn of(from: &Path) -> std::io::Result<Self> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(|error| std::io::Error::other(error.to_string()))?;
        let name = uuid::Builder::from_random_bytes(bits).into_uuid();
        let path = std::env::temp_dir().join(format!("bursar-index-{name}"));
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        let copy = Self { path };
        copy_files(from, &copy.path)?;
        Ok(copy)
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove a temporary copy");
        }
    }
}

fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            std::fs::DirBuilder::new().mode(0o700).create(&target)?;
            copy_files(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
