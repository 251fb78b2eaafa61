//! A hash under which two JSON bodies are compared as the interface compares them: "ignores JSON key
//! order and whitespace".
//!
//! Promise: bodies that differ in nothing else have one hash; others differ, and numbers count as they
//! are written. The work is linear in the body, and the memory in its depth: members are hashed one by
//! one, and their hashes are added up, so their order does not matter. The hash is keyed, so that equal
//! sums cannot be searched for.
//!
//! Every value costs a hash, however short it is. A body of more than [`VALUES_MAX`] values has no hash
//! of this kind and is compared by its exact bytes: sent again in another order, it is another request.
//! That is the safe side: it counts against caps, and if the service marks its answer as a replay it adds
//! nothing.

use memchr::memchr2;
use serde::de::IgnoredAny;

/// The sum of the hashes of an object's members.
#[derive(Default)]
struct MemberSum {
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

/// `None`: it is not a JSON document, nests deeper than [`DEPTH_MAX`], or has more than [`VALUES_MAX`]
/// values.
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
                let mut members = MemberSum::default();
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

// === impl MemberSum ===

impl MemberSum {
    fn add(&mut self, hash: &[u8; 32]) {
        self.count += 1;
        for (lane, bytes) in self.sum.iter_mut().zip(hash.chunks_exact(8)) {
            let bytes = bytes.first_chunk().copied().unwrap_or_default();
            *lane = lane.wrapping_add(u64::from_be_bytes(bytes));
        }
    }
}

#[cfg(test)]
mod tests;
