//! Framing and request line, judged on the raw bytes of the head. The parser (httparse) is lenient in
//! places (bare LF, folded lines, lists and duplicates of Content-Length, a Content-Length beside
//! Transfer-Encoding), and two parsers that read one request differently are how requests are smuggled.

use std::borrow::Cow;

use http::Version;

use crate::protocol::routes::model_id_start;
use crate::proxy::refuse::{Code, Refusal};

/// Most fields in a head.
const FIELDS_MAX: usize = 100;

/// Longest request target.
const TARGET_BYTES_MAX: usize = 8 * 1024;

const ESCAPED_SLASH: &[u8] = b"%2f";

/// How long the body is and how it is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// 0 where the head has none, and for a chunked body.
    pub content_length: u64,
    pub chunked: bool,
}

/// The request line's target, as it came.
#[derive(Debug, PartialEq, Eq)]
pub struct RequestLine {
    pub target: String,
}

// === impl Framing ===

impl Framing {
    pub fn read(raw_head: &[u8], version: Version) -> Result<Self, Refusal> {
        let (mut lengths, mut encodings, mut hosts, mut fields) = (Vec::new(), Vec::new(), 0, 0);
        for line in field_lines(raw_head)? {
            let Some(colon) = memchr::memchr(b':', line) else {
                return Err(Refusal::because(
                    Code::HeadMalformed,
                    "A header line has no colon.",
                ));
            };
            let (name, value) = line.split_at(colon);
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            fields += 1;
            match name {
                name if name.eq_ignore_ascii_case(b"content-length") => lengths.push(value),
                name if name.eq_ignore_ascii_case(b"transfer-encoding") => encodings.push(value),
                name if name.eq_ignore_ascii_case(b"host") => hosts += 1,
                name if name.eq_ignore_ascii_case(b"upgrade") => check_upgrade(value)?,
                _ => {}
            }
        }
        if fields > FIELDS_MAX {
            return Err(Refusal::because(
                Code::HeadTooLarge,
                format!("The head has more than {FIELDS_MAX} fields."),
            ));
        }
        match (version, hosts) {
            (Version::HTTP_11, 1) | (Version::HTTP_10, 0 | 1) => {}
            _ => {
                return Err(Refusal::because(
                    Code::HeadMalformed,
                    "One Host header is needed, and HTTP/1.0 or 1.1.",
                ));
            }
        }
        match (lengths.as_slice(), encodings.as_slice()) {
            ([], []) => Ok(Self {
                content_length: 0,
                chunked: false,
            }),
            ([length], []) => Ok(Self {
                content_length: read_length(length)?,
                chunked: false,
            }),
            ([], [encoding])
                if encoding.eq_ignore_ascii_case(b"chunked") && version == Version::HTTP_11 =>
            {
                Ok(Self {
                    content_length: 0,
                    chunked: true,
                })
            }
            _ => Err(Code::LengthRefused.into()),
        }
    }

    pub fn has_body(self) -> bool {
        self.chunked || self.content_length > 0
    }
}

/// Plain digits, few enough that no reader can overflow on them.
fn read_length(value: &[u8]) -> Result<u64, Refusal> {
    let plain = (1..=15).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value)
        .ok()
        .filter(|_| plain)
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| Code::LengthRefused.into())
}

/// An offer of HTTP/2 may be ignored (Java's client makes one on every request); anything else
/// wants a protocol that is not relayed.
///
/// Assumed: the interface does not speak of upgrades.
fn check_upgrade(value: &[u8]) -> Result<(), Refusal> {
    if value.eq_ignore_ascii_case(b"h2c") {
        return Ok(());
    }
    Err(Refusal::because(
        Code::HeaderRefused,
        "Upgrade to another protocol is not relayed.",
    ))
}

