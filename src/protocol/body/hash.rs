//! A JSON body as the interface compares two of them: "ignores JSON key order and whitespace".
//!
//! Promise: bodies that differ in nothing else have one hash; others differ, numbers as they are written.
//! The work is linear in the body, and the memory in its depth: members are hashed one by one, and their
//! hashes are added up, which no order changes. Keyed, so that nobody can look for equal sums.
//!
//! A value costs a hash, however short it is. A body of more than [`VALUES_MAX`] has no hash of this kind
//! and is compared by its exact bytes: sent again in another order, it is another request. That is the
//! safe side: it counts against caps, and where the service calls its answer a replay it adds nothing.

use memchr::memchr2;
use serde::de::IgnoredAny;

/// The sum of the hashes of an object's members.
#[derive(Default)]
struct Members {
    sum: [u64; 4],
    count: u64,
}

/// What is left of a document.
struct Walk<'a> {
    key: &'a [u8; 32],
    rest: &'a [u8],
    values_left: usize,
}

/// Deeper than any route reads.
const DEPTH_MAX: usize = 128;

/// Most members and elements that are hashed each by itself: some 20 ms of work.
const VALUES_MAX: usize = 65_536;

/// `None`: it is no JSON document, nests deeper than [`DEPTH_MAX`], or has more than [`VALUES_MAX`] values.
pub fn hash_json(key: &[u8; 32], body: &[u8]) -> Option<[u8; 32]> {
    // From here on each byte is taken for that of a well-formed document.
    serde_json::from_slice::<IgnoredAny>(body).ok()?;
    let mut hasher = blake3::Hasher::new_keyed(key);
    let mut walk = Walk {
        key,
        rest: body,
        values_left: VALUES_MAX,
    };
    walk.value(&mut hasher, DEPTH_MAX)?;
    Some(*hasher.finalize().as_bytes())
}

// === impl Walk ===

impl<'a> Walk<'a> {
    fn value(&mut self, to: &mut blake3::Hasher, depth: usize) -> Option<()> {
        let within = depth.checked_sub(1)?;
        self.values_left = self.values_left.checked_sub(1)?;
        match self.next()? {
            b'{' => {
                let mut members = Members::default();
                while self.next()? != b'}' {
                    // The brace, or the comma, before it.
                    self.step();
                    if self.next()? == b'}' {
                        break;
                    }
                    let mut member = blake3::Hasher::new_keyed(self.key);
                    self.string(&mut member)?;
                    self.next()?;
                    self.step();
                    self.value(&mut member, within)?;
                    members.add(member.finalize().as_bytes());
                }
                self.step();
                to.update(b"{");
                to.update(&members.count.to_be_bytes());
                for lane in members.sum {
                    to.update(&lane.to_be_bytes());
                }
            }
            b'[' => {
                while self.next()? != b']' {
                    self.step();
                    if self.next()? == b']' {
                        break;
                    }
                    to.update(b",");
                    self.value(to, within)?;
                }
                self.step();
                to.update(b"]");
            }
            b'"' => self.string(to)?,
            _ => {
                let is_end = |byte: &u8| b",]} \t\r\n".contains(byte);
                let end = self.rest.iter().position(is_end);
                text(b"v", self.take(end.unwrap_or(self.rest.len()))?, to);
            }
        }
        Some(())
    }

    /// A string, its escapes resolved: `\u0061` is `a`.
    fn string(&mut self, to: &mut blake3::Hasher) -> Option<()> {
        let mut end = 1;
        let mut is_escaped = false;
        loop {
            end += memchr2(b'"', b'\\', self.rest.get(end..)?)?;
            if self.rest.get(end) == Some(&b'"') {
                break;
            }
            is_escaped = true;
            end += 2;
        }
        let quoted = self.take(end + 1)?;
        let inner = quoted.get(1..end)?;
        if !is_escaped {
            text(b"\"", inner, to);
            return Some(());
        }
        match serde_json::from_slice::<String>(quoted) {
            Ok(resolved) => text(b"\"", resolved.as_bytes(), to),
            // Half of a surrogate pair: as it is written.
            Err(_) => text(b"\\", inner, to),
        }
        Some(())
    }

    /// The next byte behind white space.
    fn next(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    fn step(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, after) = self.rest.split_at_checked(bytes)?;
        self.rest = after;
        Some(taken)
    }
}

