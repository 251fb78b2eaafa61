//! How far the journal reached: the last sequence number, in a small file beside the segments. A
//! journal that was cut between two lines looks whole; this and the index know better.
//!
//! The number stands there twice, in two lines of one length. A start and a stop write both again and sync
//! them. In between each commit overwrites the line that is older, and hands it to the kernel: after kill -9 the mark
//! knows all that was acknowledged, after a power cut what the kernel had written.
//!
//! Promise: written after the records that it counts, so that it is never above what was there. Of a write
//! that was torn the other line is left. Absent and damaged are two things.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

use rustix::fs::OFlags;
use serde::Deserialize;

use crate::ledger::error::LedgerError;
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::record::{seal, unsealed};

const NAME: &str = "mark";

/// Name of the note of a process that ended in order: the number of the last record it wrote.
const STOPPED: &str = "stopped";

const START: &[u8] = br#"{"kind":"mark""#;

/// The file is shorter. More of it is not read.
const BYTES_MAX: u64 = 4_096;

/// What is known from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HighWater {
    /// A new ledger, or one of a bursar that kept no mark.
    Absent,
    Damaged,
    At(u64),
}

/// The file of a journal that is being written.
#[derive(Debug)]
pub struct HighWaterFile {
    file: File,
    /// The next number goes into the second line.
    is_second: bool,
}

#[derive(Deserialize)]
struct MarkLine {
    last_seq: u64,
}

/// The last record by the note of the last orderly stop. `None`: no note, or a damaged one.
pub fn stopped_seq(state: &Directory) -> Result<Option<u64>, LedgerError> {
    HighWater::read_from(state, STOPPED).map(HighWater::known)
}

/// Notes that a process ended in order behind this record.
pub fn note_stop(state: &Directory, last_seq: u64) -> Result<(), LedgerError> {
    HighWater::write_to(state, STOPPED, last_seq)
}

// === impl HighWater ===

impl HighWater {
    /// Reads the mark of a journal. To be read before the segments are listed: a daemon beside this process may
    /// append, and then the mark is behind and never ahead.
    pub fn read(journal: &Directory) -> Result<Self, LedgerError> {
        Self::read_from(journal, NAME)
    }

    /// Reads a note of the same form.
    pub fn read_from(directory: &Directory, name: &str) -> Result<Self, LedgerError> {
        let file = match directory.open_file(name, OFlags::RDONLY) {
            Ok(file) => file,
            Err(error) if error.is_missing() => return Ok(Self::Absent),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        if file.take(BYTES_MAX).read_to_end(&mut bytes).is_err() {
            // One that cannot be read counts as damaged.
            return Ok(Self::Damaged);
        }
        let lines = bytes.split(|byte| *byte == b'\n');
        let read = lines.filter_map(|line| unsealed::<MarkLine>(START, line));
        let highest = read.map(|line| line.last_seq).max();
        Ok(highest.map_or(Self::Damaged, Self::At))
    }

    /// Writes a mark, whole or not at all, and durable.
    pub fn write(journal: &Directory, last_seq: u64) -> Result<(), LedgerError> {
        Self::write_to(journal, NAME, last_seq)
    }

    /// Writes a note of the same form.
    pub fn write_to(directory: &Directory, name: &str, last_seq: u64) -> Result<(), LedgerError> {
        let line = line(last_seq);
        directory.replace(name, &[line.as_slice(), &line].concat())
    }

    /// The last record that was there.
    pub fn known(self) -> Option<u64> {
        match self {
            Self::At(last_seq) => Some(last_seq),
            Self::Absent | Self::Damaged => None,
        }
    }
}

// === impl HighWaterFile ===

impl HighWaterFile {
    /// Writes a mark, and goes on from it.
    pub fn begin(journal: &Directory, last_seq: u64) -> Result<Self, LedgerError> {
        HighWater::write(journal, last_seq)?;
        Ok(Self {
            file: journal.open_file(NAME, OFlags::WRONLY)?,
            is_second: false,
        })
    }

    /// Hands the last record to the kernel: one write in place, no sync.
    pub fn note(&mut self, last_seq: u64) -> std::io::Result<()> {
        let line = line(last_seq);
        let offset = if self.is_second { line.len() } else { 0 };
        self.file
            .write_all_at(&line, u64::try_from(offset).unwrap_or_default())?;
        self.is_second = !self.is_second;
        Ok(())
    }
}

/// A line of the mark. All have one length: blanks behind the number are no part of it.
fn line(last_seq: u64) -> Vec<u8> {
    let mut line = START.to_vec();
    line.extend_from_slice(format!(r#","last_seq":{last_seq:<20}"#).as_bytes());
    seal(0, &mut line);
    line
}

#[cfg(test)]
mod tests;
