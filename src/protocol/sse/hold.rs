//! Keeps the end of a stream back until its receipt is durable (rule I2).
//!
//! Promise: the bytes that go out, in order, and the bytes held are together exactly the bytes that
//! came in. Chunks pass without being copied; only held bytes, and the rare chunk after them, are
//! copied.

use bytes::{Bytes, BytesMut};

use super::Scan;

/// The bytes of a stream that must not flow yet.
#[derive(Debug, Default)]
pub struct HoldBack {
    held: BytesMut,
}

// === impl HoldBack ===

impl HoldBack {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the chunk that was just fed to the scanner and the scanner's result for it. Returns
    /// what may flow now; `None` if that is nothing.
    pub fn push(&mut self, mut chunk: Bytes, scan: &Scan) -> Option<Bytes> {
        let flowing = (self.held.len() + chunk.len()).saturating_sub(scan.hold);
        let from_held = flowing.min(self.held.len());
        let from_chunk = chunk.split_to((flowing - from_held).min(chunk.len()));
        let flows = if from_held == 0 {
            from_chunk
        } else if from_chunk.is_empty() {
            self.held.split_to(from_held).freeze()
        } else {
            // The bytes held, fewer than an end mark's, turned out to be no end mark: one copy
            // joins both.
            let mut joined = BytesMut::with_capacity(from_held + from_chunk.len());
            joined.extend_from_slice(&self.held.split_to(from_held));
            joined.extend_from_slice(&from_chunk);
            joined.freeze()
        };
        self.held.extend_from_slice(&chunk);
        (!flows.is_empty()).then_some(flows)
    }

    /// Bytes held now. Grows without limit only if a service continues after its own end mark; the
    /// caller limits that.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns everything that is held; `None` if that is nothing.
    pub fn take(&mut self) -> Option<Bytes> {
        (!self.held.is_empty()).then(|| self.held.split().freeze())
    }
}

#[cfg(test)]
mod tests;
