//! App retries are recognised. OpenAI SDKs retry by themselves and send no Idempotency-Key, so a
//! naive sidecar mints a second key and the user pays twice. This table holds *undelivered*
//! requests: those whose answer the app never received. The next equal request of the same app
//! belongs to the oldest of them: it *joins* the one still running (or its kept answer), or
//! *adopts* its key.
//!
//! Promise: a delivered answer is never collapsed with a later request, so sampling one prompt five
//! times gives five answers and five bills; a key is held by at most one live request; the table
//! and what it keeps are bounded.

pub mod live;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use self::live::{Follower, Live};
use crate::clock::SharedClock;
use crate::config::Adopt;
use crate::ledger::entry::{EntryId, EntryKey, Fingerprint, KeyOrigin};

/// Who asks and for what: requests with equal marks are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    pub app: Arc<str>,
    pub fingerprint: Fingerprint,
}

/// One request that looks for its predecessor.
#[derive(Debug)]
pub struct Claimant {
    pub mark: Mark,
    pub entry: EntryId,
    /// The app's own key. It always wins.
    pub own_key: Option<String>,
    /// The route honors keys.
    pub keyed: bool,
    /// The app says that this is a retry.
    pub marked_retry: bool,
}

/// What a claimant is to do.
#[derive(Debug)]
pub enum Claim {
    /// Run the request, under this key.
    Lead(Arc<Live>),
    /// Take the answer of the request that runs, or ran, already.
    Follow(Follower),
    /// An equal request is in flight and its app still connected: a marked retry looks again when
    /// an app leaves, because the end of the old connection may be on its way.
    LookAgain(watch::Receiver<()>),
}

/// What became of a request's answer, as the table has to remember it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The app has it, or nothing ran: nothing to remember.
    Closed,
    /// The app never received it, and the service may have run it.
    Undelivered,
}

/// How the table treats equal requests; from the config.
#[derive(Clone, Copy, Debug)]
pub struct AdoptPolicy {
    pub adopt: Adopt,
    pub window: Duration,
}

/// The table.
pub struct ClaimTable {
    clock: SharedClock,
    slots: Mutex<Slots>,
    /// Ticks whenever an app leaves a live request.
    left: watch::Sender<()>,
}

#[derive(Default)]
struct Slots {
    by_mark: HashMap<Mark, VecDeque<Slot>>,
    /// Undelivered slots over all marks, oldest first, for expiry and for the bound.
    undelivered: VecDeque<(Duration, Mark, EntryId)>,
}

enum Slot {
    Live(Arc<Live>),
    Undelivered(Box<Undelivered>),
}

struct Undelivered {
    entry: EntryId,
    key: Option<EntryKey>,
    /// When the key was first sent; the adopt window counts from here.
    first_at: Duration,
    ended_at: Duration,
    adoptions: u32,
    /// The complete answer, for a while.
    kept: Option<Arc<Live>>,
}

/// A complete undelivered answer is kept this long.
const KEEP_ANSWER: Duration = Duration::from_secs(60);

/// Undelivered requests remembered at once; the oldest is forgotten first.
const UNDELIVERED_MAX: usize = 4096;

/// Kept answers of all undelivered requests together; the oldest goes first.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// "a key is 23 h old" (rule I6) is far beyond any adopt window, but the window is config.
const KEY_AGE_MAX: Duration = Duration::from_secs(23 * 3600);

// === impl ClaimTable ===

