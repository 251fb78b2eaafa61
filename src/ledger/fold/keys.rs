//! The Idempotency-Keys of the last 24 hours: whether a key's amount is known, and which other entries may
//! have run under it. The service binds a key for 24 h to one request of one organization, so an amount that
//! was reported once is that purchase's amount; another request under the same key is a purchase of its own.
//! A request that was sent with another key of the service is perhaps the same organization's: it keeps a 0
//! in doubt, explains a replay, and takes no amount away.
//!
//! Promise: bounded; the oldest key goes first, and each one dropped early is counted. After a million
//! others a dropped key may leave an entry in doubt, count a later amount as new, or let a 0 settle beside
//! a doubt, which stays one in the ledger.

use std::num::NonZeroU64;

use crate::ledger::entry::State;
pub use crate::ledger::entry::Unresolved;
use crate::ledger::fingerprint::Fingerprint;
use crate::ledger::fold::state::KeyView;
use crate::ledger::id::EntryId;
use crate::ledger::kept_key::{EPOCH_MS, KeptKey, KeyOrigin, ShortHash};

mod row;
mod table;

pub use row::KeyCharge;
use row::{Epoch, KeyRow};
use table::{KeyTable, RowNumber};

/// Most keys held. At most 100 bytes each, without what [`WAITING_MAX`] bounds.
pub const KEYS_MAX: usize = 1_000_000;

/// Most entries that wait for their key's amount, with all that is needed to write what becomes of them: at
/// most 512 bytes each, where its key is one that bursar minted. Beyond them the oldest go, an eighth at once;
/// of these is kept that they may have run: what comes is never settled for nothing beside them.
const WAITING_MAX: usize = 1 << 16;

/// Most different requests of one key that are known one by one. The service refuses all but the first.
const REQUESTS_MAX: usize = 64;

/// All keys.
#[derive(Debug)]
pub struct Keys {
    /// The ledger's.
    secret: [u8; 32],
    table: KeyTable,
    keys_max: usize,
    /// What is known in boxes: [`KeyRow::weight`] of all.
    waiting: usize,
    waiting_max: usize,
    dropped: u64,
}

/// What a key is to a request, in the 24 h of now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyStanding {
    /// Nothing was billed under it for an equal request, and it went with no other.
    Free,
    /// It went with another request, and not with this one: the service refuses it.
    Elsewhere,
    /// What was billed for an equal request, or may have been.
    Charged(KeyCharge),
}

/// What an entry is looked up by.
struct KeyQuery {
    key: ShortHash,
    organization: Option<NonZeroU64>,
    request: ShortHash,
    /// The request on lines of an older bursar.
    old_request: Option<ShortHash>,
    /// `None`: no entry yet.
    id: Option<EntryId>,
    at_ms: u64,
}

// === impl KeyStanding ===

