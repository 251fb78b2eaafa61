//! A route pin on disk.
//!
//! Promise: a conversation keeps its route over a restart, for what is left of its 30 idle minutes.

use super::{Pin, PinKey, Pins};
use crate::{
    clock::Clock,
    idempotency::hex,
    keep::{Change, Keep, PINS},
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Debug, Serialize, Deserialize)]
pub struct KeptPin {
    key: PinKey,
    pin: Pin,
}

fn row_id(key: &PinKey) -> String {
    hex(&key.0)
}

/// The conversation has no route any more.
pub fn gone(key: &PinKey) -> Change {
    Change::Remove(PINS, row_id(key))
}

pub fn change(key: &PinKey, pin: &Pin) -> Option<Change> {
    let kept = KeptPin {
        key: *key,
        pin: *pin,
    };
    Change::put(PINS, row_id(key), &kept)
}

// === impl Pins ===

impl Pins {
    /// The pins of an earlier process, and what becomes of them written to the same place.
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
}
