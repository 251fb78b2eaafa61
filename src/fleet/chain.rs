//! The running hash over all lines of a ledger so far. Both sides have it, so that one comparison shows whether
//! they speak of the same lines.
//!
//! Promise: of two ledgers whose lines differ it differs from the first such line on.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::ledger::query::{GapWhy, Shelved};

/// Behind so many lines. Nothing before the first.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Chain(Vec<u8>);

/// SHA-256 of a line as it stands in its journal.
pub type LineHash = [u8; 32];

// === impl Chain ===

impl Chain {
    /// As the database has it: nothing, or 32 bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        matches!(bytes.len(), 0 | 32).then_some(Self(bytes))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Behind one more line, or behind a range that the journal does not have.
    pub fn then(&self, next: &Shelved) -> Self {
        let line: LineHash = match next {
            Shelved::Line { bytes, .. } => line_hash(bytes),
            Shelved::Gap {
                first_seq,
                last_seq,
                why,
            } => line_hash(format!("{} {first_seq} {last_seq}", why_word(*why)).as_bytes()),
        };
        Self(
            Sha256::new()
                .chain_update(&self.0)
                .chain_update(line)
                .finalize()
                .to_vec(),
        )
    }

    /// Behind each of the next lines, with the line's number.
    pub fn behind_each(&self, next: &[Shelved]) -> Vec<(u64, Self)> {
        let mut chain = self.clone();
        let behind = next.iter().map(|line| {
            chain = chain.then(line);
            (line.last_seq(), chain.clone())
        });
        behind.collect()
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chain(")?;
        self.0
            .iter()
            .take(4)
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

pub fn line_hash(line: &[u8]) -> LineHash {
    Sha256::digest(line).into()
}

/// As the database has it.
pub const fn why_word(why: GapWhy) -> &'static str {
    match why {
        GapWhy::Compacted => "compacted",
        GapWhy::Lost => "lost",
    }
}