/// The field lines of a head, without their CRLF. Bare LF, bare CR, NUL and folded lines are
/// refused.
fn field_lines(raw_head: &[u8]) -> Result<Vec<&[u8]>, Refusal> {
    let malformed = |what: &str| Err(Refusal::because(Code::HeadMalformed, what));
    let mut lines = Vec::new();
    let mut rest = raw_head;
    let mut is_request_line = true;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let (line, after) = rest.split_at(end);
        rest = after.get(1..).unwrap_or_default();
        let Some(line) = line.strip_suffix(b"\r") else {
            return malformed("A line of the head ends in a bare line feed.");
        };
        if memchr::memchr2(b'\r', 0, line).is_some() {
            return malformed("The head has a bare carriage return or a NUL.");
        }
        if is_request_line {
            is_request_line = false;
            continue;
        }
        match line.first() {
            None => return Ok(lines),
            Some(b' ' | b'\t') => return malformed("A header line is folded."),
            Some(_) => lines.push(line),
        }
    }
    malformed("The head does not end.")
}

// === impl RequestLine ===

impl RequestLine {
    pub fn read(raw_head: &[u8]) -> Result<Self, Refusal> {
        let line = raw_head
            .split(|byte| *byte == b'\r')
            .next()
            .unwrap_or_default();
        let mut words = line.split(|byte| *byte == b' ');
        let (Some(_method), Some(target), Some(_version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(Refusal::because(
                Code::HeadMalformed,
                "The request line is not METHOD TARGET VERSION.",
            ));
        };
        check_target(target)?;
        let target = String::from_utf8(target.to_vec()).map_err(|_| Code::PathRefused)?;
        Ok(Self { target })
    }

    /// The target without its query.
    pub fn path(&self) -> &str {
        self.target
            .split_once('?')
            .map_or(self.target.as_str(), |(path, _)| path)
    }
}

/// Origin-form, visible ASCII, and no form of a path that another reader may normalise to
/// something else.
fn check_target(target: &[u8]) -> Result<(), Refusal> {
    if target.first() != Some(&b'/') {
        return Err(Refusal::because(
            Code::PathRefused,
            "The request target has to start with a slash.",
        ));
    }
    let visible = target.iter().all(|byte| (0x21..=0x7e).contains(byte));
    if target.len() > TARGET_BYTES_MAX || !visible || target.contains(&b'#') {
        return Err(Code::PathRefused.into());
    }
    let path = target
        .split(|byte| *byte == b'?')
        .next()
        .unwrap_or_default();
    let judged = with_plain_slashes(path);
    let path = judged.as_ref();
    let has_trick = path.contains(&b'\\')
        || path.windows(2).any(|pair| pair == b"//")
        || path
            .split(|byte| *byte == b'/')
            .any(|segment| segment == b"." || segment == b"..")
        || path.windows(3).any(is_path_escape);
    if has_trick {
        return Err(Code::PathRefused.into());
    }
    Ok(())
}

/// The path, with the slashes of a model's id unescaped: an id may have some, and is sent nowhere. As plain ones they
/// are judged like any other.
fn with_plain_slashes(path: &[u8]) -> Cow<'_, [u8]> {
    let id = model_id_start(path).and_then(|start| path.split_at_checked(start));
    let Some((before, mut id)) = id.filter(|(_, id)| id.contains(&b'%')) else {
        return path.into();
    };
    let mut plain = before.to_vec();
    while let [first, rest @ ..] = id {
        match id.split_at_checked(ESCAPED_SLASH.len()) {
            Some((escape, behind)) if escape.eq_ignore_ascii_case(ESCAPED_SLASH) => {
                plain.push(b'/');
                id = behind;
            }
            _ => {
                plain.push(*first);
                id = rest;
            }
        }
    }
    plain.into()
}

/// Escapes of NUL, dot, slash and backslash.
fn is_path_escape(window: &[u8]) -> bool {
    [&b"%00"[..], b"%2e", b"%2f", b"%5c"]
        .iter()
        .any(|escape| window.eq_ignore_ascii_case(escape))
}

#[cfg(test)]
mod tests;
