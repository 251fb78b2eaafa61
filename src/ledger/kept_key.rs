//! An Idempotency-Key as the ledger keeps it, in the journal, in memory and in the index. The service
//! scopes keys to the organization and binds them to one request, so both belong to it.
//!
//! Promise: a key that an app makes up is never taken for a hash, for another organization's key, or for a
//! key that bursar minted; no organization's key can be derived from what stands here.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::ledger::fingerprint::{Fingerprint, unhex};
use crate::ledger::id::EntryId;
use crate::ledger::shared_text;

/// How long the service binds a key ("idempotent replay window | 24 hours").
///
/// Assumed: counted from the key's first use, also where that failed. If the service counts from a later one,
/// a repeat is in doubt; the other way round a purchase would be taken for a repeat.
pub const EPOCH_MS: u64 = 24 * 60 * 60 * 1000;

/// Longest key that is kept as it is, in characters. An app may send tens of kilobytes.
const KEY_CHARS_MAX: usize = 256;

/// What an older bursar wrote before the hash of a long key, in the place of the key.
const OLD_HASH_START: &str = "h:";

/// The side that chose the Idempotency-Key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyOrigin {
    /// bursar minted it for this request.
    Minted,
    /// The app sent its own.
    App,
    /// Taken over from an undelivered equal request.
    Adopted { from: EntryId },
}

/// An Idempotency-Key as it goes to the service, and its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryKey {
    #[serde(with = "shared_text")]
    pub value: Arc<str>,
    pub origin: KeyOrigin,
}

/// A key with what makes it this key and no other (rule I3). What goes to the service is the
/// [`EntryKey`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "KeptKeyRow")]
pub struct KeptKey {
    pub form: KeyForm,
    pub origin: KeyOrigin,
    /// Absent on lines of an older bursar.
    pub organization: Option<Organization>,
    /// The request as the service compares it. Only of an app's own key: another goes with one request
    /// alone. Absent on lines of an older bursar.
    pub request: Option<Fingerprint>,
    /// The app's request before it was translated. Only of an app's own key on a translated route.
    pub asked: Option<Fingerprint>,
}

/// How a key stands in the ledger: two members of different names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyForm {
    /// Up to 256 characters: as it is.
    Text(Arc<str>),
    /// A longer one.
    Hash(Fingerprint),
}

/// The service's customer: a short keyed hash of the service's address and of the organization's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Organization(pub u64);

/// Half of a keyed hash: short, because millions are held at once, and 128 bits all the same, because
/// equality decides about money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ShortHash(pub [u8; 16]);

/// What a person has of a key, in the forms in which it may stand in a line.
#[derive(Clone, Debug)]
pub struct SoughtKey {
    /// As it is. `None`: it is longer than any that is kept so.
    pub text: Option<String>,
    /// Of a long key its hash; of a hash that was shown, that.
    pub hash: Option<Fingerprint>,
    /// What an older bursar wrote for a long key.
    pub old: Option<String>,
}

/// The members of a key in a line, as they are read.
#[derive(Deserialize)]
struct KeptKeyRow {
    value: Option<String>,
    hash: Option<Fingerprint>,
    origin: KeyOrigin,
    organization: Option<Organization>,
    request: Option<Fingerprint>,
    asked: Option<Fingerprint>,
}

/// The same as they are written.
#[derive(Serialize)]
struct WrittenKey<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<Fingerprint>,
    origin: KeyOrigin,
    #[serde(skip_serializing_if = "Option::is_none")]
    organization: Option<Organization>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Fingerprint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<Fingerprint>,
}

// === impl KeptKey ===

impl KeptKey {
    /// `request`: asked for where it is an app's own key.
    pub fn new(
        secret: &[u8; 32],
        key: &EntryKey,
        organization: Organization,
        request: impl FnOnce() -> Fingerprint,
    ) -> Self {
        let is_own = key.origin == KeyOrigin::App;
        Self {
            form: KeyForm::of(secret, &key.value),
            origin: key.origin,
            organization: Some(organization),
            request: is_own.then(request),
            asked: None,
        }
    }

    /// As it goes to the service. `None` for a long key, whose text is not kept.
    pub fn sent(&self) -> Option<EntryKey> {
        Some(EntryKey {
            value: Arc::clone(self.form.text()?),
            origin: self.origin,
        })
    }

    /// Whether both stand for one key, whatever was asked under it. On lines of an older bursar no
    /// organization stands.
    pub fn is_same_key(&self, other: &Self) -> bool {
        let one = match (self.organization, other.organization) {
            (Some(own), Some(others)) => own == others,
            (None, _) | (_, None) => true,
        };
        one && self.form == other.form
    }