impl KeyStanding {
    pub fn charge(self) -> Option<KeyCharge> {
        match self {
            Self::Charged(charge) => Some(charge),
            Self::Free | Self::Elsewhere => None,
        }
    }
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
            table: KeyTable::default(),
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
        self.table.rows().flat_map(KeyRow::unresolved)
    }

    /// An entry of the key begins.
    pub fn begin(&mut self, key: &KeptKey, fingerprint: Fingerprint, id: EntryId, at_ms: u64) {
        let asked = self.asked(key, Some(fingerprint), Some(id), at_ms);
        self.change(&asked, |epoch| epoch.begin(id, at_ms));
    }

    /// What is known of the key beside this entry.
    pub fn view(&self, key: &KeptKey, id: EntryId, at_ms: u64) -> KeyView {
        let asked = self.asked(key, None, Some(id), at_ms);
        let own = self.find(&asked);
        let mut view = KeyView::default();
        for (place, row) in self.rows_of(&asked) {
            let is_own = own == Some(place);
            let is_beside = match row.request() == asked.request {
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

    /// What the key is to a request of this fingerprint.
    pub fn standing(&self, key: &KeptKey, fingerprint: Fingerprint, now_ms: u64) -> KeyStanding {
        if let Some(charge) = self.charge(key, fingerprint, now_ms) {
            return KeyStanding::Charged(charge);
        }
        let asked = self.asked(key, Some(fingerprint), None, now_ms);
        let is_equal = |row: &KeyRow| row.request() == asked.request;
        let rows = self.rows_of(&asked).map(|(_, row)| row);
        let mut rows = rows
            .filter(|row| row.spans(now_ms) && !row.is_nothing())
            .peekable();
        match rows.peek().is_some() && !rows.any(is_equal) {
            true => KeyStanding::Elsewhere,
            false => KeyStanding::Free,
        }
    }

    /// The entries that the key's amount settles at 0, when `id` is the entry it stands on.
    pub fn resolved_by(&self, key: &KeptKey, id: EntryId, at_ms: u64) -> Vec<Unresolved> {
        let asked = self.asked(key, None, Some(id), at_ms);
        let row = self.find(&asked).and_then(|place| self.table.get(place));
        row.into_iter()
            .flat_map(KeyRow::unresolved)
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
            self.change_at(place, u64::MAX, |epoch| epoch.resolve(id));
        }
    }

    /// Forgets keys whose 24 h are over and that nothing open belongs to.
    pub fn prune(&mut self, now_ms: u64) {
        // An open entry still needs its row; the keys behind it do not wait for that.
        let mut busy = Vec::new();
        while let Some(row) = self.table.front() {
            let over = now_ms.saturating_sub(row.started_ms()) >= EPOCH_MS;
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
    ) -> KeyQuery {
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
        KeyQuery {
            key: key.id(&self.secret),
            organization: key.organization.and_then(|one| NonZeroU64::new(one.0)),
            request,
            old_request: if is_own { old_request } else { Some(request) },
            id,
            at_ms,
        }
    }

    /// The rows of the key under the same name of an organization.
    fn rows_of(&self, asked: &KeyQuery) -> impl Iterator<Item = (RowNumber, &KeyRow)> {
        let organization = asked.organization;
        self.table
            .of(asked.key)
            .filter(move |(_, row)| row.organization() == organization)
    }

    /// The rows of the key under another name of an organization, which may be the same one: it changes
    /// with its API key, and an older bursar named none.
    fn others_rows_of(&self, asked: &KeyQuery) -> impl Iterator<Item = &KeyRow> {
        let organization = asked.organization;
        let rows = self.table.of(asked.key).map(|(_, row)| row);
        rows.filter(move |row| row.organization() != organization)
    }

    /// The row that holds the entry, else that of its request which its time falls in. A clock that was
    /// set back does not begin one: the service's own 24 h go on.
    fn find(&self, asked: &KeyQuery) -> Option<RowNumber> {
        if let Some(id) = asked.id
            && let Some((place, _)) = self.rows_of(asked).find(|(_, row)| row.holds(id))
        {
            return Some(place);
        }
        let equal = || {
            self.rows_of(asked)
                .filter(|(_, row)| row.request() == asked.request)
        };
        let spans = equal().filter(|(_, row)| row.spans(asked.at_ms));
        spans
            .max_by_key(|(_, row)| row.started_ms())
            .or_else(|| {
                let later = equal().filter(|(_, row)| asked.at_ms < row.started_ms());
                later.min_by_key(|(_, row)| row.started_ms())
            })
            .map(|(place, _)| place)
    }

    /// The row of an older bursar for an equal request. It may be another organization's: no amount is taken
    /// from it or brought to it.
    fn find_old(&self, asked: &KeyQuery) -> Option<&KeyRow> {
        let request = asked.old_request?;
        asked.organization?;
        self.table
            .of(asked.key)
            .filter(|(_, row)| row.organization().is_none() && row.request() == request)
            .map(|(_, row)| row)
            .filter(|row| row.spans(asked.at_ms))
            .max_by_key(|row| row.started_ms())
    }

    /// Changes what is known of the entry's row, or of a new one. `None`: the key has too many.
    fn change<T>(&mut self, asked: &KeyQuery, change: impl FnOnce(&mut Epoch) -> T) -> Option<T> {
        let place = match self.find(asked) {
            Some(place) => place,
            None if !self.has_room(asked) => return None,
            None => self.table.push_back(KeyRow::new(
                asked.key,
                asked.organization,
                asked.request,
                asked.at_ms,
            )),
        };
        self.change_at(place, asked.at_ms, change)
    }

    fn change_at<T>(
        &mut self,
        place: RowNumber,
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
    fn has_room(&mut self, asked: &KeyQuery) -> bool {
        if self.rows_of(asked).count() < REQUESTS_MAX {
            return true;
        }
        let idle = self.rows_of(asked).filter(|(_, row)| row.is_nothing());
        let oldest = idle.min_by_key(|(_, row)| row.started_ms());
        let Some((place, _)) = oldest else {
            return false;
        };
        self.table.forget(place);
        true
    }
}

#[cfg(test)]
mod tests;
