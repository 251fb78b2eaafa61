//! What the table holds: requests by their key, and the undelivered ones in the order in which they
//! ended.
//!
//! Promise: rows, and the answers kept in them, are bounded in number, bytes and time; a claim
//! touches its own requests and what is due to be forgotten, however many rows there are.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::age;
use super::claimant::is_apps_own;
use super::shared::Purchase;
use crate::clock::Clock;
use crate::ledger::entry::{EntryId, EntryKey};
use crate::ledger::undelivered::{self, FirstSent};
use crate::proxy::purchase::claimant::{AdoptPolicy, Claimant, RequestKey};

#[derive(Default)]
pub struct Slots {
    by_request_key: HashMap<RequestKey, VecDeque<Slot>>,
    /// Undelivered slots over all marks by their number, oldest first, for expiry and for the bound.
    undelivered: BTreeMap<u64, SlotPlace>,
    /// Those of them that still hold an answer.
    with_answer: BTreeSet<u64>,
    /// Bytes of these answers together.
    answer_bytes: usize,
    next_number: u64,
    /// Requests whose apps got their answers in the last moments, in the order in which they ended.
    answered: VecDeque<AnsweredRequest>,
}

/// A request whose app has its answer: a try of it that the app gave up may lie unread still.
pub struct AnsweredRequest {
    request_key: RequestKey,
    pub marked_retry: bool,
    /// When the app began to be given it.
    at: Duration,
}

/// Where an undelivered slot is.
struct SlotPlace {
    request_key: RequestKey,
    ended_at: Duration,
    answer_bytes: usize,
}

pub enum Slot {
    Running(Arc<Purchase>),
    Ended(Box<EndedRequest>),
}

pub struct EndedRequest {
    /// Its row's.
    number: u64,
    pub entry: EntryId,
    pub key: Option<EntryKey>,
    /// When the key was first sent; the adopt window counts from here.
    pub first: FirstSent,
    pub ended_at: Duration,
    pub adoptions: u32,
    /// The complete answer, for a while.
    pub kept: Option<Arc<Purchase>>,
    /// An app may still be taking its answer, kept or not.
    purchase: Weak<Purchase>,
}

/// Undelivered requests remembered at once; the oldest is forgotten first.
const UNDELIVERED_MAX: usize = 4096;

/// Kept answers of all undelivered requests together; the oldest goes first.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A try that was given up is read within this, also where bursar has much to do when it goes on.
const ANSWERED_KEPT: Duration = Duration::from_secs(10);
const ANSWERED_MAX: usize = 4096;

/// A complete undelivered answer is kept this long.
pub const KEEP_ANSWER: Duration = Duration::from_secs(60);

// === impl Slots ===

impl Slots {
    /// The requests of a key in their order: first is whose turn is first.
    pub fn of(&self, request_key: &RequestKey) -> impl Iterator<Item = &Slot> {
        self.by_request_key.get(request_key).into_iter().flatten()
    }

    /// A request runs from now on.
    pub fn run(&mut self, purchase: &Arc<Purchase>) {
        let queue = self.queue(&purchase.request_key);
        queue.push_back(Slot::Running(Arc::clone(purchase)));
    }

    fn queue(&mut self, request_key: &RequestKey) -> &mut VecDeque<Slot> {
        self.by_request_key.entry(request_key.clone()).or_default()
    }

    /// Takes out the first ended request whose key the claimant may use again.
    pub fn adopt(
        &mut self,
        claimant: &Claimant,
        policy: AdoptPolicy,
        clock: &dyn Clock,
    ) -> Option<Box<EndedRequest>> {
        let ended = self.take(&claimant.request_key, |slot| {
            slot.is_adoptable(claimant, policy, clock)
        });
        let (_, Slot::Ended(ended)) = ended? else {
            return None;
        };
        self.unlist(ended.number);
        Some(ended)
    }

    /// Takes out a running request; the place that it had among those of its key. `None`: it is not there.
    pub fn stop(&mut self, purchase: &Arc<Purchase>) -> Option<usize> {
        let is_it =
            |slot: &Slot| matches!(slot, Slot::Running(held) if Arc::ptr_eq(held, purchase));
        let (place, _) = self.take(&purchase.request_key, is_it)?;
        Some(place)
    }

