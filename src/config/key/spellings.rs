//! The key in a text: as it is, or as JSON spells it inside of a string. A key may hold `"` and `\\`, which
//! JSON escapes, and an encoder may escape any letter (`\u0026`).
//!
//! Promise: the first place that is the key in either spelling is found, in any chunking of the text; what
//! may only begin like the key reaches to the text's end.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2_iter, memmem};

/// A secret that is looked for.
pub(super) struct Spellings<'a>(pub &'a [u8]);

/// What was found first.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hit {
    Whole(Range<usize>),
    /// From here on to the text's end it may be the secret's beginning.
    Begins(usize),
}

/// How a secret, or one letter of it, stands at the beginning of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// In so many bytes.
    Whole(usize),
    /// As far as the bytes go.
    Begins,
    Not,
}

// === impl Spellings ===

impl Spellings<'_> {
    /// `more_comes`: behind `text`; without it, nothing begins at its end.
    pub fn find(&self, text: &[u8], more_comes: bool) -> Option<Hit> {
        let first = *self.0.first()?;
        if text.len() < self.0.len() && !more_comes {
            // Every spelling is as long at least.
            return None;
        }
        if memchr(b'\\', text).is_some() {
            return memchr2_iter(first, b'\\', text).find_map(|at| self.hit(text, at, more_comes));
        }
        // Nothing is escaped, so it can only stand as it is.
        if let Some(at) = memmem::find(text, self.0) {
            return Some(Hit::Whole(at..at + self.0.len()));
        }
        let tail = text.len().saturating_sub(self.0.len() - 1);
        let end = text.get(tail..).filter(|_| more_comes)?;
        memchr_iter(first, end).find_map(|at| self.hit(text, tail + at, more_comes))
    }

    fn hit(&self, text: &[u8], at: usize, more_comes: bool) -> Option<Hit> {
        let here = text.get(at..)?;
        // The longer one first: of a spelling that ends in an escape the plain one would leave a piece.
        match self.escaped(here) {
            Stands::Whole(length) => return Some(Hit::Whole(at..at + length)),
            Stands::Begins if more_comes => return Some(Hit::Begins(at)),
            Stands::Begins | Stands::Not => {}
        }
        if here.starts_with(self.0) {
            Some(Hit::Whole(at..at + self.0.len()))
        } else if more_comes && self.0.starts_with(here) {
            Some(Hit::Begins(at))
        } else {
            None
        }
    }

    fn escaped(&self, text: &[u8]) -> Stands {
        let mut length = 0;
        for letter in self.0 {
            match letter_at(*letter, text.get(length..).unwrap_or_default()) {
                Stands::Whole(bytes) => length += bytes,
                other => return other,
            }
        }
        Stands::Whole(length)
    }
}

/// How a letter stands at the beginning of what is inside of a JSON string.
fn letter_at(letter: u8, text: &[u8]) -> Stands {
    match *text {
        [] | [b'\\'] => Stands::Begins,
        [b'\\', b'u', ref digits @ ..] => {
            let wanted = format!("{letter:04x}");
            let there = digits.get(..4).unwrap_or(digits);
            match wanted.as_bytes().get(..there.len()) {
                Some(begin) if !begin.eq_ignore_ascii_case(there) => Stands::Not,
                _ if there.len() < wanted.len() => Stands::Begins,
                _ => Stands::Whole(2 + wanted.len()),
            }
        }
        [b'\\', escaped, ..] if escaped == letter && b"\"\\/".contains(&letter) => Stands::Whole(2),
        [b'\\', ..] => Stands::Not,
        [plain, ..] if plain == letter && letter != b'"' => Stands::Whole(1),
        [_, ..] => Stands::Not,
    }
}

#[cfg(test)]
mod tests;
