//! Fingerprints of requests, to recognise an app's own retry (see proxy/claim). Keyed with a
//! secret of this ledger, so that a reader of the disk learns nothing about prompts.
//!
//! Promise: two requests have one fingerprint only if every part is equal. Each part is preceded by
//! its length, so no bytes can move from one part to the next. Compared as the service compares two
//! requests of one key, JSON bodies that differ in the order of members and in white space are equal.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::protocol::Dialect;
use crate::protocol::body::hash_json;

/// BLAKE3 of a request (method, path and query, body, `X-Service-Session`, `X-Service-RTE-Query`) or of
/// a long key, keyed with a secret of this ledger, so that the disk reveals nothing about prompts.
/// Lower-case hex in the journal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// What makes two requests the same purchase.
#[derive(Clone, Copy, Debug)]
pub struct FingerprintParts<'a> {
    pub method: &'a str,
    pub path_and_query: &'a str,
    /// The exact body bytes.
    pub body: &'a [u8],
    /// `X-Service-Session`.
    pub session: Option<&'a [u8]>,
    /// `X-Service-RTE-Query`.
    pub rte_query: Option<&'a [u8]>,
    /// What the app is given: the same body may be sent for other answers.
    pub given_as: GivenAs,
}

/// What an app is given of the service's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GivenAs {
    /// The answer as it comes.
    #[default]
    Served,
    /// A stream that is made here of a whole turn.
    MadeStream,
    /// The answer as it is made for this dialect, as a document or as events: one purchase. Beside it the hash of
    /// what the answer takes from the request and the service is not sent.
    Rendered(Dialect, [u8; 32]),
}

/// A request's hash while its body arrives: all parts, and of the body what came so far.
pub struct ArrivingHash(Box<blake3::Hasher>);

// === impl Fingerprint ===

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from(self.0).to_hex())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        unhex(&text)
            .map(Self)
            .ok_or_else(|| de::Error::custom("not 64 hex digits"))
    }
}

// === impl FingerprintParts ===

impl FingerprintParts<'_> {
    pub(crate) fn hash(&self, secret: &[u8; 32]) -> Fingerprint {
        let mut hasher = self.whole(secret, self.body);
        self.given_as.ends(&mut hasher);
        finish(&hasher)
    }

    /// The request as the service compares it under one key, whatever the app gets of the answer. Another
    /// number than [`Self::hash`].
    pub(crate) fn hash_as_compared(&self, secret: &[u8; 32]) -> Fingerprint {
        let (mut hasher, end) = match hash_json(secret, self.body) {
            Some(json) => (self.whole(secret, &json), 3),
            None => (self.whole(secret, self.body), 4),
        };
        finish(hasher.update(&[end]))
    }

    /// Of a body of so many bytes that is still to come; `body` is none of it.
    pub(crate) fn begin(&self, secret: &[u8; 32], body_bytes: usize) -> ArrivingHash {
        ArrivingHash(Box::new(self.before_body(secret, body_bytes)))
    }

    fn whole(&self, secret: &[u8; 32], body: &[u8]) -> blake3::Hasher {
        let mut hasher = self.before_body(secret, body.len());
        hasher.update(body);
        hasher
    }

    fn before_body(&self, secret: &[u8; 32], body_bytes: usize) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(secret);
        let parts = [
            Some(self.method.as_bytes()),
            Some(self.path_and_query.as_bytes()),
            self.session,
            self.rte_query,
        ];
        for part in parts {
            // An absent header and an empty one are two things.
            begin_part(&mut hasher, part.is_some(), part.map_or(0, <[u8]>::len));
            hasher.update(part.unwrap_or_default());
        }
        begin_part(&mut hasher, true, body_bytes);
        hasher
    }
}

fn begin_part(hasher: &mut blake3::Hasher, is_there: bool, bytes: usize) {
    hasher.update(&[u8::from(is_there)]);
    let length = u64::try_from(bytes).unwrap_or(u64::MAX);
    hasher.update(&length.to_be_bytes());
}

fn finish(hasher: &blake3::Hasher) -> Fingerprint {
    Fingerprint(*hasher.finalize().as_bytes())
}

// === impl GivenAs ===

impl GivenAs {
    /// `turn`: all that the answer takes from the request, so that no app is given what another asked for.
    pub fn rendered(dialect: Dialect, turn: &str) -> Self {
        Self::Rendered(dialect, *blake3::hash(turn.as_bytes()).as_bytes())
    }

    /// What the hash of a request ends with. No part begins so; without it the bytes are those of earlier
    /// releases.
    fn ends(&self, hasher: &mut blake3::Hasher) {
        match self {
            Self::Served => return,
            Self::MadeStream => hasher.update(&[2]),
            Self::Rendered(dialect, turn) => {
                let mark = match dialect {
                    Dialect::Responses => 5,
                    Dialect::Messages => 6,
                    Dialect::Audio => 7,
                    Dialect::Chat => 8,
                };
                hasher.update(&[mark]).update(turn)
            }
        };
    }
}

// === impl ArrivingHash ===

impl ArrivingHash {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Once the body came whole: [`FingerprintParts::hash`] of it.
    pub fn fingerprint(mut self, given_as: GivenAs) -> Fingerprint {
        given_as.ends(&mut self.0);
        finish(&self.0)
    }
}

/// 64 hex digits, either case, as 32 bytes.
pub(crate) fn unhex(text: &str) -> Option<[u8; 32]> {
    let hash = blake3::Hash::from_hex(text).ok()?;
    Some(*hash.as_bytes())
}

#[cfg(test)]
mod tests;