    /// Takes out the first slot of a key that is meant, with its place.
    fn take(
        &mut self,
        request_key: &RequestKey,
        is_meant: impl FnMut(&Slot) -> bool,
    ) -> Option<(usize, Slot)> {
        let queue = self.by_request_key.get_mut(request_key)?;
        let place = queue.iter().position(is_meant)?;
        let slot = queue.remove(place)?;
        if queue.is_empty() {
            self.by_request_key.remove(request_key);
        }
        Some((place, slot))
    }

    /// Takes in a request that has ended undelivered, at this place among those of its key, of this entry and with so
    /// many adoptions.
    pub fn remember(
        &mut self,
        purchase: &Arc<Purchase>,
        place: usize,
        now: Duration,
        kept: Option<Arc<Purchase>>,
        (entry, adoptions): (EntryId, u32),
    ) {
        let number = self.next_number;
        self.next_number = number.saturating_add(1);
        let answer_bytes = kept.as_ref().map_or(0, |kept| kept.kept_bytes());
        if kept.is_some() {
            self.with_answer.insert(number);
            self.answer_bytes = self.answer_bytes.saturating_add(answer_bytes);
        }
        let slot = Slot::Ended(Box::new(EndedRequest {
            number,
            entry,
            key: purchase.key.clone(),
            first: purchase.first,
            ended_at: now,
            adoptions,
            kept,
            purchase: Arc::downgrade(purchase),
        }));
        let queue = self.queue(&purchase.request_key);
        queue.insert(place.min(queue.len()), slot);
        let row = SlotPlace {
            request_key: purchase.request_key.clone(),
            ended_at: now,
            answer_bytes,
        };
        self.undelivered.insert(number, row);
        while self.answer_bytes > ANSWER_BYTES_MAX
            && let Some(oldest) = self.with_answer.first().copied()
        {
            self.drop_answer(oldest);
        }
        self.forget_beyond_bound();
    }

    /// An app has its answer. With a key of its own it says by itself which purchase is meant.
    pub fn note_answered(&mut self, purchase: &Purchase) {
        if purchase.key.as_ref().is_some_and(is_apps_own) {
            return;
        }
        let Some(at) = purchase.given_at() else {
            return;
        };
        if self.answered.len() >= ANSWERED_MAX {
            self.answered.pop_front();
        }
        self.answered.push_back(AnsweredRequest {
            request_key: purchase.request_key.clone(),
            marked_retry: purchase.marked_retry,
            at,
        });
    }

