//! The running hash at some lines of this journal: the file `fleet-marks`, a line for each batch that the fleet took.
//!
//! Why: to compare at a line, the hash there is needed, and the journal may be long or compacted before it.
//!
//! Promise: a hint. What is torn or damaged is passed over, and the journal is read instead.

use std::collections::BTreeMap;
use std::io::Write;

use rustix::fs::OFlags;

use super::chain::Chain;
use crate::ledger::LedgerError;
use crate::ledger::fingerprint::unhex;
use crate::ledger::state_dir::Directory;

const FILE: &str = "fleet-marks";

/// All of them, by the number of their line.
pub struct Marks {
    known: BTreeMap<u64, [u8; 32]>,
    file: std::fs::File,
}

// === impl Marks ===

impl Marks {
    pub fn read(state: &Directory) -> Result<Self, LedgerError> {
        let text = state.read(FILE)?.unwrap_or_default();
        let known = text.lines().filter_map(|line| {
            let (seq, hash) = line.split_once(' ')?;
            Some((seq.parse().ok()?, unhex(hash)?))
        });
        let known = known.collect();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND;
        let mut file = state.open_file(FILE, flags)?;
        if !text.is_empty() && !text.ends_with('\n') {
            // Of a line that was torn; the next one begins anew.
            write(&mut file, state, "\n")?;
        }
        Ok(Self { known, file })
    }

    /// The nearest at or before a line; at 0 there is nothing.
    pub fn before(&self, seq: u64) -> (u64, Chain) {
        let nearest = self.known.range(..=seq).next_back();
        let chain = |hash: &[u8; 32]| Chain::from_bytes(hash.to_vec()).unwrap_or_default();
        nearest.map_or((0, Chain::default()), |(seq, hash)| (*seq, chain(hash)))
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
        let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        self.file
            .write_all(format!("{seq} {digits}\n").as_bytes())
            .map_err(|error| LedgerError::io(std::path::Path::new(FILE), error))
    }
}

fn write(file: &mut std::fs::File, state: &Directory, text: &str) -> Result<(), LedgerError> {
    file.write_all(text.as_bytes())
        .map_err(|error| LedgerError::io(&state.path().join(FILE), error))
}
