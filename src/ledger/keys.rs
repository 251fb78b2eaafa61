//! The Idempotency-Keys of the last 24 hours: whether a key's amount is known, and who else may have
//! run under it. The service binds a key for 24 h to one request of one organization, so an amount told
//! once is that purchase's amount; another request under the same key is a purchase of its own.
//! What was asked with another key of the service is perhaps the same organization's: it keeps a 0 in
//! doubt, explains a replay, and takes no amount away.
//!
//! Promise: bounded; the oldest key goes first, and each one dropped early is counted. After a million
//! others a dropped key may leave an entry in doubt, count a later amount as new, or let a 0 settle beside
//! a doubt, which stays one in the ledger.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::ledger::entry::{EntryId, Fingerprint, KeyOrigin, State};
use crate::ledger::kept_key::{KeptKey, ShortHash};
use crate::ledger::record::Labels;
use crate::ledger::state::KeyView;
use crate::money::MicroUsd;
use crate::protocol::ServedBy;

mod table;

use table::{Known, Place, Row, Table};

/// How long the service binds a key ("idempotent replay window | 24 hours").
///
/// Assumed: counted from the key's first use, also where that failed. If the service counts from a later one,
/// a repeat is in doubt; the other way round a purchase would be taken for a repeat.
pub const EPOCH_MS: u64 = 24 * 60 * 60 * 1000;

/// Most keys held. At most 100 bytes each, without what [`WAITING_MAX`] bounds.
pub const KEYS_MAX: usize = 1_000_000;

/// Most entries that wait for their key's amount, with all that is needed to write what becomes of them: at
/// most 512 bytes each, where its key is one that bursar minted. Beyond them the oldest go, an eighth at once;
/// of these is kept that they may have run: what comes is never settled for nothing beside them.
const WAITING_MAX: usize = 1 << 16;

/// Most entries of one key that are named as charged.
const CHARGED_MAX: usize = 64;

/// Most entries of one key that wait for its amount.
const UNRESOLVED_MAX: usize = 1_000;

/// Most different requests of one key that are known one by one. The service refuses all but the first.
const REQUESTS_MAX: usize = 64;

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
    /// The ledger's.
    secret: [u8; 32],
    table: Table,
    keys_max: usize,
    /// What is known in boxes: [`Row::weight`] of all.
    waiting: usize,
    waiting_max: usize,
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

/// What is known of a request under a key where that is more than an amount.
#[derive(Debug, Default)]
struct Epoch {
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

/// What an entry is looked up by.
struct Asked {
    key: ShortHash,
    organization: Option<NonZeroU64>,
    request: ShortHash,
    /// The request on lines of an older bursar.
    old_request: Option<ShortHash>,
    /// `None`: no entry yet.
    id: Option<EntryId>,
    at_ms: u64,
}

// === impl Keys ===

impl Default for Keys {
    fn default() -> Self {
        Self::new([0; 32])
    }
}

impl Keys {
    pub fn new(secret: [u8; 32]) -> Self {
        Self {
            secret,
            table: Table::default(),
            keys_max: KEYS_MAX,
            waiting: 0,
            waiting_max: WAITING_MAX,
            dropped: 0,
        }
    }

    /// Keys dropped before their 24 h were over, or of which the entries that waited were.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// All that waits for a key's amount.
    pub fn unresolved(&self) -> impl Iterator<Item = &Unresolved> {
        self.table.rows().flat_map(Row::unresolved)
    }

    /// An entry of the key begins.
    pub fn begin(&mut self, key: &KeptKey, fingerprint: Fingerprint, id: EntryId, at_ms: u64) {
        let asked = self.asked(key, Some(fingerprint), Some(id), at_ms);
        self.change(&asked, |epoch| {
            if !epoch.open.contains(&id) {
                push(&mut epoch.open, id);
                epoch.begun_ms = epoch.begun_ms.max(at_ms);
            }
        });
    }

    /// What is known of the key beside this entry.
    pub fn view(&self, key: &KeptKey, id: EntryId, at_ms: u64) -> KeyView {
        let asked = self.asked(key, None, Some(id), at_ms);
        let own = self.find(&asked);
        let mut view = KeyView::default();
        for (place, row) in self.rows_of(&asked) {
            let is_own = own == Some(place);
            let is_beside = match row.request == asked.request {
                true => row.spans(at_ms),
                false => row.is_near(at_ms),
            };
            if !is_own && !is_beside {
                continue;
            }
            let amount = row.amount().filter(|(_, entry)| *entry != id);
            let is_unreported = row
                .unresolved()
                .any(|waiting| waiting.id != id && waiting.was == State::Unreported);
            if is_own {
                view.amount = amount.map(|(amount, _)| amount);
                view.is_unreported = is_unreported;
            } else {
                view.stands_on_another_request |= amount.is_some() || is_unreported;
            }
            view.others_may_have_run |= row.may_have_run_beside(id);
        }
        for row in self.others_rows_of(&asked).filter(|row| row.is_near(at_ms)) {
            let is_unreported = row
                .unresolved()
                .any(|waiting| waiting.was == State::Unreported);
            view.stands_under_another_organization |= row.amount().is_some() || is_unreported;
            view.others_may_have_run |= row.may_have_run_beside(id);
        }
        view
    }

