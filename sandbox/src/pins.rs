//! Route pins: consecutive turns of a conversation keep their route.
//!
//! Interface, X-Service-Session: "pins the conversation's route so consecutive turns do not re-derive routing
//! and an escalation can stick; without it the pin key derives from organization + system prompt + tool-schema
//! names; pins expire after about 30 minutes idle". "A conversation that escalates repeatedly pins to the
//! frontier route." Assumed (pin-escalations): repeatedly is twice.
//! Promise: at most 10,000 pins; the idle ones go first.

use crate::{
    clock::Clock,
    models::{Pinned, Served},
    spec,
};
use parking_lot::Mutex;
use std::{collections::HashMap, time::Duration};

const PINS_MAX: usize = 10_000;
const ESCALATIONS_TO_PIN: u32 = 2;

#[derive(Debug)]
pub struct Pins {
    clock: Clock,
    pins: Mutex<HashMap<PinKey, Pin>>,
}

/// A session named by the client, or what a conversation has in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PinKey {
    Session { org: String, session: String },
    Derived { org: String, basis: Vec<String> },
}

#[derive(Clone, Copy, Debug)]
struct Pin {
    used: Duration,
    route: Pinned,
    escalations: u32,
}

// === impl Pins ===

impl Pins {
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            pins: Mutex::new(HashMap::new()),
        }
    }

    pub fn route(&self, key: &PinKey) -> Pinned {
        let now = self.clock.elapsed();
        let pins = self.pins.lock();
        pins.get(key)
            .filter(|pin| !pin.expired(now))
            .map_or_else(Pinned::default, |pin| pin.route)
    }

    pub fn remember(&self, key: PinKey, served: &Served) {
        let now = self.clock.elapsed();
        let mut pins = self.pins.lock();
        if pins.len() >= PINS_MAX {
            pins.retain(|_, pin| !pin.expired(now));
        }
        if pins.len() >= PINS_MAX {
            return;
        }
        let pin = pins.entry(key).or_insert(Pin {
            used: now,
            route: Pinned::default(),
            escalations: 0,
        });
        if pin.expired(now) {
            pin.route = Pinned::default();
            pin.escalations = 0;
        }
        pin.used = now;
        pin.route.category = served.specialist.or(pin.route.category);
        pin.escalations += u32::from(served.escalated);
        pin.route.frontier = pin.escalations >= ESCALATIONS_TO_PIN;
    }
}

impl Pin {
    fn expired(&self, now: Duration) -> bool {
        now.saturating_sub(self.used) >= Duration::from_secs(spec::PIN_IDLE_S)
    }
}