    /// Of the key alone, whatever organization it was sent for.
    pub fn id(&self, secret: &[u8; 32]) -> ShortHash {
        let old_hash = match &self.form {
            KeyForm::Text(text) if self.organization.is_none() && self.origin == KeyOrigin::App => {
                let unkeyed = text.strip_prefix(OLD_HASH_START).and_then(unhex);
                unkeyed.map(|unkeyed| hash_of(secret, &unkeyed))
            }
            _ => None,
        };
        let mut hasher = blake3::Hasher::new_keyed(secret);
        hasher.update(b"key");
        let form = old_hash.map(KeyForm::Hash);
        match form.as_ref().unwrap_or(&self.form) {
            KeyForm::Hash(hash) => {
                hasher.update(b"h");
                hasher.update(&hash.0);
            }
            KeyForm::Text(text) => {
                hasher.update(b"t");
                hasher.update(text.as_bytes());
            }
        }
        ShortHash::of(hasher.finalize().as_bytes())
    }
}

impl TryFrom<KeptKeyRow> for KeptKey {
    type Error = &'static str;

    fn try_from(row: KeptKeyRow) -> Result<Self, Self::Error> {
        let form = match (row.value, row.hash) {
            (Some(value), None) => KeyForm::Text(value.into()),
            (None, Some(hash)) => KeyForm::Hash(hash),
            _ => return Err("a key is either a value or a hash"),
        };
        Ok(Self {
            form,
            origin: row.origin,
            organization: row.organization,
            request: row.request,
            asked: row.asked,
        })
    }
}

impl Serialize for KeptKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let written = WrittenKey {
            value: self.form.text().map(|text| &**text),
            hash: self.form.hash(),
            origin: self.origin,
            organization: self.organization,
            request: self.request,
            asked: self.asked,
        };
        written.serialize(to)
    }
}

// === impl KeyForm ===

impl KeyForm {
    pub fn of(secret: &[u8; 32], key: &str) -> Self {
        if is_long(key) {
            Self::Hash(hash_of(secret, blake3::hash(key.as_bytes()).as_bytes()))
        } else {
            Self::Text(Arc::from(key))
        }
    }

    pub fn text(&self) -> Option<&Arc<str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Hash(_) => None,
        }
    }

    pub fn hash(&self) -> Option<Fingerprint> {
        match self {
            Self::Text(_) => None,
            Self::Hash(hash) => Some(*hash),
        }
    }
}

// === impl SoughtKey ===

impl SoughtKey {
    pub fn of(secret: &[u8; 32], text: &str) -> Self {
        if is_long(text) {
            let unkeyed = Fingerprint(*blake3::hash(text.as_bytes()).as_bytes());
            return Self {
                text: None,
                hash: Some(hash_of(secret, &unkeyed.0)),
                old: Some(format!("{OLD_HASH_START}{unkeyed}")),
            };
        }
        Self {
            text: Some(text.to_owned()),
            hash: unhex(text).map(Fingerprint),
            old: None,
        }
    }

    /// What to look for. A hit counts only where [`Self::is`] confirms it.
    pub fn forms(&self) -> impl Iterator<Item = KeyForm> {
        let texts = self.text.iter().chain(&self.old);
        let texts = texts.map(|text| KeyForm::Text(text.as_str().into()));
        texts.chain(self.hash.map(KeyForm::Hash))
    }

    pub fn is(&self, key: &KeptKey) -> bool {
        match &key.form {
            KeyForm::Hash(hash) => self.hash == Some(*hash),
            KeyForm::Text(text) => {
                let is = |sought: &Option<String>| sought.as_deref() == Some(text);
                is(&self.text) || (is(&self.old) && key.organization.is_none())
            }
        }
    }
}

// === impl Organization ===

impl Organization {
    pub fn of(secret: &[u8; 32], address: &str, key: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_keyed(secret);
        hasher.update(b"organization ");
        hasher.update(address.as_bytes());
        // No address holds it.
        hasher.update(b"\0");
        hasher.update(key);
        let mut number = [0; 8];
        hasher.finalize_xof().fill(&mut number);
        Self(u64::from_be_bytes(number))
    }
}

impl Serialize for Organization {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{:016x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Organization {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        u64::from_str_radix(&String::deserialize(from)?, 16)
            .map(Self)
            .map_err(|_| de::Error::custom("not 16 hex digits"))
    }
}

// === impl ShortHash ===

impl ShortHash {
    pub fn of(hash: &[u8; 32]) -> Self {
        let mut short = [0; 16];
        short.copy_from_slice(hash.first_chunk::<16>().unwrap_or(&[0; 16]));
        Self(short)
    }
}

fn is_long(key: &str) -> bool {
    key.chars().nth(KEY_CHARS_MAX).is_some()
}

/// A long key's hash in the ledger, from its BLAKE3: what an older bursar wrote leads there too.
fn hash_of(secret: &[u8; 32], unkeyed: &[u8; 32]) -> Fingerprint {
    let mut hasher = blake3::Hasher::new_keyed(secret);
    hasher.update(b"long key");
    hasher.update(unkeyed);
    Fingerprint(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests;
