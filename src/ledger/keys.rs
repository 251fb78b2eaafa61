//! The Idempotency-Keys of the last 24 hours: whether a key's amount is known, and who else may have
//! run under it. The service binds a key for 24 h, so an amount told once is the key's amount.
//!
//! Promise: bounded; the oldest key goes first, and each one dropped early is counted. A dropped
//! key can only leave an entry in doubt, or count a later amount as new, after a million others.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ledger::entry::{EntryId, State};
use crate::ledger::record::Labels;
use crate::ledger::state::KeyView;
use crate::money::MicroUsd;
use crate::protocol::ServedBy;

/// How long the service binds a key ("idempotent replay window | 24 hours").
///
/// Assumed: counted from the key's first use; a failed request keeps nothing under it.
pub const EPOCH_MS: u64 = 24 * 60 * 60 * 1000;

/// Most keys held. About 300 bytes each.
pub const KEYS_MAX: usize = 1_000_000;

/// Longest key that is kept as it is. An app may send tens of kilobytes.
const KEY_CHARS_MAX: usize = 256;

/// What a shortened key begins with; 64 hex digits follow.
const SHORT_KEY_START: &str = "h:";

/// Most entries of one key that are named as charged.
const CHARGED_MAX: usize = 64;

/// Most entries of one key that wait for its amount.
const UNRESOLVED_MAX: usize = 1_000;

/// An entry that waits for evidence, with all that is needed to write what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unresolved {
    pub id: EntryId,
    pub was: State,
    pub served_by: Option<ServedBy>,
    pub labels: Labels,
}

/// All keys.
#[derive(Debug)]
pub struct Keys {
    epochs: HashMap<Arc<str>, Vec<Epoch>>,
    /// Epochs in the order they began here.
    order: VecDeque<(u64, Arc<str>)>,
    keys_max: usize,
    dropped: u64,
}

/// What is charged under a key: billed, or held as long as it is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyCharge {
    /// In whose window it counts: the time of the intent that it is charged to, the last one where there
    /// are several. Unix milliseconds.
    pub since_ms: u64,
    /// The entries that it is charged to, newest first; not all of very many.
    pub entries: Vec<EntryId>,
}

/// 24 h of one key, from its first intent on.
#[derive(Debug, Default)]
struct Epoch {
    started_ms: u64,
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

/// A key as the ledger keeps it: itself, or its hash when it is long. What goes to the service is
/// the app's own.
pub fn kept_form(key: &str) -> Cow<'_, str> {
    if key.chars().nth(KEY_CHARS_MAX).is_none() {
        return Cow::Borrowed(key);
    }
    let hash = blake3::hash(key.as_bytes()).to_hex();
    Cow::Owned(format!("{SHORT_KEY_START}{hash}"))
}

// === impl Keys ===

impl Default for Keys {
    fn default() -> Self {
        Self::with_capacity(KEYS_MAX)
    }
}

impl Keys {
    pub fn with_capacity(keys_max: usize) -> Self {
        Self {
            epochs: HashMap::new(),
            order: VecDeque::new(),
            keys_max,
            dropped: 0,
        }
    }

    /// Keys dropped before their 24 h were over.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// All that waits for a key's amount.
    pub fn unresolved(&self) -> impl Iterator<Item = &Unresolved> {
        self.epochs
            .values()
            .flatten()
            .flat_map(|epoch| &epoch.unresolved)
    }

    /// An entry of the key begins.
    pub fn begin(&mut self, key: &Arc<str>, id: EntryId, at_ms: u64) {
        if let Some(epoch) = self.epoch_for(key, id, at_ms)
            && !epoch.open.contains(&id)
        {
            epoch.open.push(id);
            epoch.begun_ms = epoch.begun_ms.max(at_ms);
        }
    }

    /// What is known of the key beside this entry.
    pub fn view(&self, key: &str, id: EntryId, at_ms: u64) -> KeyView {
        let Some(epoch) = self.epoch_of(key, id, at_ms) else {
            return KeyView::default();
        };
        KeyView {
            amount: epoch
                .amount
                .filter(|(_, entry)| *entry != id)
                .map(|(amount, _)| amount),
            is_unreported: epoch
                .unresolved
                .iter()
                .any(|waiting| waiting.id != id && waiting.was == State::Unreported),
            others_may_have_run: epoch.answered
                || epoch.open.iter().any(|open| *open != id)
                || epoch.unresolved.iter().any(|waiting| waiting.id != id),
        }
    }

    /// What of the key was billed or may have been, in the 24 h of now.
    pub fn charge(&self, key: &str, now_ms: u64) -> Option<KeyCharge> {
        let epochs = self.epochs.get(key)?;
        epochs
            .get(find(epochs, EntryId(uuid::Uuid::nil()), now_ms)?)?
            .charge()
    }

    /// The entries that the key's amount settles at 0, when `id` is the entry it stands on.
    pub fn resolved_by(&self, key: &str, id: EntryId, at_ms: u64) -> Vec<Unresolved> {
        self.epoch_of(key, id, at_ms)
            .map(|epoch| {
                let others = epoch.unresolved.iter().filter(|waiting| waiting.id != id);
                others.cloned().collect()
            })
            .unwrap_or_default()
    }

