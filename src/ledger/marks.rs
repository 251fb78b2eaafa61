//! What an app says of a request for its own accounts: the session it belongs to, the user it is for, its
//! tags.
//!
//! Promise: of a session's id stand here a keyed hash and the last 8 characters, so that a person finds it
//! and a reader of the disk cannot continue it; the hash is of the app and the id, so equal ids of two apps
//! are two sessions. Users and tags stand as they were sent.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::protocol::tags::Tags;

/// How much of a session's id is shown.
const SHOWN_CHARS: usize = 8;

/// The least of a hash that a session is found by, in hex digits; as many are shown.
const HASH_DIGITS_MIN: usize = 8;

/// All of it. At least one of them is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
}

/// A session of an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub hash: SessionHash,
    pub shown: Shown,
}

/// 128 bits of a keyed hash of the app and of the session's id. Lower-case hex in the journal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionHash([u8; 16]);

/// The end of a session's id: printable ASCII.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    text: [u8; SHOWN_CHARS],
    bytes: usize,
}

/// Makes sessions of ids, with the ledger's secret.
#[derive(Clone, Copy, Default)]
pub struct SessionHasher([u8; 32]);

/// What a person has of a session.
#[derive(Clone, Debug)]
pub struct SoughtSession {
    text: String,
    /// `None`: a whole id is not found.
    hasher: Option<SessionHasher>,
}

/// For `#[serde(with = "shared")]`: marks that others share, as an object.
pub mod shared {
    use super::{Arc, Deserialize, Deserializer, Marks, Serialize, Serializer};

    pub fn serialize<S: Serializer>(marks: &Option<Arc<Marks>>, to: S) -> Result<S::Ok, S::Error> {
        marks.as_deref().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<Marks>>, D::Error> {
        Ok(Option::<Marks>::deserialize(from)?.map(Arc::new))
    }
}

// === impl Marks ===

impl Marks {
    /// To be kept; `None`: the app said nothing.
    pub fn into_shared(self) -> Option<Arc<Self>> {
        (self != Self::default()).then(|| Arc::new(self))
    }
}

// === impl SessionHasher ===

impl SessionHasher {
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// `id`: printable ASCII, as the app sent it.
    pub fn session(&self, app: &str, id: &str) -> Session {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(b"session ");
        hasher.update(app.as_bytes());
        // No app's name holds it.
        hasher.update(b"\0");
        hasher.update(id.as_bytes());
        let mut hash = [0; 16];
        hasher.finalize_xof().fill(&mut hash);
        let at = id.len().saturating_sub(SHOWN_CHARS);
        Session {
            hash: SessionHash(hash),
            shown: Shown::new(id.get(at..).unwrap_or_default()).unwrap_or_default(),
        }
    }
}

impl fmt::Debug for SessionHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionHasher")
    }
}

// === impl Session ===

/// `3f0a91c2.7be01d44`: the end of the id, and the beginning of the hash.
impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash = self.hash.to_string();
        let hash = hash.get(..HASH_DIGITS_MIN).unwrap_or(&hash);
        f.pad(&format!("{}.{hash}", self.shown.as_str()))
    }
}

// === impl SessionHash ===

impl fmt::Display for SessionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for SessionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionHash({self})")
    }
}

impl Serialize for SessionHash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SessionHash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let number = u128::from_str_radix(&text, 16).ok();
        let number = number.filter(|_| text.len() == 32);
        number
            .map(|number| Self(number.to_be_bytes()))
            .ok_or_else(|| de::Error::custom("not 32 hex digits"))
    }
}

// === impl Shown ===

impl Shown {
    fn new(text: &str) -> Option<Self> {
        let mut shown = Self {
            text: [0; SHOWN_CHARS],
            bytes: text.len(),
        };
        let place = shown.text.get_mut(..text.len());
        let place = place.filter(|_| text.is_ascii())?;
        place.copy_from_slice(text.as_bytes());
        Some(shown)
    }

    pub fn as_str(&self) -> &str {
        let text = self.text.get(..self.bytes).unwrap_or_default();
        // It was made of ASCII.
        std::str::from_utf8(text).unwrap_or_default()
    }
}

impl Default for Shown {
    fn default() -> Self {
        Self {
            text: [0; SHOWN_CHARS],
            bytes: 0,
        }
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shown({})", self.as_str())
    }
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Shown {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::new(&text).ok_or_else(|| de::Error::custom("not up to 8 characters"))
    }
}

// === impl SoughtSession ===

impl SoughtSession {
    pub fn new(text: &str) -> Self {
        Self {
            text: text.trim().to_owned(),
            hasher: None,
        }
    }

    /// The same, found by its whole id as well.
    #[must_use]
    pub fn keyed(&self, hasher: SessionHasher) -> Self {
        Self {
            hasher: Some(hasher),
            ..self.clone()
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// What a line of such a session holds one of.
    pub fn texts(&self) -> Vec<String> {
        let text = self.text.as_str();
        let ends = text.len().saturating_sub(SHOWN_CHARS);
        let end = text.get(ends..);
        let listed = text.rsplit_once('.').map(|(shown, _)| shown);
        let is_shown = |shown: &&str| !shown.is_empty() && shown.len() <= SHOWN_CHARS;
        let shown = end.into_iter().chain(listed).filter(is_shown);
        let shown = shown.map(|shown| format!("\"shown\":{}", serde_json::Value::from(shown)));
        let is_hash =
            text.len() >= HASH_DIGITS_MIN && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let hash = is_hash.then(|| format!("\"session\":{{\"hash\":\"{text}"));
        shown.chain(hash).collect()
    }

    /// The id that the app sent, its last 8 characters, the session as lists show it, or its hash.
    pub fn is(&self, app: &str, session: &Session) -> bool {
        let text = self.text.as_str();
        let by_id = self.hasher.map(|hasher| hasher.session(app, text).hash);
        by_id == Some(session.hash)
            || session.shown.as_str() == text
            || session.to_string() == text
            || (text.len() >= HASH_DIGITS_MIN && session.hash.to_string().starts_with(text))
    }
}

#[cfg(test)]
mod tests;
