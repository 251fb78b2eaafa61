//! The index: sled 0.34.7 beside the journal, for lookups and for sums that survive without
//! reading years of lines. It is written after the acknowledgement and may be lost at any time.
//!
//! sled's flush is no fsync, and a damaged file can open empty or panic (measured, see
//! ARCHITECTURE.md). So: everything is in one tree and each batch in one atomic write with the
//! sequence number it reaches; opening is guarded, checked, and ends in a rebuild when in doubt.
//!
//! Promise: no failure of the index fails a request, and none of its numbers is believed that does
//! not agree with its own count.

use std::collections::HashMap;
use std::ops::Bound;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::db::{Handle, IndexError, guarded, open_sled};
use super::rows::{
    BY_KEY, BY_KEY_HASH, BY_REQUEST, ENTRY, FORMAT, META, MISSING, Meta, Moved, ROLLUP, RUN,
    RowCounts, SWEPT, StillListed, StoredEntry, by_key, decode, encode, entry_key, id_of,
    lookup_key, moved, text_key,
};
use crate::ledger::entry::Unresolved;
use crate::ledger::fold::books::Pending;
use crate::ledger::fold::totals::Totals;
use crate::ledger::id::EntryId;
use crate::ledger::journal::report::Missing;
use crate::ledger::kept_key::KeyForm;
use crate::ledger::sums::{RollupKey, Row};

/// How many damaged indexes are kept for a look.
const DAMAGED_MAX: usize = 2;

/// How many rows are looked at while the writer waits.
const SLICE: usize = 500;

const DIRECTORY: &str = "index";
const DAMAGED: &str = "index.damaged-";

/// An open index. Clones share it.
#[derive(Clone, Debug)]
pub struct Index {
    handle: Handle,
    /// Who reads rows to write them again has it.
    turn: Arc<Mutex<()>>,
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

    /// Writes one row by itself. Whether it is a new one.
    pub(super) fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, IndexError> {
        guarded(|| Ok(self.handle.db()?.insert(key, value)?.is_none()))
    }

    fn on(db: sled::Db) -> Self {
        let turn = Arc::default();
        Self {
            handle: Handle::new(db),
            turn,
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
        let _turn = self.turn.lock(); // Rows that are being swept do not agree with their count.
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
        // Sums tell nothing of rows that only lookups use.
        if self.rows()? != meta.rows {
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
            let _turn = self.turn.lock();
            let mut batch = sled::Batch::default();
            let before = self.handle.db()?.get(META)?;
            let mut before: Meta = before.map_or(Ok(Meta::default()), |meta| decode(&meta))?;
            self.add_entries(pending, &mut batch, &mut before.rows)?;
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
            for (run_id, waiting) in &pending.runs_begun {
                batch.insert(text_key(RUN, run_id), encode(waiting)?);
            }
            for run_id in &pending.runs_ended {
                batch.remove(text_key(RUN, run_id));
            }
            let meta = Meta {
                format: FORMAT,
                ledger: ledger.to_owned(),
                last_seq,
                oldest_open_seq,
                globals: totals.globals.clone(),
                requests: totals.requests(),
                billed: totals.billed(),
                ..before
            };
            batch.insert(META, encode(&meta)?);
            Ok(self.handle.db()?.apply_batch(batch)?)
        })
    }

    fn add_entries(
        &self,
        pending: &Pending,
        batch: &mut sled::Batch,
        counts: &mut RowCounts,
    ) -> Result<(), IndexError> {
        let mut rows = HashMap::new();
        for ended in &pending.entries {
            let row = StoredEntry {
                state: ended.state,
                intent: ended.intent,
                end: ended.end,
                evidence: None,
            };
            // An entry that ends twice, as when lines come back from a backup, has its rows.
            if rows.insert(ended.id, row).is_none()
                && !self.handle.db()?.contains_key(entry_key(ended.id))?
            {
                counts.entries += 1;
                counts.keys += u64::from(ended.key.is_some());
                counts.requests += u64::from(ended.request_id.is_some());
            }
            if let Some(key) = &ended.key {
                batch.insert(by_key(key, ended.id), &[]);
            }
            if let Some(request_id) = &ended.request_id {
                batch.insert(lookup_key(BY_REQUEST, request_id, ended.id), &[]);
            }
        }
        for (id, state, position) in &pending.changed {
            let row = match rows.remove(id) {
                Some(row) => Some(row),
                None => self.entry(*id)?,
            };
            if let Some(mut row) = row {
                row.state = *state;
                row.evidence = Some(*position);
                rows.insert(*id, row);
            }
        }
        for (id, row) in rows {
            batch.insert(entry_key(id), encode(&row)?);
        }
        Ok(())
    }

    /// Remembers that the writer had nothing to do for a while after the record `seq`: the answers that
    /// were settled up to there have gone out, or were noted.
    pub fn note_given(&self, seq: u64) -> Result<(), IndexError> {
        guarded(|| {
            let _turn = self.turn.lock();
            if let Some(meta) = self.handle.db()?.get(META)? {
                let mut meta: Meta = decode(&meta)?;
                meta.given_seq = seq.min(meta.last_seq);
                self.handle.db()?.insert(META, encode(&meta)?)?;
            }
            Ok(())
        })
    }
    /// Up to which segment the index was swept; 0 when it never was.
    pub fn swept(&self) -> Result<u32, IndexError> {
        guarded(|| match self.handle.db()?.get(SWEPT)? {
            Some(value) => decode(&value),
            None => Ok(0),
        })
    }

