//! `X-Bursar-Tags: customer=acme,feature=rag`: what an app wants its spending summed by.
//!
//! Promise: a key is fit for a metric's name and a column, and one of those that the app declared; a value is
//! printable ASCII, kept as it was sent; what has another form is an error that names what is wrong, and
//! repeats no value.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// Most tags of one request.
pub const TAGS_MAX: usize = 4;

/// Longest value of a tag or of a user, in bytes.
pub const VALUE_BYTES_MAX: usize = 64;

const KEY_BYTES_MAX: usize = 32;

/// The name of a tag: `[a-z][a-z0-9_]{0,31}`.
#[derive(Clone, Copy)]
pub struct TagKey {
    text: [u8; KEY_BYTES_MAX],
    bytes: usize,
}

/// A request's tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tags(BTreeMap<TagKey, String>);

/// A text that is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the key of a tag is 1 to {KEY_BYTES_MAX} characters a-z, 0-9 or underscore, the first a letter"
)]
pub struct TagKeyError;

/// What is wrong with the tags of a request. Keys that are shown have the form of one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TagsError {
    #[error("there are more than {TAGS_MAX} tags")]
    TooMany,
    #[error("tag {0} is not KEY=VALUE")]
    NoPair(usize),
    #[error(
        "the key of tag {0} is not 1 to {KEY_BYTES_MAX} characters a-z, 0-9 or underscore, the first a letter"
    )]
    Key(usize),
    #[error("the key {0} stands twice")]
    Twice(TagKey),
    #[error("the app does not declare the key {0} ([[app]] tags)")]
    Undeclared(TagKey),
    #[error("the value of {0} is not 1 to {VALUE_BYTES_MAX} printable ASCII characters")]
    Value(TagKey),
}

/// Whether a text may be the value of a tag or of a user.
pub fn is_value(text: &str) -> bool {
    let is_printable = |byte: u8| (0x20..=0x7e).contains(&byte);
    (1..=VALUE_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_printable)
}

// === impl TagKey ===

impl TagKey {
    pub fn as_str(&self) -> &str {
        let text = self.text.get(..self.bytes).unwrap_or_default();
        // It was made of ASCII.
        std::str::from_utf8(text).unwrap_or_default()
    }
}

impl FromStr for TagKey {
    type Err = TagKeyError;

    fn from_str(text: &str) -> Result<Self, TagKeyError> {
        let mut key = Self {
            text: [0; KEY_BYTES_MAX],
            bytes: text.len(),
        };
        let is_of_key =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let is_key = text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.bytes().all(is_of_key);
        let place = key.text.get_mut(..text.len()).filter(|_| is_key);
        place.ok_or(TagKeyError)?.copy_from_slice(text.as_bytes());
        Ok(key)
    }
}

impl fmt::Display for TagKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for TagKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TagKey({self})")
    }
}

impl PartialEq for TagKey {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for TagKey {}

impl Hash for TagKey {
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.as_str().hash(to);
    }
}

impl Ord for TagKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl PartialOrd for TagKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Serialize for TagKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for TagKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?
            .parse()
            .map_err(de::Error::custom)
    }
}

// === impl Tags ===

impl Tags {
    /// The tags of a header's value, which is printable ASCII. Empty members of the list count as absent.
    pub fn parse(value: &str, declared: &[TagKey]) -> Result<Self, TagsError> {
        let mut tags = BTreeMap::new();
        let members = value.split(',').map(str::trim);
        for (at, member) in members.filter(|member| !member.is_empty()).enumerate() {
            if at == TAGS_MAX {
                return Err(TagsError::TooMany);
            }
            let number = at + 1;
            let (key, value) = member.split_once('=').ok_or(TagsError::NoPair(number))?;
            let key: TagKey = key.trim().parse().map_err(|_| TagsError::Key(number))?;
            if !declared.contains(&key) {
                return Err(TagsError::Undeclared(key));
            }
            let value = value.trim();
            if !is_value(value) {
                return Err(TagsError::Value(key));
            }
            if tags.insert(key, value.to_owned()).is_some() {
                return Err(TagsError::Twice(key));
            }
        }
        Ok(Self(tags))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, key: TagKey) -> Option<&str> {
        self.0.get(&key).map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (TagKey, &str)> {
        self.0.iter().map(|(key, value)| (*key, value.as_str()))
    }
}

/// As the header has them.
impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (key, value)) in self.iter().enumerate() {
            let before = if at == 0 { "" } else { "," };
            write!(f, "{before}{key}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
