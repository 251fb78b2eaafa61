//! The inside of a JSON string, cut where neither a character nor an escape is cut.
//!
//! Why: both dialects give a text in pieces, and each piece is a JSON string of its own.
//!
//! Promise: the pieces together are the text. Letters without escapes are passed over at once, not one by one.

use memchr::memchr;

/// Bytes of the first character or escape; both escapes of a character beyond 16 bits are one. 0 at the text's end.
pub fn unit_len(text: &str) -> usize {
    let length = match text.as_bytes() {
        [] => 0,
        [
            b'\\',
            b'u',
            b'd' | b'D',
            b'8' | b'9' | b'a' | b'b' | b'A' | b'B',
            _,
            _,
            b'\\',
            b'u',
            b'd' | b'D',
            b'c'..=b'f' | b'C'..=b'F',
            ..,
        ] => 12,
        [b'\\', b'u', ..] => 6,
        [b'\\', ..] => 2,
        [0xf0..=0xff, ..] => 4,
        [0xe0..=0xef, ..] => 3,
        [0xc0..=0xdf, ..] => 2,
        _ => 1,
    };
    // Nothing inside of a JSON string ends in half an escape.
    match text.is_char_boundary(length) {
        true => length,
        false => text.len(),
    }
}

/// Cuts a text into pieces: each ends with the character or escape by which it has so many bytes at least, and the last
/// one with the text.
pub fn pieces(text: &str, bytes: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, behind) = rest.split_at_checked(piece_end(rest, bytes))?;
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Where the first piece of a text ends.
fn piece_end(text: &str, bytes: usize) -> usize {
    let mut end = 0;
    while end < bytes {
        let rest = text.get(end..).unwrap_or_default();
        let looked_at = rest.as_bytes();
        let looked_at = looked_at.get(..bytes - end).unwrap_or(looked_at);
        let Some(escape) = memchr(b'\\', looked_at) else {
            return text.ceil_char_boundary(bytes);
        };
        end += escape + unit_len(rest.get(escape..).unwrap_or_default());
    }
    end
}

#[cfg(test)]
mod tests;