impl ClaimTable {
    pub fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            slots: Mutex::new(Slots::default()),
            left: watch::Sender::new(()),
        }
    }

    /// Finds a claimant's predecessor, or registers it as a request of its own. `look_again` is
    /// true on the first look only.
    pub fn claim(&self, claimant: &Claimant, policy: AdoptPolicy, look_again: bool) -> Claim {
        let now = self.clock.monotonic();
        // Before the look, so that no departure is missed between look and wait.
        let left = self.left.subscribe();
        let mut slots = self.slots.lock();
        slots.forget_old(now, policy.window);
        let queue = slots.by_mark.entry(claimant.mark.clone()).or_default();
        let joined = queue
            .iter()
            .filter(|slot| slot.has_key_of(claimant))
            .find_map(|slot| match slot {
                Slot::Live(live) => live.follow(),
                Slot::Undelivered(ended) if now.saturating_sub(ended.ended_at) <= KEEP_ANSWER => {
                    ended.kept.as_ref().and_then(|kept| kept.follow())
                }
                Slot::Undelivered(_) => None,
            });
        if let Some(follower) = joined {
            return Claim::Follow(follower);
        }
        let adoptable = queue
            .iter()
            .position(|slot| slot.is_adoptable(claimant, policy, now));
        if let Some(at) = adoptable
            && let Some(Slot::Undelivered(ended)) = queue.remove(at)
        {
            let live = Live::new(
                claimant,
                ended.key.map(|key| EntryKey {
                    value: key.value,
                    origin: KeyOrigin::Adopted { from: ended.entry },
                }),
                ended.first_at,
                ended.adoptions.saturating_add(1),
                self.left.clone(),
            );
            queue.push_back(Slot::Live(Arc::clone(&live)));
            return Claim::Lead(live);
        }
        let twin_in_flight = queue
            .iter()
            .any(|slot| matches!(slot, Slot::Live(_)) && slot.has_key_of(claimant));
        if look_again && claimant.marked_retry && twin_in_flight {
            return Claim::LookAgain(left);
        }
        let key = claimant.keyed.then(|| match &claimant.own_key {
            Some(own) => EntryKey {
                value: Arc::from(own.as_str()),
                origin: KeyOrigin::App,
            },
            None => EntryKey {
                value: Arc::from(mint_key()),
                origin: KeyOrigin::Minted,
            },
        });
        let live = Live::new(claimant, key, now, 0, self.left.clone());
        queue.push_back(Slot::Live(Arc::clone(&live)));
        Claim::Lead(live)
    }

    /// The request has ended. An undelivered one is remembered, with its answer where it was kept
    /// whole.
    pub fn finish(&self, live: &Arc<Live>, fate: Fate) {
        let now = self.clock.monotonic();
        let mut slots = self.slots.lock();
        let Some(queue) = slots.by_mark.get_mut(&live.mark) else {
            return;
        };
        let Some(at) = queue
            .iter()
            .position(|slot| matches!(slot, Slot::Live(held) if Arc::ptr_eq(held, live)))
        else {
            return;
        };
        live.finish();
        let kept = live.keeps_answer().then(|| Arc::clone(live));
        let remember = fate == Fate::Undelivered
            && (kept.is_some() || live.key.as_ref().is_some_and(|key| !key.is_apps_own()));
        if remember {
            if let Some(slot) = queue.get_mut(at) {
                *slot = Slot::Undelivered(Box::new(Undelivered {
                    entry: live.entry,
                    key: live.key.clone(),
                    first_at: live.first_at,
                    ended_at: now,
                    adoptions: live.adoptions,
                    kept,
                }));
            }
            slots
                .undelivered
                .push_back((now, live.mark.clone(), live.entry));
            slots.bound_kept();
            if slots.undelivered.len() > UNDELIVERED_MAX {
                slots.forget_first();
            }
        } else {
            queue.remove(at);
            if queue.is_empty() {
                slots.by_mark.remove(&live.mark);
            }
        }
    }

    /// A kept answer was handed over: the purchase is delivered, and nothing may join it again.
    pub fn delivered(&self, mark: &Mark, entry: EntryId) {
        self.slots.lock().remove_undelivered(mark, entry);
    }
}

// === impl Slots ===

