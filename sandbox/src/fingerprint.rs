//! What two requests must have in common to be the same request.
//!
//! Interface: "Body comparison ignores JSON key order and whitespace. The `X-Service-Session` and
//! `X-Service-RTE-Query` request headers count as part of the request", and so does the endpoint.
//! Promise: a hash of the canonical form, so that nothing of the body is kept; numbers count as they are
//! written, and a multipart body by its parts.

mod json;

use bytes::Bytes;
use json::Node;
use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};

#[derive(Clone, Debug)]
pub struct Fingerprint {
    request: [u8; 32],
    /// The deployed endpoint that the body names. A later one of the same name is another.
    endpoint_uid: Option<String>,
}

/// One part of a multipart body, as far as it distinguishes two requests. The boundary does not.
#[derive(Clone, Debug)]
pub struct FormPart {
    pub name: String,
    pub file_name: Option<String>,
    pub content_type: Option<String>,
    pub bytes: Bytes,
}

// === impl Fingerprint ===

impl Fingerprint {
    pub fn of(
        endpoint: &str,
        body: &[u8],
        session: Option<&[u8]>,
        rte_query: Option<&[u8]>,
    ) -> Self {
        let mut hash = head(endpoint, session, rte_query);
        match json::read(body) {
            Some(body) => value(&mut hash, &body),
            None => part(&mut hash, b'b', body),
        }
        Self::of_request(finish(hash))
    }

    /// Of a request whose body is a multipart form: its parts in their order.
    pub fn of_form(
        endpoint: &str,
        parts: &[FormPart],
        session: Option<&[u8]>,
        rte_query: Option<&[u8]>,
    ) -> Self {
        let mut hash = head(endpoint, session, rte_query);
        for one in parts {
            part(&mut hash, b'n', one.name.as_bytes());
            for (label, text) in [(b'f', &one.file_name), (b't', &one.content_type)] {
                if let Some(text) = text {
                    part(&mut hash, label, text.as_bytes());
                }
            }
            part(&mut hash, b'c', &one.bytes);
        }
        Self::of_request(finish(hash))
    }

    /// The same request, to this deployed endpoint.
    pub fn of_endpoint(mut self, uid: &str) -> Self {
        self.endpoint_uid = Some(uid.to_owned());
        self
    }

    /// Whether both are the same request. A name that no endpoint bears (any more) asks for whichever
    /// endpoint the other one reached.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let one_endpoint = match (&self.endpoint_uid, &other.endpoint_uid) {
            (Some(one), Some(two)) => one == two,
            _ => true,
        };
        self.request == other.request && one_endpoint
    }

    pub fn endpoint_uid(&self) -> Option<&str> {
        self.endpoint_uid.as_deref()
    }

    pub fn bytes(&self) -> [u8; 32] {
        self.request
    }

    pub fn of_kept(request: [u8; 32], endpoint_uid: Option<String>) -> Self {
        Self {
            request,
            endpoint_uid,
        }
    }

    pub fn to_hex(&self) -> String {
        hex(&self.request)
    }

    fn of_request(request: [u8; 32]) -> Self {
        Self {
            request,
            endpoint_uid: None,
        }
    }
}

fn head(endpoint: &str, session: Option<&[u8]>, rte_query: Option<&[u8]>) -> Context {
    let mut hash = Context::new(&SHA256);
    part(&mut hash, b'e', endpoint.as_bytes());
    for (label, header) in [(b's', session), (b'q', rte_query)] {
        if let Some(header) = header {
            part(&mut hash, label, header);
        }
    }
    hash
}

pub fn sha256(bytes: &[u8]) -> [u8; SHA256_OUTPUT_LEN] {
    let mut hash = Context::new(&SHA256);
    hash.update(bytes);
    finish(hash)
}

/// What the context has hashed.
pub fn finish(hash: Context) -> [u8; SHA256_OUTPUT_LEN] {
    let mut bytes = [0; SHA256_OUTPUT_LEN];
    let digest = hash.finish();
    for (to, from) in bytes.iter_mut().zip(digest.as_ref()) {
        *to = *from;
    }
    bytes
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn part(hash: &mut Context, label: u8, bytes: &[u8]) {
    hash.update(&[label]);
    hash.update(&(bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

fn value(hash: &mut Context, node: &Node<'_>) {
    match node {
        Node::Object(members) => {
            hash.update(b"{");
            hash.update(&(members.len() as u64).to_le_bytes());
            for (name, inner) in members {
                part(hash, b'k', name.as_bytes());
                value(hash, inner);
            }
        }
        Node::Array(entries) => {
            hash.update(b"[");
            hash.update(&(entries.len() as u64).to_le_bytes());
            for inner in entries {
                value(hash, inner);
            }
        }
        Node::Text(text) => part(hash, b'"', text.as_bytes()),
        Node::Plain(word) => part(hash, b'v', word.as_bytes()),
    }
}

#[cfg(test)]
mod tests;
