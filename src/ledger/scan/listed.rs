//! A listing of segments against the files that are there a moment later: compaction may have come in
//! between.
//!
//! Promise: a file that took a listed one's name is never read in its stead.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;

use rustix::fs::OFlags;

use super::{COMPACTED, Segment, segment_name};
use crate::ledger::error::LedgerError;
use crate::ledger::record::StandsFor;
use crate::ledger::state_dir::Directory;

// === impl Segment ===

impl Segment {
    pub fn stands_for(&self) -> Option<StandsFor> {
        let header = self.header.as_ref()?;
        header.stands_for.filter(|_| self.number == COMPACTED)
    }

    /// Opens the file that was listed, and no other of that name.
    pub fn open(&self, journal: &Directory) -> Result<File, LedgerError> {
        let name = segment_name(self.number);
        let file = open_listed(journal, &name)?;
        let metadata = file.metadata();
        let metadata =
            metadata.map_err(|error| LedgerError::io(&journal.path().join(&name), error))?;
        if metadata.ino() == self.inode {
            Ok(file)
        } else {
            Err(LedgerError::Compacted)
        }
    }
}

/// The journal's first number, when records are missing before it. The numbers begin with 1, and a
/// compacted segment stands for those before it.
pub fn begins_late(all: &[Segment]) -> Option<u64> {
    let first = all.first()?;
    let begins_at = first.header.as_ref()?.first_seq;
    (begins_at > 1 && first.stands_for().is_none()).then_some(begins_at)
}

/// Opens a file that a listing named. One that is gone meanwhile was compacted.
pub(super) fn open_listed(journal: &Directory, name: &str) -> Result<File, LedgerError> {
    match journal.open_file(name, OFlags::RDONLY) {
        Err(LedgerError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            Err(LedgerError::Compacted)
        }
        opened => opened,
    }
}
