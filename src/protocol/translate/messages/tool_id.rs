//! Ids of tool calls in the form that the dialect allows: `[A-Za-z0-9_-]+`.
//!
//! Why: services call them `functions.Bash:0` or `call.1`; Anthropic's own API refuses a history with such ids.
//!
//! Promise: [`restored`] of [`shown`] is the service's id, so a later turn names the call as the service did. An id of
//! the allowed form stays as it is.

/// How an id begins that was put into the allowed form. What follows is the service's id; of it, all but letters,
/// digits and `-` stand as `_` and two hexadecimal digits a byte.
const MARK: &str = "tx_";

/// The id that the app gets for the service's `id`, which is not empty.
pub fn shown(id: &str) -> String {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if id.bytes().all(is_allowed) && !id.starts_with(MARK) {
        return id.to_owned();
    }
    let mut shown = String::from(MARK);
    for byte in id.bytes() {
        match byte {
            b'-' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => shown.push(char::from(byte)),
            _ => {
                shown.push('_');
                shown.extend([byte >> 4, byte & 0xF].map(hex_digit));
            }
        }
    }
    shown
}

/// The service's id that was shown as `id`. `None`: `id` is the service's own, or of another origin.
pub fn restored(id: &str) -> Option<String> {
    let mut rest = id.strip_prefix(MARK)?.bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'_' => hex_value(rest.next()?)? << 4 | hex_value(rest.next()?)?,
            byte => byte,
        });
    }
    let restored = String::from_utf8(bytes).ok()?;
    (shown(&restored) == id).then_some(restored)
}

fn hex_digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).unwrap_or('0')
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests;
