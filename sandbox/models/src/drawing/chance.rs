//! Numbers that look thrown and are not: the same words give the same numbers.
//!
//! Promise: only the seed decides (splitmix64 over a SHA-256 of its parts).

use sha2::{Digest, Sha256};

pub struct Chance(u64);

// === impl Chance ===

impl Chance {
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let seed = hash
            .finalize()
            .iter()
            .take(8)
            .fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1.
    pub fn share(&mut self) -> f32 {
        (self.number() >> 40) as f32 / (1_u64 << 24) as f32
    }

    /// From `least` to `most`, both possible.
    pub fn between(&mut self, least: usize, most: usize) -> usize {
        let span = most.saturating_sub(least) as u64 + 1;
        least + usize::try_from(self.number() % span).unwrap_or(0)
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.between(0, last));
        }
    }
}
