//! Sums by the hour: the newest 31 days of them, and which changed since they were saved.
//!
//! Promise: at most [`HOURS_KEPT`] hours and the newest one are kept; an hour that is forgotten is reported to be
//! removed.

use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

pub const HOURS_KEPT: i64 = 31 * 24;
const HOUR_S: i64 = 3_600;

/// By hours since 1970.
#[derive(Clone, Debug, Default)]
pub struct Hours<T> {
    by_hour: BTreeMap<i64, T>,
    unsaved: BTreeSet<i64>,
}

// === impl Hours ===

impl<T: Clone + Default> Hours<T> {
    /// The sums of the hour of `at`, to be changed.
    pub fn at(&mut self, at: Timestamp) -> &mut T {
        let hour = hour_of(at);
        while let Some((first, _)) = self.by_hour.first_key_value()
            && *first < hour - HOURS_KEPT
        {
            let first = *first;
            self.by_hour.remove(&first);
            self.unsaved.insert(first);
        }
        self.unsaved.insert(hour);
        self.by_hour.entry(hour).or_default()
    }

    pub fn is_kept(&self, at: Timestamp) -> bool {
        self.by_hour.contains_key(&hour_of(at))
    }

    pub fn get(&self, hour: i64) -> Option<&T> {
        self.by_hour.get(&hour)
    }

    /// Oldest first, both ends included.
    pub fn between(&self, first: i64, last: i64) -> impl Iterator<Item = (i64, &T)> {
        let hours = self.by_hour.range(first..=last.max(first));
        hours.map(|(hour, sums)| (*hour, sums))
    }

    /// Puts back an hour that was saved.
    pub fn restore(&mut self, hour: i64, sums: T) {
        self.by_hour.insert(hour, sums);
    }

    /// The hours that changed since the last call; `None` for one that was forgotten.
    pub fn take_unsaved(&mut self) -> Vec<(i64, Option<T>)> {
        let unsaved = std::mem::take(&mut self.unsaved).into_iter();
        unsaved
            .map(|hour| (hour, self.by_hour.get(&hour).cloned()))
            .collect()
    }
}

pub fn hour_of(at: Timestamp) -> i64 {
    at.as_second().div_euclid(HOUR_S)
}

pub fn start_of(hour: i64) -> Option<Timestamp> {
    Timestamp::from_second(hour.checked_mul(HOUR_S)?).ok()
}
