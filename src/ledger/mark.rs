//! How far the journal reached: the last sequence number, in a small file beside the segments. A
//! journal that was cut between two lines looks whole; this and the index know better.
//!
//! Promise: written when the ledger is opened and when it is closed, after the records it tells of
//! are durable, so that it never says more than was there. Absent and damaged are two things.

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::ledger::error::LedgerError;
use crate::ledger::record::{is_sealed, seal};
use crate::ledger::scan::Lines;
use crate::ledger::state_dir::Directory;

const NAME: &str = "mark";
const START: &[u8] = br#"{"kind":"mark""#;

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A new ledger, or one of a bursar that kept no mark.
    Absent,
    Damaged,
    At(u64),
}

#[derive(Serialize, Deserialize)]
struct Body {
    last_seq: u64,
}

// === impl Mark ===

impl Mark {
    /// Reads the mark. To be read before the segments are listed: a daemon beside this process may
    /// append, and then the mark is behind and never ahead.
    pub fn read(journal: &Directory) -> Result<Self, LedgerError> {
        let file = match journal.open_file(NAME, OFlags::RDONLY) {
            Ok(file) => file,
            Err(LedgerError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                return Ok(Self::Absent);
            }
            Err(error) => return Err(error),
        };
        let mut lines = Lines::new(file);
        // One that cannot be read is damaged, as one that says nothing.
        let first = lines.next().unwrap_or_default();
        let body = first.and_then(|raw| {
            let line = lines.text(&raw);
            let is_ours = line.starts_with(START) && is_sealed(line);
            is_ours.then(|| serde_json::from_slice::<Body>(line).ok())?
        });
        Ok(body.map_or(Self::Damaged, |body| Self::At(body.last_seq)))
    }

    /// Writes a mark, whole or not at all.
    pub fn write(journal: &Directory, last_seq: u64) -> Result<(), LedgerError> {
        let mut line = START.to_vec();
        line.extend_from_slice(format!(r#","last_seq":{last_seq}"#).as_bytes());
        seal(0, &mut line);
        journal.replace(NAME, &line)
    }

    /// The last record that was there.
    pub fn known(self) -> Option<u64> {
        match self {
            Self::At(last_seq) => Some(last_seq),
            Self::Absent | Self::Damaged => None,
        }
    }
}

#[cfg(test)]
mod tests;
