//! Route pins: consecutive turns of a conversation keep their route.
//!
//! Interface, X-Service-Session: "pins the conversation's route so consecutive turns do not re-derive routing
//! and an escalation can stick; without it the pin key derives from organization + system prompt + tool-schema
//! names; pins expire after about 30 minutes idle". "A conversation that escalates repeatedly pins to the
//! frontier route." Assumed (pin-escalations): repeatedly is twice.
//! Promise: at most 10,000 pins, and the one that is idle longest is dropped first; a pin holds no prompt.

use crate::{
    clock::Clock,
    fingerprint::hex,
    keep::{Keep, Mutation, PINS},
    models::{Category, Pinned},
    spec,
};
use parking_lot::Mutex;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, time::Duration};

const PINS_MAX: usize = 10_000;
const ESCALATIONS_TO_PIN: u32 = 2;

#[derive(Debug)]
pub struct Pins {
    clock: Clock,
    pins: Mutex<HashMap<PinKey, Pin>>,
    keep: Keep,
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

/// A route pin on disk.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeptPin {
    key: PinKey,
    pin: Pin,
}

// === impl Pins ===

impl Pins {
    /// The pins of an earlier process; changes are written to the same place. A conversation keeps
    /// its route over a restart, for the rest of its 30 idle minutes.
    pub fn kept(clock: Clock, keep: Keep, rows: Vec<KeptPin>) -> Self {
        let now = clock.elapsed();
        let mut pins = HashMap::new();
        for KeptPin { key, pin } in rows {
            if pin.expired(now) {
                keep.push([gone(&key)]);
            } else {
                pins.insert(key, pin);
            }
        }
        Self {
            clock,
            pins: Mutex::new(pins),
            keep,
        }
    }

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
                    self.keep.push([gone(&idlest)]);
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
            self.keep.push(change(&key, pin));
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
        let mut hash = Context::new(&SHA256);
        for part in [kind, org.as_bytes()].iter().chain(parts) {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(crate::fingerprint::finish(hash))
    }
}

impl Pin {
    fn expired(&self, now: Duration) -> bool {
        now.saturating_sub(self.used) >= Duration::from_secs(spec::PIN_IDLE_S)
    }
}

fn row_id(key: &PinKey) -> String {
    hex(&key.0)
}

/// The conversation has no route any more.
fn gone(key: &PinKey) -> Mutation {
    Mutation::Remove(PINS, row_id(key))
}

fn change(key: &PinKey, pin: &Pin) -> Option<Mutation> {
    let kept = KeptPin {
        key: *key,
        pin: *pin,
    };
    Mutation::put(PINS, row_id(key), &kept)
}

#[cfg(test)]
mod tests;
