//! The leases that an entry spends: parts of the fleet's shared caps that this ledger was given (docs/fleet.md).
//!
//! Why here: a start has to know what of a lease is spent, so an intent names its leases, and so does each later line
//! of its entry.
//!
//! Promise: an entry without a lease has no member for it, so its lines are those of a bursar without leases.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use uuid::Uuid;

/// One ledger's part of one shared cap in one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub Uuid);

/// All that an entry spends. Shared by those that name the same; a single word, for many entries wait in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leases(Option<Arc<Vec<LeaseId>>>);

// === impl LeaseId ===

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for LeaseId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::try_parse(text).map(Self)
    }
}

impl Serialize for LeaseId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LeaseId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?
            .parse()
            .map_err(|_| de::Error::custom("not a UUID"))
    }
}

// === impl Leases ===

impl Leases {
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub fn iter(&self) -> impl Iterator<Item = LeaseId> {
        self.0.iter().flat_map(|leases| leases.iter().copied())
    }

    pub fn contains(&self, lease: LeaseId) -> bool {
        self.iter().any(|one| one == lease)
    }
}

impl FromIterator<LeaseId> for Leases {
    fn from_iter<I: IntoIterator<Item = LeaseId>>(leases: I) -> Self {
        let leases: Vec<LeaseId> = leases.into_iter().collect();
        Self((!leases.is_empty()).then(|| Arc::new(leases)))
    }
}

impl Serialize for Leases {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Leases {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let leases = Vec::<LeaseId>::deserialize(from)?;
        Ok(leases.into_iter().collect())
    }
}
