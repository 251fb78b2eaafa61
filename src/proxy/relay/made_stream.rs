//! A whole agent turn given as the event stream that its app asked for (`[streams] agent_receipts =
//! "exact"`): the interface tells the price of whole turns only.
//!
//! Promise: the turn is settled before a byte goes out; an error stays the error that it is, with its
//! status. No head goes out early: it would have to say 200 before that is known, and an error
//! inside a stream is one that SDKs neither show as their own kind nor retry.

use bytes::Bytes;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use pingora::http::ResponseHeader;

use super::{Answered, Relay};
use crate::ledger::entry::AttemptEnd;
use crate::protocol::body::as_event_stream;
use crate::proxy::dispatch::Flowing;
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::settle::Gathered;

impl Relay<'_> {
    /// The body as the app wants it, with its head. `None`: the answer is given as it is.
    pub(super) fn made_stream(&self, head: &mut ResponseHeader, body: &Bytes) -> Option<Bytes> {
        if !self.made_stream || !head.status.is_success() {
            return None;
        }
        let stream = as_event_stream(body)?;
        let type_ = HeaderValue::from_static("text/event-stream; charset=utf-8");
        let cache = HeaderValue::from_static("no-cache");
        head.insert_header(CONTENT_TYPE, type_).ok()?;
        head.insert_header(CACHE_CONTROL, cache).ok()?;
        Some(Bytes::from(stream))
    }

    /// A turn too large to be made into a stream. Its amount is known from its head.
    pub(super) async fn too_large(&mut self, flowing: Flowing) -> (Answered, bool) {
        let headers = &flowing.answering.head.headers;
        let gathered = Gathered::from_head(&self.settings, headers);
        self.dispatch
            .record_flow(&flowing, AttemptEnd::Broken, Some("too_large"));
        let settled = self.settle(&gathered, None).await;
        flowing.answering.abandon().await;
        let code = match settled {
            Ok(()) => Code::UpstreamBroken,
            Err(_) => Code::LedgerUnavailable,
        };
        let refusal = Refusal::new(code);
        let keep = self.give_refusal(&refusal).await;
        let answered = Answered {
            status: refusal.status().as_u16(),
            code: Some(code),
            stream: false,
        };
        (answered, keep)
    }
}
