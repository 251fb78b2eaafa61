//! Answers whose head was read and that are not handed on: a head larger than an app can be expected
//! to take, and a body in a transfer coding that was not asked for and is not undone here.
//!
//! Promise: judged by the head alone; a price in such a head still counts, for the work
//! was done.

use pingora::http::ResponseHeader;

use super::http1::TransferCoding;

/// "64 KiB response header", and as many fields as a request may have.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const FIELDS_MAX: usize = 100;

/// `": "` and the line end of a field.
const FIELD_EXTRA_BYTES: usize = 4;

/// Whether an answer cannot be handed on. `head_bytes`: of its head as it came, where it came as bytes.
pub fn is_unfit(head: &ResponseHeader, head_bytes: Option<usize>) -> bool {
    is_too_large(head, head_bytes) || TransferCoding::of(&head.headers) == TransferCoding::Foreign
}

fn is_too_large(head: &ResponseHeader, head_bytes: Option<usize>) -> bool {
    let fields = head.headers.iter();
    let bytes = head_bytes.unwrap_or_else(|| {
        fields
            .map(|(name, value)| name.as_str().len() + value.len() + FIELD_EXTRA_BYTES)
            .sum()
    });
    bytes > HEAD_BYTES_MAX || head.headers.len() > FIELDS_MAX
}
