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

#[cfg(test)]
mod tests;
