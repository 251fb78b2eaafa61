//! Feeds the index while the journal is read: on a thread of its own, so that reading and
//! writing share the time.
//!
//! Promise: bounded; a failure of the index ends the index and not the reading.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::ledger::fold::books::{Books, Pending};
use crate::ledger::index::db::IndexError;
use crate::ledger::index::tree::{Index, IndexedUpTo};

/// Batches that wait for the thread.
const WAITING_MAX: usize = 4;

/// Sums of an index in the making that are held at once: about ten megabytes.
const SUMS_MAX: usize = 20_000;

/// The index behind its thread.
#[derive(Debug)]
pub struct Feed {
    ledger: String,
    index: Index,
    /// `None` once the thread has failed.
    batches: Option<SyncSender<Batch>>,
    thread: JoinHandle<Result<(), IndexError>>,
}

#[derive(Debug)]
struct Batch {
    pending: Pending,
    reached: IndexedUpTo,
}

// === impl Feed ===

impl Feed {
    /// `None`: there is no thread to be had, and so no index.
    pub fn new(index: Index, ledger: &str, is_new: bool) -> Option<Self> {
        let (batches, waiting) = sync_channel::<Batch>(WAITING_MAX);
        let own = index.clone();
        let thread = std::thread::Builder::new()
            .name("index".to_owned())
            .spawn(move || {
                let mut whole: Option<Batch> = None;
                for batch in waiting {
                    if !is_new {
                        own.write(&batch.reached, batch.pending)?;
                        continue;
                    }
                    let pending = match whole.take() {
                        Some(mut whole) => {
                            whole.pending.extend(batch.pending);
                            whole.pending
                        }
                        None => batch.pending,
                    };
                    whole = Some(Batch {
                        pending: write_part_of(&own, pending)?,
                        reached: batch.reached,
                    });
                }
                // The mark that makes an index trusted is written last: an index without it is
                // rebuilt at the next start.
                whole.map_or(Ok(()), |whole| own.write(&whole.reached, whole.pending))
            });
        match thread {
            Ok(thread) => Some(Self {
                ledger: ledger.to_owned(),
                index,
                batches: Some(batches),
                thread,
            }),
            Err(error) => {
                tracing::error!(%error, "no thread for the index; going on without it");
                None
            }
        }
    }

    /// Hands over what the books hold for the index.
    pub fn tell(&mut self, books: &mut Books) {
        let batch = Batch {
            reached: IndexedUpTo::of(books, &self.ledger),
            pending: books.take_pending(),
        };
        if let Some(batches) = &self.batches
            && batches.send(batch).is_err()
        {
            self.batches = None;
        }
    }

    /// Waits for the thread. `None`: the index failed.
    pub fn finish(mut self, books: &mut Books) -> Option<Index> {
        if books.pending_records() > 0 {
            self.tell(books);
        }
        drop(self.batches);
        match self.thread.join().unwrap_or(Err(IndexError::Panicked)) {
            Ok(()) => Some(self.index),
            Err(error) => {
                tracing::error!(%error, "the index failed; going on without it until the next start");
                None
            }
        }
    }
}

/// Writes what there are too many of. Answers what is left to be written at the end.
fn write_part_of(index: &Index, mut pending: Pending) -> Result<Pending, IndexError> {
    // An empty index has no run to forget: of the past only those that wait are kept.
    pending.runs.retain(|_, run| run.is_some());
    if pending.sums.len() > SUMS_MAX {
        pending.sums = index.write_part(pending.sums)?;
    }
    Ok(pending)
}