    /// Forgets the entries whose lines lay in segments up to `segment`, but those that are `kept`.
    pub fn sweep(
        &self,
        segment: u32,
        kept: &HashMap<EntryId, StillListed>,
        cancel: &AtomicBool,
    ) -> Result<(), IndexError> {
        let is_done = self.slices(ENTRY, cancel, |key, value, batch| {
            let Some(id) = id_of(key) else {
                return Err(IndexError::DamagedRow);
            };
            let row: StoredEntry = decode(value)?;
            match moved(row, segment, kept.get(&id)) {
                Moved::Stays => return Ok(0),
                Moved::To(row) => batch.insert(key, encode(&row)?),
                Moved::Gone => {
                    batch.remove(key);
                    return Ok(1);
                }
            }
            Ok(0)
        })?;
        for kind in [BY_KEY, BY_KEY_HASH, BY_REQUEST] {
            if !is_done {
                return Ok(());
            }
            self.slices(kind, cancel, |key, _, batch| {
                let Some(id) = id_of(key) else {
                    return Err(IndexError::DamagedRow);
                };
                if !self.handle.db()?.contains_key(entry_key(id))? {
                    batch.remove(key);
                    return Ok(1);
                }
                Ok(0)
            })?;
        }
        if cancel.load(Ordering::Relaxed) {
            return Ok(());
        }
        guarded(|| {
            // Alone, this row would make an index look like one that lost its count.
            if self.handle.db()?.contains_key(META)? {
                self.handle.db()?.insert(SWEPT, encode(&segment)?)?;
            }
            Ok(())
        })
    }

    /// Looks at all rows of a kind, a slice at a time; `look` answers how many it removed. Answers
    /// whether it came to the end.
    fn slices(
        &self,
        kind: u8,
        cancel: &AtomicBool,
        mut look: impl FnMut(&[u8], &[u8], &mut sled::Batch) -> Result<u64, IndexError>,
    ) -> Result<bool, IndexError> {
        let mut from = Bound::Included(vec![kind]);
        while !cancel.load(Ordering::Relaxed) {
            let last = guarded(|| {
                let _turn = self.turn.lock();
                let mut batch = sled::Batch::default();
                let mut last = None;
                let mut removed = 0;
                let range = (from.clone(), Bound::Excluded(vec![kind + 1]));
                for pair in self.handle.db()?.range::<Vec<u8>, _>(range).take(SLICE) {
                    let (key, value) = pair?;
                    removed += look(&key, &value, &mut batch)?;
                    last = Some(key.to_vec());
                }
                if removed > 0
                    && let Some(meta) = self.handle.db()?.get(META)?
                {
                    let mut meta: Meta = decode(&meta)?;
                    meta.rows.remove(kind, removed);
                    batch.insert(META, encode(&meta)?);
                }
                self.handle.db()?.apply_batch(batch)?;
                Ok(last)
            })?;
            match last {
                Some(last) => from = Bound::Excluded(last),
                None => return Ok(true),
            }
        }
        Ok(false)
    }
    /// Counts the rows that lookups use. Reads the whole tree.
    pub fn rows(&self) -> Result<RowCounts, IndexError> {
        let count = |kind: u8| {
            let mut count = 0;
            for key in self.handle.db()?.scan_prefix([kind]).keys() {
                key?;
                count += 1;
            }
            Ok::<u64, IndexError>(count)
        };
        guarded(|| {
            Ok(RowCounts {
                entries: count(ENTRY)?,
                keys: count(BY_KEY)? + count(BY_KEY_HASH)?,
                requests: count(BY_REQUEST)?,
            })
        })
    }

    /// An entry that ended.
    pub fn entry(&self, id: EntryId) -> Result<Option<StoredEntry>, IndexError> {
        guarded(|| match self.handle.db()?.get(entry_key(id))? {
            Some(value) => Ok(Some(decode(&value)?)),
            None => Ok(None),
        })
    }

    /// Entries that ended with this Idempotency-Key, oldest first, at most `limit`.
    pub fn by_key(&self, key: &KeyForm, limit: usize) -> Result<Vec<EntryId>, IndexError> {
        match key {
            KeyForm::Text(text) => self.lookup(BY_KEY, text, limit),
            KeyForm::Hash(hash) => self.lookup(BY_KEY_HASH, &hash.to_string(), limit),
        }
    }

    /// Entries that ended with this request id, oldest first, at most `limit`.
    pub fn by_request(&self, request_id: &str, limit: usize) -> Result<Vec<EntryId>, IndexError> {
        self.lookup(BY_REQUEST, request_id, limit)
    }

    fn lookup(&self, kind: u8, text: &str, limit: usize) -> Result<Vec<EntryId>, IndexError> {
        guarded(|| {
            let mut prefix = text_key(kind, text);
            prefix.push(0);
            let mut found = Vec::new();
            for pair in self.handle.db()?.scan_prefix(&prefix).take(limit) {
                let (key, _) = pair?;
                let id = key
                    .get(prefix.len()..)
                    .and_then(|id| uuid::Uuid::from_slice(id).ok())
                    .ok_or(IndexError::DamagedRow)?;
                found.push(EntryId(id));
            }
            Ok(found)
        })
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
