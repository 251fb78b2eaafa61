//! The journal's end, where records are appended. Segments are append-only; a full one is left
//! behind and never touched again.
//!
//! With `Durability::Power` room is made ahead: behind the last line stand newlines, which the next lines
//! overwrite. A sync of a file whose length stays is one write to the disk, and waits for no other file; one of a
//! file that grows also writes its inode, in a block that it shares with other files and their writers. Measured on a
//! busy disk: a 99th percentile of 0.2 ms instead of 7 to 10 ms. A reader takes the newlines for
//! the end (`segments`); an orderly stop and a full segment leave none.
//!
//! Promise: what `append` returned for is in the file, and with `Durability::Power` on the disk. A
//! failed write or sync is final: the caller drops this and opens the journal again.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::OFlags;
use uuid::Uuid;

use crate::ledger::error::LedgerError;
use crate::ledger::journal::high_water::HighWaterFile;
use crate::ledger::journal::report::ScanReport;
use crate::ledger::journal::segments::segment_name;
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::options::{Durability, LedgerOptions};
use crate::ledger::record::{Position, Record, SegmentHeader};

/// How much memory of a batch is kept for the next one.
const LINES_KEPT_BYTES: usize = 256 << 10;

/// Room is made of these.
static ROOM: [u8; 64 << 10] = [b'\n'; 64 << 10];
const ROOM_BYTES: u64 = 64 << 10;

/// With less room than this behind the last line, more is made.
const ROOM_LOW: u64 = 32 << 10;

/// So many at once: about 400 requests.
const ROOMS: usize = 8;

/// An open journal. The writer has it.
#[derive(Debug)]
pub struct Journal {
    directory: Directory,
    ledger: Uuid,
    durability: Durability,
    segment_bytes_max: u64,
    file: File,
    path: PathBuf,
    segment: u32,
    /// Bytes of the current segment that are records.
    bytes: u64,
    /// The file's length: behind the records stand newlines.
    room_end: u64,
    /// There are syncs to speed up, and the disk had a place for it.
    makes_room: bool,
    /// What a batch is written from.
    lines: Vec<u8>,
    /// Bytes of all earlier segments.
    earlier_bytes: u64,
    next_seq: u64,
    /// A whole last record has lost its newline.
    lacks_newline: bool,
    /// `None` until [`Self::mark`] was called, and after a failure.
    marker: Option<HighWaterFile>,
}

/// Lines that will be appended together, already numbered and placed.
#[derive(Debug, Default)]
pub struct Draft {
    lines: Vec<u8>,
    segment: u32,
    base: u64,
    next_seq: u64,
}

// === impl Journal ===

impl Journal {
    /// Opens the journal for appending behind what `report` found. The torn tail is cut off.
    pub fn open(
        directory: Directory,
        ledger: Uuid,
        options: &LedgerOptions,
        report: &ScanReport,
        earlier_bytes: u64,
    ) -> Result<Self, LedgerError> {
        let segment = report.last_segment.unwrap_or(1);
        let name = segment_name(segment);
        let path = directory.path().join(&name);
        let mut file = directory.open_file(&name, OFlags::WRONLY | OFlags::CREATE)?;
        let bytes = report.last_segment_bytes;
        file.set_len(bytes)
            .and_then(|()| file.seek(SeekFrom::Start(bytes)))
            .map_err(|error| LedgerError::io(&path, error))?;
        // What was read is not acknowledged before it is on the disk (see the writer's page).
        #[cfg(test)]
        crate::ledger::journal::faults::fail_sync(&path)
            .map_err(|error| LedgerError::io(&path, error))?;
        file.sync_all()
            .map_err(|error| LedgerError::io(&path, error))?;
        directory.sync()?;
        let mut journal = Self {
            directory,
            ledger,
            durability: options.durability,
            segment_bytes_max: options.segment_bytes_max,
            file,
            path,
            segment,
            bytes,
            room_end: bytes,
            makes_room: options.durability == Durability::Power,
            lines: Vec::new(),
            earlier_bytes,
            next_seq: report.next_seq,
            lacks_newline: report.lacks_newline,
            marker: None,
        };
        match journal.complete(options.clock.wall_ms()) {
            // There will be room when something is to be written, or that fails.
            Err(error) if error.is_full() => {
                let cut = journal.file.set_len(bytes);
                cut.and_then(|()| journal.file.seek(SeekFrom::Start(bytes)))
                    .map_err(|error| LedgerError::io(&journal.path, error))?;
                journal.room_end = bytes;
            }
            completed => completed?,
        }
        Ok(journal)
    }

    /// Makes the segment one that a record can follow in.
    fn complete(&mut self, now_ms: u64) -> Result<(), LedgerError> {
        // A whole record whose newline was lost gets it back.
        if self.lacks_newline {
            self.write(b"\n")?;
            self.lacks_newline = false;
        }
        // With no record at all, or with only a torn header, the segment is begun again.
        if self.bytes == 0 {
            self.write_header(now_ms)?;
        }
        Ok(())
    }

    /// The number of the segment that is written, and how long it is. Those before it are sealed.
    pub fn end(&self) -> (u32, u64) {
        (self.segment, self.bytes)
    }

    pub fn bytes(&self) -> u64 {
        self.earlier_bytes.saturating_add(self.bytes)
    }

    /// The next lines go where room was made, and into the segment that there is.
    pub fn has_room(&self) -> bool {
        let has_room = self.durability == Durability::Process || !self.is_room_low();
        has_room && self.bytes < self.segment_bytes_max && !self.lacks_newline
    }

    fn is_room_low(&self) -> bool {
        self.room_end.saturating_sub(self.bytes) <= ROOM_LOW
    }

