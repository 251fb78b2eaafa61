//! What is known of one request under one key for 24 h.
//!
//! Promise: what needs no box is in none. An amount that was taken is never taken twice.

use std::num::NonZeroU64;

use crate::ledger::entry::{State, Unresolved};
use crate::ledger::id::EntryId;
use crate::ledger::kept_key::{EPOCH_MS, ShortHash};
use crate::money::MicroUsd;

/// Most entries of one key that are named as charged.
const CHARGED_MAX: usize = 64;

/// Most entries of one key that wait for its amount.
const UNRESOLVED_MAX: usize = 1_000;

/// What is charged under a key: billed, or held as long as it is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyCharge {
    /// In whose window it counts: the time of the intent that it is charged to, the last one where there
    /// are several. Unix milliseconds.
    pub since_ms: u64,
    /// The entries that it is charged to, newest first; not all of very many.
    pub entries: Vec<EntryId>,
}

/// 24 h of one request under one key, from its first intent on.
#[derive(Debug)]
pub struct KeyRow {
    key: ShortHash,
    organization: Option<NonZeroU64>,
    request: ShortHash,
    started_ms: u64,
    known: KeyState,
}

/// What is known of it.
#[derive(Debug)]
enum KeyState {
    /// One entry reported the amount, the first; nothing of the others is left to know.
    Billed {
        amount: MicroUsd,
        entry: EntryId,
    },
    /// Nothing was billed. `answered`: not since all of it failed.
    Quiet {
        answered: bool,
    },
    More(Box<Epoch>),
}

/// What is known of a request under a key where that is more than an amount.
#[derive(Debug, Default)]
pub struct Epoch {
    /// The last intent.
    begun_ms: u64,
    amount: Option<(MicroUsd, EntryId)>,
    /// The intent of the entry that the amount stands on.
    amount_ms: u64,
    /// Some entry of the key was answered.
    answered: bool,
    open: Vec<EntryId>,
    unresolved: Vec<Unresolved>,
}

// === impl KeyRow ===

impl KeyRow {
    /// Nothing is known of it yet.
    pub fn new(
        key: ShortHash,
        organization: Option<NonZeroU64>,
        request: ShortHash,
        started_ms: u64,
    ) -> Self {
        Self {
            key,
            organization,
            request,
            started_ms,
            known: KeyState::Quiet { answered: false },
        }
    }

    pub fn key(&self) -> ShortHash {
        self.key
    }

    /// `None`: a line of an older bursar named none.
    pub fn organization(&self) -> Option<NonZeroU64> {
        self.organization
    }

    pub fn request(&self) -> ShortHash {
        self.request
    }

    /// Its 24 h are counted from here, Unix milliseconds.
    pub fn started_ms(&self) -> u64 {
        self.started_ms
    }

    pub fn amount(&self) -> Option<(MicroUsd, EntryId)> {
        match &self.known {
            KeyState::Billed { amount, entry } => Some((*amount, *entry)),
            KeyState::Quiet { .. } => None,
            KeyState::More(epoch) => epoch.amount,
        }
    }

    pub fn unresolved(&self) -> impl Iterator<Item = &Unresolved> {
        let epoch = match &self.known {
            KeyState::More(epoch) => Some(epoch),
            KeyState::Billed { .. } | KeyState::Quiet { .. } => None,
        };
        epoch.into_iter().flat_map(|epoch| &epoch.unresolved)
    }

    pub fn holds(&self, id: EntryId) -> bool {
        match &self.known {
            KeyState::More(epoch) => {
                epoch.open.contains(&id) || self.unresolved().any(|waiting| waiting.id == id)
            }
            KeyState::Billed { .. } | KeyState::Quiet { .. } => false,
        }
    }

    /// What it holds beside its place in the table.
    pub fn weight(&self) -> usize {
        match &self.known {
            KeyState::More(epoch) => epoch.unresolved.len().max(1),
            KeyState::Billed { .. } | KeyState::Quiet { .. } => 0,
        }
    }

    /// Keeps of what is in a box what needs none.
    pub fn forget_waiting(&mut self) {
        if let KeyState::More(epoch) = &self.known {
            self.known = match epoch.amount {
                Some((amount, entry)) => KeyState::Billed { amount, entry },
                None => KeyState::Quiet { answered: true },
            };
        }
    }

    /// All of it failed: the next entry under the key is the first.
    pub fn is_nothing(&self) -> bool {
        matches!(&self.known, KeyState::Quiet { answered: false })
    }

    pub fn is_busy(&self) -> bool {
        matches!(&self.known, KeyState::More(epoch) if !epoch.open.is_empty())
    }

    pub fn may_have_run_beside(&self, id: EntryId) -> bool {
        match &self.known {
            KeyState::Billed { .. } => true,
            KeyState::Quiet { answered } => *answered,
            KeyState::More(epoch) => {
                epoch.answered
                    || epoch.open.iter().any(|open| *open != id)
                    || epoch.unresolved.iter().any(|waiting| waiting.id != id)
            }
        }
    }

    pub fn spans(&self, at_ms: u64) -> bool {
        at_ms
            .checked_sub(self.started_ms)
            .is_some_and(|age| age < EPOCH_MS)
    }

