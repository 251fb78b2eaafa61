//! A request's JSON body while it arrives, without the inside of its long strings: what is left is small, and is
//! read once the body has come.
//!
//! Why: of 20 MB almost all is one picture or one text, and to read through it once more costs as much as to
//! send it.
//!
//! Promise: what is read of it is what [`RequestPeek::read`] reads of the whole, or nothing, and then the whole
//! has to be read. What is left out is judged as that judges what it skips: control bytes and escapes are, UTF-8 is
//! not, so a key or a wanted value is never read in part. Memory is bounded by [`KEPT_BYTES_MAX`].

use std::ops::Range;

use memchr::{memchr, memchr2};

use super::request::RequestPeek;

/// Of a string so much is kept: more than of any model's name.
const TEXT_BYTES_MAX: usize = 2048;

/// A body of which more is left is read whole.
const KEPT_BYTES_MAX: usize = 16 * 1024;

/// Digits behind `\u`.
const ESCAPE_DIGITS: usize = 4;

#[derive(Debug, Default)]
pub struct Skeleton {
    kept: Vec<u8>,
    /// Where in `kept` something was left out, and how much in all up to there.
    gaps: Vec<(usize, usize)>,
    place: StringPart,
}

/// Where the next byte stands.
#[derive(Clone, Copy, Debug, Default)]
enum StringPart {
    #[default]
    Outside,
    Text {
        /// Its first byte in `kept`.
        start: usize,
        escape: Escape,
    },
    /// Behind what is kept of a string.
    Gap { escape: Escape },
    /// Too much is left of it, or what it holds is not JSON.
    Unread,
}

/// What an escape still lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    Nothing,
    /// All that follows the backslash.
    Character,
    Digits(usize),
}

// === impl Skeleton ===

