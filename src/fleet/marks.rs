//! The running hash at some lines of this journal: the file `fleet-marks`, a line for each batch that the fleet took.
//!
//! Why: to compare at a line, the hash there is needed, and the journal may be long or compacted before it.
//!
//! Promise: what is torn or damaged is passed over, and the journal is read instead, where it was not compacted. Of old
//! batches so many stay that one read of the journal leads from each to the next. None is of a line that the journal does
//! not reach: where it was restored from a backup, other lines get these numbers.

use std::collections::BTreeMap;
use std::io::Write;

use rustix::fs::OFlags;

use super::chain::Chain;
use crate::ledger::LedgerError;
use crate::ledger::fingerprint::unhex;
use crate::ledger::state_dir::Directory;

const FILE: &str = "fleet-marks";

/// So many of the newest stay, one for each batch: some 35 days of a batch each minute.
const DENSE: usize = 50_000;

/// Lines from one older mark to the next.
const STRIDE_LINES: u64 = 500;

/// So many more than need be, before the file is written anew.
const SLACK: usize = 25_000;

/// All of them, by the number of their line.
pub struct Marks {
    known: BTreeMap<u64, [u8; 32]>,
    file: std::fs::File,
    /// Lines of the file that it would not have if it were written now.
    surplus: usize,
}

// === impl Marks ===

impl Marks {
    pub fn read(state: &Directory, journal_seq: u64) -> Result<Self, LedgerError> {
        let text = state.read(FILE)?.unwrap_or_default();
        let mut known: BTreeMap<_, _> = text.lines().filter_map(parsed).collect();
        let beyond = known.split_off(&journal_seq.saturating_add(1));
        let thinned = thinned(&known, DENSE, STRIDE_LINES);
        let surplus = text.lines().count().saturating_sub(thinned.len());
        let is_rewritten = surplus > SLACK || !beyond.is_empty();
        if is_rewritten {
            let lines: String = thinned.iter().map(|(seq, hash)| line(*seq, hash)).collect();
            state.replace(FILE, lines.as_bytes())?;
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND;
        let mut file = state.open_file(FILE, flags)?;
        if !is_rewritten && !text.is_empty() && !text.ends_with('\n') {
            // Of a line that was torn; the next one begins anew.
            write(&mut file, state, "\n")?;
        }
        Ok(match is_rewritten {
            true => Self {
                known: thinned,
                file,
                surplus: 0,
            },
            false => Self {
                known,
                file,
                surplus,
            },
        })
    }

    /// Opened again, the file is shorter.
    pub fn are_many(&self) -> bool {
        self.surplus > SLACK
    }

    /// The nearest at or before a line; at 0 there is nothing.
    pub fn before(&self, seq: u64) -> (u64, Chain) {
        let nearest = self.known.range(..=seq).next_back();
        let chain = |hash: &[u8; 32]| Chain::from_bytes(hash.to_vec()).unwrap_or_default();
        nearest.map_or((0, Chain::default()), |(seq, hash)| (*seq, chain(hash)))
    }

    /// The line of the first one at or behind a line.
    pub fn from(&self, seq: u64) -> Option<u64> {
        self.known.range(seq..).next().map(|(seq, _)| *seq)
    }

    /// The last line that the fleet ever acknowledged; 0: none.
    pub fn last_seq(&self) -> u64 {
        self.known.keys().next_back().copied().unwrap_or(0)
    }

    pub fn add(&mut self, seq: u64, chain: &Chain) -> Result<(), LedgerError> {
        let Ok(hash) = <[u8; 32]>::try_from(chain.as_bytes()) else {
            return Ok(());
        };
        if self.known.insert(seq, hash) == Some(hash) {
            return Ok(());
        }
        self.surplus = self.surplus.saturating_add(1);
        self.file
            .write_all(line(seq, &hash).as_bytes())
            .map_err(|error| LedgerError::io(std::path::Path::new(FILE), error))
    }
}

/// A number, a hash and the checksum of both. Earlier versions wrote none.
fn parsed(line: &str) -> Option<(u64, [u8; 32])> {
    let mut words = line.split(' ');
    let (seq, hash) = (words.next()?, words.next()?);
    let is_sound = words
        .next()
        .is_none_or(|crc| crc == checksum(&format!("{seq} {hash}")));
    is_sound.then_some((seq.parse().ok()?, unhex(hash)?))
}

fn line(seq: u64, hash: &[u8; 32]) -> String {
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let mark = format!("{seq} {digits}");
    format!("{mark} {}\n", checksum(&mark))
}

fn checksum(mark: &str) -> String {
    format!("{:08x}", crc32c::crc32c(mark.as_bytes()))
}

/// Of all but the newest those that are needed, so that from each to the next there are `stride` lines, or one batch.
fn thinned(known: &BTreeMap<u64, [u8; 32]>, dense: usize, stride: u64) -> BTreeMap<u64, [u8; 32]> {
    let old = known.len().saturating_sub(dense);
    let mut kept_seq = 0;
    let mut marks = known.iter().enumerate().peekable();
    let mut kept = BTreeMap::new();
    while let Some((at, (seq, hash))) = marks.next() {
        let is_next_near = marks
            .peek()
            .is_some_and(|(_, (next, _))| **next - kept_seq <= stride);
        if at >= old || !is_next_near {
            kept.insert(*seq, *hash);
            kept_seq = *seq;
        }
    }
    kept
}

fn write(file: &mut std::fs::File, state: &Directory, text: &str) -> Result<(), LedgerError> {
    file.write_all(text.as_bytes())
        .map_err(|error| LedgerError::io(&state.path().join(FILE), error))
}

#[cfg(test)]
mod tests;