    /// Whether it may have begun in the 24 h of an entry, or the entry in its: what an entry stands beside
    /// may have come after it.
    pub fn is_near(&self, at_ms: u64) -> bool {
        self.started_ms.abs_diff(at_ms) < EPOCH_MS
    }

    pub fn charge(&self) -> Option<KeyCharge> {
        match &self.known {
            KeyState::Billed { entry, .. } => Some(KeyCharge {
                since_ms: self.started_ms,
                entries: vec![*entry],
            }),
            KeyState::Quiet { answered } => answered.then(|| KeyCharge {
                since_ms: self.started_ms,
                entries: Vec::new(),
            }),
            KeyState::More(epoch) => epoch.charge(self.started_ms),
        }
    }

    /// Of an entry that is about to begin before the row did, the clock was ahead then or is behind now: the
    /// 24 h are counted from there, so that no key is bound until a time that was wrong.
    pub fn change<T>(&mut self, at_ms: u64, change: impl FnOnce(&mut Epoch) -> T) -> T {
        let nothing = KeyState::Quiet { answered: false };
        let mut epoch = match std::mem::replace(&mut self.known, nothing) {
            KeyState::Billed { amount, entry } => Box::new(Epoch {
                begun_ms: self.started_ms,
                amount: Some((amount, entry)),
                amount_ms: self.started_ms,
                answered: true,
                ..Epoch::default()
            }),
            KeyState::Quiet { answered } => Box::new(Epoch {
                begun_ms: self.started_ms,
                answered,
                ..Epoch::default()
            }),
            KeyState::More(epoch) => epoch,
        };
        self.started_ms = self.started_ms.min(at_ms);
        let answer = change(&mut epoch);
        let is_quiet = epoch.open.is_empty() && epoch.unresolved.is_empty();
        self.known = match epoch.amount {
            Some((amount, entry)) if is_quiet && epoch.amount_ms == self.started_ms => {
                KeyState::Billed { amount, entry }
            }
            None if is_quiet => KeyState::Quiet {
                answered: epoch.answered,
            },
            // Something is under way, or the amount counts in another window than the row.
            Some(_) | None => KeyState::More(epoch),
        };
        answer
    }
    /// What is allocated for it beside its place in the table, but for what others share.
    #[cfg(test)]
    pub fn boxed_bytes(&self) -> usize {
        let KeyState::More(epoch) = &self.known else {
            return 0;
        };
        let texts = epoch.unresolved.iter().map(|waiting| {
            let key = waiting.labels.key.as_ref().and_then(|key| key.form.text());
            let run = waiting.labels.run.as_ref().map_or(0, String::capacity);
            // With its two counts.
            key.map_or(0, |text| 16 + text.len()) + run
        });
        size_of::<Epoch>()
            + epoch.open.capacity() * size_of::<EntryId>()
            + epoch.unresolved.capacity() * size_of::<Unresolved>()
            + texts.sum::<usize>()
    }
}

// === impl Epoch ===

impl Epoch {
    /// An entry of the request began.
    pub fn begin(&mut self, id: EntryId, at_ms: u64) {
        if !self.open.contains(&id) {
            push(&mut self.open, id);
            self.begun_ms = self.begun_ms.max(at_ms);
        }
    }

    /// Evidence came for an entry.
    pub fn resolve(&mut self, id: EntryId) {
        let before = self.unresolved.len();
        self.unresolved.retain(|waiting| waiting.id != id);
        self.answered |= self.unresolved.len() < before;
    }

    /// `false`: it waits for nothing, because too many do.
    pub fn end(&mut self, ended: Unresolved) -> bool {
        let id = ended.id;
        self.open.retain(|open| *open != id);
        match ended.was {
            State::Settled { billed } | State::Reconciled { billed } => {
                self.answered = true;
                if !billed.is_zero() && self.amount.is_none() {
                    self.amount = Some((billed, id));
                    self.amount_ms = ended.labels.started_ms;
                }
            }
            State::Replayed => self.answered = true,
            State::Unreported | State::InDoubt { .. } => {
                // Beyond the limit an entry stays in doubt: counted, and not settled for nothing.
                if self.unresolved.len() >= UNRESOLVED_MAX {
                    self.answered = true;
                    return false;
                }
                push(&mut self.unresolved, ended);
            }
            State::Open | State::Failed => {}
        }
        true
    }

    fn charge(&self, started_ms: u64) -> Option<KeyCharge> {
        if let Some((_, entry)) = self.amount {
            return Some(KeyCharge {
                since_ms: self.amount_ms,
                entries: vec![entry],
            });
        }
        let held = self.unresolved.iter().rev();
        let held_ms = held.clone().map(|waiting| waiting.labels.started_ms).max();
        let open_ms = (!self.open.is_empty()).then_some(self.begun_ms);
        let since_ms = held_ms
            .max(open_ms)
            .or(self.answered.then_some(started_ms))?;
        let open = self.open.iter().rev().copied();
        let entries = open.chain(held.map(|waiting| waiting.id));
        Some(KeyCharge {
            since_ms,
            entries: entries.take(CHARGED_MAX).collect(),
        })
    }
}

/// Most lists here have one element, and room for no other.
fn push<T>(list: &mut Vec<T>, element: T) {
    if list.is_empty() {
        list.reserve_exact(1);
    }
    list.push(element);
}
