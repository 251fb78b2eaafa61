//! The index: sled 0.34.7 beside the journal, for sums that survive without reading years of lines.
//! It is written after the acknowledgement and may be lost at any time. Its size depends on how many
//! different rollups there are, not on how many entries.
//!
//! sled's flush is no fsync, and a damaged file can open empty or panic (measured, see
//! ARCHITECTURE.md). So: everything is in one tree and each batch in one atomic write with the
//! sequence number it reaches; opening is guarded, checked, and ends in a rebuild when in doubt.
//!
//! Promise: no failure of the index fails a request, and none of its numbers is believed that does
//! not agree with its own count.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::db::{Handle, IndexError, guarded, open_sled};
use super::rows::{FORMAT, META, MISSING, Meta, ROLLUP, RUN, decode, encode, text_key};
use crate::ledger::entry::Unresolved;
use crate::ledger::fold::books::Pending;
use crate::ledger::fold::totals::Totals;
use crate::ledger::journal::report::Missing;
use crate::ledger::sums::{RollupKey, Row};

/// How many damaged indexes are kept for a look.
const DAMAGED_MAX: usize = 2;

const DIRECTORY: &str = "index";
const DAMAGED: &str = "index.damaged-";

/// An open index. Clones share it.
#[derive(Clone, Debug)]
pub struct Index {
    handle: Handle,
}

/// What the index remembers for the books.
#[derive(Debug, Default)]
pub struct Kept {
    pub last_seq: u64,
    pub given_seq: u64,
    pub oldest_open_seq: Option<u64>,
    pub totals: Totals,
    pub runs: Vec<(String, Unresolved)>,
    /// Records that the journal lacked when this was made from it.
    pub missing: Vec<Missing>,
}

/// The result of opening. It cannot fail: without an index the journal is read whole.
#[derive(Debug)]
pub struct Opened {
    pub index: Option<Index>,
    pub kept: Kept,
    /// It was made anew: empty until the journal has been replayed.
    pub is_new: bool,
}

// === impl Index ===

impl Index {
    /// Opens the index below `state`; one that is damaged is moved aside and begun anew.
    pub fn open(state: &Path, ledger: &str, now_ms: u64) -> Opened {
        if !state.join(DIRECTORY).exists() {
            return Self::begin(state);
        }
        match Self::open_checked(&state.join(DIRECTORY), ledger) {
            Ok((index, kept)) => Opened {
                is_new: kept.last_seq == 0,
                index: Some(index),
                kept,
            },
            Err(error) if error.is_of_the_system() => {
                tracing::error!(%error, "the index cannot be opened; going on without it");
                Opened::without()
            }
            Err(error) => {
                tracing::warn!(%error, "the index is damaged; rebuilding it from the journal");
                Self::reopen_empty(state, now_ms)
            }
        }
    }

    /// Goes on with an index that is open: the journal was opened anew, and sled cannot be while
    /// the disk is full. `None`: it is not believed any more.
    pub fn go_on(self, ledger: &str) -> Option<Opened> {
        let kept = guarded(|| self.check(ledger)).ok()?;
        Some(Opened {
            is_new: kept.last_seq == 0,
            index: Some(self),
            kept,
        })
    }

    /// Moves the index aside and begins a new one.
    pub fn reopen_empty(state: &Path, now_ms: u64) -> Opened {
        let from = state.join(DIRECTORY);
        if !from.exists() {
            return Self::begin(state);
        }
        let moved = std::fs::rename(&from, state.join(format!("{DAMAGED}{now_ms}")))
            .or_else(|_| std::fs::remove_dir_all(&from));
        if let Err(error) = moved {
            tracing::error!(%error, "cannot move the damaged index aside; going on without one");
            return Opened::without();
        }
        forget_damaged(state);
        Self::begin(state)
    }

    /// Opens and checks; used by `ledger verify` on a copy.
    pub fn open_checked(path: &Path, ledger: &str) -> Result<(Self, Kept), IndexError> {
        guarded(|| {
            let index = Self::on(open_sled(path)?);
            let kept = index.check(ledger)?;
            Ok((index, kept))
        })
    }

    fn on(db: sled::Db) -> Self {
        Self {
            handle: Handle::new(db),
        }
    }

