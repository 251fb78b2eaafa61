//! The second table of sums: what was spent for each user and each value of a tag. It stands beside the sums
//! of a quarter hour where entries were compacted; of entries that are still listed it is read from their lines.
//!
//! Promise: each dimension adds up to the sums beside it: what has no value there is the rest. Bounded:
//! [`VALUES_MAX`] values of a day, app and dimension have a name, further ones are [`OTHER`].

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::ledger::marks::Marks;
use crate::ledger::sums::{LineSums, OTHER};
use crate::protocol::tags::TagKey;

/// Most values with a name, of one day, app and dimension.
pub const VALUES_MAX: usize = 200;

/// Most dimensions beside one row: the user, and the keys that an app may declare.
const DIMENSIONS_MAX: usize = 9;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// What an app may sum by. In lines `user` or `tag:KEY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    User,
    Tag(TagKey),
}

/// The sums of some entries, by dimension and value. Entries without a value are in none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tallies(BTreeMap<Dimension, BTreeMap<String, LineSums>>);

/// The values of each day that have a name.
#[derive(Debug, Default)]
pub struct DayValues(HashMap<(u64, Arc<str>, Dimension), HashSet<String>>);

const USER: &str = "user";
const TAG_START: &str = "tag:";

// === impl Dimension ===

impl Dimension {
    pub fn of(self, marks: &Marks) -> Option<&str> {
        match self {
            Self::User => marks.user.as_deref(),
            Self::Tag(key) => marks.tags.get(key),
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str(USER),
            Self::Tag(key) => write!(f, "{TAG_START}{key}"),
        }
    }
}

impl Serialize for Dimension {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Dimension {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let key = text.strip_prefix(TAG_START).map(str::parse);
        match key {
            Some(Ok(key)) => Ok(Self::Tag(key)),
            None if text == USER => Ok(Self::User),
            _ => Err(de::Error::custom("neither a user nor a tag")),
        }
    }
}

// === impl Tallies ===

impl Tallies {
    /// Of one entry that began at a moment, Unix milliseconds.
    pub fn of(
        marks: &Marks,
        app: &Arc<str>,
        at_ms: u64,
        row: &LineSums,
        values: &mut DayValues,
    ) -> Self {
        let tags = marks.tags.iter().map(|(key, _)| Dimension::Tag(key));
        let mut tallies = Self::default();
        for dimension in std::iter::once(Dimension::User).chain(tags) {
            if let Some(value) = dimension.of(marks) {
                let name = values.name(at_ms, app, dimension, value);
                let sums = tallies.0.entry(dimension).or_default();
                sums.insert(name.to_owned(), row.clone());
            }
        }
        tallies
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn merge(&mut self, other: &Self) {
        for (dimension, rows) in &other.0 {
            if self.0.len() >= DIMENSIONS_MAX && !self.0.contains_key(dimension) {
                // They count among those without a value.
                continue;
            }
            let sums = self.0.entry(*dimension).or_default();
            for (value, row) in rows {
                let is_named = value == OTHER || sums.contains_key(value);
                let named = sums.len() - usize::from(sums.contains_key(OTHER));
                let name = match is_named || named < VALUES_MAX {
                    true => value.as_str(),
                    false => OTHER,
                };
                *sums.entry(name.to_owned()).or_default() += row;
            }
        }
    }

    /// The sums of a dimension, by value.
    pub fn get(&self, dimension: Dimension) -> impl Iterator<Item = (&str, &LineSums)> {
        let rows = self.0.get(&dimension).into_iter().flatten();
        rows.map(|(value, row)| (value.as_str(), row))
    }
}

// === impl DayValues ===

impl DayValues {
    /// What a value is called of an entry that began at a moment, Unix milliseconds. Days are of UTC.
    pub fn name<'a>(
        &mut self,
        at_ms: u64,
        app: &Arc<str>,
        dimension: Dimension,
        value: &'a str,
    ) -> &'a str {
        let day = (at_ms / DAY_MS, Arc::clone(app), dimension);
        let named = self.0.entry(day).or_default();
        if !named.contains(value) {
            if named.len() >= VALUES_MAX {
                return OTHER;
            }
            named.insert(value.to_owned());
        }
        value
    }
}

#[cfg(test)]
mod tests;
