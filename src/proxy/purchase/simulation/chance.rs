//! Chance that repeats: a small generator, so that a seed is the whole of a run.
//!
//! Promise: the same seed gives the same run on every machine.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Chance(u64);

// === impl Chance ===

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `end` - 1.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap();
        usize::try_from(self.next() % end).unwrap()
    }

    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn share(&mut self) -> u32 {
        u32::try_from(self.next() >> 32).unwrap()
    }

    pub fn ms(&mut self, end_ms: u64) -> u64 {
        self.next() % end_ms.max(1)
    }
}
