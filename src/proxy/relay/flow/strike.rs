//! Strikes the organization's key out of an answer that flows (rule I9). As many stars take its place
//! as it has letters: a length that the head told still holds.
//!
//! Promise: the key goes out in no chunking; what is held back is less than the key and begins like
//! it, so that a line of an event stream, which ends in a byte that no key has, is never held.

use bytes::{Bytes, BytesMut};

use crate::config::ApiKey;

/// One answer's bytes on their way.
pub(super) struct Strike {
    key: ApiKey,
    /// What may be the beginning of the key.
    held: Bytes,
}

// === impl Strike ===

impl Strike {
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
        let mut clean = match self.key.starred(&joined) {
            Some(starred) => Bytes::from(starred),
            None => joined,
        };
        self.held = clean.split_off(clean.len() - self.key.begins_at_end_of(&clean));
        clean
    }

    /// No more comes: what was held is no key.
    pub fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests;
