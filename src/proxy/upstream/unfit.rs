//! Answers whose head was read and that are not handed on: a head larger than an app can be expected
//! to take, and a body in a transfer coding that was not asked for and is not undone here.
//!
//! Promise: judged by the head alone; a price in such a head still counts, for the work
//! was done.

use http::header::TRANSFER_ENCODING;
use pingora::http::ResponseHeader;
use pingora::protocols::http::client::HttpSession;

/// "64 KiB response header", and as many fields as a request may have.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const FIELDS_MAX: usize = 100;

/// `": "` and the line end of a field.
const FIELD_EXTRA_BYTES: usize = 4;

/// Whether an answer cannot be handed on.
pub fn is_unfit(head: &ResponseHeader, session: &HttpSession) -> bool {
    is_too_large(head, session) || has_foreign_coding(head)
}

fn is_too_large(head: &ResponseHeader, session: &HttpSession) -> bool {
    let bytes = match session {
        HttpSession::H1(session) => session.get_headers_raw_bytes().len(),
        _ => head
            .headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + FIELD_EXTRA_BYTES)
            .sum(),
    };
    bytes > HEAD_BYTES_MAX || head.headers.len() > FIELDS_MAX
}

/// Every request says that it takes no coding, and `chunked` needs no saying.
fn has_foreign_coding(head: &ResponseHeader) -> bool {
    let mut codings = head.headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => false,
        (Some(only), None) => !only
            .as_bytes()
            .trim_ascii()
            .eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => true,
    }
}

/// Whether a head has a length beside a transfer coding: another reader of the same bytes may see
/// another end, so nothing may follow on this connection (RFC 9112, 6.3).
pub fn is_framed_twice(session: &HttpSession) -> bool {
    let HttpSession::H1(session) = session else {
        return false;
    };
    let head = session.get_headers_raw_bytes();
    let has = |wanted: &[u8]| {
        head.split(|byte| *byte == b'\n').any(|line| {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            name.trim_ascii().eq_ignore_ascii_case(wanted)
        })
    };
    has(b"transfer-encoding") && has(b"content-length")
}
