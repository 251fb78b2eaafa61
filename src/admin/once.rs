//! What costs something to know, and is asked for once in a while, however many readers want to know.
//!
//! Why: every program of the machine reaches the admin port. A question to the service is a call with the
//! organization's key, and a view of the status page reads the ledger. A reader that asks while a call is under way
//! gets that call's answer, and so does one that asks while the answer is good. Promise: one call at a time, which
//! ends also when its reader has disconnected; an answer is never older than its stated age. An answer that is good
//! for no time is sent only to readers that wait for it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::clock::SharedClock;

/// The newest answer, or the call that is to bring it.
pub struct OnceAWhile<T> {
    clock: SharedClock,
    good_for: GoodFor<T>,
    newest: Mutex<Option<watch::Receiver<Option<DoneCall<T>>>>>,
}

/// How long an answer is good, of which nothing new is asked meanwhile; by the time that its call took.
pub type GoodFor<T> = fn(&T, Duration) -> Duration;

/// An answer, and when its call began, on the monotonic clock: its figures are no older.
struct DoneCall<T> {
    at: Duration,
    answer: Arc<T>,
    good_for: Duration,
}

// === impl OnceAWhile ===

impl<T: Send + Sync + 'static> OnceAWhile<T> {
    pub fn new(clock: SharedClock, good_for: GoodFor<T>) -> Self {
        Self {
            clock,
            good_for,
            newest: Mutex::new(None),
        }
    }

    /// The newest answer and its age; `call` is made where there is none, or it is too old. `None`: the
    /// call panicked.
    pub async fn ask<F>(&self, call: impl FnOnce() -> F) -> Option<(Arc<T>, Duration)>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut newest = self.newest_or(call);
        let done = newest.wait_for(Option::is_some).await.ok()?;
        let done = done.as_ref()?;
        Some((Arc::clone(&done.answer), self.age(done)))
    }

    /// Forgets the kept answer: it was asked for under other settings.
    pub fn forget(&self) {
        *self.newest.lock() = None;
    }

    fn newest_or<F>(&self, call: impl FnOnce() -> F) -> watch::Receiver<Option<DoneCall<T>>>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut newest = self.newest.lock();
        if let Some(newest) = newest.as_ref().filter(|newest| self.is_good(newest)) {
            return newest.clone();
        }
        let (sender, receiver) = watch::channel(None);
        *newest = Some(receiver.clone());
        let (call, good_for, at) = (call(), self.good_for, self.clock.monotonic());
        let clock = Arc::clone(&self.clock);
        // A task of its own: a reader that disconnects does not make room for the next call.
        tokio::spawn(async move {
            let answer = Arc::new(call.await);
            let took = clock.monotonic().saturating_sub(at);
            sender.send_replace(Some(DoneCall {
                at,
                good_for: good_for(&answer, took),
                answer,
            }));
        });
        receiver
    }

    fn is_good(&self, call: &watch::Receiver<Option<DoneCall<T>>>) -> bool {
        match &*call.borrow() {
            Some(done) => self.age(done) < done.good_for,
            // Under way, unless its task died.
            None => call.has_changed().is_ok(),
        }
    }

    fn age(&self, done: &DoneCall<T>) -> Duration {
        self.clock.monotonic().saturating_sub(done.at)
    }
}

#[cfg(test)]
mod tests;
