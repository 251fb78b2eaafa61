//! App retries are recognised. OpenAI SDKs retry by themselves and send no Idempotency-Key, so a
//! naive sidecar mints a second key and the user pays twice. This table holds *undelivered*
//! requests: those whose answer the app never received. The next equal request of the same app
//! belongs to the oldest of them: it *joins* the one still running (or its kept answer), or
//! *adopts* its key. And a try that its app gave up before it was read belongs to the retry that is
//! there, whichever of the two is read first.
//!
//! Promise: a delivered answer is never collapsed with a later request, so sampling one prompt five
//! times gives five answers and five bills; a key is held by at most one live request; the table
//! and what it keeps are bounded.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::age::{self, SET_BACK_MAX_MS};
use super::claimant::{AdoptPolicy, Claimant, is_apps_own};
use super::slots::KEEP_ANSWER;
use crate::clock::SharedClock;
use crate::config::Adopt;
use crate::ledger::entry::{EntryKey, KeyOrigin};
use crate::ledger::undelivered::{FirstSent, Remembered};
use crate::proxy::purchase::client::Presence;
use crate::proxy::purchase::shared::{Fate, Follower, Purchase};
use crate::proxy::purchase::slots::{Slot, Slots};

/// What a claimant is to do.
#[derive(Debug)]
pub enum Claim {
    /// Run the request, under this key.
    Lead(Arc<Purchase>),
    /// Take the answer of the request that runs, or ran, already.
    Follow(Follower),
    /// An equal request is in flight and its app still connected: a marked retry looks again when
    /// an app leaves, because the end of the old connection may be on its way. So does any request
    /// whose equal one is being given an error, or an answer on a connection whose input has ended.
    LookAgain {
        left: watch::Receiver<()>,
        /// For this long at most.
        wait: Duration,
    },
    /// An equal request whose app has left is read on, and cannot be joined: look again at its end,
    /// when its key can be adopted. A key of its own would be a second purchase.
    ReadOn(watch::Receiver<()>),
}

/// The table.
pub struct ClaimTable {
    clock: SharedClock,
    slots: Mutex<Slots>,
    /// Ticks whenever an app leaves a live request.
    left: watch::Sender<()>,
}

/// "It waits up to 20 ms for that connection's end to show", and for a retry behind a connection that shows
/// its own.
pub const TWIN_WAIT: Duration = Duration::from_millis(20);

