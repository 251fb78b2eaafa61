//! What the index is told while the journal is read: on a thread of its own, so that reading and
//! writing share the time.
//!
//! Promise: bounded; a failure of the index ends the index and not the reading.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::ledger::fold::books::{Books, Pending};
use crate::ledger::fold::totals::Totals;
use crate::ledger::index::db::IndexError;
use crate::ledger::index::tree::Index;

/// Batches that wait for the thread.
const WAITING_MAX: usize = 4;

/// The index behind its thread.
#[derive(Debug)]
pub struct Feed {
    index: Index,
    /// `None` once the thread has failed.
    batches: Option<SyncSender<Batch>>,
    thread: JoinHandle<Result<(), IndexError>>,
}

#[derive(Debug)]
struct Batch {
    pending: Pending,
    last_seq: u64,
    oldest_open_seq: Option<u64>,
    totals: Totals,
}

// === impl Batch ===

impl Batch {
    fn extend(&mut self, later: Self) {
        self.pending.extend(later.pending);
        self.last_seq = later.last_seq;
        self.oldest_open_seq = later.oldest_open_seq;
        self.totals = later.totals;
    }

    fn write(&self, index: &Index, ledger: &str) -> Result<(), IndexError> {
        let (last_seq, oldest) = (self.last_seq, self.oldest_open_seq);
        index.write(ledger, &self.pending, last_seq, oldest, &self.totals)
    }
}

// === impl Feed ===

impl Feed {
    /// `None`: there is no thread to be had, and so no index.
    pub fn new(index: Index, ledger: &str, is_new: bool) -> Option<Self> {
        let (batches, waiting) = sync_channel::<Batch>(WAITING_MAX);
        let ledger = ledger.to_owned();
        let own = index.clone();
        let thread = std::thread::Builder::new()
            .name("index".to_owned())
            .spawn(move || {
                let mut whole: Option<Batch> = None;
                for batch in waiting {
                    if !is_new {
                        batch.write(&own, &ledger)?;
                    } else if let Some(whole) = &mut whole {
                        whole.extend(batch);
                    } else {
                        whole = Some(batch);
                    }
                    // An empty index has no run to forget: of the past only those that wait are kept.
                    if let Some(whole) = &mut whole {
                        whole.pending.runs.retain(|_, run| run.is_some());
                    }
                }
                // What makes an index believed comes last: one that was not made to its end is
                // begun anew at the next start.
                whole.map_or(Ok(()), |whole| whole.write(&own, &ledger))
            });
        match thread {
            Ok(thread) => Some(Self {
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
            pending: books.take_pending(),
            last_seq: books.last_seq(),
            oldest_open_seq: books.oldest_open_seq(),
            totals: books.totals().clone(),
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