impl Skeleton {
    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            let count = match self.place {
                StringPart::Unread => return,
                StringPart::Outside => self.outside(rest),
                StringPart::Text {
                    start,
                    escape: Escape::Nothing,
                } => self.text(rest, start),
                StringPart::Gap {
                    escape: Escape::Nothing,
                } => self.gap(rest),
                StringPart::Text { escape, .. } | StringPart::Gap { escape } => {
                    self.escaped(*first, escape)
                }
            };
            rest = rest.get(count..).unwrap_or_default();
        }
    }

    /// What the body says, now that it has come. `None`: the whole has to be read.
    pub fn peek(&self) -> Option<RequestPeek> {
        let StringPart::Outside = self.place else {
            return None;
        };
        if self.gaps.iter().any(|(at, _)| self.is_in_key(*at)) {
            return None;
        }
        let is_cut = |value: &Range<usize>| {
            let mut gaps = self.gaps.iter();
            gaps.any(|(at, _)| value.start < *at && *at < value.end)
        };
        let mut peek = RequestPeek::read_object(&self.kept, is_cut)?;
        if let Some(span) = &mut peek.model_span {
            let before = self.gaps.iter().rfind(|(at, _)| *at <= span.start);
            let missing = before.map_or(0, |(_, missing)| *missing);
            *span = span.start + missing..span.end + missing;
        }
        Some(peek)
    }

    /// Whether a colon follows the string that lacks something there: before its closing quote.
    fn is_in_key(&self, at: usize) -> bool {
        let behind = self.kept.get(at + 1..).unwrap_or_default();
        behind.trim_ascii_start().first() == Some(&b':')
    }

    /// Up to a string.
    fn outside(&mut self, rest: &[u8]) -> usize {
        let quote = memchr(b'"', rest);
        let count = quote.map_or(rest.len(), |quote| quote + 1);
        self.keep(rest, count);
        if quote.is_some() {
            self.begin(StringPart::Text {
                start: self.kept.len(),
                escape: Escape::Nothing,
            });
        }
        count
    }

    /// What is kept of a string: up to the next mark, or to where the gap begins.
    fn text(&mut self, rest: &[u8], start: usize) -> usize {
        let room = TEXT_BYTES_MAX.saturating_sub(self.kept.len().saturating_sub(start));
        let most = rest.len().min(room);
        let mark = memchr2(b'"', b'\\', rest.get(..most).unwrap_or_default());
        if let Some(mark) = mark {
            self.keep(rest, mark + 1);
            self.begin(match rest.get(mark) {
                Some(b'"') => StringPart::Outside,
                _ => StringPart::Text {
                    start,
                    escape: Escape::Character,
                },
            });
            return mark + 1;
        }
        self.keep(rest, most);
        if most < rest.len() {
            self.trim(start);
            self.begin(StringPart::Gap {
                escape: Escape::Nothing,
            });
        }
        most
    }

    /// One byte of an escape: none is kept in part.
    fn escaped(&mut self, byte: u8, escape: Escape) -> usize {
        let place = match (self.place, escape.after(byte)) {
            (_, None) => StringPart::Unread,
            (StringPart::Text { start, .. }, Some(escape)) => {
                self.keep(&[byte], 1);
                StringPart::Text { start, escape }
            }
            (_, Some(escape)) => {
                self.leave_out(1);
                StringPart::Gap { escape }
            }
        };
        self.begin(place);
        1
    }

    /// Leaves out a character at the end that is not whole.
    fn trim(&mut self, start: usize) {
        let text = self.kept.get(start..).unwrap_or_default();
        if let Err(error) = std::str::from_utf8(text)
            && error.error_len().is_none()
        {
            let half = text.len() - error.valid_up_to();
            self.kept.truncate(start + error.valid_up_to());
            self.leave_out(half);
        }
    }

    /// Up to the end of a string, or an escape in it.
    fn gap(&mut self, rest: &[u8]) -> usize {
        let count = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        self.leave_out(count);
        let left_out = rest.get(..count).unwrap_or_default();
        match rest.get(count) {
            _ if has_control(left_out) => self.begin(StringPart::Unread),
            None => {}
            Some(b'"') => {
                self.keep(b"\"", 1);
                self.begin(StringPart::Outside);
            }
            Some(_) => {
                self.leave_out(1);
                self.begin(StringPart::Gap {
                    escape: Escape::Character,
                });
            }
        }
        rest.len().min(count + 1)
    }

    fn keep(&mut self, bytes: &[u8], count: usize) {
        let bytes = bytes.get(..count).unwrap_or_default();
        if self.kept.len().saturating_add(bytes.len()) > KEPT_BYTES_MAX {
            *self = Self {
                place: StringPart::Unread,
                ..Self::default()
            };
            return;
        }
        self.kept.extend_from_slice(bytes);
    }

    fn leave_out(&mut self, count: usize) {
        let missing = self.gaps.last().map_or(0, |(_, missing)| *missing) + count;
        match self.gaps.last_mut() {
            Some(last) if last.0 == self.kept.len() => last.1 = missing,
            _ => self.gaps.push((self.kept.len(), missing)),
        }
    }

    /// What has to be read whole stays so.
    fn begin(&mut self, place: StringPart) {
        if !matches!(self.place, StringPart::Unread) {
            self.place = place;
        }
    }
}

// === impl Escape ===

impl Escape {
    /// `None`: JSON has no such escape.
    fn after(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Character, b'u') => Some(Self::Digits(ESCAPE_DIGITS)),
            (Self::Character, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                Some(Self::Nothing)
            }
            (Self::Digits(left), _) if byte.is_ascii_hexdigit() => Some(match left {
                0 | 1 => Self::Nothing,
                _ => Self::Digits(left - 1),
            }),
            _ => None,
        }
    }
}

/// Whether a byte is among them that a string has only as an escape.
fn has_control(text: &[u8]) -> bool {
    // Eight bytes at a time, also where the build is for size: a byte less than a space borrows the bit above it.
    const SPACES: u64 = u64::from_ne_bytes([b' '; 8]);
    const HIGHEST: u64 = u64::from_ne_bytes([0x80; 8]);
    let (words, rest) = text.as_chunks::<8>();
    let borrowed = words.iter().fold(0, |borrowed, word| {
        let word = u64::from_ne_bytes(*word);
        borrowed | (word.wrapping_sub(SPACES) & !word)
    });
    borrowed & HIGHEST != 0 || rest.iter().any(|byte| *byte < b' ')
}

#[cfg(test)]
mod tests;