    fn begin(state: &Path) -> Opened {
        let path = state.join(DIRECTORY);
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path);
        match guarded(|| {
            Ok(made
                .map_err(sled::Error::Io)
                .and_then(|()| open_sled(&path))?)
        }) {
            Ok(db) => Opened {
                index: Some(Self::on(db)),
                kept: Kept::default(),
                is_new: true,
            },
            Err(error) => {
                tracing::error!(%error, "cannot make an index; going on without one");
                Opened::without()
            }
        }
    }

    /// Reads all that the books need, and compares rows with the count.
    fn check(&self, ledger: &str) -> Result<Kept, IndexError> {
        let db = self.handle.db()?;
        let Some(meta) = db.get(META)? else {
            // Nothing was ever written, it was not made to its end, or everything is lost: all mean
            // the whole journal.
            let mut keys = db.iter().keys();
            return if keys.all(|key| key.is_ok_and(|key| key == MISSING)) {
                Ok(Kept::default())
            } else {
                Err(IndexError::Incomplete)
            };
        };
        let meta: Meta = decode(&meta)?;
        if meta.format != FORMAT || meta.ledger != ledger {
            return Err(IndexError::Foreign);
        }
        let mut totals = Totals::default();
        for pair in db.scan_prefix([ROLLUP]) {
            let (key, value) = pair?;
            let key: RollupKey = key
                .get(1..)
                .and_then(|key| serde_json::from_slice(key).ok())
                .ok_or(IndexError::DamagedRow)?;
            let row: Row = decode(&value)?;
            totals.add_row(&key.line, &row);
        }
        if totals.requests() != meta.requests || totals.billed() != meta.billed {
            return Err(IndexError::Incomplete);
        }
        totals.globals = meta.globals;
        let mut runs = Vec::new();
        for pair in db.scan_prefix([RUN]) {
            let (key, value) = pair?;
            let run_id = key
                .get(1..)
                .and_then(|key| String::from_utf8(key.to_vec()).ok())
                .ok_or(IndexError::DamagedRow)?;
            runs.push((run_id, decode(&value)?));
        }
        if u64::try_from(runs.len()) != Ok(meta.runs) {
            return Err(IndexError::Incomplete);
        }
        // Oldest first: ids sort by time.
        runs.sort_by_key(|(_, waiting): &(String, Unresolved)| waiting.id);
        let missing = match self.handle.db()?.get(MISSING)? {
            Some(value) => decode(&value)?,
            None => Vec::new(),
        };
        Ok(Kept {
            last_seq: meta.last_seq,
            given_seq: meta.given_seq,
            oldest_open_seq: meta.oldest_open_seq,
            totals,
            runs,
            missing,
        })
    }

    /// Remembers what the journal lacks, so that it is not made anew for that again.
    pub fn know_missing(&self, missing: &[Missing]) -> Result<(), IndexError> {
        guarded(|| {
            Ok(self
                .handle
                .db()?
                .insert(MISSING, encode(&missing)?)
                .map(drop)?)
        })
    }

    /// Writes what happened since the last time, all of it or nothing.
    pub fn write(
        &self,
        ledger: &str,
        pending: &Pending,
        last_seq: u64,
        oldest_open_seq: Option<u64>,
        totals: &Totals,
    ) -> Result<(), IndexError> {
        guarded(|| {
            let mut batch = sled::Batch::default();
            let before = self.handle.db()?.get(META)?;
            let before: Meta = before.map_or(Ok(Meta::default()), |meta| decode(&meta))?;
            for (key, delta) in &pending.rollups {
                let mut at = vec![ROLLUP];
                at.extend(serde_json::to_vec(key)?);
                let mut row = match self.handle.db()?.get(&at)? {
                    Some(value) => decode(&value)?,
                    None => Row::default(),
                };
                row.merge(delta);
                batch.insert(at, encode(&row)?);
            }
            let mut runs = before.runs;
            for (run_id, change) in &pending.runs {
                let key = text_key(RUN, run_id);
                let was_there = self.handle.db()?.contains_key(&key)?;
                match change {
                    Some(waiting) => batch.insert(key, encode(waiting)?),
                    None => batch.remove(key),
                }
                runs = runs + u64::from(change.is_some()) - u64::from(was_there);
            }
            let meta = Meta {
                format: FORMAT,
                ledger: ledger.to_owned(),
                last_seq,
                oldest_open_seq,
                globals: totals.globals.clone(),
                requests: totals.requests(),
                billed: totals.billed(),
                runs,
                given_seq: before.given_seq,
            };
            batch.insert(META, encode(&meta)?);
            Ok(self.handle.db()?.apply_batch(batch)?)
        })
    }

    /// Remembers that the writer had nothing to do for a while after the record `seq`: the answers that
    /// were settled up to there have gone out, or were noted.
    pub fn note_given(&self, seq: u64) -> Result<(), IndexError> {
        guarded(|| {
            if let Some(meta) = self.handle.db()?.get(META)? {
                let mut meta: Meta = decode(&meta)?;
                meta.given_seq = seq.min(meta.last_seq);
                self.handle.db()?.insert(META, encode(&meta)?)?;
            }
            Ok(())
        })
    }
    /// The last record it was told of.
    #[cfg(test)]
    pub fn last_seq(&self) -> u64 {
        let meta = self.handle.db().unwrap().get(META).unwrap();
        meta.map_or(0, |meta| decode::<Meta>(&meta).unwrap().last_seq)
    }

    /// Hands everything to the operating system. No fsync: the journal is the truth.
    pub fn flush(&self) -> Result<(), IndexError> {
        guarded(|| Ok(self.handle.db()?.flush().map(drop)?))
    }
}

// === impl Opened ===

impl Opened {
    pub fn without() -> Self {
        Self {
            index: None,
            kept: Kept::default(),
            is_new: true,
        }
    }
}

/// Removes the oldest of the indexes that were moved aside.
fn forget_damaged(state: &Path) {
    let mut damaged: Vec<PathBuf> = std::fs::read_dir(state)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(DAMAGED))
        .map(|entry| entry.path())
        .collect();
    damaged.sort();
    let surplus = damaged.len().saturating_sub(DAMAGED_MAX);
    for path in damaged.iter().take(surplus) {
        if let Err(error) = std::fs::remove_dir_all(path) {
            tracing::warn!(%error, path = %path.display(), "cannot remove an old damaged index");
        }
    }
}

#[cfg(test)]
mod tests;
