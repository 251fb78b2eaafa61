//! The sandbox's own books: balances, every debit, every refusal, every request received.
//!
//! This is the truth a client's ledger is compared with, so it is written where the money moves and read
//! through the control route only.
//! Promise: the balance at start less the sum of the debits is the balance, at any instant.

use crate::{
    error::ServiceError,
    idempotency::BilledKey,
    keep::{DEBITS, Debit, Keep, Mutation, ROLLUP_HOURS, SINGLES, TOTALS, Totals},
    money::MicroUsd,
    received::Received,
    rollup::Rollup,
};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// More than any test makes; older lines go first and are counted.
const DEBITS_MAX: usize = 200_000;
const REQUESTS_MAX: usize = 50_000;

#[derive(Debug)]
pub struct Books {
    inner: Mutex<Accounts>,
    keep: Keep,
}

/// What is counted beside the money; a kill may lose the last few.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    pub free_repeats: u64,
    pub replays: u64,
    pub refusals: BTreeMap<u16, u64>,
    pub requests_by_route: BTreeMap<String, u64>,
    /// Of the request log; never decreases.
    pub last_n: u64,
}

#[derive(Debug, Default)]
struct Accounts {
    opening: BTreeMap<String, MicroUsd>,
    totals: Totals,
    debits: VecDeque<DebitLine>,
    counters: Counters,
    requests: VecDeque<Received>,
    requests_received: u64,
    rollup: Rollup,
}

#[derive(Debug)]
struct DebitLine {
    debit: Debit,
    /// Its row on disk has the number that it was entered by, which a withdrawal of an earlier one does not change.
    entered_as: u64,
    /// Whether a withdrawal gives its amount back to the balance: not when the balance was set since.
    gives_back: bool,
    /// What a withdrawal frees.
    key: Option<BilledKey>,
}

/// What `GET /sandbox/books` shows.
#[derive(Clone, Debug, Serialize)]
pub struct BooksView {
    /// Of the first organization.
    pub balance_micro_usd: MicroUsd,
    pub balances_micro_usd: BTreeMap<String, MicroUsd>,
    pub debited_micro_usd: MicroUsd,
    pub debits_made: u64,
    /// The newest 200,000.
    pub debits: Vec<Debit>,
    pub free_repeats: u64,
    pub replays: u64,
    pub refused: u64,
    pub refusals_by_status: BTreeMap<u16, u64>,
    pub requests_by_route: BTreeMap<String, u64>,
}

/// What `GET /sandbox/requests` shows.
#[derive(Clone, Debug, Serialize)]
pub struct RequestsView {
    pub received: u64,
    pub by_route: BTreeMap<String, u64>,
    /// The newest 50,000.
    pub requests: Vec<Received>,
}

// === impl Books ===

impl Books {
    pub fn new(organizations: impl Iterator<Item = String>, balance: MicroUsd) -> Self {
        let opening: BTreeMap<String, MicroUsd> = organizations.map(|org| (org, balance)).collect();
        let mut accounts = Accounts::default();
        accounts.totals.balances.clone_from(&opening);
        accounts.opening = opening;
        Self {
            inner: Mutex::new(accounts),
            keep: Keep::off(),
        }
    }

    /// The same books, written to the state directory and continued from its contents.
    pub fn kept(mut self, keep: Keep, totals: Totals, debits: Vec<Debit>, was: Counters) -> Self {
        self.keep = keep;
        let inner = self.inner.get_mut();
        let newest = u64::try_from(debits.len()).unwrap_or(u64::MAX);
        let before = totals.debits_made.saturating_sub(newest);
        for (n, debit) in (before + 1..).zip(debits) {
            // What was killed before it was written left a gap in the numbers.
            inner.debits.push_back(DebitLine {
                entered_as: debit.n,
                gives_back: true,
                key: None,
                debit: Debit { n, ..debit },
            });
        }
        let opening = std::mem::replace(&mut inner.totals, totals).balances;
        let on_disk = inner.totals.balances.len();
        for (org, balance) in opening {
            inner.totals.balances.entry(org).or_insert(balance);
        }
        inner.counters = was;
        if inner.totals.balances.len() > on_disk {
            self.keep.push(totals_of(inner));
        }
        self
    }

