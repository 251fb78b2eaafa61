//! Retention: once a day, and at start, what is older than `[ledger] retention_days` is compacted.
//!
//! Old segments do not change, so another thread reads them and writes the compacted one. Only the
//! writer makes it count, between two batches: that is one rename. Then another thread clears up.
//!
//! Promise: requests wait for a rename and for slices of the index, never for the reading of a
//! segment. A failure is logged, changes nothing, and is tried again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Writer;
use crate::ledger::compact::{
    Built, CompactReport, PASS_BYTES, RETENTION_MS_MIN, Wanted, build, clear, commit, plan,
};
use crate::ledger::error::LedgerError;
use crate::ledger::index::Index;
use crate::ledger::load::sweep;
use crate::ledger::scan::{Segment, segments};
use crate::ledger::state_dir::Directory;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Time from one look to the next.
const LOOK_PAUSE: Duration = Duration::from_millis(DAY_MS);

/// The same after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(60 * 60);

/// What goes on beside the writer.
#[derive(Debug, Default)]
pub struct Care {
    job: Option<Job>,
    /// When the next look is due, on the monotonic clock.
    next_look: Duration,
    /// The writer is stopping.
    cancel: Arc<AtomicBool>,
}

/// What a job of compaction came to: what was written, and why more could not be.
type Written = Result<(Option<Built>, Option<String>), LedgerError>;

#[derive(Debug)]
enum Job {
    Building(JoinHandle<Written>),
    Clearing(JoinHandle<Result<(), LedgerError>>),
}

// === impl Writer ===

impl Writer {
    /// Goes on with retention by one step, when one is due. Never waits for a job.
    pub fn take_care(&mut self) {
        let Some(retention) = self.options.retention else {
            return;
        };
        match self.care.job.take() {
            None => {
                let is_due = self.options.clock.monotonic() >= self.care.next_look;
                if is_due && self.loaded.is_some() && !self.is_full {
                    self.begin_compaction(retention);
                }
            }
            Some(Job::Building(thread)) if thread.is_finished() => {
                let written = thread.join().unwrap_or_else(|_| Err(panicked()));
                self.end_compaction(written);
            }
            Some(Job::Clearing(thread)) if thread.is_finished() => {
                let cleared = thread.join().unwrap_or_else(|_| Err(panicked()));
                if let Err(error) = cleared {
                    tracing::warn!(%error, "what was compacted could not be removed");
                    self.look_after(RETRY_PAUSE);
                }
            }
            busy => self.care.job = busy,
        }
    }

    /// Before the writer ends.
    pub fn stop_care(&mut self) {
        self.care.cancel.store(true, Ordering::Relaxed);
        match self.care.job.take() {
            // What was built and does not count yet is removed by the next start.
            Some(Job::Building(thread)) => drop(thread.join()),
            Some(Job::Clearing(thread)) => drop(thread.join()),
            None => {}
        }
    }

    /// Compacts all that is older than `older_than`, in this thread.
    pub fn compact_now(&mut self, older_than: Duration) -> Result<CompactReport, LedgerError> {
        let before_ms = self.before_ms(older_than);
        let journal = self.directory.child("journal")?;
        self.leave_segment(&journal, before_ms)?;
        let mut report = CompactReport::default();
        loop {
            let wanted = self.wanted(before_ms);
            let next = plan(&journal, &wanted, false, PASS_BYTES)?;
            report.stopped_by.clone_from(&next.stopped_by);
            let cancel = Arc::clone(&self.care.cancel);
            let Some(built) = build(&journal, &next, &wanted, &cancel)? else {
                self.write_index();
                return Ok(report);
            };
            self.write_index();
            commit(&journal)?;
            let index = self.loaded.as_ref().and_then(|loaded| loaded.index.clone());
            clear_up(&journal, index.as_ref(), &cancel)?;
            // What the pass before this one wrote is no gain of this one.
            let carried = report.bytes_after.unwrap_or(0);
            let planned = next.report();
            report.segments += planned.segments;
            report.bytes_before += built.bytes_before - carried.min(built.bytes_before);
            report.bytes_after = Some(built.bytes_after);
            report.entries = Some(report.entries.unwrap_or(0) + built.entries);
            report.until_ms = Some(built.stands_for.until_ms);
        }
    }

    fn begin_compaction(&mut self, retention: Duration) {
        let before_ms = self.before_ms(retention);
        let day_ago_ms = self.options.clock.wall_ms().saturating_sub(DAY_MS);
        let began = self.directory.child("journal").and_then(|journal| {
            self.leave_segment(&journal, day_ago_ms)?;
            let wanted = self.wanted(before_ms);
            let cancel = Arc::clone(&self.care.cancel);
            let path = journal.path().to_owned();
            let work = move || -> Written {
                let next = plan(&journal, &wanted, false, PASS_BYTES)?;
                let built = build(&journal, &next, &wanted, &cancel)?;
                Ok((built, next.stopped_by))
            };
            let thread = std::thread::Builder::new().name("ledger-compact".to_owned());
            thread
                .spawn(work)
                .map_err(|error| LedgerError::io(&path, error))
        });
        match began {
            Ok(thread) => self.care.job = Some(Job::Building(thread)),
            Err(error) => {
                tracing::error!(%error, "the journal cannot be compacted now");
                self.look_after(RETRY_PAUSE);
            }
        }
    }

