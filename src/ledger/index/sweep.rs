//! Takes out of the index what was compacted out of the journal.
//!
//! Promise: interrupted anywhere, the next start sees that it is not done and does it again. The
//! writer waits for a slice of it at most.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use super::rows::{Meta, decode, encode, entry_key};
use super::{
    BY_KEY, BY_KEY_HASH, BY_REQUEST, ENTRY, Index, IndexError, META, StoredEntry, guarded,
};
use crate::ledger::compact::Kept;
use crate::ledger::entry::EntryId;
use crate::ledger::record::Position;

/// Up to which segment the index was swept.
const SWEPT: &[u8] = b"c";

/// How many rows are looked at while the writer waits.
const SLICE: usize = 500;

const ID_BYTES: usize = 16;

// === impl Index ===

impl Index {
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
        kept: &HashMap<EntryId, Kept>,
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
}

/// What becomes of a row.
enum Moved {
    Stays,
    To(StoredEntry),
    Gone,
}

fn moved(row: StoredEntry, segment: u32, kept: Option<&Kept>) -> Moved {
    let is_old = |position: Position| position.segment <= segment;
    if !is_old(row.end) && !row.intent.is_some_and(is_old) {
        return Moved::Stays;
    }
    let kept = kept.copied().unwrap_or_default();
    let end = match kept.end {
        Some(end) if is_old(row.end) => end,
        _ if !is_old(row.end) => row.end,
        _ => return Moved::Gone,
    };
    let intent = match row.intent {
        Some(intent) if !is_old(intent) => Some(intent),
        _ => kept.intent,
    };
    Moved::To(StoredEntry { intent, end, ..row })
}

/// Keys that belong to an entry end with its id.
fn id_of(key: &[u8]) -> Option<EntryId> {
    let id = key.get(key.len().checked_sub(ID_BYTES)?..)?;
    uuid::Uuid::from_slice(id).ok().map(EntryId)
}