    /// Begins a batch, in a new segment when the current one is full.
    pub fn draft(&mut self, now_ms: u64) -> Result<Draft, LedgerError> {
        if self.bytes >= self.segment_bytes_max {
            self.rotate(now_ms)?;
        }
        self.complete(now_ms)?;
        Ok(Draft {
            lines: std::mem::take(&mut self.lines),
            segment: self.segment,
            base: self.bytes,
            next_seq: self.next_seq,
        })
    }

    /// Writes a batch with one write and one sync, and then the mark.
    pub fn append(&mut self, draft: Draft) -> Result<(), LedgerError> {
        self.write(&draft.lines)?;
        self.lines = draft.lines;
        self.lines.clear();
        self.lines.shrink_to(LINES_KEPT_BYTES);
        self.next_seq = draft.next_seq;
        if let Some(marker) = &mut self.marker
            && let Err(error) = marker.note(self.next_seq.saturating_sub(1))
        {
            tracing::warn!(%error, "the journal's mark cannot be kept; the next start writes it again");
            self.marker = None;
        }
        Ok(())
    }

    /// Some earlier segments became others.
    pub fn compacted(&mut self, bytes_before: u64, bytes_after: u64) {
        let others = self.earlier_bytes.saturating_sub(bytes_before);
        self.earlier_bytes = others.saturating_add(bytes_after);
    }

    /// Leaves the current segment behind.
    pub fn rotate(&mut self, now_ms: u64) -> Result<(), LedgerError> {
        self.leave_no_room()?;
        let segment = self.segment.saturating_add(1);
        let name = segment_name(segment);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        self.file = self.directory.open_file(&name, flags)?;
        self.path = self.directory.path().join(&name);
        self.earlier_bytes = self.earlier_bytes.saturating_add(self.bytes);
        self.bytes = 0;
        self.room_end = 0;
        self.segment = segment;
        self.write_header(now_ms)?;
        self.directory.sync()
    }

    /// Cuts off what stands behind the last line, so that the file ends with it.
    pub fn leave_no_room(&mut self) -> Result<(), LedgerError> {
        if self.room_end > self.bytes {
            self.file
                .set_len(self.bytes)
                .and_then(|()| self.file.sync_all())
                .map_err(|error| LedgerError::io(&self.path, error))?;
            self.room_end = self.bytes;
        }
        Ok(())
    }

    /// Writes down how far the journal reaches, when all of it is on the disk; from here on each batch does.
    pub fn mark(&mut self) -> Result<(), LedgerError> {
        self.file
            .sync_data()
            .map_err(|error| LedgerError::io(&self.path, error))?;
        let last_seq = self.next_seq.saturating_sub(1);
        self.marker = Some(HighWaterFile::begin(&self.directory, last_seq)?);
        Ok(())
    }

    fn write_header(&mut self, now_ms: u64) -> Result<(), LedgerError> {
        let header = SegmentHeader::new(self.ledger, self.segment, self.next_seq, now_ms);
        let mut line = Vec::new();
        header
            .encode(&mut line)
            .map_err(|error| LedgerError::io(&self.path, error))?;
        self.write(&line)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), LedgerError> {
        #[cfg(test)]
        crate::ledger::journal::faults::fail_write(&self.path, &mut self.file, bytes)
            .map_err(|error| LedgerError::io(&self.path, error))?;
        self.file
            .write_all(bytes)
            .map_err(|error| LedgerError::io(&self.path, error))?;
        let written = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.make_room(self.bytes.saturating_add(written));
        if self.durability == Durability::Power {
            self.sync()?;
        }
        self.bytes = self.bytes.saturating_add(written);
        Ok(())
    }

    fn sync(&self) -> Result<(), LedgerError> {
        #[cfg(test)]
        crate::ledger::journal::faults::fail_sync(&self.path)
            .map_err(|error| LedgerError::io(&self.path, error))?;
        self.file
            .sync_data()
            .map_err(|error| LedgerError::io(&self.path, error))
    }

    /// Makes more room where little is left, so that no batch has to.
    pub fn keep_room(&mut self) -> Result<(), LedgerError> {
        if !self.makes_room || !self.is_room_low() {
            return Ok(());
        }
        self.add_room(self.room_end.max(self.bytes));
        self.sync()
    }

    /// Makes room behind lines that reach beyond what there is. The sync that follows is theirs as well.
    fn make_room(&mut self, end: u64) {
        if end > self.room_end {
            self.add_room(end);
        }
    }

    fn add_room(&mut self, end: u64) {
        self.room_end = end;
        for _ in 0..ROOMS {
            if !self.makes_room {
                return;
            }
            match self.file.write_all_at(&ROOM, self.room_end) {
                Ok(()) => self.room_end += ROOM_BYTES,
                Err(error) => {
                    tracing::debug!(%error, "no room is made ahead in the journal until it is opened again");
                    // On a nearly full disk what is left is for others. Newlines that stay harm nothing.
                    drop(self.file.set_len(end));
                    self.room_end = end;
                    self.makes_room = false;
                }
            }
        }
    }
}

// === impl Draft ===

impl Draft {
    /// Adds a record; answers its number and where it will lie.
    pub fn push(&mut self, record: &Record) -> serde_json::Result<(u64, Position)> {
        let start = self.lines.len();
        let seq = self.next_seq;
        record.encode(seq, &mut self.lines)?;
        self.next_seq = seq.saturating_add(1);
        let length = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
        let position = Position {
            segment: self.segment,
            offset: self.base.saturating_add(length(start)),
            bytes: length(self.lines.len() - start - 1),
        };
        Ok((seq, position))
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

#[cfg(test)]
mod tests;
