//! What could not be written while its request lasted. It waits here for the writer, which takes it
//! first thing when the journal is open again: a receipt that was seen is not lost for an outage of
//! the disk. With [`OnFailure::Serve`](crate::ledger::OnFailure) intents wait here too.
//!
//! Promise: bounded. An outcome that finds no room is counted, and its entry is in doubt after the
//! next start; an intent that finds none is refused, so its request is not sent; the outcome of an
//! intent that waits always has room. What waits leaves only when it is durable, or when the ledger
//! says that it never can be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::ledger::entry::{Delivery, Intent, Outcome};
use crate::ledger::error::LedgerError;
use crate::ledger::id::EntryId;

/// Most entries that wait. About a kilobyte each.
pub const OUTCOMES_MAX: usize = 4_096;

// What waits is sent again after the journal was read again: its ends must still be remembered then.
const _: () = assert!(OUTCOMES_MAX * 4 <= crate::ledger::fold::books::RECENT_MAX);

/// What waits, oldest first. The writer takes from here.
#[derive(Debug, Default)]
pub struct Backlog {
    inner: Mutex<Shelf>,
    dropped: AtomicU64,
}

/// An entry of which something could not be written.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// `None`: it is in the journal.
    pub intent: Option<Arc<Intent>>,
    /// `None`: the request is under way.
    pub outcome: Option<Arc<Outcome>>,
}

#[derive(Debug, Default)]
struct Shelf {
    waiting: Vec<Waiting>,
    /// The writer is gone.
    closed: bool,
}

// === impl Backlog ===

impl Backlog {
    /// Keeps an outcome.
    pub fn push(&self, outcome: Arc<Outcome>) -> Result<(), LedgerError> {
        let mut inner = self.inner.lock();
        let id = outcome.id;
        let begun = inner
            .waiting
            .iter_mut()
            .rev()
            .find(|waiting| waiting.id() == Some(id) && waiting.outcome.is_none());
        match begun {
            Some(waiting) => {
                waiting.outcome = Some(outcome);
                Ok(())
            }
            None => self.add(
                &mut inner,
                Waiting {
                    intent: None,
                    outcome: Some(outcome),
                },
            ),
        }
    }

    /// Keeps an intent whose request is sent although it could not be written.
    pub fn push_intent(&self, intent: Arc<Intent>) -> Result<(), LedgerError> {
        let mut inner = self.inner.lock();
        if inner.waiting.len() >= OUTCOMES_MAX {
            // Nothing is lost: its request is not sent.
            return Err(full());
        }
        self.add(
            &mut inner,
            Waiting {
                intent: Some(intent),
                outcome: None,
            },
        )
    }

    fn add(&self, inner: &mut Shelf, waiting: Waiting) -> Result<(), LedgerError> {
        if inner.closed {
            return Err(LedgerError::Closed);
        }
        if inner.waiting.len() >= OUTCOMES_MAX {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return Err(full());
        }
        inner.waiting.push(waiting);
        Ok(())
    }

    /// The outcome of this entry, if it waits, says what became of its answer.
    pub fn note_delivery(&self, id: EntryId, delivered: bool) {
        let mut inner = self.inner.lock();
        let waiting = inner.waiting.iter_mut().rev();
        let mut of_entry = waiting.filter(|waiting| waiting.id() == Some(id));
        if let Some(outcome) = of_entry.find_map(|waiting| waiting.outcome.as_mut()) {
            Arc::make_mut(outcome).delivery = match delivered {
                true => Delivery::Given,
                false => Delivery::Missed,
            };
        }
    }

    /// All that wait. They stay until [`Self::forget`].
    pub fn waiting(&self) -> Vec<Waiting> {
        self.inner.lock().waiting.clone()
    }

    /// The oldest, as [`Self::waiting`] gave them, are done with. An outcome that came since stays.
    pub fn forget(&self, done: &[Waiting]) {
        let mut inner = self.inner.lock();
        let count = done.len().min(inner.waiting.len());
        let left: Vec<Waiting> = inner
            .waiting
            .drain(..count)
            .zip(done)
            .filter(|(waiting, done)| waiting.outcome.is_some() && done.outcome.is_none())
            .map(|(waiting, _)| Waiting {
                intent: None,
                ..waiting
            })
            .collect();
        inner.waiting.splice(..0, left);
    }

    /// Takes nothing more in. Answers how many will not be written.
    pub fn close(&self) -> usize {
        let mut inner = self.inner.lock();
        inner.closed = true;
        std::mem::take(&mut inner.waiting).len()
    }

    pub fn len(&self) -> usize {
        self.inner.lock().waiting.len()
    }

    /// How many found no room.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

// === impl Waiting ===

impl Waiting {
    fn id(&self) -> Option<EntryId> {
        let intent = self.intent.as_ref().map(|intent| intent.id);
        intent.or_else(|| self.outcome.as_ref().map(|outcome| outcome.id))
    }
}

fn full() -> LedgerError {
    LedgerError::Unavailable {
        why: format!("{OUTCOMES_MAX} entries wait for it already; there is no room for this one"),
    }
}
