//! One commit of all changes, together with the state of the clock, the counters, the metrics and the story.
//!
//! Promise: a commit is on disk when it returns; a restart continues from the instant of the last commit. What is
//! counted after a request's own commit is written by the next one: metrics are not money.

use crate::{
    books::Books,
    clock::Clock,
    endpoints::Endpoints,
    idempotency::Keys,
    keep::{self, Keep, KeptClock, Mutation},
    steps::Steps,
    store::StoreError,
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Checkpoint {
    keep: Keep,
    clock: Clock,
    books: Arc<Books>,
    keys: Arc<Keys>,
    steps: Arc<Steps>,
    endpoints: Arc<Endpoints>,
}

// === impl Checkpoint ===

impl Checkpoint {
    pub fn new(
        keep: Keep,
        clock: Clock,
        books: Arc<Books>,
        keys: Arc<Keys>,
        steps: Arc<Steps>,
        endpoints: Arc<Endpoints>,
    ) -> Self {
        Self {
            keep,
            clock,
            books,
            keys,
            steps,
            endpoints,
        }
    }

    /// Writes what is queued; see [`Keep::commit`].
    pub async fn commit(&self) -> Result<(), StoreError> {
        self.note();
        self.keep.commit().await
    }

    /// As [`Checkpoint::commit`], for a request: if its debit cannot be written it is taken back, so that the
    /// error answer bills nothing.
    pub async fn settle(&self, request_id: &str) -> Result<(), StoreError> {
        self.note();
        let unbind = |key: &_| self.keys.unbind(key);
        let withdraw = || self.books.withdraw(request_id, unbind);
        self.keep.commit_or(withdraw).await
    }

    fn note(&self) {
        if !self.keep.is_on() {
            return;
        }
        self.books.queue_hours();
        self.endpoints.queue_hours();
        if !self.keep.is_dirty() {
            return;
        }
        let (clock, counters) = (KeptClock::of(&self.clock), self.books.counters());
        let clock = Mutation::put(keep::SINGLES, keep::CLOCK, &clock);
        let counters = Mutation::put(keep::SINGLES, keep::COUNTERS, &counters);
        let progress = Mutation::put(keep::SINGLES, keep::STEPS, &self.steps.progress());
        let all = [clock, counters, progress];
        self.keep.push(all.into_iter().flatten());
    }
}