    /// One more organization, with a balance; false when there is one of this name.
    pub fn add_organization(&self, name: &str, balance: MicroUsd) -> bool {
        let mut inner = self.inner.lock();
        if inner.totals.balances.contains_key(name) {
            return false;
        }
        inner.opening.insert(name.to_owned(), balance);
        inner.totals.balances.insert(name.to_owned(), balance);
        self.keep.push(totals_of(&inner));
        true
    }

    pub fn has_organization(&self, name: &str) -> bool {
        self.inner.lock().totals.balances.contains_key(name)
    }

    pub fn counters(&self) -> Counters {
        self.inner.lock().counters.clone()
    }

    /// Interface: an empty balance returns 402.
    pub fn check_balance(&self, org: &str) -> Result<(), ServiceError> {
        match self.inner.lock().totals.balances.get(org) {
            Some(balance) if balance.is_positive() => Ok(()),
            Some(_) => Err(ServiceError::BalanceEmpty),
            None => Err(ServiceError::Internal),
        }
    }

    /// Subtracts the amount from the balance and writes the line; `n` is set here. Zero moves
    /// nothing.
    ///
    /// Assumed (negative-balance): the last request before the balance is empty may overdraw it.
    pub fn debit(&self, debit: Debit) -> Result<(), ServiceError> {
        self.enter(debit, |mutations| {
            self.keep.push(mutations);
            None
        })
    }

    /// As [`Books::debit`], but `queue` writes the documents together with the caller's own, and returns what they bill. It runs before
    /// the books change again, so that a later state is queued later. It gets none if nothing moved or nothing is
    /// kept.
    pub fn enter(
        &self,
        mut debit: Debit,
        queue: impl FnOnce(Vec<Mutation>) -> Option<BilledKey>,
    ) -> Result<(), ServiceError> {
        let amount = debit.amount_micro_usd;
        if amount == MicroUsd::ZERO {
            queue(Vec::new());
            return Ok(());
        }
        let at: Timestamp = debit.at.parse().map_err(|_| ServiceError::Internal)?;
        let mut guard = self.inner.lock();
        let Accounts {
            totals,
            debits,
            rollup,
            ..
        } = &mut *guard;
        let debited = totals
            .debited
            .checked_add(amount)
            .ok_or(ServiceError::Internal)?;
        let balance = totals
            .balances
            .get_mut(&debit.org)
            .ok_or(ServiceError::Internal)?;
        let left = balance.checked_sub(amount).ok_or(ServiceError::Internal)?;
        if !rollup.add_debit(&debit.org, at, amount) {
            return Err(ServiceError::Internal);
        }
        *balance = left;
        totals.debited = debited;
        totals.debits_made += 1;
        debit.n = totals.debits_made;
        let mut mutations = Vec::new();
        if self.keep.is_on() {
            mutations.extend(Mutation::put(DEBITS, debit.row_id(debit.n), &debit));
            mutations.extend(Mutation::put(SINGLES, TOTALS, totals));
        }
        if debits.len() >= DEBITS_MAX
            && let Some(oldest) = debits.pop_front()
        {
            mutations.push(Mutation::Remove(DEBITS, oldest.row_id()));
        }
        debits.push_back(DebitLine {
            entered_as: debit.n,
            gives_back: true,
            key: queue(mutations),
            debit,
        });
        Ok(())
    }

