//! What two requests must have in common to be the same request.
//!
//! Interface: "Body comparison ignores JSON key order and whitespace. The `X-Service-Session` and
//! `X-Service-RTE-Query` request headers count as part of the request", and so does the endpoint.
//! Promise: a hash of the canonical form, so that nothing of the body is kept; numbers count as they are
//! written, and a multipart body by its parts.

mod json;

use json::Node;
use sha2::{Digest, Sha256};

#[derive(Clone, Debug)]
pub struct Fingerprint {
    request: [u8; 32],
    /// The deployed endpoint that the body names. A later one of the same name is another.
    endpoint_uid: Option<String>,
}

/// One part of a multipart body, as far as it tells two requests apart. The boundary does not.
#[derive(Clone, Copy, Debug)]
pub struct FormPart<'a> {
    pub name: &'a str,
    pub file_name: Option<&'a str>,
    pub content_type: Option<&'a str>,
    pub bytes: &'a [u8],
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
        Self::of_request(hash.finalize().into())
    }

    /// Of a request whose body is a multipart form: its parts in their order.
    pub fn of_form<'a>(
        endpoint: &str,
        parts: impl IntoIterator<Item = FormPart<'a>>,
        session: Option<&[u8]>,
        rte_query: Option<&[u8]>,
    ) -> Self {
        let mut hash = head(endpoint, session, rte_query);
        for one in parts {
            part(&mut hash, b'n', one.name.as_bytes());
            for (label, told) in [(b'f', one.file_name), (b't', one.content_type)] {
                if let Some(told) = told {
                    part(&mut hash, label, told.as_bytes());
                }
            }
            part(&mut hash, b'c', one.bytes);
        }
        Self::of_request(hash.finalize().into())
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

fn head(endpoint: &str, session: Option<&[u8]>, rte_query: Option<&[u8]>) -> Sha256 {
    let mut hash = Sha256::new();
    part(&mut hash, b'e', endpoint.as_bytes());
    for (label, header) in [(b's', session), (b'q', rte_query)] {
        if let Some(header) = header {
            part(&mut hash, label, header);
        }
    }
    hash
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn part(hash: &mut Sha256, label: u8, bytes: &[u8]) {
    hash.update([label]);
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

fn value(hash: &mut Sha256, node: &Node<'_>) {
    match node {
        Node::Object(members) => {
            hash.update([b'{']);
            hash.update((members.len() as u64).to_le_bytes());
            for (name, inner) in members {
                part(hash, b'k', name.as_bytes());
                value(hash, inner);
            }
        }
        Node::Array(entries) => {
            hash.update([b'[']);
            hash.update((entries.len() as u64).to_le_bytes());
            for inner in entries {
                value(hash, inner);
            }
        }
        Node::Text(text) => part(hash, b'"', text.as_bytes()),
        Node::Plain(word) => part(hash, b'v', word.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> Fingerprint {
        Fingerprint::of("/v1/chat/completions", body.as_bytes(), None, None)
    }

    fn same(one: &str, two: &str) -> bool {
        of(one).is_same_as(&of(two))
    }

    #[test]
    fn key_order_and_white_space_do_not_count_and_everything_else_does() {
        let base = r#"{"a":1,"b":[1,{"c":"x","d":null}]}"#;

        assert!(same(
            base,
            "{ \"b\" : [1, {\"d\":null,\n\"c\":\"x\"}], \"a\": 1 }"
        ));
        assert!(!same(base, r#"{"a":1,"b":[{"c":"x","d":null},1]}"#));
        assert!(!same(base, r#"{"a":"1","b":[1,{"c":"x","d":null}]}"#));
        assert!(!same(r#"{"a":" "}"#, r#"{"a":""}"#));
    }

    #[test]
    fn numbers_beyond_64_bits_and_long_fractions_are_told_apart() {
        for (one, two) in [
            ("36893488147419103232", "36893488147419103233"),
            ("9007199254740993.0", "9007199254740992.0"),
            (
                "-170141183460469231731687303715884105728",
                "-170141183460469231731687303715884105729",
            ),
            ("0.1", "0.1000000000000000000001"),
        ] {
            assert!(!same(one, two), "{one} {two}");
            let body = |seed: &str| format!("{{\"seed\": {seed}}}");
            assert!(!same(&body(one), &body(two)), "{one} {two}");
            assert!(same(&body(one), &body(&format!(" {one} "))), "{one}");
        }
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

        assert!(!base.is_same_as(&of("/agent/v1/chat/completions", None, None)));
        assert!(!base.is_same_as(&of("/v1/chat/completions", Some("a"), None)));
        assert!(!of("/x", Some("a"), None).is_same_as(&of("/x", None, Some("a"))));
    }

    #[test]
    fn a_form_is_its_parts_in_their_order() {
        let image = FormPart {
            name: "image",
            file_name: Some("a.png"),
            content_type: Some("image/png"),
            bytes: b"x",
        };
        let prompt = FormPart {
            name: "prompt",
            file_name: None,
            content_type: None,
            bytes: b"invert",
        };
        let of = |parts: &[FormPart<'_>]| {
            Fingerprint::of_form("/v1/images/edits", parts.iter().copied(), None, None)
        };
        let base = of(&[image, prompt]);

        assert!(base.is_same_as(&of(&[image, prompt])));
        for other in [
            vec![prompt, image],
            vec![image],
            vec![image, prompt, prompt],
            vec![
                FormPart {
                    name: "mask",
                    ..image
                },
                prompt,
            ],
            vec![
                FormPart {
                    file_name: Some("b.png"),
                    ..image
                },
                prompt,
            ],
            vec![
                FormPart {
                    content_type: None,
                    ..image
                },
                prompt,
            ],
            vec![
                FormPart {
                    bytes: b"y",
                    ..image
                },
                prompt,
            ],
        ] {
            assert!(!base.is_same_as(&of(&other)), "{other:?}");
        }
    }

    #[test]
    fn a_later_endpoint_of_a_name_is_another_and_a_deleted_one_is_itself() {
        let first = || of("{}").of_endpoint("one");

        assert!(first().is_same_as(&first()));
        assert!(!first().is_same_as(&of("{}").of_endpoint("two")));
        assert!(first().is_same_as(&of("{}")));
        assert!(!first().is_same_as(&of("[]")));
    }
}
