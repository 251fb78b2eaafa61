//! What two requests must have in common to be the same request.
//!
//! Interface: "Body comparison ignores JSON key order and whitespace. The `X-Service-Session` and
//! `X-Service-RTE-Query` request headers count as part of the request", and so does the endpoint.
//! Promise: a hash of the canonical form, so that nothing of the body is kept.

use serde_json::Value;
use sha2::{Digest, Sha256};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

// === impl Fingerprint ===

impl Fingerprint {
    pub fn of(
        endpoint: &str,
        body: &[u8],
        session: Option<&[u8]>,
        rte_query: Option<&[u8]>,
    ) -> Self {
        let mut hash = Sha256::new();
        part(&mut hash, b'e', endpoint.as_bytes());
        for (label, header) in [(b's', session), (b'q', rte_query)] {
            if let Some(header) = header {
                part(&mut hash, label, header);
            }
        }
        match serde_json::from_slice::<Value>(body) {
            Ok(body) => value(&mut hash, &body),
            Err(_) => part(&mut hash, b'b', body),
        }
        Self(hash.finalize().into())
    }

    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn part(hash: &mut Sha256, label: u8, bytes: &[u8]) {
    hash.update([label]);
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

fn value(hash: &mut Sha256, value_: &Value) {
    match value_ {
        Value::Object(object) => {
            let mut names: Vec<&String> = object.keys().collect();
            names.sort();
            hash.update([b'{']);
            hash.update((names.len() as u64).to_le_bytes());
            for name in names {
                part(hash, b'k', name.as_bytes());
                if let Some(inner) = object.get(name) {
                    value(hash, inner);
                }
            }
        }
        Value::Array(array) => {
            hash.update([b'[']);
            hash.update((array.len() as u64).to_le_bytes());
            for inner in array {
                value(hash, inner);
            }
        }
        Value::String(text) => part(hash, b'"', text.as_bytes()),
        other => part(hash, b'v', other.to_string().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> Fingerprint {
        Fingerprint::of("/v1/chat/completions", body.as_bytes(), None, None)
    }

    #[test]
    fn key_order_and_white_space_do_not_count_and_everything_else_does() {
        let base = of(r#"{"a":1,"b":[1,{"c":"x","d":null}]}"#);

        assert_eq!(
            base,
            of("{ \"b\" : [1, {\"d\":null,\n\"c\":\"x\"}], \"a\": 1 }")
        );
        assert_ne!(base, of(r#"{"a":1,"b":[{"c":"x","d":null},1]}"#));
        assert_ne!(base, of(r#"{"a":"1","b":[1,{"c":"x","d":null}]}"#));
        assert_ne!(of(r#"{"a":" "}"#), of(r#"{"a":""}"#));
    }

    #[test]
    fn endpoint_session_and_rte_query_count() {
        let of = |endpoint, session: Option<&str>, rte: Option<&str>| {
            Fingerprint::of(
                endpoint,
                b"{}",
                session.map(str::as_bytes),
                rte.map(str::as_bytes),
            )
        };
        let base = of("/v1/chat/completions", None, None);

        assert_ne!(base, of("/agent/v1/chat/completions", None, None));
        assert_ne!(base, of("/v1/chat/completions", Some("a"), None));
        assert_ne!(of("/x", Some("a"), None), of("/x", None, Some("a")));
    }
}
