//! Lines of a file, read through one buffer.
//!
//! Promise: none is held longer than it is looked at, and none that is longer than any record.

use std::io::{BufRead, BufReader, Read};

use crate::ledger::record::{LINE_BYTES_MAX, Line};

const READ_BUFFER_BYTES: usize = 256 << 10;

/// Lines of a file, none of them held longer than it is looked at, none longer than the cap.
pub struct Lines<R> {
    reader: BufReader<R>,
    text: Vec<u8>,
}

/// One line as it lies in the file.
pub struct RawLine {
    /// Without the newline.
    pub bytes: u64,
    /// It ends with a newline.
    pub ended: bool,
    /// It is longer than any record: its text was not kept.
    oversized: bool,
}

/// A last record whose newline is missing or is another byte: it counts, as a start would have it.
pub fn whole(line: &[u8]) -> Option<&[u8]> {
    let shorter = line.split_last().map(|(_, shorter)| shorter);
    let mut texts = [Some(line), shorter].into_iter().flatten();
    texts.find(|text| Line::glance(text).is_some())
}

// === impl Lines ===

impl<R: Read> Lines<R> {
    pub fn new(from: R) -> Self {
        Self::with_buffer(READ_BUFFER_BYTES, from)
    }

    /// For a file of which a few lines are read.
    pub fn with_buffer(bytes: usize, from: R) -> Self {
        Self {
            reader: BufReader::with_capacity(bytes, from),
            text: Vec::new(),
        }
    }

    pub fn next(&mut self) -> std::io::Result<Option<RawLine>> {
        self.text.clear();
        let mut raw = RawLine {
            bytes: 0,
            ended: false,
            oversized: false,
        };
        loop {
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                return Ok((raw.bytes > 0).then_some(raw));
            }
            let newline = memchr::memchr(b'\n', chunk);
            let taken = chunk.get(..newline.unwrap_or(chunk.len())).unwrap_or(chunk);
            raw.bytes += u64::try_from(taken.len()).unwrap_or(u64::MAX);
            if self.text.len().saturating_add(taken.len()) > LINE_BYTES_MAX {
                raw.oversized = true;
            } else {
                self.text.extend_from_slice(taken);
            }
            let consumed = taken.len() + usize::from(newline.is_some());
            self.reader.consume(consumed);
            if newline.is_some() {
                raw.ended = true;
                return Ok(Some(raw));
            }
        }
    }

    pub fn text(&self, raw: &RawLine) -> &[u8] {
        if raw.oversized { b"" } else { &self.text }
    }
}
