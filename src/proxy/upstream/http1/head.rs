//! The head of an answer, parsed by `httparse`.
//!
//! Promise: what httparse takes beside RFC 9112 is what services send: a bare LF for a line end, a blank before a
//! colon, folded values (5.2), which are unfolded. A head of more fields is none; nothing may stand before it.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderName, HeaderValue, Version};
use httparse::{ParserConfig, Response, Status};
use pingora::http::ResponseHeader;

use crate::protocol::names::members;
use crate::proxy::downstream::chunked::Malformed;

/// More than reach an app: the price in such a head counts.
const FIELDS_PARSED_MAX: usize = 256;

/// The head that `came` begins with, and its length. `None`: it has not come whole.
pub fn parse(came: &Bytes) -> Result<Option<(ResponseHeader, usize)>, Malformed> {
    // The parser skips empty lines, which only a request may have before it (2.2).
    if came.first().is_some_and(|first| *first != b'H') {
        return Err(Malformed);
    }
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_PARSED_MAX];
    let mut response = Response::new(&mut []);
    let parsed = ParserConfig::default()
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .parse_response_with_uninit_headers(&mut response, came, &mut fields);
    let length = match parsed.map_err(|_| Malformed)? {
        Status::Complete(length) => length,
        Status::Partial => return Ok(None),
    };
    let code = response.code.ok_or(Malformed)?;
    let mut head =
        ResponseHeader::build_no_case(code, Some(response.headers.len())).map_err(|_| Malformed)?;
    head.set_version(match response.version {
        Some(0) => Version::HTTP_10,
        _ => Version::HTTP_11,
    });
    // A head outlives what came with it: it does not hold the bytes of a body.
    let own = match came.len() / 2 > length {
        true => Bytes::copy_from_slice(came.get(..length).unwrap_or_default()),
        false => came.clone(),
    };
    for field in response.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| Malformed)?;
        let value = value(came, &own, field.value)?;
        head.append_header(name, value).map_err(|_| Malformed)?;
    }
    Ok(Some((head, length)))
}

/// Whether a head may end here, as leniently as the parser may see it.
pub fn has_blank_line(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', bytes).any(|at| {
        let next = bytes.get(at.saturating_add(1)..).unwrap_or_default();
        matches!(next, [b'\n', ..] | [b'\r', b'\n', ..])
    })
}

/// Whether a connection may carry a next request when the body of this answer has ended (9.3), and both ends surely
/// see the same end: with HTTP/1.0, a transfer coding is "faulty" (6.1), and so is a length beside one (6.3).
pub fn lets_continue(head: &ResponseHeader) -> bool {
    let has = |name: HeaderName| head.headers.contains_key(name);
    let is_http_10 = head.version == Version::HTTP_10;
    if has(TRANSFER_ENCODING) && (is_http_10 || has(CONTENT_LENGTH)) {
        return false;
    }
    let names = |wanted: &[u8]| {
        members(&head.headers, &CONNECTION).any(|option| option.eq_ignore_ascii_case(wanted))
    };
    !names(b"close") && (!is_http_10 || names(b"keep-alive"))
}

/// A field's value, which stands in `came`, as a part of `own`, which begins with the same bytes; folded lines become
/// one: "replace each received obs-fold with one or more SP" (5.2).
fn value(came: &Bytes, own: &Bytes, raw: &[u8]) -> Result<HeaderValue, Malformed> {
    let value = match memchr::memchr2(b'\r', b'\n', raw) {
        None => {
            let at = raw.as_ptr().addr().wrapping_sub(came.as_ptr().addr());
            let end = at.checked_add(raw.len()).ok_or(Malformed)?;
            own.get(at..end).ok_or(Malformed)?;
            own.slice(at..end)
        }
        Some(_) => {
            let lines = raw.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
            let lines: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
            Bytes::from(lines.join(&b' '))
        }
    };
    HeaderValue::from_maybe_shared(value).map_err(|_| Malformed)
}
