//! The index: sled 0.34.7 beside the journal, for sums that are asked for and survive
//! without reading years of lines. It is written after the acknowledgement and may be lost at any time. Its
//! size goes by quarter hours, and by how many different sums there are in each.
//!
//! sled's flush is no fsync, and a damaged file can open empty or panic (measured, see
//! ARCHITECTURE.md). So: everything is in one tree and each batch in one atomic write with the
//! sequence number it reaches; opening is guarded, checked, and ends in a rebuild when in doubt.
//!
//! Promise: no failure of the index fails a request, and none of its numbers is believed that does
//! not agree with its own count.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

use super::blocks::{Detail, Length, each_cell};
use super::db::{Handle, IndexError, guarded, open_sled};
use super::figures::Figures;
use super::lines::LineNumbers;
use super::rows::{
    DAMAGED, FILED_OF_RUN, FILES, FORMAT, LINE, META, MISSING, Meta, RUN, block_prefix, decode,
    encode, entry_key, line_key, opened, text_key,
};
use super::snapshot::Snapshot;
use super::write::{forget_filed, write_sums};
use crate::ledger::entry::Unresolved;
use crate::ledger::fold::books::{Books, Pending};
use crate::ledger::fold::models::ModelLine;
use crate::ledger::fold::quarters::Changes;
use crate::ledger::fold::totals::Totals;
use crate::ledger::journal::high_water::HighWater;
use crate::ledger::journal::report::Missing;
use crate::ledger::journal::segments::{JournalFiles, Segment};
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::sums::{Globals, MicroUsdSum};

/// How many damaged indexes are kept for a look.
const DAMAGED_MAX: usize = 2;

const DIRECTORY: &str = "index";
const MOVED_ASIDE: &str = "index.damaged-";

/// An open index. Clones share it.
#[derive(Clone, Debug)]
pub struct Index {
    handle: Handle,
    /// Its lock also keeps questions and batches apart: sled shows parts of a batch to a concurrent reader.
    lines: Arc<RwLock<LineNumbers>>,
    /// A question found that rows are lost: it is neither asked nor written any more.
    is_doubted: Arc<AtomicBool>,
}

/// Where the books stand with what is to be written.
#[derive(Clone, Debug)]
pub struct IndexedUpTo {
    pub ledger: String,
    pub last_seq: u64,
    pub oldest_open_seq: Option<u64>,
    /// The latest time that keys were forgotten by, Unix milliseconds.
    pub pruned_ms: u64,
    pub globals: Globals,
    pub requests: u64,
    pub billed: MicroUsdSum,
    /// The writer had nothing to do for a while after this record: the answers that were settled up to there
    /// have gone out, or were noted. 0: that is not said.
    pub given_seq: u64,
}

/// What the index remembers for the books.
#[derive(Debug, Default)]
pub struct Checkpoint {
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
    pub kept: Checkpoint,
    /// It was made anew: empty until the journal has been replayed.
    pub is_new: bool,
}

// === impl IndexedUpTo ===

