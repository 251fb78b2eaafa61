//! What each session of an app came to, for its caps: a loop that runs for days is one session.
//!
//! A session's sums reach back to its beginning, as long as it is never silent for 35 days. An app has as
//! many sessions of its own as [`SESSIONS_MAX`]; further new ones share the sums of [`SessionAt::Overflow`].
//!
//! Promise: made of records alone; bounded by apps and their sessions. Which are kept is no matter of the
//! clock: one that was ahead takes nothing away but one of the days.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ledger::fold::charge::Charge;
use crate::ledger::marks::SessionHash;

/// Most sessions of an app with sums of their own.
pub const SESSIONS_MAX: usize = 10_000;

/// Days on which any session did something, the newest so many: 35, and the one that is under way.
const DAYS_MAX: usize = 36;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Whose sums: a session's, or those of all that came when there were too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SessionAt {
    Named(SessionHash),
    Overflow,
}

/// What a session came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionSum {
    pub charge: Charge,
    /// Entries that may be billed.
    pub requests: u64,
    /// The last day on which one began, counted from 1970 in UTC.
    pub last_day: u64,
}

/// The sums of all sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionSums(BTreeMap<Arc<str>, BTreeMap<SessionAt, SessionSum>>);

// === impl SessionSums ===

impl SessionSums {
    /// Where a session of an app is summed.
    pub fn place(&self, app: &str, session: SessionHash) -> SessionAt {
        let named = SessionAt::Named(session);
        let Some(sessions) = self.0.get(app) else {
            return named;
        };
        let overflow = usize::from(sessions.contains_key(&SessionAt::Overflow));
        let is_full = sessions.len() - overflow >= SESSIONS_MAX;
        if is_full && !sessions.contains_key(&named) {
            return SessionAt::Overflow;
        }
        named
    }

    pub fn get(&self, app: &str, at: SessionAt) -> SessionSum {
        let sum = self.0.get(app).and_then(|sessions| sessions.get(&at));
        sum.copied().unwrap_or_default()
    }

    /// The sums of a session, where there are any.
    pub fn known(&self, app: &str, session: SessionHash) -> Option<SessionSum> {
        let sessions = self.0.get(app)?;
        sessions.get(&SessionAt::Named(session)).copied()
    }

    /// The sums of each session of an app.
    pub fn of(&self, app: &str) -> impl Iterator<Item = (SessionAt, SessionSum)> {
        let sessions = self.0.get(app).into_iter().flatten();
        sessions.map(|(at, sum)| (*at, *sum))
    }

    /// The apps that have sessions.
    pub fn apps(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|app| &**app)
    }

    /// Adds an entry that began at a moment, Unix milliseconds.
    pub fn add(
        &mut self,
        app: &Arc<str>,
        session: SessionHash,
        at_ms: u64,
        charge: Charge,
        requests: u64,
    ) {
        if charge.is_none() && requests == 0 {
            return;
        }
        let added = SessionSum {
            charge,
            requests,
            last_day: at_ms / DAY_MS,
        };
        self.add_sum(app, self.place(app, session), added);
    }

    /// Adds what was summed before.
    pub fn add_sum(&mut self, app: &Arc<str>, at: SessionAt, added: SessionSum) {
        let sessions = self.0.entry(Arc::clone(app)).or_default();
        let sum = sessions.entry(at).or_default();
        sum.charge += added.charge;
        sum.requests = sum.requests.saturating_add(added.requests);
        sum.last_day = sum.last_day.max(added.last_day);
    }

    /// Forgets sessions that have been silent longest, beyond the bound.
    pub fn prune(&mut self) {
        let all = self.0.values().flat_map(BTreeMap::values);
        let mut days: BTreeSet<u64> = all.map(|sum| sum.last_day).collect();
        if days.len() <= DAYS_MAX {
            return;
        }
        while days.len() > DAYS_MAX {
            days.pop_first();
        }
        for sessions in self.0.values_mut() {
            sessions.retain(|_, sum| days.contains(&sum.last_day));
        }
        self.0.retain(|_, sessions| !sessions.is_empty());
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, SessionAt, SessionSum)> {
        self.0
            .iter()
            .flat_map(|(app, sessions)| sessions.iter().map(move |(at, sum)| (app, *at, *sum)))
    }
}

#[cfg(test)]
mod tests;