    /// An entry of the key ended.
    pub fn end(&mut self, key: &Arc<str>, ended: Unresolved) {
        let id = ended.id;
        let state = ended.was;
        let Some(epoch) = self.epoch_for(key, id, ended.labels.started_ms) else {
            return;
        };
        epoch.open.retain(|open| *open != id);
        match state {
            State::Settled { billed } | State::Reconciled { billed } => {
                epoch.answered = true;
                if !billed.is_zero() && epoch.amount.is_none() {
                    epoch.amount = Some((billed, id));
                    epoch.amount_ms = ended.labels.started_ms;
                }
            }
            State::Replayed => epoch.answered = true,
            State::Unreported | State::InDoubt { .. } => {
                // Beyond the limit an entry stays in doubt: counted, and not settled for nothing.
                if epoch.unresolved.len() < UNRESOLVED_MAX {
                    epoch.unresolved.push(ended);
                } else {
                    epoch.answered = true;
                    self.dropped = self.dropped.saturating_add(1);
                }
            }
            State::Open | State::Failed => {}
        }
    }

    /// Evidence came for an entry of the key.
    pub fn resolve(&mut self, key: &str, id: EntryId) {
        for epoch in self.epochs.get_mut(key).into_iter().flatten() {
            let before = epoch.unresolved.len();
            epoch.unresolved.retain(|waiting| waiting.id != id);
            epoch.answered |= epoch.unresolved.len() < before;
        }
    }

    /// Forgets keys whose 24 h are over and that nothing open belongs to.
    pub fn prune(&mut self, now_ms: u64) {
        // An open entry still needs its epoch; the keys behind it do not wait for that.
        let mut busy = Vec::new();
        while let Some((started_ms, key)) = self.order.front() {
            let over = now_ms.saturating_sub(*started_ms) >= EPOCH_MS;
            let full = self.order.len() + busy.len() > self.keys_max;
            if !over && !full {
                break;
            }
            let (started_ms, key) = (*started_ms, Arc::clone(key));
            self.order.pop_front();
            if !full && self.is_busy(&key, started_ms) {
                busy.push((started_ms, key));
                continue;
            }
            if let Some(epochs) = self.epochs.get_mut(&key) {
                epochs.retain(|epoch| epoch.started_ms != started_ms);
                if epochs.is_empty() {
                    self.epochs.remove(&key);
                }
            }
            if !over {
                self.dropped = self.dropped.saturating_add(1);
            }
        }
        for kept in busy.into_iter().rev() {
            self.order.push_front(kept);
        }
    }

    fn is_busy(&self, key: &str, started_ms: u64) -> bool {
        let epochs = self.epochs.get(key).into_iter().flatten();
        let mut of_this = epochs.filter(|epoch| epoch.started_ms == started_ms);
        of_this.any(|epoch| !epoch.open.is_empty())
    }

    fn epoch_of(&self, key: &str, id: EntryId, at_ms: u64) -> Option<&Epoch> {
        let epochs = self.epochs.get(key)?;
        epochs.get(find(epochs, id, at_ms)?)
    }

    /// The entry's epoch, or a new one. Never `None`.
    fn epoch_for(&mut self, key: &Arc<str>, id: EntryId, at_ms: u64) -> Option<&mut Epoch> {
        let epochs = self.epochs.entry(Arc::clone(key)).or_default();
        let index = find(epochs, id, at_ms).unwrap_or_else(|| {
            epochs.push(Epoch {
                started_ms: at_ms,
                ..Epoch::default()
            });
            self.order.push_back((at_ms, Arc::clone(key)));
            epochs.len() - 1
        });
        epochs.get_mut(index)
    }
}

// === impl Epoch ===

impl Epoch {
    fn charge(&self) -> Option<KeyCharge> {
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
            .or(self.answered.then_some(self.started_ms))?;
        let open = self.open.iter().rev().copied();
        let entries = open.chain(held.map(|waiting| waiting.id));
        Some(KeyCharge {
            since_ms,
            entries: entries.take(CHARGED_MAX).collect(),
        })
    }
}

/// The epoch that holds the entry, else the one its time falls in. A clock that was set back does
/// not begin an epoch: the service's own 24 h go on.
fn find(epochs: &[Epoch], id: EntryId, at_ms: u64) -> Option<usize> {
    let holds = |epoch: &Epoch| {
        epoch.open.contains(&id) || epoch.unresolved.iter().any(|waiting| waiting.id == id)
    };
    let spans = |epoch: &Epoch| {
        at_ms
            .checked_sub(epoch.started_ms)
            .is_some_and(|age| age < EPOCH_MS)
    };
    epochs
        .iter()
        .rposition(holds)
        .or_else(|| epochs.iter().rposition(spans))
        .or_else(|| epochs.iter().position(|epoch| at_ms < epoch.started_ms))
}

#[cfg(test)]
mod tests;
