//! Entry ids: UUIDv7 from the clock, in order even within a millisecond and when the clock is set
//! back, so that ids sort as the entries began.
//!
//! Promise: never fails and never repeats. Randomness is drawn once, at the start.

use parking_lot::Mutex;
use uuid::Builder;

use crate::ledger::entry::EntryId;

/// Ids a millisecond before the next one is borrowed (12 bits).
const PER_MS: u16 = 0x0fff;

pub struct EntryIds {
    secret: [u8; 32],
    last: Mutex<(u64, u16)>,
}

// === impl EntryIds ===

impl EntryIds {
    pub fn new(secret: [u8; 32]) -> Self {
        Self {
            secret,
            last: Mutex::new((0, 0)),
        }
    }

    pub fn next(&self, now_ms: u64) -> EntryId {
        let (at_ms, count) = {
            let mut last = self.last.lock();
            *last = match *last {
                (at_ms, _) if now_ms > at_ms => (now_ms, 0),
                (at_ms, PER_MS) => (at_ms.saturating_add(1), 0),
                (at_ms, count) => (at_ms, count + 1),
            };
            *last
        };
        // The counter leads (RFC 9562, 6.2, method 1), and the rest cannot be foreseen without the
        // secret of this process.
        let mut bytes = [0; 10];
        let mut input = [0; 10];
        for (to, from) in input
            .iter_mut()
            .zip(at_ms.to_be_bytes().into_iter().chain(count.to_be_bytes()))
        {
            *to = from;
        }
        let hash = blake3::keyed_hash(&self.secret, &input);
        let source = count.to_be_bytes().into_iter().chain(*hash.as_bytes());
        for (to, from) in bytes.iter_mut().zip(source) {
            *to = from;
        }
        EntryId(Builder::from_unix_timestamp_millis(at_ms, &bytes).into_uuid())
    }
}

#[cfg(test)]
mod tests;
