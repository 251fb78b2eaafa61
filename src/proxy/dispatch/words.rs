//! What an attempt's end is called: the code that the app reads, the label that is counted.
//!
//! Promise: one attempt that may have run is never told as none: what the app reads is what the entry is.

use http::StatusCode;

use crate::config::BaseUrl;
use crate::ledger::entry::{Attempt, AttemptEnd};
use crate::ledger::state::may_have_run;
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::upstream::exchange::{Cause, Lost};

/// What an app is told whose last attempt got no answer from the service at `base_url`.
pub fn refusal_of(lost: Lost, attempts: &[Attempt], keyed: bool, base_url: &BaseUrl) -> Refusal {
    let code = code_of(lost, attempts, keyed);
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
fn code_of(lost: Lost, attempts: &[Attempt], keyed: bool) -> Code {
    match lost {
        Lost::NoHead(Cause::Timeout) => Code::UpstreamTimeout,
        _ if may_have_run(attempts, keyed) => Code::OutcomeUnknown,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(end: AttemptEnd, status: Option<u16>) -> Attempt {
        Attempt {
            end,
            status,
            wait_ms: 0,
            took_ms: 0,
            cause: None,
            receipt_lines: Vec::new(),
        }
    }

    #[test]
    fn what_may_have_run_is_never_told_as_not_sent() {
        let unsent = || attempt(AttemptEnd::NotSent, None);
        let lost = || attempt(AttemptEnd::NoHead, None);
        let running = || attempt(AttemptEnd::Refused, Some(409));
        let busy = || attempt(AttemptEnd::Refused, Some(503));
        let connect = Lost::NotSent(Cause::Connect);
        let reset = Lost::NoHead(Cause::Reset);
        let timeout = Lost::NoHead(Cause::Timeout);
        let rows = [
            (connect, vec![unsent()], true, Code::UpstreamUnreachable),
            (
                connect,
                vec![busy(), unsent()],
                true,
                Code::UpstreamUnreachable,
            ),
            (
                connect,
                vec![running(), unsent()],
                true,
                Code::OutcomeUnknown,
            ),
            (
                connect,
                vec![running(), unsent()],
                false,
                Code::UpstreamUnreachable,
            ),
            (connect, vec![lost(), unsent()], true, Code::OutcomeUnknown),
            (
                Lost::NotSent(Cause::Name),
                vec![running(), unsent()],
                true,
                Code::OutcomeUnknown,
            ),
            (
                Lost::NotSent(Cause::Certificate),
                vec![unsent()],
                true,
                Code::UpstreamTls,
            ),
            (reset, vec![lost()], false, Code::OutcomeUnknown),
            (timeout, vec![lost()], false, Code::UpstreamTimeout),
        ];
        for (last, attempts, keyed, wanted) in rows {
            let told = code_of(last, &attempts, keyed);
            assert_eq!(told, wanted, "{attempts:?} {keyed}");
            let text = Refusal::new(told).detail;
            let is_told = text.contains("may have run");
            assert_eq!(
                is_told,
                may_have_run(&attempts, keyed),
                "{attempts:?}: {text}"
            );
        }
    }
}
