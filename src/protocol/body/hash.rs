//! A JSON body as the interface compares two of them: "ignores JSON key order and whitespace".
//!
//! Promise: bodies that differ in nothing else have one hash; others differ, numbers as they are written.
//! The work is linear in the body and the memory in its depth: members are hashed one by one, and their
//! hashes are added up, which no order changes. Keyed, so that nobody can look for equal sums.

use serde::de::IgnoredAny;

/// The sum of the hashes of an object's members.
#[derive(Default)]
struct Members {
    sum: [u64; 4],
    count: u64,
}

/// Deeper than any route reads.
const DEPTH_MAX: usize = 128;

/// `None`: it is no JSON document, or nests deeper than [`DEPTH_MAX`].
pub fn hash_json(key: &[u8; 32], body: &[u8]) -> Option<[u8; 32]> {
    // From here on each byte is taken for that of a well-formed document.
    serde_json::from_slice::<IgnoredAny>(body).ok()?;
    let mut hasher = blake3::Hasher::new_keyed(key);
    let mut rest = body;
    value(key, &mut rest, &mut hasher, DEPTH_MAX)?;
    Some(*hasher.finalize().as_bytes())
}

fn value(key: &[u8; 32], rest: &mut &[u8], to: &mut blake3::Hasher, depth: usize) -> Option<()> {
    let within = depth.checked_sub(1)?;
    match next(rest)? {
        b'{' => {
            let mut members = Members::default();
            while next(rest)? != b'}' {
                // The brace, or the comma, before it.
                step(rest);
                if next(rest)? == b'}' {
                    break;
                }
                let mut member = blake3::Hasher::new_keyed(key);
                string(rest, &mut member)?;
                next(rest)?;
                step(rest);
                value(key, rest, &mut member, within)?;
                members.add(member.finalize().as_bytes());
            }
            step(rest);
            to.update(b"{");
            to.update(&members.count.to_be_bytes());
            for lane in members.sum {
                to.update(&lane.to_be_bytes());
            }
        }
        b'[' => {
            while next(rest)? != b']' {
                step(rest);
                if next(rest)? == b']' {
                    break;
                }
                to.update(b",");
                value(key, rest, to, within)?;
            }
            step(rest);
            to.update(b"]");
        }
        b'"' => string(rest, to)?,
        _ => {
            let is_end = |byte: &u8| b",]} \t\r\n".contains(byte);
            let end = rest.iter().position(is_end).unwrap_or(rest.len());
            let (word, after) = rest.split_at_checked(end)?;
            *rest = after;
            text(b"v", word, to);
        }
    }
    Some(())
}

/// A string, its escapes resolved: `\u0061` is `a`.
fn string(rest: &mut &[u8], to: &mut blake3::Hasher) -> Option<()> {
    let mut end = 1;
    while *rest.get(end)? != b'"' {
        end += if *rest.get(end)? == b'\\' { 2 } else { 1 };
    }
    let (quoted, after) = rest.split_at_checked(end + 1)?;
    *rest = after;
    let inner = quoted.get(1..end)?;
    if !inner.contains(&b'\\') {
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

fn text(kind: &[u8], text: &[u8], to: &mut blake3::Hasher) {
    to.update(kind);
    to.update(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
    to.update(text);
}

/// The next byte behind white space.
fn next(rest: &mut &[u8]) -> Option<u8> {
    *rest = rest.trim_ascii_start();
    rest.first().copied()
}

fn step(rest: &mut &[u8]) {
    *rest = rest.get(1..).unwrap_or_default();
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
    use super::hash_json;

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
}
