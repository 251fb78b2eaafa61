//! The Idempotency-Key of a request, as one organization's.
//!
//! Promise: a key of any length takes no more room than a short one; two organizations never share one.

use crate::{
    error::ServiceError,
    fingerprint::{hex, sha256},
    spec,
};
use http::{HeaderMap, HeaderValue};

/// One organization's key, as the table holds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyId {
    org: String,
    key: String,
}

// === impl KeyId ===

impl KeyId {
    /// The key of a request. Assumed (key-form): two headers are 400, because nothing says which one
    /// counts.
    pub fn of(org: &str, headers: &HeaderMap) -> Result<Option<Self>, ServiceError> {
        let mut all = headers.get_all(spec::IDEMPOTENCY_KEY).iter();
        let first = all.next();
        if all.next().is_some() {
            return Err(ServiceError::BadRequest(
                "Idempotency-Key must stand once".to_owned(),
            ));
        }
        Self::read(org, first)
    }

    /// Reads the header. Empty counts as absent; unprintable characters are 400.
    /// Assumed (key-form).
    pub fn read(org: &str, header: Option<&HeaderValue>) -> Result<Option<Self>, ServiceError> {
        let Some(header) = header else {
            return Ok(None);
        };
        let key = header
            .to_str()
            .ok()
            // `to_str` accepts a tab.
            .filter(|key| !key.contains('\t'))
            .ok_or_else(|| {
                ServiceError::BadRequest("Idempotency-Key must be printable".to_owned())
            })?;
        if key.is_empty() {
            return Ok(None);
        }
        // Interface: a string of up to 256 characters; longer keys are hashed.
        let key = if key.chars().count() > spec::KEY_CHARS_MAX {
            // No key that was sent contains a tab, so no short key is taken for a hashed one.
            format!("sha256\t{}", hex(&sha256(key.as_bytes())))
        } else {
            key.to_owned()
        };
        Ok(Some(Self {
            org: org.to_owned(),
            key,
        }))
    }

    /// A key that was read before.
    pub fn of_row(org: String, key: String) -> Self {
        Self { org, key }
    }

    /// The id of its row on disk.
    pub fn row_id(&self) -> String {
        format!("{}\n{}", self.org, self.key)
    }

    pub fn org(&self) -> &str {
        &self.org
    }

    pub fn key(&self) -> &str {
        &self.key
    }
}