    /// What of the key was billed or may have been for an equal request, in the 24 h of now.
    pub fn charge(
        &self,
        key: &KeptKey,
        fingerprint: Fingerprint,
        now_ms: u64,
    ) -> Option<KeyCharge> {
        let asked = self.asked(key, Some(fingerprint), None, now_ms);
        let charge = |place| self.table.get(place)?.charge();
        self.find(&asked)
            .and_then(charge)
            .or_else(|| self.find_old(&asked)?.charge())
    }

    /// The entries that the key's amount settles at 0, when `id` is the entry it stands on.
    pub fn resolved_by(&self, key: &KeptKey, id: EntryId, at_ms: u64) -> Vec<Unresolved> {
        let asked = self.asked(key, None, Some(id), at_ms);
        let row = self.find(&asked).and_then(|place| self.table.get(place));
        row.into_iter()
            .flat_map(Row::unresolved)
            .filter(|waiting| waiting.id != id)
            .cloned()
            .collect()
    }

    /// An entry of the key ended.
    pub fn end(&mut self, key: &KeptKey, ended: Unresolved) {
        let (id, started_ms) = (ended.id, ended.labels.started_ms);
        let asked = self.asked(key, None, Some(id), started_ms);
        let may_have_run = ended.was != State::Failed;
        let is_known = self.change(&asked, |epoch| epoch.end(ended));
        let is_dropped = !is_known.unwrap_or(!may_have_run);
        self.dropped = self.dropped.saturating_add(u64::from(is_dropped));
    }

    /// Evidence came for an entry of the key.
    pub fn resolve(&mut self, key: &KeptKey, id: EntryId) {
        let asked = self.asked(key, None, Some(id), 0);
        let holds = self.rows_of(&asked).find(|(_, row)| row.holds(id));
        if let Some((place, _)) = holds {
            self.change_at(place, u64::MAX, |epoch| {
                let before = epoch.unresolved.len();
                epoch.unresolved.retain(|waiting| waiting.id != id);
                epoch.answered |= epoch.unresolved.len() < before;
            });
        }
    }

    /// Forgets keys whose 24 h are over and that nothing open belongs to.
    pub fn prune(&mut self, now_ms: u64) {
        // An open entry still needs its row; the keys behind it do not wait for that.
        let mut busy = Vec::new();
        while let Some(row) = self.table.front() {
            let over = now_ms.saturating_sub(row.started_ms) >= EPOCH_MS;
            let full = self.table.len() + busy.len() > self.keys_max;
            if !over && !full {
                break;
            }
            let Some(row) = self.table.pop_front() else {
                break;
            };
            self.waiting = self.waiting.saturating_sub(row.weight());
            if !full && row.is_busy() {
                busy.push(row);
            } else if !over && !row.is_nothing() {
                self.dropped = self.dropped.saturating_add(1);
            }
        }
        for row in busy.into_iter().rev() {
            self.waiting = self.waiting.saturating_add(row.weight());
            self.table.push_front(row);
        }
        self.forget_waiting();
        self.table.give_back();
    }

    /// Many at once, so that few walks over all keys are needed. Boxes in which nothing waits go first: of
    /// these nothing is lost but the later window that an amount is charged in.
    fn forget_waiting(&mut self) {
        if self.waiting <= self.waiting_max {
            return;
        }
        let wanted = self.waiting_max / 8 * 7;
        for of_waiting in [false, true] {
            for row in self.table.rows_mut() {
                if self.waiting <= wanted {
                    return;
                }
                let weight = row.weight();
                let waits = row.unresolved().next().is_some();
                if weight > 0 && waits == of_waiting && !row.is_busy() {
                    row.forget_waiting();
                    self.waiting = self.waiting.saturating_sub(weight);
                    self.dropped = self.dropped.saturating_add(u64::from(waits));
                }
            }
        }
    }

