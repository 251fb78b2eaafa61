//! Shares the service's ceilings with the other machines of the fleet, while much of them is used.
//!
//! Promise: advice. Whatever the database does, no request waits for it: a share that is not renewed is forgotten, and
//! then answers of 429 alone lower the limits, as on a machine by itself. A machine that uses little asks for nothing.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::answer::FleetError;
use super::database::Fleet;
use super::identity::FleetIdentity;
use crate::ceilings::{Ceilings, Shared};

/// A share holds for so long after it was to be renewed.
const GRACE: Duration = Duration::from_secs(35);

/// Asks for this machine's share.
#[derive(Default)]
pub struct Pacer {
    queue: OnceLock<Shared>,
    /// When to ask again; `None`: not before the next hello.
    again: Mutex<Option<Duration>>,
    /// Others take into account what it stated.
    has_stated: AtomicBool,
    /// Why it came to nothing the last time.
    trouble: Mutex<Option<String>>,
}

// === impl Pacer ===

impl Pacer {
    /// Whose requests are held below the share.
    pub fn hold(&self, queue: Shared) {
        // It begins once.
        self.queue.set(queue).ok();
    }

    /// A visit begins. One that does not come as far as this shortens no pause.
    pub fn begin(&self) {
        *self.again.lock() = None;
    }

    /// How long to wait for the next hello, where it would be `pause` otherwise.
    pub fn pause(&self, pause: Duration) -> Duration {
        self.again.lock().map_or(pause, |again| again.min(pause))
    }

    /// As part of a visit; of the last one if it `leaves`.
    pub async fn visit(&self, fleet: &Fleet, caller: &FleetIdentity, leaves: bool) {
        let Some(queue) = self.queue.get() else {
            return;
        };
        self.begin();
        let demand = queue.demand();
        if leaves || !demand.is_worth_sharing() {
            if self.has_stated.swap(false, Ordering::Relaxed) {
                queue.obey(Ceilings::default(), Duration::ZERO);
                // It is forgotten by itself, too, somewhat later.
                let counted = demand.counted();
                fleet.pace(caller, counted, demand.ceilings).await.ok();
            }
            return;
        }
        match fleet.pace(caller, demand.wanted(), demand.ceilings).await {
            Ok((share, again)) => {
                self.has_stated.store(true, Ordering::Relaxed);
                queue.obey(share, again + GRACE);
                *self.again.lock() = Some(again);
                *self.trouble.lock() = None;
            }
            Err(trouble) => self.report(&trouble),
        }
    }

    /// Once for each reason.
    fn report(&self, trouble: &FleetError) {
        let trouble = match trouble {
            FleetError::NoSchema => {
                "the fleet's schema is older: run `bursar fleet schema | psql -d DATABASE` once more".to_owned()
            }
            other => other.to_string(),
        };
        let mut reported = self.trouble.lock();
        if reported.as_ref() != Some(&trouble) {
            tracing::warn!(
                trouble,
                "the service's ceilings are not shared with the other machines; its 429s alone hold requests back"
            );
            *reported = Some(trouble);
        }
    }
}

#[cfg(test)]
mod tests;