    /// Takes back the debit of this request if the disk does not hold it, and calls `unbind` with its key. Only
    /// where [`Keep::is_queued`] may be called.
    ///
    /// Interface, Metering: "A request or turn that fails bills nothing". A request whose debit is not on
    /// disk is answered with an error, so its debit must not stay in memory either. Lines keep their order
    /// and their numbers have no gap. A failed write may have reached the disk: its row is removed there.
    pub fn withdraw(&self, request_id: &str, unbind: impl FnOnce(&BilledKey)) {
        let mut guard = self.inner.lock();
        let inner = &mut *guard;
        let is_wanted = |line: &DebitLine| line.debit.request_id == request_id;
        let Some(at) = inner.debits.iter().rposition(is_wanted) else {
            return;
        };
        let is_queued = |line: &DebitLine| self.keep.is_queued(DEBITS, &line.row_id());
        if !inner.debits.get(at).is_some_and(is_queued) {
            return;
        }
        let Some(line) = inner.debits.remove(at) else {
            return;
        };
        for later in inner.debits.iter_mut().skip(at) {
            later.debit.n = later.debit.n.saturating_sub(1);
        }
        let row_id = line.row_id();
        let (debit, totals) = (line.debit, &mut inner.totals);
        let amount = debit.amount_micro_usd;
        if line.gives_back
            && let Some(balance) = totals.balances.get_mut(&debit.org)
        {
            give_back(balance, MicroUsd::checked_add, amount);
        }
        give_back(&mut totals.debited, MicroUsd::checked_sub, amount);
        totals.debits_made = totals.debits_made.saturating_sub(1);
        if let Ok(at) = debit.at.parse() {
            inner.rollup.remove_debit(&debit.org, at, amount);
        }
        let removed = Mutation::Remove(DEBITS, row_id);
        self.keep
            .push(totals_of(inner).into_iter().chain([removed]));
        if let Some(key) = line.key {
            unbind(&key);
        }
        tracing::warn!(%request_id, billed_micro_usd = amount.get(), "a debit was taken back: it could not be written");
    }

    /// Counts a finished inference request for the rollup.
    pub fn count_request(&self, org: &str, at: Timestamp, took_ms: u64, success: bool) {
        let mut inner = self.inner.lock();
        inner.rollup.add_request(org, at, took_ms, success);
    }

    /// What the frontier's list price is above what was billed, for the rollup.
    pub fn count_saving(&self, org: &str, at: Timestamp, saved: i64) {
        self.inner.lock().rollup.add_saving(org, at, saved);
    }

    /// Continues from a saved rollup.
    pub fn restore_rollup(&self, rollup: Rollup) {
        self.inner.lock().rollup = rollup;
    }

    /// Queues the hours of the rollup that changed since the last call, before they change again: of two calls
    /// at once, the later state is queued last.
    pub fn queue_hours(&self) {
        let mut inner = self.inner.lock();
        let unsaved = inner.rollup.take_unsaved().into_iter();
        let write = |(row, hour)| Mutation::put_or_remove(ROLLUP_HOURS, row, hour);
        self.keep.push(unsaved.filter_map(write));
    }

    /// The document of `GET /v1/auto/metrics`.
    pub fn rollup(&self, org: &str, now: Timestamp) -> serde_json::Value {
        self.inner.lock().rollup.document(org, now)
    }

    pub fn count_free_repeat(&self) {
        self.inner.lock().counters.free_repeats += 1;
    }

    pub fn count_refusal(&self, status: u16) {
        *self
            .inner
            .lock()
            .counters
            .refusals
            .entry(status)
            .or_default() += 1;
    }

    /// Sets a balance; false when there is no such organization.
    pub fn set_balance(&self, org: Option<&str>, balance: MicroUsd) -> bool {
        let mut inner = self.inner.lock();
        let is_meant = |name: &str| org.is_none_or(|org| org == name);
        let mut found = false;
        for (name, was) in &mut inner.totals.balances {
            if is_meant(name) {
                *was = balance;
                found = true;
            }
        }
        for line in &mut inner.debits {
            line.gives_back &= !is_meant(&line.debit.org);
        }
        self.keep.push(totals_of(&inner));
        found
    }

