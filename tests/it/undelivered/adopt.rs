//! Adopt: if bursar holds nothing of the answer any more, the same key goes out again.

use bursar::ledger::entry::{InDoubt, KeyOrigin, State};
use bursar::money::MicroUsd;

use super::{ask, avoided, key, left, on_cue, send};
use crate::support::origin::{billed, json};
use crate::support::{Answer, Bursar, Origin, Step, chat};

const ONCE: &str = "[retry]\nattempts = 1\n";

fn busy() -> Step {
    Step::Answer(json(503, &[], r#"{"detail":"busy"}"#))
}

fn entry_id(answer: &Answer) -> Option<&str> {
    answer.header("x-bursar-entry")
}

#[tokio::test]
async fn after_an_ambiguous_failure_the_same_key_goes_out_again() {
    let conflict = || Step::Answer(json(409, &[], r#"{"detail":"still running"}"#));
    let cut = || {
        Step::AnswerAndClose(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
                .to_vec(),
        )
    };
    let empty_stream = || Step::AnswerAndClose(crate::support::origin::stream_head());
    let rows: [(&str, fn() -> Step); 5] = [
        ("close", || Step::Close),
        ("reset", || Step::Reset),
        ("409", conflict),
        ("cut", cut),
        ("a stream without a byte", empty_stream),
    ];
    for (name, failure) in rows {
        let origin =
            Origin::start([failure(), Step::Answer(billed(7)), Step::Answer(billed(8))]).await;
        let bursar = Bursar::with(&origin.url(), ONCE).await;
        let first = ask(&bursar, &chat("hi"), &[]).await;
        assert!(first.status >= 409, "{name}: {}", first.status);
        assert_eq!(
            first.header("x-should-retry"),
            None,
            "{name}: the app's retry is welcome"
        );
        let second = ask(&bursar, &chat("hi"), &[]).await;
        assert_eq!(second.status, 200, "{name}: {}", second.text());
        assert_eq!(
            second.header("x-bursar-adopted"),
            entry_id(&first),
            "{name}"
        );
        assert_ne!(
            entry_id(&second),
            entry_id(&first),
            "{name}: an entry of its own"
        );
        assert_eq!(key(&origin, 0), key(&origin, 1), "{name}: one key");
        assert_eq!(bursar.billed(), 7, "{name}");
        assert_eq!(avoided(&bursar), 7, "{name}: one repeat was no purchase");
        let entries = bursar.settled(2).await;
        // The key's amount came: the first entry adds nothing and is no longer in doubt.
        assert_eq!(
            entries[0].state,
            State::Reconciled {
                billed: MicroUsd::ZERO
            },
            "{name}"
        );
        assert_eq!(
            entries[1].state,
            State::Settled {
                billed: MicroUsd::new(7)
            },
            "{name}"
        );
        assert_eq!(
            entries[1].key_origin,
            Some(KeyOrigin::Adopted {
                from: entries[0].id
            }),
            "{name}"
        );
        let third = ask(&bursar, &chat("hi"), &[]).await;
        assert_eq!(
            third.header("x-bursar-adopted"),
            None,
            "{name}: a third is a new purchase"
        );
        assert_ne!(key(&origin, 1), key(&origin, 2), "{name}");
        let adopted = bursar.metric("bursar_adopted_retries_total", "");
        assert!((adopted - 1.0).abs() < 0.1, "{name}: {adopted}");
    }
}

/// The price of an adopted replay stands on another entry, and is what the repeat did not cost.
#[tokio::test]
async fn a_repeat_that_is_replayed_avoided_the_price_of_its_first_try() {
    let origin = Origin::start([on_cue(billed(7))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    drop(send(&bursar, &origin, &chat("hi"), &[]).await);
    left(&bursar, 1).await;
    origin.go();
    bursar.settled(1).await;
    let bursar = bursar.restart("").await;
    let replay = [("X-Service-Billed", "0"), ("Idempotent-Replayed", "true")];
    origin.push(Step::Answer(json(200, &replay, "{}")));

    let second = ask(&bursar, &chat("hi"), &[]).await;

    assert!(second.header("x-bursar-adopted").is_some());
    let entries = bursar.settled(2).await;
    assert_eq!(entries[1].state, State::Replayed);
    assert_eq!((bursar.billed(), avoided(&bursar)), (7, 7));
}

/// "an adopted request that stays undelivered passes the key on".
#[tokio::test]
async fn a_key_is_passed_on_until_its_answer_is_delivered() {
    let rows: [(&str, Vec<Step>); 4] = [
        ("lost twice", vec![Step::Close, Step::Close]),
        ("refused in between", vec![Step::Close, busy()]),
        (
            "out of money in between",
            vec![
                Step::Close,
                Step::Answer(json(402, &[], r#"{"detail":"empty"}"#)),
            ],
        ),
        (
            "cut in between",
            vec![
                Step::Close,
                Step::AnswerAndClose(crate::support::origin::stream_head()),
            ],
        ),
    ];
    for (name, mut steps) in rows {
        steps.push(Step::Answer(billed(7)));
        steps.push(Step::Answer(billed(8)));
        let origin = Origin::start(steps).await;
        let bursar = Bursar::with(&origin.url(), ONCE).await;
        for _ in 0..2 {
            let answer = ask(&bursar, &chat("hi"), &[]).await;
            assert_ne!(answer.status, 200, "{name}");
            if answer.status != 402 {
                let should_retry = answer.header("x-should-retry");
                assert_eq!(
                    should_retry, None,
                    "{name}: the first may have run, so a retry is welcome"
                );
            }
        }
        let answer = ask(&bursar, &chat("hi"), &[]).await;
        assert_eq!(answer.status, 200, "{name}");
        assert_eq!(key(&origin, 0), key(&origin, 1), "{name}");
        assert_eq!(
            key(&origin, 0),
            key(&origin, 2),
            "{name}: the third is the same purchase"
        );
        bursar.forget_refusals();
        ask(&bursar, &chat("hi"), &[]).await;
        assert_ne!(
            key(&origin, 2),
            key(&origin, 3),
            "{name}: the fourth is not"
        );
    }
}

#[tokio::test]
async fn a_key_that_was_adopted_three_times_asks_the_app_to_stop() {
    let origin = Origin::always(Step::Close).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    let mut should_retry = Vec::new();
    for _ in 0..4 {
        let answer = ask(&bursar, &chat("hi"), &[]).await;
        should_retry.push(answer.header("x-should-retry").map(str::to_owned));
    }
    assert_eq!(should_retry, [None, None, None, Some("false".to_owned())]);
    let keys: Vec<_> = (0..4).map(|index| key(&origin, index)).collect();
    assert!(keys.iter().all(|one| *one == keys[0]), "{keys:?}");
}

/// A known 0 is closed: what follows is a purchase of its own.
#[tokio::test]
async fn a_failure_that_cost_nothing_is_not_adopted() {
    let refusals = [400, 402, 422, 429, 500, 503];
    for status in refusals {
        let refusal = Step::Answer(json(status, &[], r#"{"detail":"no"}"#));
        let origin = Origin::start([refusal, Step::Answer(billed(7))]).await;
        let bursar = Bursar::with(&origin.url(), ONCE).await;
        assert_eq!(ask(&bursar, &chat("hi"), &[]).await.status, status);
        bursar.forget_refusals();
        let answer = ask(&bursar, &chat("hi"), &[]).await;
        assert_eq!(answer.header("x-bursar-adopted"), None, "{status}");
        assert_ne!(key(&origin, 0), key(&origin, 1), "{status}");
    }
}

#[tokio::test]
async fn the_apps_own_key_wins_and_is_never_adopted() {
    let own = |value| [("Idempotency-Key", value)];
    let long = "k".repeat(300);
    let rows: [(&str, Vec<(&str, &str)>, Vec<(&str, &str)>, Option<&str>); 4] = [
        ("own, then none", own("mine").to_vec(), vec![], None),
        ("none, then own", vec![], own("mine").to_vec(), Some("mine")),
        (
            "own, then another",
            own("mine").to_vec(),
            own("other").to_vec(),
            Some("other"),
        ),
        (
            "long keys pass",
            own("mine").to_vec(),
            own(&long).to_vec(),
            Some(long.as_str()),
        ),
    ];
    for (name, first, second, wanted) in rows {
        let origin = Origin::start([Step::Close, Step::Answer(billed(7))]).await;
        let bursar = Bursar::with(&origin.url(), ONCE).await;
        ask(&bursar, &chat("hi"), &first).await;
        let answer = ask(&bursar, &chat("hi"), &second).await;
        assert_eq!(answer.header("x-bursar-adopted"), None, "{name}");
        assert_ne!(key(&origin, 0), key(&origin, 1), "{name}");
        if let Some(wanted) = wanted {
            assert_eq!(key(&origin, 1), wanted, "{name}");
        }
    }
}

#[tokio::test]
async fn adoption_can_be_limited_to_marked_retries_or_switched_off() {
    let marked = [("x-stainless-retry-count", "1")];
    let rows: [(&str, &str, &[(&str, &str)], bool); 6] = [
        ("always, unmarked", "always", &[], true),
        ("always, marked", "always", &marked, true),
        ("marked, unmarked", "marked", &[], false),
        (
            "marked, count 0",
            "marked",
            &[("x-stainless-retry-count", "0")],
            false,
        ),
        ("marked, marked", "marked", &marked, true),
        ("never, marked", "never", &marked, false),
    ];
    for (name, policy, headers, adopts) in rows {
        let origin = Origin::start([Step::Close, Step::Answer(billed(7))]).await;
        let config = format!("{ONCE}adopt = \"{policy}\"\n");
        let bursar = Bursar::with(&origin.url(), &config).await;
        ask(&bursar, &chat("hi"), &[]).await;
        let answer = ask(&bursar, &chat("hi"), headers).await;
        assert_eq!(answer.status, 200, "{name}");
        assert_eq!(key(&origin, 0) == key(&origin, 1), adopts, "{name}");
        assert_eq!(
            answer.header("x-bursar-adopted").is_some(),
            adopts,
            "{name}"
        );
    }
}

/// No app waits for the answer: nothing more is spent on it, and its retry adopts the key.
#[tokio::test]
async fn no_attempt_begins_when_the_app_has_left() {
    let origin = Origin::start([Step::Pieces(vec![
        b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n".to_vec(),
    ])])
    .await;
    let bursar = Bursar::before(&origin.url()).await;
    drop(send(&bursar, &origin, &chat("hi"), &[]).await);
    left(&bursar, 1).await;
    origin.go();
    let entries = bursar.settled(1).await;
    assert_eq!(entries[0].state, State::Failed);
    assert_eq!(origin.received().len(), 1, "one attempt");
}

/// An error that no app read is not an answer: it is not kept for the retry.
#[tokio::test]
async fn an_error_is_never_kept_in_place_of_an_answer() {
    let origin = Origin::start([
        Step::PiecesAndClose(vec![b"HTTP/1.1 2".to_vec()]),
        Step::Answer(billed(7)),
        Step::Answer(billed(8)),
    ])
    .await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    drop(send(&bursar, &origin, &chat("hi"), &[]).await);
    left(&bursar, 1).await;
    origin.go();
    let entries = bursar.settled(1).await;
    assert_eq!(
        entries[0].state,
        State::InDoubt {
            reason: InDoubt::NoResponse
        }
    );
    // Until the first is through, its error goes to every request that joins it.
    bursar.gateway.idle().await;
    let second = ask(&bursar, &chat("hi"), &[]).await;
    assert_eq!(second.status, 200, "{}", second.text());
    assert_eq!(key(&origin, 0), key(&origin, 1), "the same purchase");
    let third = ask(&bursar, &chat("hi"), &[]).await;
    assert_eq!(third.status, 200);
    assert_ne!(key(&origin, 1), key(&origin, 2), "a new purchase");
}

/// A repeat whose answer shows 0 beside a lost one is in doubt, until the amount comes.
#[tokio::test]
async fn the_oldest_undelivered_request_is_adopted_first() {
    let origin = Origin::start([
        Step::Close,
        Step::Close,
        Step::Answer(billed(7)),
        Step::Answer(billed(8)),
    ])
    .await;
    let config = format!("{ONCE}adopt = \"marked\"\n");
    let bursar = Bursar::with(&origin.url(), &config).await;
    let marked = [("x-stainless-retry-count", "1")];
    // Unmarked: two purchases, both lost.
    let first = ask(&bursar, &chat("hi"), &[]).await;
    let second = ask(&bursar, &chat("hi"), &[]).await;
    let third = ask(&bursar, &chat("hi"), &marked).await;
    let fourth = ask(&bursar, &chat("hi"), &marked).await;
    assert_eq!(third.header("x-bursar-adopted"), entry_id(&first));
    assert_eq!(fourth.header("x-bursar-adopted"), entry_id(&second));
    assert_eq!(key(&origin, 2), key(&origin, 0));
    assert_eq!(key(&origin, 3), key(&origin, 1));
}
