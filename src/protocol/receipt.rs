//! A receipt: the amount that the service reports for one answer. It arrives in response headers, in
//! SSE comment lines before `data: [DONE]`, or in a body field, and is kept exactly as received.
//!
//! Promise: an amount is an integer number of micro-USD or not known; the first positive one counts,
//! and a second, different one is an anomaly that is never added (rule I3); a 0 counts only if no other
//! value came, readable or not; nothing is estimated (rule I12).

pub mod lines;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::money::MicroUsd;
use crate::protocol::names::{IDEMPOTENT_REPLAYED, ServiceNames};
use crate::protocol::{Escalated, Reported, ServedBy, closed_set};

/// Longest kept specialist category, in bytes. A longer one is dropped: it becomes a metric label.
const SPECIALIST_BYTES_MAX: usize = 32;
/// Longest kept route version and input name, in bytes. Longer ones are cut.
const TEXT_BYTES_MAX: usize = 64;

closed_set! {
    /// Where the amount was read. `receipts_total{source}` uses the same words and a few more.
    ReceiptSource {
        Header => "header",
        Sse => "sse",
        Body => "body",
    }
}

/// What one answer reported about its price and its route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub billed: Reported<MicroUsd>,
    /// Where `billed` was found, readable or not. `None` while it is absent.
    pub source: Option<ReceiptSource>,
    pub would_have_cost: Reported<MicroUsd>,
    pub served_by: Option<ServedBy>,
    /// Coarse category, only when it is well-formed: `[a-z0-9-]{1,32}`.
    pub specialist: Option<String>,
    pub escalated: Escalated,
    /// Deploy stamp, at most 64 printable ASCII characters.
    pub route_version: Option<String>,
    /// `X-Service-Input-Required`: the answer is a clarification, billed 0.
    pub input_required: Option<String>,
    /// `Idempotent-Replayed: true`.
    pub replayed: bool,
    /// Billed amounts in one answer that follow the one that counts and differ from it. A 0 before
    /// an amount is not among them: a head may go out before the amount is known. A would-have-cost
    /// is an estimate and is not counted.
    pub conflicting_amounts: u32,
}

// === impl Receipt ===

impl Receipt {
    /// Reads the receipt fields of response headers. A stream has few of them; comments bring the rest.
    ///
    /// Of a repeated header the first value counts, of the billed amount the first that is not 0. Values
    /// outside the closed set of `Served-By` are `other`; see [`escalated`] for what a missing `Escalated`
    /// means.
    pub fn from_headers(names: &ServiceNames, headers: &HeaderMap) -> Self {
        let mut receipt = Self::default();
        for value in headers.get_all(&names.billed) {
            receipt = receipt.with_billed(amount(field_value(value)), ReceiptSource::Header);
        }
        for value in headers.get_all(&names.would_have_cost) {
            receipt = receipt.with_would_have_cost(amount(field_value(value)));
        }
        receipt.served_by = first(headers, &names.served_by).map(served_by);
        receipt.specialist = first(headers, &names.specialist).and_then(specialist);
        receipt.escalated = escalated(names, headers);
        receipt.route_version = first(headers, &names.route_version).and_then(stamp);
        receipt.input_required = first(headers, &names.input_required).and_then(input_required);
        receipt.replayed = first(headers, &IDEMPOTENT_REPLAYED) == Some(b"true");
        receipt
    }

    /// Reads the head of an answer whose body broke.
    pub fn from_broken_head(names: &ServiceNames, headers: &HeaderMap) -> Self {
        let receipt = Self::from_headers(names, headers);
        if is_event_stream(headers) {
            receipt.without_early_zero()
        } else {
            receipt
        }
    }

    /// Whether the only amount is a 0 in the head.
    ///
    /// Assumed: that 0 is a stream's amount if the stream came to its end, but not if it broke,
    /// because its head goes out before its amount is known. A clarification is known in its head.
    pub fn is_early_zero(&self) -> bool {
        self.billed == Reported::Value(MicroUsd::ZERO)
            && self.source == Some(ReceiptSource::Header)
            && self.input_required.is_none()
    }

    /// For a stream that broke: its amount would have followed the head.
    #[must_use]
    pub fn without_early_zero(mut self) -> Self {
        if self.is_early_zero() {
            self.billed = Reported::Absent;
            self.source = None;
        }
        self
    }

