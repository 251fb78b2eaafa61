//! What an attempt's end is called: the code that the app reads, the label that is counted.
//!
//! Promise: one attempt that may have run is never reported as none: what the app reads is what the entry is.

use http::StatusCode;

use crate::config::BaseUrl;
use crate::ledger::entry::AttemptEnd;
use crate::proxy::purchase::lost::{Cause, Lost};
use crate::proxy::purchase::retry::Retries;
use crate::proxy::refuse::{Code, Refusal};

/// The refusal where the last attempt got no answer from the service at `base_url`. `may_have_run`: one
/// of its attempts.
pub fn refusal_of(lost: Lost, may_have_run: bool, base_url: &BaseUrl) -> Refusal {
    let code = code_of(lost, may_have_run);
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
fn code_of(lost: Lost, may_have_run: bool) -> Code {
    match lost {
        Lost::NoHead(Cause::Timeout) => Code::UpstreamTimeout,
        _ if may_have_run => Code::OutcomeUnknown,
        Lost::NotSent(Cause::Name) => Code::UpstreamName,
        Lost::NotSent(Cause::Certificate | Cause::Tls | Cause::NoTls) => Code::UpstreamTls,
        Lost::NotSent(_) | Lost::NoHead(_) | Lost::StaleConnection => Code::UpstreamUnreachable,
    }
}

/// What the attempts of a request came to that is refused between two of them.
pub fn so_far(retries: &Retries) -> Option<String> {
    let last = retries.attempts().last()?;
    Some(if retries.may_have_run() {
        "This is about a repeat; an attempt before it may have run: the entry is in doubt, and the \
         same request uses the same key where the route has one."
            .to_owned()
    } else if let Some(status) = last.status {
        format!(
            "This is about a repeat; the service answered {status} to the attempt before it, which \
             costs nothing."
        )
    } else {
        "This is about a repeat; the attempt before it did not reach the service.".to_owned()
    })
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

#[cfg(test)]
mod tests;
