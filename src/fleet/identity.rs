//! What this ledger is called in the fleet, and the secret that shows that it is the caller: `fleet.json` in the state
//! directory.
//!
//! Why: the name is apart from the ledger's own, so that a copy can take another one while no local sum changes
//! (rule I10).
//!
//! Promise: written whole or not at all, 0600, with a checksum. A damaged file is an error: a new name would ship
//! everything a second time.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ledger::LedgerError;
use crate::ledger::record::{sealed, unsealed};
use crate::ledger::state_dir::Directory;

const FILE: &str = "fleet.json";
const START: &[u8] = br#"{"kind":"fleet""#;
const FORMAT: u32 = 1;

/// The ledger that calls. Its secret is in no text of this type.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetIdentity {
    format: u32,
    #[serde(with = "named_text")]
    pub ledger: Uuid,
    #[serde(with = "hexadecimal")]
    secret: [u8; 32],
    /// The fleet may not know it yet: it is a copy of that one, up to a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub becomes: Option<Box<Becoming>>,
}

/// A name that a copy is taking: until the database has confirmed it, it may be asked for again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Becoming {
    #[serde(with = "named_text")]
    pub ledger: Uuid,
    #[serde(with = "hexadecimal")]
    secret: [u8; 32],
    /// The last line that both have.
    pub common_seq: u64,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error(
        "fleet.json cannot be read; restore it from a backup of the state directory, or join with a new code \
         (docs/runbook.md, \"A name that is gone\")"
    )]
    Damaged,
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("the system gives no random bytes: {0}")]
    NoRandomness(String),
    #[error("it cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

mod named_text {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use uuid::Uuid;

    pub fn serialize<S: Serializer>(name: &Uuid, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(name)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Uuid, D::Error> {
        Uuid::try_parse(&String::deserialize(from)?).map_err(de::Error::custom)
    }
}

mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::ledger::fingerprint::unhex;

    pub fn serialize<S: Serializer>(secret: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
        let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        to.serialize_str(&digits)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 32], D::Error> {
        unhex(&String::deserialize(from)?).ok_or_else(|| de::Error::custom("not 64 hex digits"))
    }
}

// === impl FleetIdentity ===

impl FleetIdentity {
    /// A name of its own and a secret, not stored yet.
    pub fn new() -> Result<Self, IdentityError> {
        let (ledger, secret) = (random()?, random()?);
        Ok(Self {
            format: FORMAT,
            ledger: named(ledger),
            secret,
            becomes: None,
        })
    }

    /// The stored one; `None`: this ledger is in no fleet.
    pub fn read(state: &Directory) -> Result<Option<Self>, IdentityError> {
        let Some(text) = state.read(FILE)? else {
            return Ok(None);
        };
        let found: Option<Self> = unsealed(START, text.as_bytes());
        let found = found.filter(|found| found.format == FORMAT);
        found.map(Some).ok_or(IdentityError::Damaged)
    }

    pub fn store(&self, state: &Directory) -> Result<(), IdentityError> {
        state.replace(FILE, &sealed(START, self)?)?;
        Ok(())
    }

    pub fn secret(&self) -> &[u8] {
        &self.secret
    }

    /// The same with another name that it is taking.
    pub fn becoming(mut self, common_seq: u64) -> Result<Self, IdentityError> {
        let (ledger, secret) = (random()?, random()?);
        self.becomes = Some(Box::new(Becoming {
            ledger: named(ledger),
            secret,
            common_seq,
        }));
        Ok(self)
    }

    /// The same without a name that it is taking.
    pub fn as_it_is(mut self) -> Self {
        self.becomes = None;
        self
    }

    /// The name that it has taken.
    pub fn become_it(&self) -> Option<Self> {
        let becoming = self.becomes.as_ref()?;
        Some(Self {
            format: FORMAT,
            ledger: becoming.ledger,
            secret: becoming.secret,
            becomes: None,
        })
    }
}

// === impl Becoming ===

impl Becoming {
    pub fn secret(&self) -> &[u8] {
        &self.secret
    }
}

fn named(bits: [u8; 32]) -> Uuid {
    let mut name = [0; 16];
    name.copy_from_slice(bits.first_chunk::<16>().unwrap_or(&[0; 16]));
    uuid::Builder::from_random_bytes(name).into_uuid()
}

fn random() -> Result<[u8; 32], IdentityError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| IdentityError::NoRandomness(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
