//! A request that passed the front, as its handler, its bill and its key see it.
//!
//! Promise: plain data; the fingerprint covers what distinguishes two requests by the interface.

use crate::{
    connection::ConnectionEnd,
    fault::Fault,
    fingerprint::{Fingerprint, FormPart},
    key_id::KeyId,
};
use bytes::Bytes;
use http::HeaderValue;

/// A request that passed the front.
#[derive(Clone, Debug)]
pub struct Inbound {
    pub request_id: String,
    pub org: String,
    pub path: String,
    pub key: Option<KeyId>,
    /// The Idempotency-Key as received, for the books.
    pub key_text: Option<String>,
    pub session: Option<HeaderValue>,
    pub rte_query: Option<HeaderValue>,
    pub body: Bytes,
    pub fault: Fault,
    pub connection_end: ConnectionEnd,
}

// === impl Inbound ===

impl Inbound {
    /// The same on a route that honors no key.
    pub fn without_key(self) -> Self {
        Self {
            key: None,
            key_text: None,
            ..self
        }
    }

    /// What the key binds to.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(
            &self.path,
            &self.body,
            self.session.as_ref().map(HeaderValue::as_bytes),
            self.rte_query.as_ref().map(HeaderValue::as_bytes),
        )
    }

    /// The same for a multipart body, whose boundary is another at every sending.
    pub fn form_fingerprint(&self, parts: &[FormPart]) -> Fingerprint {
        Fingerprint::of_form(
            &self.path,
            parts,
            self.session.as_ref().map(HeaderValue::as_bytes),
            self.rte_query.as_ref().map(HeaderValue::as_bytes),
        )
    }
}
