//! What an attempt's end is called: the code that the app reads, the label that is counted.
//!
//! Promise: one attempt that may have run is never told as none.

use http::StatusCode;

use crate::config::BaseUrl;
use crate::ledger::entry::{Attempt, AttemptEnd};
use crate::proxy::exchange::{Cause, Lost};
use crate::proxy::refuse::{Code, Refusal};

/// What an app is told whose last attempt got no answer from the service at `base_url`.
pub fn refusal_of(lost: Lost, attempts: &[Attempt], base_url: &BaseUrl) -> Refusal {
    let code = code_of(lost, attempts);
    let text = match (code, lost) {
        (Code::UpstreamTls, Lost::NotSent(Cause::NoTls)) => format!(
            "What answers at {base_url} speaks no TLS. Nothing was sent or billed. Check [upstream] base_url: \
             the port where the service speaks TLS, or http:// for a service on this machine."
        ),
        (Code::UpstreamTls, Lost::NotSent(Cause::Tls)) => format!(
            "The TLS handshake with {base_url} failed, so the key was not sent. Nothing was sent or billed. \
             Check [upstream] base_url; the daemon's log says what went wrong."
        ),
        _ => return code.into(),
    };
    Refusal::saying(code, text)
}

/// The code for an app whose last attempt got no answer. One attempt that may have run makes the
/// whole outcome unknown, whatever the last one was.
fn code_of(lost: Lost, attempts: &[Attempt]) -> Code {
    let ambiguous = attempts.iter().any(|attempt| {
        matches!(
            attempt.end,
            AttemptEnd::NoHead | AttemptEnd::Broken | AttemptEnd::Gateway
        )
    });
    match lost {
        Lost::NoHead(Cause::Timeout) => Code::UpstreamTimeout,
        _ if ambiguous => Code::OutcomeUnknown,
        Lost::NotSent(Cause::Name) => Code::UpstreamName,
        Lost::NotSent(Cause::Certificate | Cause::Tls | Cause::NoTls) => Code::UpstreamTls,
        Lost::NotSent(_) | Lost::NoHead(_) | Lost::StaleConnection => Code::UpstreamUnreachable,
    }
}

/// The label of `upstream_attempts_total{result}`.
pub fn attempt_result(end: AttemptEnd, status: Option<StatusCode>) -> &'static str {
    match end {
        AttemptEnd::NotSent => "not_sent",
        AttemptEnd::NoHead => "no_head",
        AttemptEnd::Answered => "ok",
        AttemptEnd::Broken => "broken",
        AttemptEnd::Gateway => "gateway",
        AttemptEnd::Refused => match status.map(|status| status.as_u16()) {
            Some(429) => "429",
            Some(503) => "503",
            Some(409) => "409",
            Some(500..=599) => "5xx",
            Some(300..=399) => "3xx",
            _ => "4xx",
        },
    }
}