    /// Writes a request's line; the number finds it again.
    pub fn receive(&self, mut received: Received) -> u64 {
        let mut inner = self.inner.lock();
        inner.requests_received += 1;
        inner.counters.last_n += 1;
        received.n = inner.counters.last_n;
        // Paths come from the client: all unknown routes share one line, so that the table stays small.
        let route = format!("{} {}", received.method, received.path);
        let by_route = &mut inner.counters.requests_by_route;
        let route = if by_route.len() < 1_000 || by_route.contains_key(&route) {
            route
        } else {
            "other".to_owned()
        };
        *by_route.entry(route).or_default() += 1;
        inner.requests.push_back(received);
        if inner.requests.len() > REQUESTS_MAX {
            inner.requests.pop_front();
        }
        inner.counters.last_n
    }

    /// Adds to a request's line what became known later.
    pub fn amend(&self, n: u64, change: impl FnOnce(&mut Received)) {
        let mut inner = self.inner.lock();
        let found = inner
            .requests
            .iter_mut()
            .rev()
            .find(|received| received.n == n);
        if let Some(received) = found {
            change(received);
            if received.replayed {
                inner.counters.replays += 1;
            }
        }
    }

    pub fn forget_requests(&self) {
        let mut inner = self.inner.lock();
        inner.requests.clear();
        inner.requests_received = 0;
        inner.counters.requests_by_route.clear();
    }

    /// Empties the books, on disk too, and gives every organization its opening balance again. `forget`
    /// removes what was bought: no debit comes in between.
    pub fn reset(&self, forget: impl FnOnce()) {
        let mut inner = self.inner.lock();
        forget();
        let opening = std::mem::take(&mut inner.opening);
        let mut empty = Accounts::default();
        empty.totals.balances.clone_from(&opening);
        empty.opening = opening;
        // A number never comes twice, so that an old request cannot amend a new one's line.
        empty.counters.last_n = inner.counters.last_n;
        *inner = empty;
        self.keep
            .push([Mutation::Clear].into_iter().chain(totals_of(&inner)));
    }

    /// Work in the background has no client that repeats it. After a kill it asks here what it was billed: the
    /// request ids of the debits that begin with `prefix`.
    pub fn request_ids(&self, prefix: &str) -> BTreeSet<String> {
        let inner = self.inner.lock();
        inner
            .debits
            .iter()
            .map(|line| &line.debit.request_id)
            .filter(|id| id.starts_with(prefix))
            .cloned()
            .collect()
    }

    pub fn view(&self, first_org: &str) -> BooksView {
        let inner = self.inner.lock();
        let (totals, counters) = (inner.totals.clone(), inner.counters.clone());
        let first = totals.balances.get(first_org).copied();
        BooksView {
            balance_micro_usd: first.unwrap_or(MicroUsd::ZERO),
            balances_micro_usd: totals.balances,
            debited_micro_usd: totals.debited,
            debits_made: totals.debits_made,
            debits: inner.debits.iter().map(|line| line.debit.clone()).collect(),
            free_repeats: counters.free_repeats,
            replays: counters.replays,
            refused: counters.refusals.values().sum(),
            refusals_by_status: counters.refusals,
            requests_by_route: counters.requests_by_route,
        }
    }

    pub fn requests(&self) -> RequestsView {
        let inner = self.inner.lock();
        RequestsView {
            received: inner.requests_received,
            by_route: inner.counters.requests_by_route.clone(),
            requests: inner.requests.iter().cloned().collect(),
        }
    }
}

// === impl DebitLine ===

impl DebitLine {
    fn row_id(&self) -> String {
        self.debit.row_id(self.entered_as)
    }
}

fn totals_of(accounts: &Accounts) -> Option<Mutation> {
    Mutation::put(SINGLES, TOTALS, &accounts.totals)
}

/// The sum existed before the debit, so it fits; if it does not, the log says so and the amount stays.
fn give_back(
    amount: &mut MicroUsd,
    with: impl FnOnce(MicroUsd, MicroUsd) -> Option<MicroUsd>,
    other: MicroUsd,
) {
    match with(*amount, other) {
        Some(sum) => *amount = sum,
        None => tracing::error!("the books cannot hold a debit that was taken back"),
    }
}

#[cfg(test)]
mod tests;