    fn end_compaction(&mut self, written: Written) {
        let (built, stopped_by) = match written {
            Ok(written) => written,
            // A journal that fails is opened anew by the writer; this is tried again later.
            Err(error) => {
                tracing::error!(%error, "the journal could not be compacted");
                return self.look_after(RETRY_PAUSE);
            }
        };
        if let Some(why) = stopped_by {
            tracing::error!(why, "old entries cannot be compacted; they stay");
        }
        let Some(built) = built else {
            return self.look_after(LOOK_PAUSE);
        };
        if self.loaded.is_none() {
            return self.look_after(RETRY_PAUSE);
        }
        // The index must know all that it will not be able to read any more.
        self.write_index();
        let journal = self.directory.child("journal");
        let committed = journal.and_then(|journal| commit(&journal).map(|()| journal));
        let journal = match committed {
            Ok(journal) => journal,
            Err(error) => {
                tracing::error!(%error, "the journal could not be compacted");
                return self.look_after(RETRY_PAUSE);
            }
        };
        tracing::info!(
            entries = built.entries,
            still_listed = built.kept,
            up_to_seq = built.stands_for.seq,
            bytes_before = built.bytes_before,
            bytes_after = built.bytes_after,
            "old entries were compacted: their sums stay"
        );
        let mut index = None;
        if let Some(loaded) = self.loaded.as_mut() {
            loaded
                .journal
                .compacted(built.bytes_before, built.bytes_after);
            index.clone_from(&loaded.index);
        }
        let cancel = Arc::clone(&self.care.cancel);
        let thread = std::thread::Builder::new().name("ledger-compact".to_owned());
        let spawned = thread.spawn(move || clear_up(&journal, index.as_ref(), &cancel));
        match spawned {
            // When it has ended there may be more to compact.
            Ok(thread) => self.care.job = Some(Job::Clearing(thread)),
            Err(error) => {
                tracing::error!(%error, "what was compacted stays until the next start");
                self.look_after(RETRY_PAUSE);
            }
        }
        self.publish();
    }

    /// Begins a new segment when the current one holds records and was begun before `at_ms`: only
    /// whole segments can be compacted.
    fn leave_segment(&mut self, journal: &Directory, at_ms: u64) -> Result<(), LedgerError> {
        let now_ms = self.options.clock.wall_ms();
        let all = segments(journal, None)?;
        let last = all.last().and_then(|last: &Segment| last.header.as_ref());
        let Some(loaded) = self.loaded.as_mut() else {
            return Ok(());
        };
        let is_left = last
            .is_some_and(|last| last.at_ms < at_ms && last.first_seq <= loaded.books.last_seq());
        if !is_left {
            return Ok(());
        }
        loaded.journal.rotate(now_ms).inspect_err(|error| {
            // The journal's own rule: after a failed write it is opened anew.
            self.fail(error.clone());
        })
    }

    fn wanted(&self, before_ms: u64) -> Wanted {
        let books = self.loaded.as_ref().map(|loaded| &loaded.books);
        Wanted {
            before_ms,
            before_seq: books
                .and_then(|books| books.oldest_open_seq())
                .unwrap_or(u64::MAX),
            awaited: books.map_or_else(Default::default, |books| books.awaited(before_ms)),
        }
    }

    fn before_ms(&self, retention: Duration) -> u64 {
        let retention_ms = u64::try_from(retention.as_millis()).unwrap_or(u64::MAX);
        let retention_ms = retention_ms.max(RETENTION_MS_MIN);
        self.options.clock.wall_ms().saturating_sub(retention_ms)
    }

    fn look_after(&mut self, pause: Duration) {
        self.care.next_look = self.options.clock.monotonic().saturating_add(pause);
    }
}

/// Takes what was compacted out of the index, then out of the directory.
fn clear_up(
    journal: &Directory,
    index: Option<&Index>,
    cancel: &AtomicBool,
) -> Result<(), LedgerError> {
    if let Some(index) = index
        && let Some(compacted) = segments(journal, None)?.first()
        && let Err(error) = sweep(index, journal, compacted, cancel)
    {
        // Lookups leave out lines that are not there; the next start tries again.
        tracing::warn!(%error, "the index still names what was compacted");
    }
    clear(journal)
}

fn panicked() -> LedgerError {
    LedgerError::CannotCompact {
        why: "it ended by a panic".to_owned(),
    }
}
