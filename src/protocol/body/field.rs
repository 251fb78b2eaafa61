//! Values of single JSON fields, read leniently: a field of an unexpected type counts as missing,
//! and the rest of the body is still read.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::money::MicroUsd;
use crate::protocol::{Reported, Usage};

/// Most digits of a count. Every count below 10^15 is exact wherever it goes from here.
const COUNT_DIGITS_MAX: usize = 15;

/// Something that is built from the members of a JSON object, one at a time.
pub(super) trait Members<'de>: Default {
    /// Whether `key` is wanted. The others are skipped.
    fn wants(key: &str) -> bool;

    /// Takes one member whose key is wanted. A key that occurs twice is passed twice.
    fn member(&mut self, key: &str, value: &'de RawValue);
}

/// A JSON object read into `T`.
struct ObjectOf<T>(T);

/// A key, judged while it is parsed, so that only a wanted key is copied.
struct Key<T> {
    wanted: Option<String>,
    members: PhantomData<T>,
}

/// Reads `json` into `T` when it is one complete object.
pub(super) fn read_object<'de, T: Members<'de>>(json: &'de [u8]) -> Option<T> {
    serde_json::from_slice::<ObjectOf<T>>(json)
        .ok()
        .map(|object| object.0)
}

// === impl ObjectOf ===

impl<'de, T: Members<'de>> Deserialize<'de> for ObjectOf<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Members<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = ObjectOf<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = T::default();
                while let Some(key) = map.next_key::<Key<T>>()? {
                    match key.wanted {
                        Some(name) => members.member(&name, map.next_value::<&RawValue>()?),
                        None => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(ObjectOf(members))
            }
        }

        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

// === impl Key ===

impl<'de, T: Members<'de>> Deserialize<'de> for Key<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor<T>(PhantomData<T>);

        impl<'de, T: Members<'de>> Visitor<'de> for KeyVisitor<T> {
            type Value = Key<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E: de::Error>(self, key: &str) -> Result<Self::Value, E> {
                Ok(Key {
                    wanted: T::wants(key).then(|| key.to_owned()),
                    members: PhantomData,
                })
            }
        }

        deserializer.deserialize_str(KeyVisitor(PhantomData))
    }
}

/// A JSON string's text.
pub(super) fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// An amount: `[0-9]{1,15}`. `null` counts as missing; anything else, `1.0` and `"12"` included, is
/// malformed.
pub(super) fn amount(value: &RawValue) -> Reported<MicroUsd> {
    match value.get() {
        "null" => Reported::Absent,
        digits => MicroUsd::parse(digits.as_bytes()).map_or(Reported::Malformed, Reported::Value),
    }
}

/// The same amount twice in one body counts once; two different ones cannot both be true.
pub(super) fn add_amount(amount: &mut Reported<MicroUsd>, again: Reported<MicroUsd>) {
    if amount.is_absent() {
        *amount = again;
    } else if !again.is_absent() && *amount != again {
        *amount = Reported::Malformed;
    }
}

/// A count that is a plain integer.
pub(super) fn count(value: &RawValue) -> Option<u64> {
    let digits = value.get();
    (digits.len() <= COUNT_DIGITS_MAX)
        .then(|| digits.parse().ok())
        .flatten()
}

/// Seconds as a JSON number, in milliseconds, halves rounded up. Exact: the decimal digits are
/// shifted, without a float. `None` for negative numbers and for 10^12 s and more.
pub(super) fn seconds_as_ms(value: &RawValue) -> Option<u64> {
    let number = value.get();
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole.as_bytes(), fraction.as_bytes()].concat();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Number of digits before the point once it has moved by the exponent and to milliseconds.
    let point = i64::try_from(whole.len())
        .ok()?
        .checked_add(exponent)?
        .checked_add(3)?;
    let mut ms = 0u64;
    let mut at = 0i64;
    for digit in &digits {
        let digit = u64::from(digit - b'0');
        if at < point {
            ms = ms.checked_mul(10)?.checked_add(digit)?;
        } else if at == point {
            ms = ms.checked_add(u64::from(digit >= 5))?;
        }
        at += 1;
    }
    while at < point && ms != 0 {
        ms = ms.checked_mul(10)?;
        at += 1;
    }
    (ms < 1_000_000_000_000_000).then_some(ms)
}

// === impl Usage ===

impl<'de> Members<'de> for Usage {
    fn wants(key: &str) -> bool {
        matches!(key, "prompt_tokens" | "completion_tokens" | "total_tokens")
    }

    fn member(&mut self, key: &str, value: &'de RawValue) {
        match key {
            "prompt_tokens" => self.prompt_tokens = count(value),
            "completion_tokens" => self.completion_tokens = count(value),
            "total_tokens" => self.total_tokens = count(value),
            _ => {}
        }
    }
}
