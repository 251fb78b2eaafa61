//! A request's JSON body while it arrives, without the inside of its long strings: what is left is small, and is
//! read once the body has come.
//!
//! Why: of 20 MB almost all is one picture or one text, and to read through it once more costs as much as to
//! send it.
//!
//! Promise: what is read of it is what [`RequestPeek::read`] reads of the whole, or nothing, and then the whole
//! has to be read. Only the inside of a long string is not judged. Memory is bounded by [`KEPT_BYTES_MAX`].

use memchr::{memchr, memchr2};

use super::request::RequestPeek;

/// Of a string so much is kept: more than of any model's name.
const TEXT_BYTES_MAX: usize = 2048;

/// A body of which more is left is read whole.
const KEPT_BYTES_MAX: usize = 64 * 1024;

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
        /// Of an escape, these bytes belong to it.
        escape: usize,
        /// The byte before was a backslash.
        is_escaped: bool,
    },
    /// Behind what is kept of a string.
    Gap { is_escaped: bool },
    /// Too much is left of it.
    Full,
}

// === impl Skeleton ===

impl Skeleton {
    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let count = match self.place {
                StringPart::Full => return,
                StringPart::Outside => self.outside(rest),
                StringPart::Text { .. } => self.text(rest),
                StringPart::Gap { .. } => self.gap(rest),
            };
            rest = rest.get(count..).unwrap_or_default();
        }
    }

    /// What the body says, now that it has come. `None`: the whole has to be read.
    pub fn peek(&self) -> Option<RequestPeek> {
        let StringPart::Outside = self.place else {
            return None;
        };
        let mut peek = RequestPeek::read_object(&self.kept)?;
        if let Some(span) = &mut peek.model_span {
            let is_cut = |(at, _): &(usize, usize)| span.start < *at && *at < span.end;
            if self.gaps.iter().any(is_cut) {
                return None;
            }
            let before = self.gaps.iter().rfind(|(at, _)| *at <= span.start);
            let missing = before.map_or(0, |(_, missing)| *missing);
            *span = span.start + missing..span.end + missing;
        }
        Some(peek)
    }

    /// Up to a string.
    fn outside(&mut self, rest: &[u8]) -> usize {
        let quote = memchr(b'"', rest);
        let count = quote.map_or(rest.len(), |quote| quote + 1);
        self.keep(rest, count);
        if quote.is_some() {
            self.begin(StringPart::Text {
                start: self.kept.len(),
                escape: 0,
                is_escaped: false,
            });
        }
        count
    }

    /// StringPart what is kept of a string: up to the next mark, or to where the gap begins.
    fn text(&mut self, rest: &[u8]) -> usize {
        let StringPart::Text {
            start,
            escape,
            is_escaped,
        } = self.place
        else {
            return 0;
        };
        let at = |escape, is_escaped| StringPart::Text {
            start,
            escape,
            is_escaped,
        };
        if is_escaped {
            let digits = if rest.first() == Some(&b'u') {
                ESCAPE_DIGITS
            } else {
                0
            };
            self.keep(rest, 1);
            self.begin(at(digits, false));
            return 1;
        }
        let room = TEXT_BYTES_MAX.saturating_sub(self.kept.len().saturating_sub(start));
        let most = rest.len().min(room.max(escape));
        let next = rest.get(..most).unwrap_or_default();
        if let Some(mark) = memchr2(b'"', b'\\', next) {
            self.keep(rest, mark + 1);
            self.begin(match rest.get(mark) {
                Some(b'"') => StringPart::Outside,
                _ => at(0, true),
            });
            return mark + 1;
        }
        self.keep(rest, most);
        if most < rest.len() {
            self.trim(start);
            self.begin(StringPart::Gap { is_escaped: false });
        } else {
            self.begin(at(escape.saturating_sub(most), false));
        }
        most
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

    /// Up to the end of a string.
    fn gap(&mut self, rest: &[u8]) -> usize {
        let StringPart::Gap { is_escaped } = self.place else {
            return 0;
        };
        let mut next = usize::from(is_escaped);
        let (end, is_escaped) = loop {
            let Some(behind) = rest.get(next..) else {
                // The byte that is escaped has not come.
                break (rest.len(), true);
            };
            match memchr2(b'"', b'\\', behind) {
                None => break (rest.len(), false),
                Some(mark) if behind.get(mark) == Some(&b'"') => {
                    self.leave_out(next + mark);
                    self.keep(b"\"", 1);
                    self.begin(StringPart::Outside);
                    return next + mark + 1;
                }
                Some(mark) => next += mark + 2,
            }
        };
        self.leave_out(end);
        self.begin(StringPart::Gap { is_escaped });
        end
    }

    fn keep(&mut self, bytes: &[u8], count: usize) {
        let bytes = bytes.get(..count).unwrap_or_default();
        if self.kept.len().saturating_add(bytes.len()) > KEPT_BYTES_MAX {
            *self = Self {
                place: StringPart::Full,
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

    /// What is too large stays so.
    fn begin(&mut self, place: StringPart) {
        if !matches!(self.place, StringPart::Full) {
            self.place = place;
        }
    }
}

#[cfg(test)]
mod tests;