    /// Requests of this key that began to be answered after `since`.
    pub fn answered_after<'a>(
        &'a self,
        request_key: &'a RequestKey,
        since: Duration,
    ) -> impl Iterator<Item = &'a AnsweredRequest> {
        let answered = self.answered.iter();
        answered.filter(move |answered| answered.at > since && answered.request_key == *request_key)
    }

    fn forget_beyond_bound(&mut self) {
        if self.undelivered.len() > UNDELIVERED_MAX
            && let Some((oldest, _)) = self.undelivered.first_key_value()
        {
            self.forget(*oldest);
        }
    }

    /// Takes in what an earlier process left undelivered. There is no answer to it, only a key.
    pub fn restore(&mut self, row: undelivered::Undelivered, now: Duration) {
        let request_key = RequestKey {
            app: row.app,
            fingerprint: row.fingerprint,
        };
        let number = self.next_number;
        self.next_number = number.saturating_add(1);
        let queue = self.queue(&request_key);
        queue.push_back(Slot::Ended(Box::new(EndedRequest {
            number,
            entry: row.id,
            key: Some(row.key),
            first: row.key_use.first_sent,
            ended_at: now,
            adoptions: row.key_use.adoptions,
            kept: None,
            purchase: Weak::new(),
        })));
        let row = SlotPlace {
            request_key,
            ended_at: now,
            answer_bytes: 0,
        };
        self.undelivered.insert(number, row);
        self.forget_beyond_bound();
    }

    /// Forgets what is older than the adopt window, and answers that were kept long enough: they
    /// are large and go long before the keys do.
    pub fn forget_old(&mut self, now: Duration, window: Duration) {
        let age_max = window.max(KEEP_ANSWER);
        let age = |row: &SlotPlace| now.saturating_sub(row.ended_at);
        while let Some((oldest, row)) = self.undelivered.first_key_value()
            && age(row) > age_max
        {
            self.forget(*oldest);
        }
        while let Some(oldest) = self.with_answer.first().copied()
            && self
                .undelivered
                .get(&oldest)
                .is_none_or(|row| age(row) > KEEP_ANSWER)
        {
            self.drop_answer(oldest);
        }
        while let Some(oldest) = self.answered.front()
            && now.saturating_sub(oldest.at) > ANSWERED_KEPT
        {
            self.answered.pop_front();
        }
    }

    /// The app has it.
    pub fn delivered(&mut self, purchase: &Purchase) {
        let number = self
            .of(&purchase.request_key)
            .filter_map(Slot::undelivered)
            .find_map(|ended| (ended.entry == purchase.entry).then_some(ended.number));
        if let Some(number) = number {
            self.forget(number);
            self.note_answered(purchase);
        }
    }

    /// Takes out the row of a slot that is gone.
    fn unlist(&mut self, number: u64) -> Option<RequestKey> {
        let row = self.undelivered.remove(&number)?;
        self.with_answer.remove(&number);
        self.answer_bytes = self.answer_bytes.saturating_sub(row.answer_bytes);
        Some(row.request_key)
    }

    fn forget(&mut self, number: u64) {
        let Some(request_key) = self.unlist(number) else {
            return;
        };
        if let Some(queue) = self.by_request_key.get_mut(&request_key) {
            queue.retain(|slot| {
                slot.undelivered()
                    .is_none_or(|ended| ended.number != number)
            });
            if queue.is_empty() {
                self.by_request_key.remove(&request_key);
            }
        }
    }

    fn drop_answer(&mut self, number: u64) {
        self.with_answer.remove(&number);
        let Some(row) = self.undelivered.get_mut(&number) else {
            return;
        };
        self.answer_bytes = self.answer_bytes.saturating_sub(row.answer_bytes);
        row.answer_bytes = 0;
        for slot in self
            .by_request_key
            .get_mut(&row.request_key)
            .into_iter()
            .flatten()
        {
            if let Slot::Ended(ended) = slot
                && ended.number == number
            {
                ended.kept = None;
            }
        }
    }

    /// Rows, rows with an answer, and bytes of these answers.
    #[cfg(test)]
    pub fn sizes(&self) -> (usize, usize, usize) {
        (
            self.undelivered.len(),
            self.with_answer.len(),
            self.answer_bytes,
        )
    }
}

// === impl Slot ===

impl Slot {
    fn undelivered(&self) -> Option<&EndedRequest> {
        match self {
            Self::Running(_) => None,
            Self::Ended(ended) => Some(ended),
        }
    }

    /// An app's own key is never mixed with another: it joins only its own.
    pub fn has_key_of(&self, claimant: &Claimant) -> bool {
        let key = match self {
            Self::Running(purchase) => purchase.key.as_ref(),
            Self::Ended(ended) => ended.key.as_ref(),
        };
        match (&claimant.own_key, key) {
            (Some(own), Some(key)) => *own == *key.value,
            (Some(_), None) | (None, None) => true,
            (None, Some(key)) => !is_apps_own(key),
        }
    }

    fn is_adoptable(&self, claimant: &Claimant, policy: AdoptPolicy, clock: &dyn Clock) -> bool {
        let Self::Ended(ended) = self else {
            return false;
        };
        let being_taken = ended
            .purchase
            .upgrade()
            .is_some_and(|purchase| purchase.is_being_taken());
        policy.allows(claimant)
            && !being_taken
            && claimant.keyed
            && claimant.own_key.is_none()
            && ended.key.as_ref().is_some_and(|key| !is_apps_own(key))
            && age::of(&ended.first, clock) <= policy.window
            && age::may_repeat(&ended.first, clock)
    }
}
