//! Entry ids: UUIDv7 from the clock, in order even within a millisecond and when the clock is set
//! back, so that ids sort as the entries began.
//!
//! Promise: never fails and never repeats. Randomness is drawn once, at the start.

use std::fmt;
use std::str::FromStr;

use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use uuid::{Builder, Uuid};

/// Ids a millisecond before the next one is borrowed (12 bits).
const PER_MS: u16 = 0x0fff;

/// One logical request of an app, whatever number of attempts it took. UUIDv7: sorts by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub Uuid);

/// Makes them.
pub struct EntryIds {
    secret: [u8; 32],
    last: Mutex<(u64, u16)>,
}

// === impl EntryId ===

impl EntryId {
    /// When it was made, in Unix seconds.
    pub fn unix_s(self) -> u64 {
        let made = self.0.get_timestamp();
        made.map_or(0, |made| made.to_unix().0)
    }

    /// Its last 8 digits, which are random.
    pub fn tail(self) -> [u8; 4] {
        let bytes = self.0.as_bytes().last_chunk::<4>();
        bytes.copied().unwrap_or_default()
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for EntryId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::try_parse(text).map(Self)
    }
}

impl Serialize for EntryId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.hyphenated().encode_lower(&mut Uuid::encode_buffer()))
    }
}

impl<'de> Deserialize<'de> for EntryId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?
            .parse()
            .map_err(|_| de::Error::custom("not a UUID"))
    }
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
