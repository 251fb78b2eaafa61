//! One budget for the request bodies in memory, in bytes that came.
//!
//! Bodies that grow together could each hold a part and wait for the rest that the others hold. So a
//! body is given more only if, after it, all that are being read could still be read whole one after
//! the other, the eldest first; and nobody takes what the eldest still lacks, or an elder waits for.
//!
//! Promise: whoever waits, waits for an answer to somebody else's whole body, or for the one body
//! that goes first; what is announced and not sent takes nothing, but for the eldest's rest.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// How long a body waits for its share.
const SHARE_WAIT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct BodyBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Held by bodies that came whole: given back when their requests end.
    whole: usize,
    /// Bodies that are being read, by age.
    growing: BTreeMap<u64, Growing>,
    next: u64,
}

#[derive(Debug)]
struct Growing {
    held: usize,
    /// The most it may come to hold.
    most: usize,
    waits: bool,
}

/// What one body has of the budget; given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    budget: BodyBudget,
    ticket: u64,
    bytes: usize,
    is_whole: bool,
}

/// There was no share within the time that one waits.
#[derive(Debug, PartialEq, Eq)]
pub struct NoShare;

// === impl BodyBudget ===

impl BodyBudget {
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State {
                free: bytes,
                whole: 0,
                growing: BTreeMap::new(),
                next: 0,
            }),
            changed: Notify::new(),
        }))
    }

    /// The share of a body of at most `most` bytes, nothing yet.
    pub fn share(&self, most: usize) -> Share {
        let mut state = self.0.state.lock();
        let ticket = state.next;
        state.next = state.next.wrapping_add(1);
        let growing = Growing {
            held: 0,
            most,
            waits: false,
        };
        state.growing.insert(ticket, growing);
        Share {
            budget: self.clone(),
            ticket,
            bytes: 0,
            is_whole: false,
        }
    }
}

// === impl State ===

impl State {
    /// Gives `more` bytes to a body that is being read, if that leaves a way for all.
    fn give(&mut self, ticket: u64, more: usize) -> bool {
        let is_safe = self.is_safe_after(ticket, more);
        let Some(growing) = self.growing.get_mut(&ticket) else {
            return false;
        };
        growing.waits = !is_safe;
        if is_safe {
            growing.held = growing.held.saturating_add(more);
            self.free = self.free.saturating_sub(more);
        }
        is_safe
    }

    fn is_safe_after(&self, ticket: u64, more: usize) -> bool {
        let Some(left) = self.free.checked_sub(more) else {
            return false;
        };
        let mut within_reach = left.saturating_add(self.whole);
        for (place, (of, growing)) in self.growing.iter().enumerate() {
            let given = if *of == ticket { more } else { 0 };
            let held = growing.held.saturating_add(given);
            let rest = growing.most.saturating_sub(held);
            let is_anothers = *of < ticket;
            // The eldest's rest is kept free; who waits is served before who came later.
            if rest > within_reach
                || is_anothers && growing.waits
                || is_anothers && place == 0 && rest > left
            {
                return false;
            }
            within_reach = within_reach.saturating_add(held);
        }
        true
    }
}

// === impl Share ===

impl Share {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes `more` bytes of the budget, after a wait if it has to be.
    pub async fn grow(&mut self, more: usize) -> Result<(), NoShare> {
        let until = Instant::now() + SHARE_WAIT;
        loop {
            let mut changed = std::pin::pin!(self.budget.0.changed.notified());
            // From here on, so that a change behind the look is not missed.
            changed.as_mut().enable();
            if self.budget.0.state.lock().give(self.ticket, more) {
                self.bytes = self.bytes.saturating_add(more);
                return Ok(());
            }
            timeout_at(until, changed).await.map_err(|_| NoShare)?;
        }
    }

    /// The body came whole: it grows no more.
    pub fn is_complete(&mut self) {
        let mut state = self.budget.0.state.lock();
        state.growing.remove(&self.ticket);
        state.whole = state.whole.saturating_add(self.bytes);
        self.is_whole = true;
        drop(state);
        self.budget.0.changed.notify_waiters();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.budget.0.state.lock();
        state.growing.remove(&self.ticket);
        state.free = state.free.saturating_add(self.bytes);
        if self.is_whole {
            state.whole = state.whole.saturating_sub(self.bytes);
        }
        drop(state);
        self.budget.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