    /// With one comment line of a stream, `: name value`. Comments fill in what headers lacked; a
    /// billed amount that differs from an earlier one is a conflict. Names that are not receipts
    /// (keep-alives, other software) are ignored.
    #[must_use]
    pub fn with_comment(mut self, names: &ServiceNames, name: &[u8], value: &[u8]) -> Self {
        if *name == *names.comment_billed {
            return self.with_billed(amount(value), ReceiptSource::Sse);
        }
        if *name == *names.comment_would_have_cost {
            return self.with_would_have_cost(amount(value));
        }
        if *name == *names.comment_served_by {
            self.served_by = self.served_by.or_else(|| Some(served_by(value)));
        } else if *name == *names.comment_route_version && self.route_version.is_none() {
            self.route_version = stamp(value);
        }
        self
    }

    /// With the amount of a JSON body (`cost_micro_usd` of the frontier comparison).
    #[must_use]
    pub fn with_body_cost(self, cost: Reported<MicroUsd>) -> Self {
        self.with_billed(cost, ReceiptSource::Body)
    }

    /// The first value counts, readable or not, because bursar does not guess which of two is true.
    /// A 0 gives way to any other value: the first positive amount counts (rule I3), and an
    /// unreadable one may have been positive.
    fn with_billed(mut self, amount: Reported<MicroUsd>, source: ReceiptSource) -> Self {
        if amount.is_absent() {
            return self;
        }
        if matches!(
            self.billed,
            Reported::Absent | Reported::Value(MicroUsd::ZERO)
        ) {
            self.billed = amount;
            self.source = Some(source);
        } else if self.billed != amount {
            self.conflicting_amounts = self.conflicting_amounts.saturating_add(1);
        }
        self
    }

    fn with_would_have_cost(mut self, amount: Reported<MicroUsd>) -> Self {
        if self.would_have_cost.is_absent() {
            self.would_have_cost = amount;
        }
        self
    }
}

fn amount(text: &[u8]) -> Reported<MicroUsd> {
    MicroUsd::parse(text).map_or(Reported::Malformed, Reported::Value)
}

fn served_by(text: &[u8]) -> ServedBy {
    std::str::from_utf8(text)
        .ok()
        .and_then(ServedBy::from_word)
        .unwrap_or(ServedBy::Other)
}

fn specialist(text: &[u8]) -> Option<String> {
    let well_formed = (1..=SPECIALIST_BYTES_MAX).contains(&text.len())
        && text
            .iter()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-');
    if !well_formed {
        return None;
    }
    std::str::from_utf8(text).ok().map(str::to_owned)
}

/// A stamp identifies a revision, so one with foreign bytes is dropped, not repaired.
fn stamp(text: &[u8]) -> Option<String> {
    if text.is_empty() || !text.iter().all(|byte| is_printable(*byte)) {
        return None;
    }
    let kept = text.get(..TEXT_BYTES_MAX).unwrap_or(text);
    std::str::from_utf8(kept).ok().map(str::to_owned)
}

/// The header's presence makes the answer a clarification, so its text is repaired, not dropped.
fn input_required(text: &[u8]) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    let readable = text.iter().take(TEXT_BYTES_MAX).map(|byte| {
        if is_printable(*byte) {
            char::from(*byte)
        } else {
            '?'
        }
    });
    Some(readable.collect())
}

/// `true` only for exactly `true`, false for exactly `false`; anything else is not known.
///
/// A missing header means "not escalated" only where the service would have reported an escalation:
/// on an answer that names its route (`Served-By` is there) and is not a stream. An agent turn
/// carries its price but not its route, a stream's head is written before the route is decided, and
/// a direct model call carries neither: all of these stay unknown.
///
/// Assumed: so the header's absence there means false.
fn escalated(names: &ServiceNames, headers: &HeaderMap) -> Escalated {
    let mut words = headers.get_all(&names.escalated).iter().map(field_value);
    match words.next() {
        Some(word) if words.any(|other| other != word) => Escalated::Unknown,
        Some(b"true") => Escalated::True,
        Some(b"false") => Escalated::False,
        None if headers.contains_key(&names.served_by) && !is_event_stream(headers) => {
            Escalated::False
        }
        Some(_) | None => Escalated::Unknown,
    }
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    const EVENT_STREAM: &[u8] = b"text/event-stream";
    first(headers, &CONTENT_TYPE)
        .and_then(|value| value.get(..EVENT_STREAM.len()))
        .is_some_and(|media_type| media_type.eq_ignore_ascii_case(EVENT_STREAM))
}

fn first<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    headers.get(name).map(field_value)
}

/// The value without the optional white space around it, which is no part of a field's value
/// (RFC 9110, 5.5).
fn field_value(value: &HeaderValue) -> &[u8] {
    value.as_bytes().trim_ascii()
}

fn is_printable(byte: u8) -> bool {
    byte == b' ' || byte.is_ascii_graphic()
}

#[cfg(test)]
mod tests;