/// A refusal is looked for for 50 ms ([`crate::proxy::downstream`]). A process that stood still for longer (a machine that
/// was paused, a disk that hangs) finds its waits over before anything else of it has run: the request that waited would
/// have gone as a purchase of its own.
const TWIN_END_WAIT: Duration = Duration::from_secs(2);

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
        let clock = &*self.clock;
        let now = clock.monotonic();
        // Before the look, so that no departure is missed between look and wait.
        let left = self.left.subscribe();
        let mut slots = self.slots.lock();
        slots.forget_old(now, policy.window);
        let joined = slots
            .of(&claimant.request_key)
            .filter(|slot| policy.allows(claimant) && slot.has_key_of(claimant))
            .find_map(|slot| match slot {
                Slot::Running(purchase) => {
                    purchase.look_at_app();
                    purchase.follow()
                }
                Slot::Ended(ended) if now.saturating_sub(ended.ended_at) <= KEEP_ANSWER => {
                    ended.kept.as_ref().and_then(|kept| kept.follow())
                }
                Slot::Ended(_) => None,
            });
        if let Some(follower) = joined {
            return Claim::Follow(follower);
        }
        if let Some(ended) = slots.adopt(claimant, policy, clock) {
            let purchase = Purchase::new(
                claimant,
                ended.key.map(|key| EntryKey {
                    value: key.value,
                    origin: KeyOrigin::Adopted { from: ended.entry },
                }),
                ended.first,
                ended.adoptions.saturating_add(1),
                Arc::clone(&self.clock),
                self.left.clone(),
            );
            slots.run(&purchase);
            return Claim::Lead(purchase);
        }
        let is_read_on = |slot: &Slot| match slot {
            Slot::Running(purchase) => purchase.is_to_be_adopted() && slot.has_key_of(claimant),
            Slot::Ended(_) => false,
        };
        let queue = || slots.of(&claimant.request_key);
        if policy.allows(claimant) && queue().any(is_read_on) {
            return Claim::ReadOn(left);
        }
        let twin_in_flight =
            queue().any(|slot| matches!(slot, Slot::Running(_)) && slot.has_key_of(claimant));
        // An app that has read its error may ask again before the end of that request is known here; one
        // that hung up, before its connection has refused what is being written to it.
        let twin_ends = queue().any(|slot| match slot {
            Slot::Running(purchase) => {
                (purchase.is_failing() || purchase.is_given_in_doubt()) && slot.has_key_of(claimant)
            }
            Slot::Ended(_) => false,
        });
        let wait = if twin_ends { TWIN_END_WAIT } else { TWIN_WAIT };
        let is_retry = claimant.marked_retry || twin_ends;
        if look_again && policy.allows(claimant) && is_retry && twin_in_flight {
            return Claim::LookAgain { left, wait };
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
        let first = FirstSent::now(clock);
        let clock = Arc::clone(&self.clock);
        let purchase = Purchase::new(claimant, key, first, 0, clock, self.left.clone());
        slots.run(&purchase);
        Claim::Lead(purchase)
    }

    /// Whether a request whose app's input has ended is a try that its app gave up, of a purchase that
    /// an equal one makes: one is there whose app is connected, or that goes already; or one was answered
    /// since this one's connection was free to carry it.
    pub fn is_anothers(
        &self,
        purchase: &Arc<Purchase>,
        policy: AdoptPolicy,
        since: Duration,
    ) -> bool {
        is_anothers(&self.slots.lock(), purchase, policy, since)
    }

    /// Lets a request whose app has left, or is suspected to, go to the service. `false`: its connection is
    /// broken, or [`Self::is_anothers`], and no retry has joined it; from now on none can. Of two that ask,
    /// one goes.
    pub fn goes(
        &self,
        purchase: &Arc<Purchase>,
        policy: AdoptPolicy,
        since: Duration,
        presence: Presence,
    ) -> bool {
        let slots = self.slots.lock();
        let is_needless =
            presence == Presence::Gone || is_anothers(&slots, purchase, policy, since);
        if is_needless && purchase.gives_up() {
            return false;
        }
        purchase.goes();
        true
    }

    /// The request has ended. An undelivered one is remembered, with its answer where it was kept
    /// whole.
    pub fn finish(&self, purchase: &Arc<Purchase>, fate: Fate) {
        let now = self.clock.monotonic();
        let mut slots = self.slots.lock();
        let Some(place) = slots.stop(purchase) else {
            return;
        };
        purchase.finish();
        if purchase.is_failing() || purchase.is_to_be_adopted() {
            // Waiting claims look again only when this is done: the lock is held.
            self.left.send_replace(());
        }
        let kept = purchase.keeps_answer().then(|| Arc::clone(purchase));
        // A follower may have taken it since the leader looked.
        let remember = fate != Fate::Closed
            && !purchase.is_delivered()
            && (kept.is_some() || purchase.key.as_ref().is_some_and(|key| !is_apps_own(key)));
        if remember {
            let place = match fate {
                // It was the oldest when its key was adopted.
                Fate::Unsent { .. } => 0,
                _ => place,
            };
            slots.remember(purchase, place, now, kept, purchase.stands_as(fate));
        } else if purchase.is_delivered() {
            slots.note_answered(purchase);
        }
    }

    /// A kept answer was handed over: the purchase is delivered, and nothing may join it again.
    pub fn delivered(&self, purchase: &Purchase) {
        self.slots.lock().delivered(purchase);
    }

    /// Takes over what earlier processes left undelivered.
    pub(in crate::proxy) fn restore(&self, remembered: Remembered) {
        let clock = &*self.clock;
        let rows = remembered.rows.len();
        if clock.wall_ms().saturating_add(SET_BACK_MAX_MS) < remembered.journal_ended_ms {
            tracing::warn!(
                rows,
                "the clock shows an earlier time than the ledger's last record: undelivered requests \
                 of before are not recognised, because the age of their keys is in doubt"
            );
            return;
        }
        let now = clock.monotonic();
        let mut slots = self.slots.lock();
        let mut restored = 0_usize;
        for row in remembered.rows {
            // Without the kernel's word for the boot, monotonic time means nothing here.
            if row.key_use.first_sent.boot.is_some()
                && age::may_repeat(&row.key_use.first_sent, clock)
            {
                slots.restore(row, now);
                restored += 1;
            }
        }
        if rows > 0 {
            tracing::info!(rows, restored, "undelivered requests of before");
        }
    }

    #[cfg(test)]
    pub(in crate::proxy) fn sizes(&self) -> (usize, usize, usize) {
        self.slots.lock().sizes()
    }
}

/// See [`ClaimTable::is_anothers`].
fn is_anothers(
    slots: &Slots,
    purchase: &Arc<Purchase>,
    policy: AdoptPolicy,
    since: Duration,
) -> bool {
    if purchase.key.as_ref().is_some_and(is_apps_own) {
        // The service bills the key once.
        return false;
    }
    let is_recognised = |marked_retry| match policy.adopt {
        Adopt::Always => true,
        Adopt::Marked => purchase.marked_retry || marked_retry,
        Adopt::Never => false,
    };
    for slot in slots.of(&purchase.request_key) {
        let Slot::Running(other) = slot else { continue };
        if Arc::ptr_eq(other, purchase) {
            continue;
        }
        let was_given_before = other.given_at().is_some_and(|at| at <= since);
        let is_apps_own = other.key.as_ref().is_some_and(is_apps_own);
        if was_given_before || is_apps_own || !is_recognised(other.marked_retry) {
            continue;
        }
        other.look_at_app();
        if other.is_going() || !other.has_app_left() {
            return true;
        }
    }
    slots
        .answered_after(&purchase.request_key, since)
        .any(|answered| is_recognised(answered.marked_retry))
}

/// 128 random bits (rule I6), never derived from the body: equal prompts sent on purpose must not
/// be answered with the stored copy of the first.
fn mint_key() -> String {
    let mut bits = [0u8; 16];
    match getrandom::fill(&mut bits) {
        Ok(()) => format!("bursar-{:032x}", u128::from_be_bytes(bits)),
        // The process has random bits of its own, drawn at its start.
        Err(_) => {
            let random = RandomState::new();
            format!(
                "bursar-{:016x}{:016x}",
                random.hash_one(1),
                random.hash_one(2)
            )
        }
    }
}

#[cfg(test)]
mod tests;
