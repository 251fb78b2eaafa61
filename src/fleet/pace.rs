//! Shares the service's ceilings with the other machines of the fleet, while much of them is used.
//!
//! Promise: advice. Whatever the database does, no request waits for it: a share that is not renewed is forgotten, and
//! then answers of 429 alone lower the limits, as on a machine by itself. A machine that uses little asks for nothing.

use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;

use super::answer::FleetError;
use super::database::Fleet;
use super::identity::FleetIdentity;
use crate::ceilings::Shared;

/// A share holds for so long after it was to be renewed.
const GRACE: Duration = Duration::from_secs(35);

/// Asks for this machine's share.
#[derive(Default)]
pub struct Pacer {
    queue: OnceLock<Shared>,
    /// When to ask again; `None`: little is used.
    again: Mutex<Option<Duration>>,
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

    /// How long to wait for the next hello, where it would be `pause` otherwise.
    pub fn pause(&self, pause: Duration) -> Duration {
        self.again.lock().map_or(pause, |again| again.min(pause))
    }

    /// As part of a visit.
    pub async fn visit(&self, fleet: &Fleet, caller: &FleetIdentity) {
        let Some(queue) = self.queue.get() else {
            return;
        };
        let demand = queue.demand();
        if !demand.is_worth_sharing() {
            *self.again.lock() = None;
            return;
        }
        match fleet.pace(caller, demand.wanted(), demand.ceilings).await {
            Ok((share, again)) => {
                queue.obey(share, again + GRACE);
                *self.again.lock() = Some(again);
                *self.trouble.lock() = None;
            }
            Err(trouble) => {
                *self.again.lock() = None;
                self.report(&trouble);
            }
        }
    }

    /// Once for each reason.
    fn report(&self, trouble: &FleetError) {
        let trouble = trouble.to_string();
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