    fn asked(
        &self,
        key: &KeptKey,
        fingerprint: Option<Fingerprint>,
        id: Option<EntryId>,
        at_ms: u64,
    ) -> Asked {
        let short = |hash: Fingerprint| ShortHash::of(&hash.0);
        let old_request = fingerprint.map(short);
        let request = match (key.origin, key.request) {
            (KeyOrigin::App, Some(request)) => short(request),
            // A line of an older bursar; where its intent is lost, nothing is equal to it.
            (KeyOrigin::App, None) => {
                let alone = id.map(|id| ShortHash(*id.0.as_bytes()));
                old_request.or(alone).unwrap_or_default()
            }
            (KeyOrigin::Minted | KeyOrigin::Adopted { .. }, _) => ShortHash::default(),
        };
        let is_own = key.origin == KeyOrigin::App;
        Asked {
            key: key.id(&self.secret),
            organization: key.organization.and_then(|one| NonZeroU64::new(one.0)),
            request,
            old_request: if is_own { old_request } else { Some(request) },
            id,
            at_ms,
        }
    }

    /// The rows of the key under the same name of an organization.
    fn rows_of(&self, asked: &Asked) -> impl Iterator<Item = (Place, &Row)> {
        let organization = asked.organization;
        self.table
            .of(asked.key)
            .filter(move |(_, row)| row.organization == organization)
    }

    /// The rows of the key under another name of an organization, which may be the same one: it changes
    /// with its API key, and an older bursar named none.
    fn others_rows_of(&self, asked: &Asked) -> impl Iterator<Item = &Row> {
        let organization = asked.organization;
        let rows = self.table.of(asked.key).map(|(_, row)| row);
        rows.filter(move |row| row.organization != organization)
    }

    /// The row that holds the entry, else that of its request which its time falls in. A clock that was
    /// set back does not begin one: the service's own 24 h go on.
    fn find(&self, asked: &Asked) -> Option<Place> {
        if let Some(id) = asked.id
            && let Some((place, _)) = self.rows_of(asked).find(|(_, row)| row.holds(id))
        {
            return Some(place);
        }
        let equal = || {
            self.rows_of(asked)
                .filter(|(_, row)| row.request == asked.request)
        };
        let spans = equal().filter(|(_, row)| row.spans(asked.at_ms));
        spans
            .max_by_key(|(_, row)| row.started_ms)
            .or_else(|| {
                let later = equal().filter(|(_, row)| asked.at_ms < row.started_ms);
                later.min_by_key(|(_, row)| row.started_ms)
            })
            .map(|(place, _)| place)
    }

    /// The row of an older bursar for an equal request. It may be another organization's: no amount is taken
    /// from it or brought to it.
    fn find_old(&self, asked: &Asked) -> Option<&Row> {
        let request = asked.old_request?;
        asked.organization?;
        self.table
            .of(asked.key)
            .filter(|(_, row)| row.organization.is_none() && row.request == request)
            .map(|(_, row)| row)
            .filter(|row| row.spans(asked.at_ms))
            .max_by_key(|row| row.started_ms)
    }

    /// Changes what is known of the entry's row, or of a new one. `None`: the key has too many.
    fn change<T>(&mut self, asked: &Asked, change: impl FnOnce(&mut Epoch) -> T) -> Option<T> {
        let place = match self.find(asked) {
            Some(place) => place,
            None if !self.has_room(asked) => return None,
            None => self.table.push_back(Row {
                key: asked.key,
                organization: asked.organization,
                request: asked.request,
                started_ms: asked.at_ms,
                known: Known::Quiet { answered: false },
            }),
        };
        self.change_at(place, asked.at_ms, change)
    }

    fn change_at<T>(
        &mut self,
        place: Place,
        at_ms: u64,
        change: impl FnOnce(&mut Epoch) -> T,
    ) -> Option<T> {
        let row = self.table.get_mut(place)?;
        let before = row.weight();
        let answer = row.change(at_ms, change);
        let others = self.waiting.saturating_sub(before);
        self.waiting = others.saturating_add(row.weight());
        Some(answer)
    }

    /// Whether another request of the key may be known. The oldest of which nothing is left makes room.
    fn has_room(&mut self, asked: &Asked) -> bool {
        if self.rows_of(asked).count() < REQUESTS_MAX {
            return true;
        }
        let idle = self.rows_of(asked).filter(|(_, row)| row.is_nothing());
        let oldest = idle.min_by_key(|(_, row)| row.started_ms);
        let Some((place, _)) = oldest else {
            return false;
        };
        self.table.forget(place);
        true
    }
}

// === impl Row ===

impl Row {
    fn amount(&self) -> Option<(MicroUsd, EntryId)> {
        match &self.known {
            Known::Billed { amount, entry } => Some((*amount, *entry)),
            Known::Quiet { .. } => None,
            Known::More(epoch) => epoch.amount,
        }
    }

