//! An attempt's place at the service, and what the service's answers say of its ceilings, its account and
//! its health.
//!
//! Promise: a place is given back as soon as the attempt is over at the service; each answer is heard once.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use pingora::http::ResponseHeader;

use super::words::refusal_of;
use crate::config::BaseUrl;
use crate::proxy::key_record::KeyRecord;
use crate::proxy::limits::breaker::Pass;
use crate::proxy::limits::queue::adaptive_limits::Busy;
use crate::proxy::limits::queue::{Drained, UpstreamSlot};
use crate::proxy::purchase::backoff::asked_wait;
use crate::proxy::purchase::lost::{Cause, Lost};
use crate::proxy::upstream::exchange::{Answering, Failed};

/// An answer's words are looked at up to here.
const WORDS_BYTES_MAX: usize = 1024;

/// Leave to ask the service.
pub struct UpstreamPlace {
    /// `None` between attempts, and where no place is needed. That of the last attempt is given back with
    /// its price.
    slot: Option<UpstreamSlot>,
    pass: Pass,
    key_record: Arc<KeyRecord>,
    is_metered: bool,
}

// === impl UpstreamPlace ===

impl UpstreamPlace {
    pub fn new(
        slot: Option<UpstreamSlot>,
        pass: Pass,
        key_record: Arc<KeyRecord>,
        is_metered: bool,
    ) -> Self {
        Self {
            slot,
            pass,
            key_record,
            is_metered,
        }
    }

    pub fn take_over(&mut self, slot: UpstreamSlot) {
        self.slot = Some(slot);
    }

    pub fn give_back(&mut self) {
        self.slot = None;
    }

    /// To be given back by the caller.
    pub fn take(&mut self) -> Option<UpstreamSlot> {
        self.slot.take()
    }

    pub fn slot(&self) -> Option<&UpstreamSlot> {
        self.slot.as_ref()
    }

    /// Others may ask for it from now on.
    pub fn drains(&self) -> Option<Drained> {
        self.slot.as_ref().map(UpstreamSlot::drains)
    }

    pub fn sends(&self) {
        if let Some(slot) = &self.slot {
            slot.sends();
        }
    }

    /// There is no answer: how far the attempt got.
    pub fn lost(&mut self, failed: &Failed, base_url: &BaseUrl) {
        let lost = failed.lost;
        if did_not_connect(lost) {
            self.pass.unreached(refusal_of(lost, false, base_url));
        } else {
            self.pass.reached();
        }
        match (lost, &self.slot) {
            (Lost::NotSent(_), Some(slot)) => slot.not_sent(),
            (_, Some(slot)) => slot.arrived(),
            (_, None) => {}
        }
    }

    /// The head of an answer has come.
    pub fn heard(&mut self, answering: &Answering) {
        let status = answering.head().status;
        self.pass.reached();
        self.key_record.heard(status, self.is_metered);
        if self.is_metered {
            self.pass.answered(status);
        }
        if let Some(slot) = &self.slot {
            slot.arrived();
            if status.is_success() {
                slot.served();
            }
        }
    }

    /// A refusal was read; a 429 says that bursar lets too much go.
    pub fn heard_refusal(&self, head: &ResponseHeader, body: Option<&Bytes>, wall_ms: u64) {
        let Some(slot) = &self.slot else { return };
        if head.status == StatusCode::TOO_MANY_REQUESTS {
            slot.busy(Busy {
                asked: asked_wait(&head.headers, wall_ms),
                names_rate: body.is_some_and(|body| names_rate(body)),
            });
        }
    }
}

/// Nothing of the request can have left: there was no connection to the service.
fn did_not_connect(lost: Lost) -> bool {
    match lost {
        Lost::NotSent(cause) => matches!(
            cause,
            Cause::Name
                | Cause::Connect
                | Cause::ConnectTimeout
                | Cause::Tls
                | Cause::NoTls
                | Cause::Certificate
        ),
        Lost::NoHead(_) | Lost::StaleConnection => false,
    }
}

/// Assumed: the words of a 429 keep the rate's apart from the other ceiling's where `Retry-After` does not.
fn names_rate(body: &[u8]) -> bool {
    let start = body.get(..WORDS_BYTES_MAX).unwrap_or(body);
    let text = String::from_utf8_lossy(start).to_ascii_lowercase();
    let words = || text.split(|letter: char| !letter.is_ascii_alphanumeric());
    words().any(|word| matches!(word, "rate" | "minute"))
        && !words().any(|word| matches!(word, "concurrency" | "concurrent" | "flight"))
}

#[cfg(test)]
mod tests;