fn text(kind: &[u8], text: &[u8], to: &mut blake3::Hasher) {
    to.update(kind);
    to.update(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
    to.update(text);
}

// === impl Members ===

impl Members {
    fn add(&mut self, hash: &[u8; 32]) {
        self.count += 1;
        for (lane, bytes) in self.sum.iter_mut().zip(hash.chunks_exact(8)) {
            let bytes = bytes.first_chunk().copied().unwrap_or_default();
            *lane = lane.wrapping_add(u64::from_be_bytes(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{VALUES_MAX, hash_json};

    const KEY: [u8; 32] = [7; 32];

    fn same(one: &str, two: &str) -> bool {
        let (one, two) = (one.as_bytes(), two.as_bytes());
        hash_json(&KEY, one).expect("JSON") == hash_json(&KEY, two).expect("JSON")
    }

    #[test]
    fn order_and_white_space_do_not_count_and_everything_else_does() {
        let base = r#"{"a":1,"b":[1,{"c":"x","d":null}],"e":{}}"#;
        for equal in [
            "{ \"b\" : [1, {\"d\":null,\n\"c\":\"x\"} ],\t\"e\": { }, \"a\": 1 }\r\n",
            r#"{"\u0061":1,"b":[1,{"c":"\u0078","d":null}],"e":{}}"#,
        ] {
            assert!(same(base, equal), "{equal}");
        }
        for other in [
            r#"{"a":1,"b":[{"c":"x","d":null},1],"e":{}}"#,
            r#"{"a":"1","b":[1,{"c":"x","d":null}],"e":{}}"#,
            r#"{"a":1.0,"b":[1,{"c":"x","d":null}],"e":{}}"#,
            r#"{"a":1,"b":[1,{"c":"x","d":null}],"e":[]}"#,
            r#"{"a":1,"b":[1,{"c":"x","d":null}]}"#,
            r#"{"a":1,"b":[1],"c":"x","d":null,"e":{}}"#,
            r#"{"a":1,"a":1,"b":[1,{"c":"x","d":null}],"e":{}}"#,
            r#"{"b":1,"a":[1,{"c":"x","d":null}],"e":{}}"#,
        ] {
            assert!(!same(base, other), "{other}");
        }
    }

    #[test]
    fn values_do_not_run_into_each_other() {
        for (one, two) in [
            ("[1,2]", "[12]"),
            ("[[],[]]", "[[[]]]"),
            ("[\"a\",\"b\"]", "[\"a,b\"]"),
            ("36893488147419103232", "36893488147419103233"),
            ("0.1", "0.1000000000000000000001"),
            (r#"{"a":" "}"#, r#"{"a":""}"#),
            (r#"{"a":{"b":1}}"#, r#"{"a":1,"b":1}"#),
            (r#""\ud800""#, r#""\ud801""#),
            ("[]", "{}"),
            ("null", "\"null\""),
        ] {
            assert!(!same(one, two), "{one} {two}");
        }
    }

    #[test]
    fn what_is_no_json_has_no_hash() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let deep = nested(1_000_000);
        assert!(hash_json(&KEY, nested(128).as_bytes()).is_some());
        for body in ["", "{", "{\"a\":1}x", "--boundary\r\n", &deep] {
            assert!(hash_json(&KEY, body.as_bytes()).is_none(), "{body:.20}");
        }
    }

    /// Else 30 MB of `"":0,` are seconds of a worker's time, for a key that anybody may write.
    #[test]
    fn a_body_of_very_many_values_is_not_hashed_value_by_value() {
        let repeated = |one: &str, count: usize| vec![one; count].join(",");
        let bodies = |count: usize| {
            [
                format!("{{{}}}", repeated("\"\":0", count)),
                format!("[{}]", repeated("0", count)),
                format!("[{}]", repeated("{}", count)),
                format!("{{\"a\":[{}]}}", repeated("\"x\"", count - 1)),
            ]
        };
        // The object or array around them is one, too.
        for body in bodies(VALUES_MAX - 1) {
            assert!(hash_json(&KEY, body.as_bytes()).is_some(), "{body:.20}");
        }
        for body in bodies(VALUES_MAX) {
            assert!(hash_json(&KEY, body.as_bytes()).is_none(), "{body:.20}");
        }
    }

    #[test]
    fn the_end_of_a_string_is_found_behind_its_escapes() {
        for (one, two) in [
            (r#"["a\\"]"#, r#"["a\\\\"]"#),
            (r#"["\\","b"]"#, r#"["\\\",","b"]"#),
            (r#"{"\"":"\\\"","b":1}"#, r#"{"\"":"\\","b":1}"#),
        ] {
            assert!(same(one, one) && !same(one, two), "{one} {two}");
        }
        assert!(same(r#"{"\"":"\\","b":1}"#, r#"{"b":1,"\u0022":"\u005c"}"#));
    }
}