    fn unresolved(&self) -> impl Iterator<Item = &Unresolved> {
        let epoch = match &self.known {
            Known::More(epoch) => Some(epoch),
            Known::Billed { .. } | Known::Quiet { .. } => None,
        };
        epoch.into_iter().flat_map(|epoch| &epoch.unresolved)
    }

    fn holds(&self, id: EntryId) -> bool {
        match &self.known {
            Known::More(epoch) => {
                epoch.open.contains(&id) || self.unresolved().any(|waiting| waiting.id == id)
            }
            Known::Billed { .. } | Known::Quiet { .. } => false,
        }
    }

    /// What it holds beside its place in the table.
    fn weight(&self) -> usize {
        match &self.known {
            Known::More(epoch) => epoch.unresolved.len().max(1),
            Known::Billed { .. } | Known::Quiet { .. } => 0,
        }
    }

    /// Keeps of what is in a box what needs none.
    fn forget_waiting(&mut self) {
        if let Known::More(epoch) = &self.known {
            self.known = match epoch.amount {
                Some((amount, entry)) => Known::Billed { amount, entry },
                None => Known::Quiet { answered: true },
            };
        }
    }

    /// All of it failed: whoever comes is the first.
    fn is_nothing(&self) -> bool {
        matches!(&self.known, Known::Quiet { answered: false })
    }

    fn is_busy(&self) -> bool {
        matches!(&self.known, Known::More(epoch) if !epoch.open.is_empty())
    }

    fn may_have_run_beside(&self, id: EntryId) -> bool {
        match &self.known {
            Known::Billed { .. } => true,
            Known::Quiet { answered } => *answered,
            Known::More(epoch) => {
                epoch.answered
                    || epoch.open.iter().any(|open| *open != id)
                    || epoch.unresolved.iter().any(|waiting| waiting.id != id)
            }
        }
    }

    fn spans(&self, at_ms: u64) -> bool {
        at_ms
            .checked_sub(self.started_ms)
            .is_some_and(|age| age < EPOCH_MS)
    }

    /// Whether it may have begun in the 24 h of an entry, or the entry in its: what an entry stands beside
    /// may have come after it.
    fn is_near(&self, at_ms: u64) -> bool {
        self.started_ms.abs_diff(at_ms) < EPOCH_MS
    }

    fn charge(&self) -> Option<KeyCharge> {
        match &self.known {
            Known::Billed { entry, .. } => Some(KeyCharge {
                since_ms: self.started_ms,
                entries: vec![*entry],
            }),
            Known::Quiet { answered } => answered.then(|| KeyCharge {
                since_ms: self.started_ms,
                entries: Vec::new(),
            }),
            Known::More(epoch) => epoch.charge(self.started_ms),
        }
    }

    /// Of an entry that is about to begin before the row did, the clock was ahead then or is behind now: the
    /// 24 h are counted from there, so that no key is bound until a time that was wrong.
    fn change<T>(&mut self, at_ms: u64, change: impl FnOnce(&mut Epoch) -> T) -> T {
        let nothing = Known::Quiet { answered: false };
        let mut epoch = match std::mem::replace(&mut self.known, nothing) {
            Known::Billed { amount, entry } => Box::new(Epoch {
                begun_ms: self.started_ms,
                amount: Some((amount, entry)),
                amount_ms: self.started_ms,
                answered: true,
                ..Epoch::default()
            }),
            Known::Quiet { answered } => Box::new(Epoch {
                begun_ms: self.started_ms,
                answered,
                ..Epoch::default()
            }),
            Known::More(epoch) => epoch,
        };
        self.started_ms = self.started_ms.min(at_ms);
        let answer = change(&mut epoch);
        let is_quiet = epoch.open.is_empty() && epoch.unresolved.is_empty();
        self.known = match epoch.amount {
            Some((amount, entry)) if is_quiet && epoch.amount_ms == self.started_ms => {
                Known::Billed { amount, entry }
            }
            None if is_quiet => Known::Quiet {
                answered: epoch.answered,
            },
            // Something is under way, or the amount counts in another window than the row.
            Some(_) | None => Known::More(epoch),
        };
        answer
    }
}

// === impl Epoch ===

impl Epoch {
    /// `false`: it waits for nothing, because too many do.
    fn end(&mut self, ended: Unresolved) -> bool {
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

#[cfg(test)]
mod tests;
