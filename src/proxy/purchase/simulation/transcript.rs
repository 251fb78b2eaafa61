//! What the service sent of each stream, and what each connection was given of it.
//!
//! Promise: a connection is given the pieces in their order, none twice and none left out, and a clean end only
//! behind all of them (rules I2 and I8, as far as the model has bytes).

use std::collections::HashMap;

use bytes::Bytes;

use crate::ledger::entry::EntryId;

/// The streams of a run.
#[derive(Debug, Default)]
pub struct Streams(HashMap<EntryId, Sent>);

/// What the service sent.
#[derive(Debug, Default)]
struct Sent {
    pieces: usize,
    has_end_mark: bool,
    /// It ended with its end mark, or with its price.
    is_complete: bool,
}

/// What one connection was given.
#[derive(Debug, Default)]
pub struct Transcript {
    pieces: usize,
    has_end_mark: bool,
    /// It was warned that the stream breaks.
    is_warned: bool,
}

const END_MARK: &[u8] = b"data: [DONE]\n\n";

pub fn is_end_mark(piece: &[u8]) -> bool {
    piece == END_MARK
}

// === impl Streams ===

impl Streams {
    /// The service's next piece.
    pub fn piece(&mut self, id: EntryId) -> Bytes {
        let sent = self.0.entry(id).or_default();
        sent.pieces += 1;
        Bytes::from(numbered(sent.pieces))
    }

    pub fn end_mark(&mut self, id: EntryId) -> Bytes {
        let sent = self.0.entry(id).or_default();
        sent.has_end_mark = true;
        sent.is_complete = true;
        Bytes::from_static(END_MARK)
    }

    /// Its end named the amount.
    pub fn ends_priced(&mut self, id: EntryId) {
        self.0.entry(id).or_default().is_complete = true;
    }

    /// A connection's body ended cleanly. What did not flow has no row.
    pub fn ended_cleanly(&self, id: EntryId, given: &Transcript) -> Result<(), String> {
        let Some(sent) = self.0.get(&id) else {
            return Ok(());
        };
        let has_all = sent.pieces == given.pieces && sent.has_end_mark == given.has_end_mark;
        if !sent.is_complete || given.is_warned || !has_all {
            return Err(format!("I2: {given:?} of {sent:?} ends cleanly"));
        }
        Ok(())
    }
}

// === impl Transcript ===

impl Transcript {
    pub fn takes(&mut self, piece: &[u8]) -> Result<(), String> {
        if self.has_end_mark || self.is_warned {
            return Err(format!("I8: {piece:?} is given behind the end"));
        }
        if is_end_mark(piece) {
            self.has_end_mark = true;
        } else if piece.starts_with(b"data: {\"error\"") {
            self.is_warned = true;
        } else if piece == numbered(self.pieces + 1) || piece == b"{}" {
            self.pieces += 1;
        } else {
            let piece = String::from_utf8_lossy(piece);
            return Err(format!("I8: {piece:?} is given behind {}", self.pieces));
        }
        Ok(())
    }
}

fn numbered(number: usize) -> Vec<u8> {
    format!("data: {number}\n\n").into_bytes()
}
