use std::time::Duration;

use http::Method;

use super::*;
use crate::ledger::entry::Attempt;
use crate::protocol::routes::{Lookup, RouteTable};
use crate::proxy::purchase::backoff::Backoff;
use crate::proxy::purchase::retry::Bounds;

/// As of a chat, which honors a key, or of speech, which does not.
fn retries(attempts: Vec<Attempt>, keyed: bool) -> Retries {
    let path = match keyed {
        true => "/v1/chat/completions",
        false => "/v1/audio/speech",
    };
    let table = RouteTable::new(&[]);
    let Lookup::Found(route) = table.look_up(&Method::POST, path) else {
        panic!("no route {path}");
    };
    assert_eq!(route.keyed, keyed, "{path}");
    let backoff = Backoff {
        retries_max: 2,
        base: Duration::ZERO,
        cap: Duration::ZERO,
    };
    let deadline = Duration::MAX;
    let mut retries = Retries::new(route, Bounds { backoff, deadline });
    attempts
        .into_iter()
        .for_each(|attempt| retries.record(attempt));
    retries
}

#[test]
fn what_may_have_run_is_never_reported_as_not_sent() {
    let unsent = || Attempt::new(AttemptEnd::NotSent, None);
    let lost = || Attempt::new(AttemptEnd::NoHead, None);
    let running = || Attempt::new(AttemptEnd::Refused, Some(409));
    let busy = || Attempt::new(AttemptEnd::Refused, Some(503));
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
        let retries = retries(attempts, keyed);
        let found = code_of(last, retries.may_have_run());
        assert_eq!(found, wanted, "{retries:?}");
        let text = Refusal::new(found).detail;
        let says_so = text.contains("may have run");
        assert_eq!(says_so, retries.may_have_run(), "{retries:?}: {text}");
    }
}

#[test]
fn one_attempt_that_may_have_run_is_never_reported_as_none() {
    let busy = || Attempt::new(AttemptEnd::Refused, Some(503));
    let unsent = || Attempt::new(AttemptEnd::NotSent, None);
    let lost = || Attempt::new(AttemptEnd::NoHead, None);
    let running = || Attempt::new(AttemptEnd::Refused, Some(409));
    let rows = [
        (vec![busy()], true, "answered 503"),
        (vec![unsent()], true, "did not reach"),
        (vec![lost(), busy()], true, "may have run"),
        (vec![busy(), unsent()], true, "did not reach"),
        (vec![unsent(), lost()], true, "may have run"),
        (vec![running()], true, "may have run"),
        (vec![running()], false, "answered 409"),
    ];
    for (attempts, keyed, part) in rows {
        let retries = retries(attempts, keyed);
        let words = so_far(&retries).expect("there was an attempt");
        assert!(words.contains(part), "{words}");
        assert_eq!(retries.may_have_run(), part == "may have run");
    }
    assert_eq!(so_far(&retries(Vec::new(), true)), None);
}
