//! The damage itself: what a bad disk, a bad copy or a bad hand does to the files of a ledger.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::sample::Sample;

/// A small generator, so that a failing case can be repeated.
pub struct Random(u64);

/// The files of a ledger, and what was done to them.
pub struct Harmed {
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    pub done: Vec<String>,
    pub identity: bool,
}

/// Every kind of harm to journals, and then the rest.
const KINDS: u64 = 24;
const JOURNAL_KINDS: u64 = 13;

// === impl Random ===

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`, and 0 below nothing (splitmix64).
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let bound = u64::try_from(bound.max(1)).expect("a size");
        usize::try_from(z % bound).expect("a size")
    }

    /// A range in `len` bytes, short more often than long.
    fn range(&mut self, len: usize) -> std::ops::Range<usize> {
        let start = self.below(len);
        let most = [3, 40, 500, 3_000][self.below(4)];
        let end = (start + 1 + self.below(most)).min(len);
        start..end.max(start)
    }
}

/// Applies the seed's damage to a copy of the sample.
pub fn harm(sample: &Sample, seed: u64) -> Harmed {
    let mut random = Random::new(seed);
    let mut harmed = Harmed {
        files: sample.files.clone(),
        done: Vec::new(),
        identity: false,
    };
    // One of four gets several at once.
    let times = [1, 1, 1, 2 + random.below(3)][random.below(4)];
    for _ in 0..times {
        let kind = random.below(usize::try_from(KINDS).expect("a size"));
        harmed.apply(sample, u64::try_from(kind).expect("small"), &mut random);
    }
    harmed
}

/// Only the index is harmed.
pub fn harm_index(sample: &Sample, seed: u64) -> Harmed {
    let mut random = Random::new(seed);
    let mut harmed = Harmed {
        files: sample.files.clone(),
        done: Vec::new(),
        identity: false,
    };
    for _ in 0..=random.below(3) {
        let kind = JOURNAL_KINDS + u64::try_from(random.below(6)).expect("small");
        harmed.apply(sample, kind, &mut random);
    }
    harmed
}

// === impl Harmed ===

impl Harmed {
    fn apply(&mut self, sample: &Sample, kind: u64, random: &mut Random) {
        let name = match kind {
            0..JOURNAL_KINDS => self.one_of(random, |name| name.ends_with(".jsonl")),
            13..=17 => self.one_of(random, |name| name.starts_with("index/")),
            18 => self.one_of(random, |name| name.starts_with("index/")),
            19 => Some(PathBuf::from("identity.json")),
            20 | 21 => Some(PathBuf::from("journal/mark")),
            22 => Some(PathBuf::from(["reserve", "lock"][random.below(2)])),
            _ => Some(PathBuf::from("quarantine/00000001-0-1")),
        };
        let Some(name) = name else {
            return;
        };
        let mut bytes = self.files.remove(&name).unwrap_or_default();
        let range = random.range(bytes.len());
        let mut is_kept = true;
        let what = match kind {
            0 | 1 | 13 | 20 => {
                for _ in 0..=random.below(4) {
                    let at = random.below(bytes.len());
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= 1 << random.below(8);
                    }
                }
                "bits flipped"
            }
            2 | 14 => {
                bytes[range.clone()].fill(0);
                "zeroed"
            }
            3 | 15 => {
                bytes.drain(range.clone());
                "cut out"
            }
            4 | 16 => {
                bytes.truncate(range.start);
                "truncated"
            }
            5 => {
                let twice = bytes[range.clone()].to_vec();
                let at = random.below(bytes.len());
                bytes.splice(at..at, twice);
                "copied"
            }
            6 | 17 => {
                let other = random.range(bytes.len());
                let (first, second) = if range.start <= other.start {
                    (range.clone(), other)
                } else {
                    (other, range.clone())
                };
                let end = first.end.min(second.start);
                let swapped = [
                    &bytes[..first.start],
                    &bytes[second.clone()],
                    &bytes[end..second.start],
                    &bytes[first.start..end],
                    &bytes[second.end..],
                ];
                bytes = swapped.concat();
                "swapped"
            }
            7 => {
                let mut lines = lines(&bytes);
                let (one, two) = (random.below(lines.len()), random.below(lines.len()));
                if !lines.is_empty() {
                    lines.swap(one, two);
                }
                bytes = lines.concat();
                "lines swapped"
            }
            8 => {
                let mut lines = lines(&bytes);
                let first = random.below(lines.len());
                let last = (first + 1 + random.below(4)).min(lines.len());
                lines.drain(first..last);
                bytes = lines.concat();
                "lines cut out"
            }
            9 => {
                let mut lines = lines(&bytes);
                let line = lines.get(random.below(lines.len())).cloned();
                let at = random.below(lines.len());
                lines.splice(at..at, line);
                bytes = lines.concat();
                "a line there twice"
            }
            10 => {
                if let Some(other) = self.one_of(random, |name| name.ends_with(".jsonl")) {
                    let swapped = self.files.insert(other, std::mem::take(&mut bytes));
                    bytes = swapped.unwrap_or_default();
                }
                "segments swapped"
            }
            11 => {
                is_kept = false;
                "segment deleted"
            }
            12 => {
                let end = lines(&bytes).first().map_or(0, Vec::len);
                let at = random.below(end);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
                "header damaged"
            }
            18 => {
                self.files.retain(|name, _| !name.starts_with("index"));
                is_kept = false;
                if random.below(2) == 0 {
                    for (file, bytes) in &sample.other_index {
                        let name = PathBuf::from("index").join(file);
                        self.files.insert(name, bytes.clone());
                    }
                }
                "index lost, or another ledger's"
            }
            19 => {
                self.identity = true;
                if let Some(byte) = bytes.get_mut(range.start) {
                    *byte ^= 1 << random.below(8);
                }
                "identity damaged"
            }
            21 => {
                is_kept = false;
                "mark lost"
            }
            _ => {
                bytes = vec![b'?'; random.below(300)];
                "garbage"
            }
        };
        self.done
            .push(format!("{} {range:?}: {what}", name.display()));
        if is_kept {
            self.files.insert(name, bytes);
        }
    }

    fn one_of(&self, random: &mut Random, matches: impl Fn(&str) -> bool) -> Option<PathBuf> {
        let named = |name: &&PathBuf| name.to_str().is_some_and(&matches);
        let names: Vec<_> = self.files.keys().filter(named).collect();
        names
            .get(random.below(names.len()))
            .map(|name| (*name).clone())
    }
}

/// With their newlines.
fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect()
}
