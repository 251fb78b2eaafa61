//! The few fields of an answer that is too large to be held, taken out while it flows: a recording's
//! length stands behind megabytes of sound, and an answer may state its price at its end.
//!
//! Promise: any chunking yields what [`AnswerPeek::read`] yields for the whole; memory is bounded by
//! [`KEPT_BYTES_MAX`], and an answer whose wanted members are longer yields nothing. What is skipped is
//! looked at for strings and brackets only.

use memchr::memchr2;

use super::answer::AnswerPeek;

/// Most bytes of wanted members, with their names. An eval run's record is the longest of them.
const KEPT_BYTES_MAX: usize = 16 * 1024;
/// Longest name that can be wanted, as it is spelled: each letter may be an escape of six.
const KEY_BYTES_MAX: usize = 6 * 16 + 2;

/// One answer's bytes on their way.
#[derive(Debug, Default)]
pub struct JsonFieldScanner {
    at: Expecting,
    /// The name of this member, with its quotes.
    key: Vec<u8>,
    is_wanted: bool,
    /// Wanted members in their order, as they came.
    kept: Vec<u8>,
    /// Brackets that this member's value has open.
    depth: u64,
    /// The byte before was a backslash.
    escaped: bool,
}

/// Where the next byte stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expecting {
    #[default]
    Start,
    /// Before a member's name, or the end.
    Member,
    Key,
    Colon,
    Value,
    /// Within a string of a value.
    Text,
    End,
    /// This is no JSON object, or one that wants too much room.
    Nowhere,
}

// === impl JsonFieldScanner ===

impl JsonFieldScanner {
    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((byte, behind)) = rest.split_first() {
            if self.at == Expecting::Text && !self.escaped {
                let plain = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                let (text, more) = rest.split_at(plain);
                self.keep(text);
                rest = more;
                let Some((mark, behind)) = rest.split_first() else {
                    return;
                };
                self.text(*mark);
                rest = behind;
                continue;
            }
            match self.at {
                Expecting::Start | Expecting::Member | Expecting::Colon | Expecting::End => {
                    self.between(*byte)
                }
                Expecting::Key => self.key(*byte),
                Expecting::Value => self.value(*byte),
                Expecting::Text => self.text(*byte),
                Expecting::Nowhere => return,
            }
            rest = behind;
        }
    }

    /// What the answer states, now that it has ended.
    pub fn peek(&self) -> AnswerPeek {
        if self.at != Expecting::End {
            return AnswerPeek::default();
        }
        AnswerPeek::read(&[b"{", self.kept.as_slice(), b"}"].concat())
    }

    fn between(&mut self, byte: u8) {
        self.at = match (self.at, byte) {
            (at, b' ' | b'\t' | b'\n' | b'\r') => at,
            (Expecting::Start, b'{') => Expecting::Member,
            (Expecting::Member, b',') => Expecting::Member,
            (Expecting::Member, b'}') => Expecting::End,
            (Expecting::Member, b'"') => {
                self.key.clear();
                self.key.push(b'"');
                Expecting::Key
            }
            (Expecting::Colon, b':') => {
                self.begin();
                return;
            }
            _ => Expecting::Nowhere,
        };
    }

    /// The name has come; so does its value now.
    fn begin(&mut self) {
        self.at = Expecting::Value;
        self.depth = 0;
        let name: Option<String> = serde_json::from_slice(&self.key).ok();
        self.is_wanted = name.is_some_and(|name| AnswerPeek::WANTED.contains(&name.as_str()));
        if self.is_wanted {
            let key = std::mem::take(&mut self.key);
            if !self.kept.is_empty() {
                self.keep(b",");
            }
            self.keep(&key);
            self.keep(b":");
        }
    }

    fn key(&mut self, byte: u8) {
        if self.key.len() < KEY_BYTES_MAX {
            self.key.push(byte);
        }
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' {
            self.at = Expecting::Colon;
        }
    }

    fn value(&mut self, byte: u8) {
        match byte {
            b',' if self.depth == 0 => self.at = Expecting::Member,
            b'}' if self.depth == 0 => self.at = Expecting::End,
            b']' if self.depth == 0 => self.at = Expecting::Nowhere,
            _ => {
                match byte {
                    b'"' => self.at = Expecting::Text,
                    b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
                self.keep(&[byte]);
            }
        }
    }

    /// A byte of a string that may end it or follow a backslash.
    fn text(&mut self, byte: u8) {
        self.keep(&[byte]);
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' && self.at == Expecting::Text {
            self.at = Expecting::Value;
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if !self.is_wanted || self.at == Expecting::Nowhere {
            return;
        }
        if self.kept.len().saturating_add(bytes.len()) > KEPT_BYTES_MAX {
            self.at = Expecting::Nowhere;
            self.kept = Vec::new();
            return;
        }
        self.kept.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests;
