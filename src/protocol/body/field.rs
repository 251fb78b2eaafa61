//! Values of single JSON fields, read leniently: a field of an unexpected type counts as missing,
//! and the rest of the body is still read.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::money::MicroUsd;
use crate::protocol::{Reported, Usage};

/// Most digits of a count. Every count below 10^15 is exact wherever it goes from here.
const COUNT_DIGITS_MAX: usize = 15;

/// Visits the members of an object whose keys are wanted, and skips the others.
struct WantedMembers<W, T> {
    is_wanted: W,
    take: T,
}

/// Judges a key while it is parsed, so that only a wanted key with escapes is copied.
struct WantedKey<'a, W>(&'a W);

/// Hands each member of the JSON object `json` whose key is wanted to `take`; a key that occurs twice comes
/// twice. `false`: `json` is not one complete object, and what was handed over is part of none.
pub(super) fn members<'de>(
    json: &'de [u8],
    is_wanted: impl Fn(&str) -> bool,
    take: impl FnMut(&str, &'de RawValue),
) -> bool {
    let mut json = serde_json::Deserializer::from_slice(json);
    let visitor = WantedMembers { is_wanted, take };
    json.deserialize_map(visitor).is_ok() && json.end().is_ok()
}

/// The same for a `T` that starts empty. `None`: `json` is not one complete object.
pub(super) fn read_object<'de, T: Default>(
    json: &'de [u8],
    wanted: &[&str],
    mut take: impl FnMut(&mut T, &str, &'de RawValue),
) -> Option<T> {
    let mut object = T::default();
    let is_wanted = |key: &str| wanted.contains(&key);
    members(json, is_wanted, |key, value| take(&mut object, key, value)).then_some(object)
}

// === impl WantedMembers ===

impl<'de, W: Fn(&str) -> bool, T: FnMut(&str, &'de RawValue)> Visitor<'de> for WantedMembers<W, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(WantedKey(&self.is_wanted))? {
            match key {
                Some(key) => (self.take)(&key, map.next_value::<&RawValue>()?),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

// === impl WantedKey ===

impl<'de, W: Fn(&str) -> bool> DeserializeSeed<'de> for WantedKey<'_, W> {
    type Value = Option<Cow<'de, str>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, W: Fn(&str) -> bool> Visitor<'de> for WantedKey<'_, W> {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: de::Error>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok((self.0)(key).then_some(Cow::Borrowed(key)))
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok((self.0)(key).then(|| Cow::Owned(key.to_owned())))
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
fn count(value: &RawValue) -> Option<u64> {
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

/// Token counts of a `usage` object.
pub(super) fn usage(value: &RawValue) -> Option<Usage> {
    let wanted = ["prompt_tokens", "completion_tokens", "total_tokens"];
    read_object::<Usage>(value.get().as_bytes(), &wanted, |usage, key, value| {
        let to = match key {
            "prompt_tokens" => &mut usage.prompt_tokens,
            "completion_tokens" => &mut usage.completion_tokens,
            _ => &mut usage.total_tokens,
        };
        *to = count(value);
    })
}