impl IndexedUpTo {
    pub fn of(books: &Books, ledger: &str) -> Self {
        let totals = books.totals();
        Self {
            ledger: ledger.to_owned(),
            last_seq: books.last_seq(),
            oldest_open_seq: books.oldest_open_seq(),
            pruned_ms: books.pruned_ms(),
            globals: totals.globals.clone(),
            requests: totals.requests(),
            billed: totals.billed(),
            given_seq: 0,
        }
    }
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
        let moved = std::fs::rename(&from, state.join(format!("{MOVED_ASIDE}{now_ms}")))
            .or_else(|_| std::fs::remove_dir_all(&from));
        if let Err(error) = moved {
            tracing::error!(%error, "cannot move the damaged index aside; going on without one");
            return Opened::without();
        }
        forget_damaged(state);
        Self::begin(state)
    }

    /// Opens and checks; used by `ledger verify` on a copy.
    pub fn open_checked(path: &Path, ledger: &str) -> Result<(Self, Checkpoint), IndexError> {
        guarded(|| {
            let index = Self::on(open_sled(path)?);
            let kept = index.check(ledger)?;
            Ok((index, kept))
        })
    }

    fn on(db: sled::Db) -> Self {
        Self {
            handle: Handle::new(db),
            lines: Arc::default(),
            is_doubted: Arc::default(),
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
                kept: Checkpoint::default(),
                is_new: true,
            },
            Err(error) => {
                tracing::error!(%error, "cannot make an index; going on without one");
                Opened::without()
            }
        }
    }

    /// Reads all that the books need, and compares rows with the count.
    fn check(&self, ledger: &str) -> Result<Checkpoint, IndexError> {
        let mut lines = self.lines.write();
        let db = self.handle.db()?;
        let Some(meta) = db.get(META)? else {
            // Nothing was ever written, it was not made to its end, or everything is lost: all mean
            // the whole journal.
            let mut keys = db.iter().keys();
            return if keys
                .all(|key| key.is_ok_and(|key| [MISSING, DAMAGED, FILES].contains(&&*key)))
            {
                Ok(Checkpoint::default())
            } else {
                Err(IndexError::Incomplete)
            };
        };
        let meta: Meta = decode(&meta)?;
        if meta.format != FORMAT || meta.ledger != ledger {
            return Err(IndexError::Foreign);
        }
        *lines = LineNumbers::default();
        for pair in db.scan_prefix([LINE]) {
            let (key, value) = pair?;
            let (number, is_new) = lines.number(&decode(&value)?)?;
            if !is_new || key != line_key(number) {
                return Err(IndexError::Incomplete);
            }
        }
        if u64::try_from(lines.len()) != Ok(meta.lines) {
            return Err(IndexError::Incomplete);
        }
        let mut totals = totals_of(db, &lines, Detail::AllModels)?;
        if totals.requests() != meta.requests
            || totals.billed() != meta.billed
            || totals_of(db, &lines, Detail::ByModel)? != totals
        {
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
        let missing = match db.get(MISSING)? {
            Some(value) => decode(&value)?,
            None => Vec::new(),
        };
        Ok(Checkpoint {
            last_seq: meta.last_seq,
            given_seq: meta.given_seq,
            oldest_open_seq: meta.oldest_open_seq,
            totals,
            runs,
            missing,
        })
    }

    /// Compares every quarter hour with its block. Reads the whole index.
    pub fn check_quarters(&self) -> Result<(), IndexError> {
        self.ask(|snapshot| {
            let is_quarter = |from: u64, until: u64| until - from <= Length::Quarter.ms();
            let mut place = |from, until| is_quarter(from, until).then_some(0);
            let mut group = |_: &ModelLine, _| Ok(0);
            Detail::ALL.into_iter().try_for_each(|detail| {
                let sums = snapshot.sums(detail, 0, u64::MAX, usize::MAX, &mut place, &mut group);
                sums.map(drop)
            })
        })
    }

    /// Remembers what the journal lacks, so that it is not made anew for that again.
    pub fn know_missing(&self, missing: &[Missing]) -> Result<(), IndexError> {
        guarded(|| {
            let db = self.handle.db()?;
            Ok(db.insert(MISSING, encode(&missing)?).map(drop)?)
        })
    }

    /// Remembers that the journal is not sound: from now on it answers for itself.
    pub fn know_damaged(&self) -> Result<(), IndexError> {
        guarded(|| Ok(self.handle.db()?.insert(DAMAGED, vec![1]).map(drop)?))
    }

    /// Remembers the journal's files as they are now.
    pub fn know_files(&self, files: &JournalFiles) -> Result<(), IndexError> {
        guarded(|| {
            let db = self.handle.db()?;
            Ok(db.insert(FILES, encode(files)?).map(drop)?)
        })
    }

    /// The files as they were then; `None`: that was not noted.
    pub fn known_files(&self) -> Result<Option<JournalFiles>, IndexError> {
        guarded(|| {
            let files = self.handle.db()?.get(FILES)?;
            files.map(|files| decode(&files)).transpose()
        })
    }

    /// Writes what happened since the last time, all of it or nothing. Waits while a question is answered.
    pub fn write(&self, reached: &IndexedUpTo, pending: Pending) -> Result<(), IndexError> {
        let mut lines = self.lines.write();
        guarded(|| self.write_with(&mut lines, reached, pending))
    }

    fn write_with(
        &self,
        lines: &mut LineNumbers,
        reached: &IndexedUpTo,
        pending: Pending,
    ) -> Result<(), IndexError> {
        if self.is_doubted.load(Ordering::Relaxed) {
            return Err(IndexError::Incomplete);
        }
        let db = self.handle.db()?;
        let mut batch = sled::Batch::default();
        let before = db.get(META)?;
        let before: Meta = before.map_or(Ok(Meta::default()), |meta| decode(&meta))?;
        let mut runs = before.runs;
        for (run_id, change) in &pending.runs {
            let key = text_key(RUN, run_id);
            let old = db.get(&key)?;
            runs = runs + u64::from(change.is_some()) - u64::from(old.is_some());
            match (change, old) {
                (Some(waiting), _) => batch.insert(key, encode(waiting)?),
                (None, None) => batch.remove(key),
                (None, Some(old)) => {
                    let old: Unresolved = decode(&old)?;
                    let quarter_ms = Length::Quarter.floor(old.labels.started_ms);
                    batch.remove(entry_key(FILED_OF_RUN, quarter_ms, Some(old.id)));
                    batch.remove(key);
                }
            }
        }
        let left = write_sums(db, lines, &mut batch, pending.sums)?;
        forget_filed(db, &mut batch, reached.pruned_ms)?;
        let meta = Meta {
            format: FORMAT,
            ledger: reached.ledger.clone(),
            last_seq: reached.last_seq,
            oldest_open_seq: reached.oldest_open_seq,
            globals: reached.globals.clone(),
            lines: u64::try_from(lines.len()).unwrap_or(u64::MAX),
            unmoved: before.unmoved.saturating_add(left.unmoved()),
            requests: reached.requests,
            billed: reached.billed,
            runs,
            given_seq: before.given_seq.max(reached.given_seq),
            compacted_seq: before.compacted_seq.max(left.compacted_seq()),
        };
        batch.insert(META, encode(&meta)?);
        Ok(db.apply_batch(batch)?)
    }

    /// Adds sums to an index that is being made, which is not believed before [`Self::write`]. Answers what
    /// is left to be written with the next ones.
    pub fn write_part(&self, sums: Changes) -> Result<Changes, IndexError> {
        let mut lines = self.lines.write();
        guarded(|| {
            let db = self.handle.db()?;
            let mut batch = sled::Batch::default();
            let left = write_sums(db, &mut lines, &mut batch, sums)?;
            db.apply_batch(batch)?;
            Ok(left)
        })
    }

    /// A question found that rows are lost. From now on it is not believed, and the next start makes it
    /// anew.
    pub fn doubt(&self) {
        let _lines = self.lines.write();
        self.is_doubted.store(true, Ordering::Relaxed);
        let removed = guarded(|| {
            let db = self.handle.db()?;
            db.remove(META)?;
            Ok(db.flush().map(drop)?)
        });
        if let Err(error) = removed {
            tracing::warn!(%error, "the index cannot be marked as damaged");
        }
    }

    /// Asks the index as it stands at one moment. What the writer has to add waits meanwhile.
    pub fn ask<T, E: From<IndexError>>(
        &self,
        question: impl FnOnce(&Snapshot<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let lines = self.lines.read();
        guarded(|| {
            let db = self.handle.db()?;
            let meta = db.get(META)?.ok_or(IndexError::Unfit)?;
            Ok(question(&Snapshot::new(db, &lines, decode(&meta)?)?))
        })?
    }

    /// The last record that is in it.
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
    /// The journal's files are not those that the index was written with.
    pub fn are_files_others(&self, now: &[Segment]) -> bool {
        let files = self.index.as_ref().map(Index::known_files);
        let files = files.and_then(|files| files.unwrap_or_default());
        files.is_some_and(|files| !files.still_hold(now))
    }

    /// An empty index in the place of this one. What it knew of the journal's end is kept in the mark.
    pub fn anew(
        index: Option<Index>,
        state: &Directory,
        journal: &Directory,
        known_seq: u64,
        now_ms: u64,
    ) -> Self {
        drop(index);
        match HighWater::write(journal, known_seq) {
            Ok(()) => Index::reopen_empty(state.path(), now_ms),
            Err(error) => {
                tracing::error!(%error, "the journal's mark cannot be written; no index for now");
                Self::without()
            }
        }
    }

    pub fn without() -> Self {
        Self {
            index: None,
            kept: Checkpoint::default(),
            is_new: true,
        }
    }
}

/// The sums of all blocks of four hours, by line.
fn totals_of(db: &sled::Db, lines: &LineNumbers, detail: Detail) -> Result<Totals, IndexError> {
    let (mut places, mut sums) = (BTreeMap::new(), Vec::new());
    let place_of = lines.iter().map(|line| {
        let next = places.len();
        *places.entry(&line.line).or_insert(next)
    });
    let place_of: Vec<usize> = place_of.collect();
    sums.resize_with(places.len(), Figures::default);
    for pair in db.scan_prefix(block_prefix(Length::Sixteen, detail)) {
        let (_, value) = pair?;
        each_cell(opened(&value)?, |(line, _), rest| {
            let place = place_of.get(usize::from(line))?;
            sums.get_mut(*place)?.add_encoded(rest)
        })?;
    }
    let mut totals = Totals::default();
    for (line, place) in places {
        let row = sums.get(place).ok_or(IndexError::Incomplete)?.row();
        totals.extend([(line, &row)]);
    }
    Ok(totals)
}

/// Removes the oldest of the indexes that were moved aside.
fn forget_damaged(state: &Path) {
    let mut damaged: Vec<PathBuf> = std::fs::read_dir(state)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(MOVED_ASIDE))
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
