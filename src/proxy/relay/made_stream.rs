//! A whole agent turn given as the event stream that its app asked for (`[streams] agent_receipts =
//! "exact"`): the interface names the price of whole turns only.
//!
//! Promise: the turn is settled before a byte goes out; an error stays the error that it is, with its
//! status. No head goes out early: it would have to say 200 before that is known, and an error
//! inside a stream is one that SDKs neither show as their own kind nor retry.

use bytes::Bytes;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use pingora::http::ResponseHeader;

use crate::protocol::body::as_event_stream;

/// The body as an event stream, with its head. `None`: the answer is given as it is.
pub(super) fn made_stream(head: &mut ResponseHeader, body: &Bytes) -> Option<Bytes> {
    if !head.status.is_success() {
        return None;
    }
    let stream = as_event_stream(body)?;
    let type_ = HeaderValue::from_static("text/event-stream; charset=utf-8");
    let cache = HeaderValue::from_static("no-cache");
    head.insert_header(CONTENT_TYPE, type_).ok()?;
    head.insert_header(CACHE_CONTROL, cache).ok()?;
    Some(Bytes::from(stream))
}
