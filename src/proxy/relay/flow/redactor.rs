//! Strikes the organization's key out of an answer that flows (rule I9), as it is and as JSON spells it. As
//! many stars take its place as it has bytes there: the length in the head still holds.
//!
//! Promise: the key goes out in no chunking; what is held back is less than the key's longest spelling (six
//! bytes a letter) and begins like it, so that a line of an event stream, which ends in a byte that no
//! spelling has, is never held.

use bytes::{Bytes, BytesMut};

use crate::config::ApiKey;

/// One answer's bytes on their way.
pub(super) struct Redactor {
    key: ApiKey,
    /// What may be the beginning of the key.
    held: Bytes,
}

// === impl Redactor ===

impl Redactor {
    pub fn new(key: ApiKey) -> Self {
        Self {
            key,
            held: Bytes::new(),
        }
    }

    /// Takes the next bytes; answers what may go on.
    pub fn pass(&mut self, chunk: Bytes) -> Bytes {
        let joined = if self.held.is_empty() {
            chunk
        } else {
            let mut joined = BytesMut::with_capacity(self.held.len() + chunk.len());
            joined.extend_from_slice(&self.held);
            joined.extend_from_slice(&chunk);
            joined.freeze()
        };
        let (mut clean, begins) = self.struck(joined, true);
        self.held = clean.split_off(clean.len() - begins);
        clean
    }

    /// No more comes: what was held is no key, or one that was not spelled to its end.
    pub fn rest(&mut self) -> Bytes {
        let held = std::mem::take(&mut self.held);
        self.struck(held, false).0
    }

    fn struck(&self, bytes: Bytes, more_comes: bool) -> (Bytes, usize) {
        match self.key.redacted_chunk(&bytes, more_comes) {
            (Some(redacted_chunk), begins) => (Bytes::from(redacted_chunk), begins),
            (None, begins) => (bytes, begins),
        }
    }
}

#[cfg(test)]
mod tests;
