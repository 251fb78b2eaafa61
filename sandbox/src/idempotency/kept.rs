//! An Idempotency-Key on disk.
//!
//! Promise: after a restart a key means what it meant: bound to the same request, billed or not, with the
//! same stored answer, for what is left of its 24 hours. A run that was killed has left no trace here unless
//! it was billed.

use super::{Binding, Fingerprint, KeyId, Keys, Outcome, Stored};
use crate::{
    clock::Clock,
    keep::{Change, KEYS, Keep},
    money::MicroUsd,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};
use tokio::sync::watch;

#[derive(Debug, Serialize, Deserialize)]
pub struct KeptBinding {
    org: String,
    key: String,
    fingerprint: [u8; 32],
    /// Absent for what was asked of no endpoint, and in rows of an earlier release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    endpoint_uid: Option<String>,
    since: Duration,
    billed: Option<MicroUsd>,
    /// `None` for an answer of a kind that is not stored.
    stored: Option<KeptAnswer>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    body_base64: String,
}

fn row_id(id: &KeyId) -> String {
    format!("{}\n{}", id.org, id.key)
}

/// The key is free again.
pub fn gone(id: &KeyId) -> Change {
    Change::Remove(KEYS, row_id(id))
}

pub fn change(id: &KeyId, binding: &Binding) -> Option<Change> {
    let stored = match &binding.outcome {
        Outcome::Stored(stored) => Some(KeptAnswer::of(stored)),
        Outcome::None | Outcome::Bound => None,
    };
    let kept = KeptBinding {
        org: id.org.clone(),
        key: id.key.clone(),
        fingerprint: binding.fingerprint.bytes(),
        endpoint_uid: binding.fingerprint.endpoint_uid().map(str::to_owned),
        since: binding.since,
        billed: binding.billed,
        stored,
    };
    Change::put(KEYS, row_id(id), &kept)
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

    /// `None` when it cannot have been written here.
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

// === impl Keys ===

impl Keys {
    /// The keys of an earlier process, and what becomes of them written to the same place.
    pub fn kept(clock: Clock, keep: Keep, rows: Vec<KeptBinding>) -> Arc<Self> {
        let now = clock.elapsed();
        let mut bindings = HashMap::new();
        let made = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        for (n, row) in (0..).zip(rows) {
            let outcome = match row.stored.as_ref().map(KeptAnswer::read) {
                Some(Some(stored)) => Outcome::Stored(Arc::new(stored)),
                // An unreadable answer leaves the key bound, so that it is not billed again.
                Some(None) | None => Outcome::Bound,
            };
            let id = KeyId {
                org: row.org,
                key: row.key,
            };
            let binding = Binding {
                n,
                fingerprint: Fingerprint::of_kept(row.fingerprint, row.endpoint_uid),
                since: row.since,
                running: 0,
                outcome,
                billed: row.billed,
                kept: true,
                ended: watch::Sender::new(()),
            };
            if binding.expired(now) {
                keep.push([gone(&id)]);
            } else {
                bindings.insert(id, binding);
            }
        }
        Arc::new(Self {
            clock,
            bindings: Mutex::new(bindings),
            made: AtomicU64::new(made),
            keep,
        })
    }
}
