//! The sandbox's own books: balances, every debit, every refusal, every request received.
//!
//! This is the truth a client's ledger is compared with, so it is written where the money moves and read
//! through the control route only.
//! Promise: the balance at start less the sum of the debits is the balance, at any instant.

use crate::{
    error::ServiceError,
    keep::{Debit, Keep, Mutation, Totals},
    key_id::KeyId,
    money::MicroUsd,
    received::Received,
    rollup::{Rollup, Unsaved},
};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tokio::sync::Notify;

/// More than any test makes; older lines go first and are counted.
const DEBITS_MAX: usize = 200_000;
const REQUESTS_MAX: usize = 50_000;

#[derive(Debug)]
pub struct Books {
    inner: Mutex<Accounts>,
    /// Rung when the rollup holds what is not saved yet.
    pub(crate) unsaved: Notify,
    keep: Keep,
}

/// What is counted beside the money; a kill may lose the last few.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    pub free_repeats: u64,
    pub replays: u64,
    pub refusals: BTreeMap<u16, u64>,
    pub requests_by_route: BTreeMap<String, u64>,
    pub last_n: u64,
}

#[derive(Debug, Default)]
struct Accounts {
    opening: BTreeMap<String, MicroUsd>,
    balances: BTreeMap<String, MicroUsd>,
    debits: VecDeque<Debit>,
    /// Their ids on disk, in the same order; empty when nothing is kept.
    debit_ids: VecDeque<String>,
    debits_made: u64,
    debited: MicroUsd,
    /// Runs that were not billed because their key had been.
    free_repeats: u64,
    replays: u64,
    refusals: BTreeMap<u16, u64>,
    requests: VecDeque<Received>,
    requests_received: u64,
    /// Never decreases, so that an old request cannot amend a new one's line.
    last_n: u64,
    requests_by_route: BTreeMap<String, u64>,
    rollup: Rollup,
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
        let balances: BTreeMap<String, MicroUsd> =
            organizations.map(|org| (org, balance)).collect();
        Self {
            inner: Mutex::new(Accounts {
                opening: balances.clone(),
                balances,
                ..Accounts::default()
            }),
            unsaved: Notify::new(),
            keep: Keep::off(),
        }
    }

    /// The same books, written to the state directory and continued from its contents.
    pub fn kept(mut self, keep: Keep, totals: Totals, debits: Vec<Debit>, was: Counters) -> Self {
        self.keep = keep;
        let inner = self.inner.get_mut();
        inner.balances.extend(totals.balances);
        inner.debited = totals.debited;
        inner.debits_made = totals.debits_made;
        let newest = u64::try_from(debits.len()).unwrap_or(u64::MAX);
        let before = totals.debits_made.saturating_sub(newest);
        for (n, mut debit) in (before + 1..).zip(debits) {
            // What was killed before it was written left a gap in the numbers.
            let id = debit.row_id();
            debit.n = n;
            inner.debit_ids.push_back(id);
            inner.debits.push_back(debit);
        }
        inner.free_repeats = was.free_repeats;
        inner.replays = was.replays;
        inner.refusals = was.refusals;
        inner.requests_by_route = was.requests_by_route;
        inner.last_n = was.last_n;
        self
    }

    /// One more organization, with a balance; false when there is one of this name.
    pub fn add_organization(&self, name: &str, balance: MicroUsd) -> bool {
        let mut inner = self.inner.lock();
        if inner.balances.contains_key(name) {
            return false;
        }
        inner.opening.insert(name.to_owned(), balance);
        inner.balances.insert(name.to_owned(), balance);
        self.keep
            .push([Mutation::Balance(name.to_owned(), balance)]);
        true
    }

    /// The balances that are on no disk yet.
    pub fn balances_not_in(&self, totals: &Totals) -> Vec<Mutation> {
        let inner = self.inner.lock();
        let missing = inner
            .balances
            .iter()
            .filter(|(org, _)| !totals.balances.contains_key(*org));
        missing
            .map(|(org, balance)| Mutation::Balance(org.clone(), *balance))
            .collect()
    }

    pub fn has_organization(&self, name: &str) -> bool {
        self.inner.lock().balances.contains_key(name)
    }

    pub fn counters(&self) -> Counters {
        let inner = self.inner.lock();
        Counters {
            free_repeats: inner.free_repeats,
            replays: inner.replays,
            refusals: inner.refusals.clone(),
            requests_by_route: inner.requests_by_route.clone(),
            last_n: inner.last_n,
        }
    }

    /// Interface: an empty balance returns 402.
    pub fn check_balance(&self, org: &str) -> Result<(), ServiceError> {
        match self.inner.lock().balances.get(org) {
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
        self.enter(debit, |change| self.keep.push(change))
    }

    /// As [`Books::debit`], but `queue` writes the change together with the caller's own. It runs before
    /// the books change again, so that changes are queued in their order. It gets `None` if nothing moved
    /// or nothing is kept.
    pub fn enter(
        &self,
        mut debit: Debit,
        queue: impl FnOnce(Option<Mutation>),
    ) -> Result<(), ServiceError> {
        if debit.amount_micro_usd == MicroUsd::ZERO {
            queue(None);
            return Ok(());
        }
        let at: Timestamp = debit.at.parse().map_err(|_| ServiceError::Internal)?;
        let mut guard = self.inner.lock();
        let inner = &mut *guard;
        let amount = debit.amount_micro_usd;
        let debited = inner
            .debited
            .checked_add(amount)
            .ok_or(ServiceError::Internal)?;
        let balance = inner
            .balances
            .get_mut(&debit.org)
            .ok_or(ServiceError::Internal)?;
        let left = balance.checked_sub(amount).ok_or(ServiceError::Internal)?;
        if !inner.rollup.add_debit(&debit.org, at, amount) {
            return Err(ServiceError::Internal);
        }
        self.unsaved.notify_one();
        *balance = left;
        inner.debited = debited;
        inner.debits_made += 1;
        debit.n = inner.debits_made;
        let kept = self.keep.is_on().then(|| {
            inner.debit_ids.push_back(debit.row_id());
            Box::new(debit.clone())
        });
        inner.debits.push_back(debit);
        let mut dropped = None;
        if inner.debits.len() > DEBITS_MAX {
            inner.debits.pop_front();
            dropped = inner.debit_ids.pop_front();
        }
        queue(kept.map(|debit| Mutation::Debit {
            debit,
            dropped,
            key: None,
        }));
        Ok(())
    }

    /// Takes back the debit of this request, and calls `unbind` with its key. Only where [`Keep::take_back`]
    /// may be called.
    ///
    /// Interface, Metering: "A request or turn that fails bills nothing". A request whose debit is not on
    /// disk is answered with an error, so its debit must not stay in memory either. Lines keep their order
    /// and their numbers have no gap.
    pub fn withdraw(&self, request_id: &str, unbind: impl FnOnce(&KeyId)) {
        let mut guard = self.inner.lock();
        let inner = &mut *guard;
        let Some(taken) = self.keep.take_back(request_id) else {
            return;
        };
        if taken.is_cleared {
            return;
        }
        let (debit, key) = (&taken.debit, &taken.key);
        let amount = debit.amount_micro_usd;
        if !taken.is_balance_set
            && let Some(balance) = inner.balances.get_mut(&debit.org)
        {
            give_back(balance, MicroUsd::checked_add, amount);
        }
        give_back(&mut inner.debited, MicroUsd::checked_sub, amount);
        inner.debits_made = inner.debits_made.saturating_sub(1);
        if let Ok(at) = debit.at.parse() {
            inner.rollup.remove_debit(&debit.org, at, amount);
            self.unsaved.notify_one();
        }
        let mut lines = inner.debits.iter();
        if let Some(at) = lines.rposition(|line| line.request_id == request_id) {
            inner.debits.remove(at);
            inner.debit_ids.remove(at);
            for later in inner.debits.iter_mut().skip(at) {
                later.n = later.n.saturating_sub(1);
            }
        }
        if let Some(key) = key {
            unbind(key);
        }
        tracing::warn!(%request_id, billed_micro_usd = amount.get(), "a debit was taken back: it could not be written");
    }

    /// Counts a finished inference request for the rollup.
    pub fn count_request(&self, org: &str, at: Timestamp, took_ms: u64, success: bool) {
        let mut inner = self.inner.lock();
        inner.rollup.add_request(org, at, took_ms, success);
        self.unsaved.notify_one();
    }

    /// What the frontier's list price is above what was billed, for the rollup.
    pub fn count_saving(&self, org: &str, at: Timestamp, saved: i64) {
        self.inner.lock().rollup.add_saving(org, at, saved);
        self.unsaved.notify_one();
    }

    /// Continues from a saved rollup.
    pub fn restore_rollup(&self, rollup: Rollup) {
        self.inner.lock().rollup = rollup;
    }

    pub fn unsaved_rollup(&self) -> Unsaved {
        self.inner.lock().rollup.take_unsaved()
    }

    /// The document of `GET /v1/auto/metrics`.
    pub fn rollup(&self, org: &str, now: Timestamp) -> serde_json::Value {
        self.inner.lock().rollup.document(org, now)
    }

    pub fn count_free_repeat(&self) {
        self.inner.lock().free_repeats += 1;
    }

    pub fn count_refusal(&self, status: u16) {
        *self.inner.lock().refusals.entry(status).or_default() += 1;
    }

    /// Sets a balance; false when there is no such organization.
    pub fn set_balance(&self, org: Option<&str>, balance: MicroUsd) -> bool {
        let mut inner = self.inner.lock();
        let mut found = false;
        for (name, was) in &mut inner.balances {
            if org.is_none_or(|org| org == name) {
                *was = balance;
                found = true;
                self.keep.push([Mutation::Balance(name.clone(), balance)]);
            }
        }
        found
    }

    /// Writes a request's line; the number finds it again.
    pub fn receive(&self, mut received: Received) -> u64 {
        let mut inner = self.inner.lock();
        inner.requests_received += 1;
        inner.last_n += 1;
        received.n = inner.last_n;
        // Paths come from the client: all unknown routes share one line, so that the table stays small.
        let route = format!("{} {}", received.method, received.path);
        let route = if inner.requests_by_route.len() < 1_000
            || inner.requests_by_route.contains_key(&route)
        {
            route
        } else {
            "other".to_owned()
        };
        *inner.requests_by_route.entry(route).or_default() += 1;
        inner.requests.push_back(received);
        if inner.requests.len() > REQUESTS_MAX {
            inner.requests.pop_front();
        }
        inner.last_n
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
                inner.replays += 1;
            }
        }
    }

    pub fn forget_requests(&self) {
        let mut inner = self.inner.lock();
        inner.requests.clear();
        inner.requests_received = 0;
        inner.requests_by_route.clear();
    }

    /// Empties the books, on disk too, and gives every organization its opening balance again. `forget`
    /// removes what was bought: no debit comes in between.
    pub fn reset(&self, forget: impl FnOnce()) {
        let mut inner = self.inner.lock();
        forget();
        let balances = inner.opening.iter();
        let balances = balances.map(|(org, balance)| Mutation::Balance(org.clone(), *balance));
        self.keep
            .push([Mutation::Clear].into_iter().chain(balances));
        let opening = inner.opening.clone();
        *inner = Accounts {
            balances: opening.clone(),
            opening,
            last_n: inner.last_n,
            ..Accounts::default()
        };
    }

    /// Work in the background has no client that repeats it. After a kill it asks here what it was billed: the
    /// request ids of the debits that begin with `prefix`.
    pub fn request_ids(&self, prefix: &str) -> BTreeSet<String> {
        let inner = self.inner.lock();
        inner
            .debits
            .iter()
            .map(|debit| &debit.request_id)
            .filter(|id| id.starts_with(prefix))
            .cloned()
            .collect()
    }

    pub fn view(&self, first_org: &str) -> BooksView {
        let inner = self.inner.lock();
        BooksView {
            balance_micro_usd: inner
                .balances
                .get(first_org)
                .copied()
                .unwrap_or(MicroUsd::ZERO),
            balances_micro_usd: inner.balances.clone(),
            debited_micro_usd: inner.debited,
            debits_made: inner.debits_made,
            debits: inner.debits.iter().cloned().collect(),
            free_repeats: inner.free_repeats,
            replays: inner.replays,
            refused: inner.refusals.values().sum(),
            refusals_by_status: inner.refusals.clone(),
            requests_by_route: inner.requests_by_route.clone(),
        }
    }

    pub fn requests(&self) -> RequestsView {
        let inner = self.inner.lock();
        RequestsView {
            received: inner.requests_received,
            by_route: inner.requests_by_route.clone(),
            requests: inner.requests.iter().cloned().collect(),
        }
    }
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
