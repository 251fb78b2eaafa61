//! JSON text that is carried as it is spelled.
//!
//! Why: a text that is decoded and encoded again comes out in another spelling, and one with half of a surrogate
//! pair (JavaScript cuts strings that way) cannot be decoded at all.
//!
//! Promise: what [`inside`] gives may stand between two quotes again, also joined with other such texts.

use serde_json::value::RawValue;

/// What stands between texts that the chat form has as one string.
const BETWEEN_TEXTS: &str = "\\n\\n";

/// The spelling of a JSON string between its quotes. `None`: the value is not a string.
pub fn inside(value: &RawValue) -> Option<&str> {
    value.get().strip_prefix('"')?.strip_suffix('"')
}

/// The text of a JSON string. `None`: the value is not a string, or has half of a surrogate pair.
pub fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

pub fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

/// `text` if it is one JSON object, without the space around it.
pub fn object(text: &str) -> Option<&str> {
    let value: &RawValue = serde_json::from_str(text).ok()?;
    is_object(value).then(|| value.get())
}

/// Writes a text as a JSON string.
pub fn push_text(out: &mut Vec<u8>, text: &str) {
    // Neither a text nor memory can fail to be written.
    let _ = serde_json::to_writer(out, text);
}

/// A text as a JSON string spells it between its quotes.
pub fn spelling(text: &str) -> String {
    let mut quoted = Vec::with_capacity(text.len());
    push_text(&mut quoted, text);
    let quoted = String::from_utf8(quoted).unwrap_or_default();
    let inside = quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    inside.unwrap_or_default().to_owned()
}

/// Writes spelled texts as one JSON string, a blank line between two of them. Empty ones add nothing.
pub fn push_joined(out: &mut Vec<u8>, texts: &[impl AsRef<str>]) {
    out.push(b'"');
    let mut is_first = true;
    let texts = texts.iter().map(AsRef::as_ref);
    for text in texts.filter(|text| !text.is_empty()) {
        if !is_first {
            out.extend_from_slice(BETWEEN_TEXTS.as_bytes());
        }
        out.extend_from_slice(text.as_bytes());
        is_first = false;
    }
    out.push(b'"');
}

/// Writes `parts` one behind the other.
pub fn push(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Cuts a text into pieces of about `bytes`, each at least one unit long: a character, or in a spelled text an
/// escape, of which the two of a surrogate pair are one.
pub fn pieces(text: &str, bytes: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = piece_end(rest, bytes);
        let (piece, after) = rest.split_at_checked(end)?;
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Where the first piece of `text` ends.
fn piece_end(text: &str, bytes: usize) -> usize {
    let mut end = 0;
    while end < bytes {
        let unit = unit_len(text.get(end..).unwrap_or_default());
        if unit == 0 {
            break;
        }
        end += unit;
    }
    end
}

/// The length of the first unit of a spelled text; 0 at its end.
pub fn unit_len(text: &str) -> usize {
    const ESCAPE: usize = 2;
    const CODE: usize = 6;
    let Some(first) = text.chars().next() else {
        return 0;
    };
    if first != '\\' {
        return first.len_utf8();
    }
    let is_half = |from: usize, high: bool| {
        let digits = text.get(from + ESCAPE..from + CODE);
        let code = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let half = if high {
            0xD800..=0xDBFF
        } else {
            0xDC00..=0xDFFF
        };
        text.get(from..from + ESCAPE) == Some("\\u")
            && code.is_some_and(|code| half.contains(&code))
    };
    let length = match text.as_bytes().get(1) {
        Some(b'u') if is_half(0, true) && is_half(CODE, false) => CODE * 2,
        Some(b'u') => CODE,
        _ => ESCAPE,
    };
    // No text that `inside` gave ends in half an escape.
    match text.is_char_boundary(length) {
        true => length,
        false => text.len(),
    }
}

#[cfg(test)]
mod tests;
