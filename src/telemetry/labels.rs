//! Label values that come from outside, held to a closed size. A label set that grows with what
//! requests contain would grow this process, Prometheus, and the bill for both (rule I11).
//!
//! Promise: the first so many well-formed values keep their names, everything after is `other`.

use std::collections::HashSet;

use parking_lot::RwLock;

/// What stands for every value past the limit.
pub const OTHER: &str = "other";

/// Longest label value, in bytes.
const VALUE_BYTES_MAX: usize = 64;

/// The values that have been given a name of their own.
#[derive(Debug)]
pub struct FirstSeen {
    values_max: usize,
    seen: RwLock<HashSet<String>>,
}

// === impl FirstSeen ===

impl FirstSeen {
    pub fn new(values_max: usize) -> Self {
        Self {
            values_max,
            seen: RwLock::new(HashSet::new()),
        }
    }

    /// `value` itself while there is room for it, else `other`.
    pub fn hold<'a>(&self, value: &'a str) -> &'a str {
        if self.seen.read().contains(value) {
            return value;
        }
        if !is_well_formed(value) {
            return OTHER;
        }
        let mut seen = self.seen.write();
        if seen.len() < self.values_max || seen.contains(value) {
            seen.insert(value.to_owned());
            value
        } else {
            OTHER
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
