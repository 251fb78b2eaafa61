//! One request as the request log holds it, and what its line says about its course.
//!
//! Promise: it contains no key of an organization; what is not known yet is absent.

use crate::spec;
use serde::Serialize;

/// Interface, Errors: statuses that are transient.
const TRANSIENT: [u16; 7] = [408, 409, 429, 500, 502, 503, 504];
const CUTS: [&str; 6] = [
    "cut_before_head",
    "cut_before_work",
    "cut_after_chunks",
    "cut_after_bytes",
    "cut_before_receipt",
    "cut_before_done",
];

/// One request received, whatever its result.
#[derive(Clone, Debug, Serialize)]
pub struct Received {
    pub n: u64,
    pub at: String,
    /// Arrival, in milliseconds of the sandbox's clock.
    pub at_ms: u64,
    /// When the head went out, or when the connection was ended before it.
    pub ended_ms: Option<u64>,
    /// Whose key it carried.
    pub org: Option<String>,
    pub method: String,
    pub path: String,
    pub request_id: String,
    pub idempotency_key: Option<String>,
    /// `ok`, `bad`, `forbidden` or `absent`; never the key.
    pub authorization: &'static str,
    pub header_names: Vec<String>,
    pub session: Option<String>,
    pub body_bytes: Option<usize>,
    pub body_sha256: Option<String>,
    pub stream: bool,
    /// Absent while it runs, when the client left before the head, and when a fault ended the connection
    /// before it.
    pub status: Option<u16>,
    pub replayed: bool,
    /// The answer's `Retry-After`, when it was a number.
    pub retry_after_s: Option<u64>,
    /// `cut_before_head`, `status`, …: what a rule did to it.
    pub fault: Option<serde_json::Value>,
}

// === impl Received ===

impl Received {
    /// The connection ended before the answer did.
    pub fn was_cut(&self) -> bool {
        let cut = |fault: &serde_json::Value| CUTS.iter().any(|name| fault.get(name).is_some());
        self.fault.as_ref().is_some_and(cut)
    }

    /// A reason for a client to try again.
    pub fn failed(&self) -> bool {
        self.was_cut() || self.status.is_some_and(|status| status >= 400)
    }

    pub fn failed_transiently(&self) -> bool {
        self.was_cut()
            || self
                .status
                .is_some_and(|status| TRANSIENT.contains(&status))
    }

    pub fn is_keyed(&self) -> bool {
        self.method == "POST" && spec::KEYED.contains(&self.path.as_str())
    }

    /// Refused by a ceiling and not by a fault.
    pub fn met_ceiling(&self, retry_after_s: u32) -> bool {
        self.status == Some(429)
            && self.fault.is_none()
            && self.retry_after_s == Some(u64::from(retry_after_s))
    }
}
