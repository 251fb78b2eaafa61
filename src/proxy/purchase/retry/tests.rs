use http::Method;

use super::*;
use crate::protocol::Reported;
use crate::protocol::routes::{Lookup, RouteTable};

const PAUSE: Duration = Duration::from_secs(2);

fn retries(path: &str, attempts_before: usize) -> Retries {
    let table = RouteTable::new(&[]);
    let Lookup::Found(route) = table.look_up(&Method::POST, path) else {
        panic!("no route {path}");
    };
    let backoff = Backoff {
        retries_max: 2,
        base: PAUSE,
        cap: PAUSE,
    };
    let deadline = Duration::from_secs(600);
    let mut retries = Retries::new(route, Bounds { backoff, deadline });
    for _ in 0..attempts_before {
        retries.record(Attempt::new(AttemptEnd::NotSent, None));
    }
    retries
}

fn refused(status: u16) -> ErrorHead {
    ErrorHead {
        status: StatusCode::from_u16(status).unwrap(),
        has_json: true,
        declines: false,
        asked: None,
    }
}

fn receipt_of(amount: u64, replayed: bool) -> Receipt {
    Receipt {
        billed: Reported::Value(MicroUsd::new(amount)),
        replayed,
        ..Receipt::default()
    }
}

/// The table in the head of the file.
#[test]
fn each_end_of_an_attempt_is_recorded_and_repeated_by_the_routes_row() {
    let chat = "/v1/chat/completions";
    let speech = "/v1/audio/speech";
    let plain = |status| Ending::Refused(refused(status));
    let mute = |status| {
        Ending::Refused(ErrorHead {
            has_json: false,
            ..refused(status)
        })
    };
    let declined = Ending::Refused(ErrorHead {
        declines: true,
        ..refused(503)
    });
    let lost = |cause| Ending::Lost(Lost::NotSent(cause));
    let no_head = Ending::Lost(Lost::NoHead(Cause::Reset));
    let rows = [
        (chat, lost(Cause::Certificate), AttemptEnd::NotSent, None),
        (chat, lost(Cause::NoTls), AttemptEnd::NotSent, None),
        (
            chat,
            lost(Cause::Connect),
            AttemptEnd::NotSent,
            Some("not_sent"),
        ),
        (chat, no_head, AttemptEnd::NoHead, Some("no_head")),
        (speech, no_head, AttemptEnd::NoHead, None),
        (chat, Ending::Broken, AttemptEnd::Broken, Some("broken")),
        (speech, Ending::Broken, AttemptEnd::Broken, None),
        (chat, plain(429), AttemptEnd::Refused, Some("busy")),
        (chat, plain(503), AttemptEnd::Refused, Some("busy")),
        (chat, plain(409), AttemptEnd::Refused, Some("conflict")),
        (chat, plain(502), AttemptEnd::Refused, Some("transient")),
        (chat, mute(502), AttemptEnd::Refused, Some("transient")),
        (speech, mute(502), AttemptEnd::Gateway, None),
        (speech, mute(504), AttemptEnd::Gateway, None),
        (chat, declined, AttemptEnd::Refused, None),
        (chat, plain(400), AttemptEnd::Refused, None),
    ];
    for (path, ending, end, reason) in rows {
        let retries = retries(path, 1);
        assert_eq!(retries.end_of(&ending), end, "{path} {ending:?}");
        let repeats = match retries.next(&ending, 0, Duration::ZERO, true) {
            Next::Repeat(repeat) => Some(repeat.reason),
            Next::Exhausted | Next::Stop => None,
        };
        assert_eq!(repeats, reason, "{path} {ending:?}");
    }
}

#[test]
fn nothing_is_repeated_without_an_attempt_time_or_a_key_left() {
    let path = "/v1/chat/completions";
    let busy = Ending::Refused(ErrorHead {
        asked: Some(PAUSE),
        ..refused(429)
    });
    let late = Duration::from_secs(600).saturating_sub(PAUSE);
    let again = Next::Repeat(Repeat {
        wait: PAUSE,
        reason: "busy",
        fresh_connection: false,
    });
    let in_time = late.saturating_sub(Duration::from_nanos(1));
    let next = |attempts, now, may_repeat| retries(path, attempts).next(&busy, 0, now, may_repeat);
    assert_eq!(next(1, in_time, true), again);
    assert_eq!(next(2, in_time, true), again);
    assert_eq!(next(3, in_time, true), Next::Exhausted);
    assert_eq!(next(1, late, true), Next::Stop);
    assert_eq!(next(1, in_time, false), Next::Stop);
    let stale = Ending::Lost(Lost::StaleConnection);
    let at_once = Next::Repeat(Repeat {
        wait: Duration::ZERO,
        reason: "no_head",
        fresh_connection: true,
    });
    assert_eq!(retries(path, 1).next(&stale, u32::MAX, late, true), at_once);
}

#[test]
fn the_amount_of_a_broken_replay_is_not_the_keys() {
    let mut retries = retries("/v1/chat/completions", 1);
    retries.saw_broken_head(|| receipt_of(77_777, true));
    assert_eq!(retries.broken_billed(), None);
    retries.saw_broken_head(|| receipt_of(5, false));
    let five = Some(MicroUsd::new(5));
    assert_eq!(retries.broken_billed(), five, "the real one is kept");
    retries.saw_broken_head(|| receipt_of(0, true));
    assert_eq!(retries.broken_billed(), five, "the first stands");
}

/// By what the route, the entry, the attempts and the refusal say of another try.
#[test]
fn an_app_is_asked_not_to_repeat_what_bursar_repeated_or_cannot_recognise() {
    let (chat, speech) = ("/v1/chat/completions", "/v1/audio/speech");
    let rows = [
        ("a first failure", chat, true, 0, false, None, false),
        ("all attempts were made", chat, true, 0, true, None, true),
        (
            "a repeat is of no use",
            chat,
            true,
            0,
            false,
            Some(false),
            true,
        ),
        ("it may have run", chat, false, 0, true, Some(false), false),
        ("its key was taken over", chat, false, 2, false, None, false),
        (
            "and over again",
            chat,
            false,
            ADOPTIONS_MAX,
            false,
            None,
            true,
        ),
        (
            "an agent that repeats more often",
            "/agent/v1/messages",
            false,
            ADOPTIONS_MAX,
            false,
            None,
            false,
        ),
        (
            "and over again",
            "/v1/responses",
            false,
            TRANSLATED_ADOPTIONS_MAX,
            false,
            None,
            true,
        ),
        ("nothing recognises it", speech, true, 0, false, None, true),
    ];
    for (what, path, is_known_zero, adoptions, exhausted, own, wanted) in rows {
        let is_final = retries(path, 1).is_final(is_known_zero, adoptions, exhausted, own);
        assert_eq!(is_final, wanted, "{what}");
    }
}
