//! The trace that a request belongs to: `traceparent` in the form of the W3C's Trace Context.
//!
//! Promise: what has not that form names no trace, and passes to the service as it came all the same.

use std::fmt;

use http::{HeaderMap, HeaderName};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A trace's id: 16 bytes, not all of them 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TraceId(u128);

/// Lengths of a `traceparent`: of version 00, and up to its flags.
const VERSION_00: &str = "00";
const BYTES: usize = 55;

// === impl TraceId ===

impl TraceId {
    /// The trace that a head names. Two of these headers name none.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let value = values.next()?.to_str().ok()?;
        values.next().is_none().then(|| Self::parse(value))?
    }

    /// `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`; a later version may have more behind it.
    fn parse(value: &str) -> Option<Self> {
        let (known, more) = value.split_at_checked(BYTES)?;
        let parts: Vec<&str> = known.split('-').collect();
        let [version, trace, parent, flags] = parts.as_slice() else {
            return None;
        };
        let is_long_enough = [(version, 2), (trace, 32), (parent, 16), (flags, 2)]
            .into_iter()
            .all(|(part, digits)| part.len() == digits && is_hex(part));
        let ends = match *version {
            "ff" => false,
            VERSION_00 => more.is_empty(),
            _ => more.is_empty() || more.starts_with('-'),
        };
        let has_parent = parent.bytes().any(|digit| digit != b'0');
        (is_long_enough && ends && has_parent).then(|| Self::from_hex(trace))?
    }

    fn from_hex(text: &str) -> Option<Self> {
        let is_whole = text.len() == 32 && is_hex(text);
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_whole)?;
        (number != 0).then_some(Self(number))
    }
}

/// Small letters only, as the W3C has it.
fn is_hex(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for TraceId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::from_hex(&text).ok_or_else(|| de::Error::custom("not the id of a trace"))
    }
}

#[cfg(test)]
mod tests;
