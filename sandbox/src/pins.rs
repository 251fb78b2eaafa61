//! Route pins: consecutive turns of a conversation keep their route.
//!
//! Interface, X-Service-Session: "pins the conversation's route so consecutive turns do not re-derive routing
//! and an escalation can stick; without it the pin key derives from organization + system prompt + tool-schema
//! names; pins expire after about 30 minutes idle". "A conversation that escalates repeatedly pins to the
//! frontier route." Assumed (pin-escalations): repeatedly is twice.
//! Promise: at most 10,000 pins, and the one that is idle longest goes first; a pin holds no prompt.

mod kept;

pub use kept::KeptPin;

use crate::{
    clock::Clock,
    models::{Category, Pinned},
    spec,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{collections::HashMap, time::Duration};

const PINS_MAX: usize = 10_000;
const ESCALATIONS_TO_PIN: u32 = 2;

#[derive(Debug)]
pub struct Pins {
    clock: Clock,
    pins: Mutex<HashMap<PinKey, Pin>>,
    keep: crate::keep::Keep,
}

/// A session named by the client, or what a conversation has in common; a digest, since a system prompt may be
/// megabytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PinKey([u8; 32]);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Pin {
    used: Duration,
    route: Pinned,
    escalations: u32,
}

// === impl Pins ===

impl Pins {
    pub fn route(&self, key: &PinKey) -> Pinned {
        let now = self.clock.elapsed();
        let pins = self.pins.lock();
        pins.get(key)
            .filter(|pin| !pin.expired(now))
            .map_or_else(Pinned::default, |pin| pin.route)
    }

    /// A turn was served: as `category`, by the specialist or, when it was escalated, by the frontier model.
    pub fn remember(&self, key: PinKey, category: Category, escalated: bool) {
        let now = self.clock.elapsed();
        let mut pins = self.pins.lock();
        if pins.len() >= PINS_MAX && !pins.contains_key(&key) {
            let idlest = pins.iter().min_by_key(|(_, pin)| pin.used);
            if let Some(idlest) = idlest.map(|(key, _)| *key) {
                pins.remove(&idlest);
                if self.keep.is_on() {
                    self.keep.push([kept::gone(&idlest)]);
                }
            }
        }
        let fresh = Pin {
            used: now,
            route: Pinned::default(),
            escalations: 0,
        };
        let pin = pins.entry(key).or_insert(fresh);
        // Interface: a modality change re-routes, so that what was learnt of the other modality is gone.
        let changed = pin
            .route
            .category
            .is_some_and(|before| !before.same_modality(category));
        if pin.expired(now) || changed {
            *pin = fresh;
        }
        pin.used = now;
        pin.route.category = Some(category);
        pin.escalations += u32::from(escalated);
        pin.route.frontier = pin.escalations >= ESCALATIONS_TO_PIN;
        if self.keep.is_on() {
            self.keep.push(kept::change(&key, pin));
        }
    }

    pub fn forget_all(&self) {
        self.pins.lock().clear();
    }
}

// === impl PinKey ===

impl PinKey {
    pub fn session(org: &str, session: &[u8]) -> Self {
        Self::of(b"session", org, &[session])
    }

    /// Interface: "organization + system prompt + tool-schema names".
    pub fn derived(org: &str, basis: &[String]) -> Self {
        let parts: Vec<&[u8]> = basis.iter().map(String::as_bytes).collect();
        Self::of(b"derived", org, &parts)
    }

    fn of(kind: &[u8], org: &str, parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in [kind, org.as_bytes()].iter().chain(parts) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

impl Pin {
    fn expired(&self, now: Duration) -> bool {
        now.saturating_sub(self.used) >= Duration::from_secs(spec::PIN_IDLE_S)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: usize) -> PinKey {
        PinKey::session("org-1", n.to_string().as_bytes())
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_table_gives_up_the_pin_that_is_idle_longest() {
        let clock = Clock::system();
        let pins = Pins::kept(clock.clone(), crate::keep::Keep::off(), Vec::new());
        for n in 0..PINS_MAX {
            pins.remember(key(n), Category::Coding, false);
            clock.advance(Duration::from_millis(1));
        }
        pins.remember(key(0), Category::Coding, false);

        pins.remember(key(PINS_MAX), Category::Coding, false);

        let pinned = |n| pins.route(&key(n)).category.is_some();
        assert_eq!(
            [pinned(0), pinned(1), pinned(2), pinned(PINS_MAX)],
            [true, false, true, true]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_of_modality_forgets_the_escalations() {
        let pins = Pins::kept(Clock::system(), crate::keep::Keep::off(), Vec::new());
        pins.remember(key(1), Category::Coding, true);
        pins.remember(key(1), Category::Vision, true);
        assert!(!pins.route(&key(1)).frontier);

        pins.remember(key(1), Category::Vision, true);
        assert!(pins.route(&key(1)).frontier);
    }

    #[test]
    fn keys_of_other_organizations_and_kinds_differ() {
        let basis = vec!["a".to_owned()];
        let keys = [
            PinKey::session("org-1", b"a"),
            PinKey::session("org-2", b"a"),
            PinKey::derived("org-1", &basis),
            PinKey::derived("org-1", &["a".to_owned(), String::new()]),
        ];
        for (at, key) in keys.iter().enumerate() {
            assert!(keys.iter().skip(at + 1).all(|other| other != key));
        }
    }
}
