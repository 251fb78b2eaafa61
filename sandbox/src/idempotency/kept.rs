//! An Idempotency-Key on disk.
//!
//! Promise: after a restart a key has the same meaning: bound to the same request, billed or not, with the
//! same stored answer, for the rest of its 24 hours. A run that was killed leaves no trace here unless it
//! was billed.

use super::stored::Stored;
use crate::{fingerprint::Fingerprint, key_id::KeyId, money::MicroUsd};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Debug, Serialize, Deserialize)]
pub struct KeptBinding {
    org: String,
    key: String,
    fingerprint: [u8; 32],
    /// Absent for what was asked of no endpoint, and in rows of an earlier release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    endpoint_uid: Option<String>,
    pub since: Duration,
    pub billed: Option<MicroUsd>,
    /// `None` for an answer of a kind that is not stored.
    stored: Option<KeptAnswer>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    body_base64: String,
}

// === impl KeptBinding ===

impl KeptBinding {
    pub fn of(
        id: &KeyId,
        fingerprint: &Fingerprint,
        since: Duration,
        billed: Option<MicroUsd>,
        stored: Option<&Stored>,
    ) -> Self {
        Self {
            org: id.org().to_owned(),
            key: id.key().to_owned(),
            fingerprint: fingerprint.bytes(),
            endpoint_uid: fingerprint.endpoint_uid().map(str::to_owned),
            since,
            billed,
            stored: stored.map(KeptAnswer::of),
        }
    }

    pub fn id(&self) -> KeyId {
        KeyId::of_row(self.org.clone(), self.key.clone())
    }

    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_kept(self.fingerprint, self.endpoint_uid.clone())
    }

    /// The stored answer; `None` when there is none or it cannot be read.
    pub fn answer(&self) -> Option<Stored> {
        self.stored.as_ref().and_then(KeptAnswer::read)
    }
}

// === impl KeptAnswer ===

impl KeptAnswer {
    fn of(stored: &Stored) -> Self {
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        Self {
            status: stored.status.as_u16(),
            headers: stored
                .headers
                .iter()
                .map(|(name, value)| (name.to_string(), text(value)))
                .collect(),
            body_base64: STANDARD.encode(&stored.body),
        }
    }

    /// `None` if it cannot have been written here.
    fn read(&self) -> Option<Stored> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            headers.append(name, HeaderValue::from_str(value).ok()?);
        }
        Some(Stored {
            status: StatusCode::from_u16(self.status).ok()?,
            headers,
            body: Bytes::from(STANDARD.decode(&self.body_base64).ok()?),
        })
    }
}