impl Slots {
    fn forget_old(&mut self, now: Duration, window: Duration) {
        let age_max = window.max(KEEP_ANSWER);
        while self
            .undelivered
            .front()
            .is_some_and(|(ended_at, ..)| now.saturating_sub(*ended_at) > age_max)
        {
            self.forget_first();
        }
        // Answers are large; they go long before the keys do.
        for (ended_at, mark, entry) in &self.undelivered {
            if now.saturating_sub(*ended_at) <= KEEP_ANSWER {
                break;
            }
            for slot in self.by_mark.get_mut(mark).into_iter().flatten() {
                if let Slot::Undelivered(ended) = slot
                    && ended.entry == *entry
                {
                    ended.kept = None;
                }
            }
        }
    }

    /// Drops the oldest kept answers until the rest fits the bound.
    fn bound_kept(&mut self) {
        let mut total = 0usize;
        for (_, mark, entry) in self.undelivered.iter().rev() {
            for slot in self.by_mark.get_mut(mark).into_iter().flatten() {
                let Slot::Undelivered(ended) = slot else {
                    continue;
                };
                if ended.entry != *entry {
                    continue;
                }
                let bytes = ended.kept.as_ref().map_or(0, |kept| kept.kept_bytes());
                total = total.saturating_add(bytes);
                if total > KEPT_BYTES_MAX {
                    ended.kept = None;
                }
            }
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, mark, entry)) = self.undelivered.pop_front() {
            self.remove_undelivered(&mark, entry);
        }
    }

    fn remove_undelivered(&mut self, mark: &Mark, entry: EntryId) {
        if let Some(queue) = self.by_mark.get_mut(mark) {
            queue.retain(|slot| !matches!(slot, Slot::Undelivered(ended) if ended.entry == entry));
            if queue.is_empty() {
                self.by_mark.remove(mark);
            }
        }
    }
}

// === impl Slot ===

impl Slot {
    /// An app's own key is never mixed with another: it joins only its own.
    fn has_key_of(&self, claimant: &Claimant) -> bool {
        let key = match self {
            Self::Live(live) => live.key.as_ref(),
            Self::Undelivered(ended) => ended.key.as_ref(),
        };
        match (&claimant.own_key, key) {
            (Some(own), Some(key)) => *own == *key.value,
            (Some(_), None) | (None, None) => true,
            (None, Some(key)) => !key.is_apps_own(),
        }
    }

    fn is_adoptable(&self, claimant: &Claimant, policy: AdoptPolicy, now: Duration) -> bool {
        let Self::Undelivered(ended) = self else {
            return false;
        };
        let allowed = match policy.adopt {
            Adopt::Always => true,
            Adopt::Marked => claimant.marked_retry,
            Adopt::Never => false,
        };
        let age = now.saturating_sub(ended.first_at);
        // Somebody takes the kept answer just now; the key goes on only if that fails.
        let being_taken = ended.kept.as_ref().is_some_and(|kept| kept.is_followed());
        allowed
            && !being_taken
            && claimant.keyed
            && claimant.own_key.is_none()
            && ended.key.as_ref().is_some_and(|key| !key.is_apps_own())
            && age <= policy.window.min(KEY_AGE_MAX)
    }
}

// === impl EntryKey ===

impl EntryKey {
    fn is_apps_own(&self) -> bool {
        self.origin == KeyOrigin::App
    }
}

/// 128 random bits (rule I6), never derived from the body: equal prompts sent on purpose must not
/// be answered with the stored copy of the first.
#[expect(
    clippy::disallowed_methods,
    reason = "only where the random source fails; ledger ids have a source of their own"
)]
fn mint_key() -> String {
    let mut bits = [0u8; 16];
    match getrandom::fill(&mut bits) {
        Ok(()) => format!("bursar-{:032x}", u128::from_be_bytes(bits)),
        // No random source: two UUIDv7 still differ from every other key, which is what matters.
        Err(_) => format!("bursar-{}-{}", uuid::Uuid::now_v7(), uuid::Uuid::now_v7()),
    }
}

#[cfg(test)]
mod tests;
