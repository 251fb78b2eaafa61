//! Label values that come from outside, held to a closed size. A label set that grows with what
//! requests contain would grow this process, Prometheus, and the bill for both (rule I11).
//!
//! Promise: the first so many well-formed values keep their names, and as many again that are named before they were
//! seen; everything after is `other`, and stays it.

use std::collections::HashSet;

use parking_lot::RwLock;

/// What stands for every value past the limit.
pub const OTHER: &str = "other";

/// Longest label value, in bytes.
const VALUE_BYTES_MAX: usize = 64;

/// Values past the limit that are remembered; where there are more, no value gets a name later than the first ones.
const OTHERS_MAX: usize = 1024;

/// The values that have been given a name of their own.
#[derive(Debug)]
pub struct FirstSeen {
    values_max: usize,
    held: RwLock<SeenValues>,
}

#[derive(Debug, Default)]
struct SeenValues {
    named: HashSet<String>,
    /// They were `other` once, and stay it: what was counted there may not leave it (rule I10).
    others: HashSet<String>,
}

// === impl FirstSeen ===

impl FirstSeen {
    pub fn new(values_max: usize) -> Self {
        Self {
            values_max,
            held: RwLock::default(),
        }
    }

    /// `value` itself while there is room for it, else `other`.
    pub fn hold<'a>(&self, value: &'a str) -> &'a str {
        let held = self.held.read();
        if held.named.contains(value) {
            return value;
        }
        if held.others.contains(value) || !is_well_formed(value) {
            return OTHER;
        }
        drop(held);
        let mut held = self.held.write();
        if held.named.contains(value) {
            return value;
        }
        if held.named.len() < self.values_max {
            held.named.insert(value.to_owned());
            return value;
        }
        if held.others.len() < OTHERS_MAX {
            held.others.insert(value.to_owned());
        }
        OTHER
    }

    /// Gives names to values that matter more than whatever came first: beside those there is room for as many again.
    pub fn name<'a>(&self, values: impl IntoIterator<Item = &'a str>) {
        let mut held = self.held.write();
        for value in values {
            let may_be_other = held.others.len() >= OTHERS_MAX || held.others.contains(value);
            if !may_be_other && is_well_formed(value) && held.named.len() < 2 * self.values_max {
                held.named.insert(value.to_owned());
            }
        }
    }
}

/// Printable ASCII without quotes and backslashes, not empty, not long.
fn is_well_formed(value: &str) -> bool {
    !value.is_empty()
        && value.len() <= VALUE_BYTES_MAX
        && value
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

#[cfg(test)]
mod tests;
