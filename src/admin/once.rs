//! What readers may make bursar ask the service for: once a minute, however many of them want to know.
//!
//! Why: every program of the machine reaches the admin port, and each question is a call with the
//! organization's key. A reader that asks while a call is under way gets that call's answer, and so does one
//! that asks within the minute after it. Promise: one call at a time, which ends also when its reader has
//! disconnected; an answer is never older than its stated age. An answer that need not be kept for a minute
//! is sent only to readers that wait for it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::clock::SharedClock;

/// How long an answer is good, and how long nothing is asked behind it.
pub const KEPT: Duration = Duration::from_secs(60);

/// The newest answer, or the call that is to bring it.
pub struct OnceAMinute<T> {
    clock: SharedClock,
    keeps: fn(&T) -> bool,
    newest: Mutex<Option<watch::Receiver<Option<DoneCall<T>>>>>,
}

/// An answer, and when its call began, on the monotonic clock: its figures are no older.
struct DoneCall<T> {
    at: Duration,
    answer: Arc<T>,
    is_kept: bool,
}

// === impl OnceAMinute ===

impl<T: Send + Sync + 'static> OnceAMinute<T> {
    /// `keeps`: whether an answer is good for a minute.
    pub fn new(clock: SharedClock, keeps: fn(&T) -> bool) -> Self {
        Self {
            clock,
            keeps,
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
        let (call, keeps, at) = (call(), self.keeps, self.clock.monotonic());
        // A task of its own: a reader that disconnects does not make room for the next call.
        tokio::spawn(async move {
            let answer = Arc::new(call.await);
            let is_kept = keeps(&answer);
            sender.send_replace(Some(DoneCall {
                at,
                answer,
                is_kept,
            }));
        });
        receiver
    }

    fn is_good(&self, call: &watch::Receiver<Option<DoneCall<T>>>) -> bool {
        match &*call.borrow() {
            Some(done) => done.is_kept && self.age(done) < KEPT,
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
