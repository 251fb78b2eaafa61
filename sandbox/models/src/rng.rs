//! The only source of chance: SplitMix64, seeded from a hash of everything that may matter.
//!
//! Promise: equal parts give equal numbers, on every machine and in every release that keeps this file.

use ring::digest::{Context, SHA256};

#[derive(Clone, Debug)]
pub struct Rng(u64);

// === impl Rng ===

impl Rng {
    /// Seeds from labelled parts; each is length-prefixed, so that no two lists of parts collide.
    pub fn from_parts(parts: &[&[u8]]) -> Self {
        let mut hash = Context::new(&SHA256);
        for part in parts {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let digest = hash.finish();
        Self(
            digest
                .as_ref()
                .iter()
                .take(8)
                .fold(0, |sum, byte| (sum << 8) | u64::from(*byte)),
        )
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 when `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.number().checked_rem(n).unwrap_or(0)
    }

    /// One of the items; `None` of none.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let index = self.below(items.len() as u64);
        items.get(usize::try_from(index).ok()?)
    }

    /// One of the words; the empty word of none.
    pub fn word<'a>(&mut self, words: &[&'a str]) -> &'a str {
        self.choose(words).copied().unwrap_or("")
    }
}
