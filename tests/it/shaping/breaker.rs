//! The breaker on the wire: the answer to one request holds for those after it, and for no longer
//! than necessary.

use std::sync::Arc;
use std::time::Duration;

use bursar::clock::{ManualClock, SystemClock};

use super::*;
use crate::support::Answer;
use crate::support::origin::{billed, json};

const EMPTY: &str = r#"{"detail":"organization balance is empty"}"#;

async fn on_a_clock(origin: &str, lines: &str) -> (Bursar, ManualClock) {
    let clock = ManualClock::at(SystemClock::shared().wall_ms());
    let bursar = Bursar::with_clock(origin, lines, Arc::new(clock.clone())).await;
    (bursar, clock)
}

async fn ask(bursar: &Bursar, prompt: &str, headers: &[(&str, &str)]) -> Answer {
    begin(bursar, prompt, headers).await.answer().await
}

#[tokio::test]
async fn an_empty_balance_is_asked_about_once_in_five_seconds() {
    let rows = [
        (
            402,
            "balance_empty",
            "balance",
            "it is not a cap of bursar's",
        ),
        (401, "upstream_refused_key", "key", "which bursar holds"),
    ];
    for (status, code, cause, whose) in rows {
        let origin = Origin::start([
            Step::Answer(json(status, &[], EMPTY)),
            Step::Answer(json(status, &[], EMPTY)),
            Step::Answer(billed(7)),
            Step::Answer(billed(7)),
        ])
        .await;
        let (bursar, clock) = on_a_clock(&origin.url(), "").await;
        let first = ask(&bursar, "first", &[]).await;
        assert_eq!(
            (first.status, first.code()),
            (status, None),
            "the service's own answer"
        );
        assert_eq!(first.header("x-should-retry"), Some("false"));
        let body = first.json();
        assert_eq!(
            body["detail"], "organization balance is empty",
            "as it came"
        );
        let message = body["error"]["message"].as_str().expect("a message");
        assert!(message.contains(whose), "{message}");
        for prompt in ["second", "third"] {
            let held = ask(&bursar, prompt, &[]).await;
            assert_eq!((held.status, held.code()), (status, Some(code)));
            assert_eq!(held.header("retry-after"), Some("5"));
            assert_eq!(held.header("x-should-retry"), Some("false"));
            let cause = format!("The service answered {status} at 20");
            assert!(held.text().contains(&cause), "{}", held.text());
        }
        assert_eq!(origin.received().len(), 1);
        let open = format!("cause=\"{cause}\"");
        assert!(bursar.metric("bursar_breaker_open", &open) > 0.5);
        clock.advance(Duration::from_secs(5));
        // One asks for all, and is refused again.
        assert_eq!(ask(&bursar, "fourth", &[]).await.code(), None);
        assert_eq!(ask(&bursar, "fifth", &[]).await.code(), Some(code));
        clock.advance(Duration::from_secs(5));
        assert_eq!(ask(&bursar, "sixth", &[]).await.status, 200);
        assert_eq!(ask(&bursar, "seventh", &[]).await.status, 200);
        assert_eq!(prompts(&origin), ["first", "fourth", "sixth", "seventh"]);
        assert!(bursar.metric("bursar_breaker_open", "") < 0.5);
        assert_eq!(
            bursar.settled(4).await.len(),
            4,
            "what was held back makes no entry"
        );
    }
}

#[tokio::test]
async fn free_routes_and_known_keys_pass_an_empty_balance() {
    let origin = Origin::start([
        Step::Answer(billed(7)),
        Step::Answer(json(402, &[], EMPTY)),
        Step::Answer(json(200, &[], r#"{"data":[]}"#)),
        Step::Answer(json(
            200,
            &[("X-Service-Billed", "0"), ("Idempotent-Replayed", "true")],
            r#"{"id":"c1","choices":[]}"#,
        )),
    ])
    .await;
    let (bursar, _) = on_a_clock(&origin.url(), "").await;
    let own = [("Idempotency-Key", "mine")];
    assert_eq!(ask(&bursar, "one", &own).await.status, 200);
    assert_eq!(
        ask(&bursar, "two", &[("Idempotency-Key", "refused")])
            .await
            .status,
        402
    );
    assert_eq!(bursar.connect().await.get("/v1/models").await.status, 200);
    let replay = ask(&bursar, "one", &own).await;
    assert_eq!((replay.status, replay.code()), (200, None));
    // A key that the ledger has never seen, and one under which nothing is stored.
    for key in ["other", "refused"] {
        let held = ask(&bursar, "two", &[("Idempotency-Key", key)]).await;
        assert_eq!(held.code(), Some("balance_empty"), "{key}");
    }
    assert_eq!(origin.received().len(), 4);
}

#[tokio::test]
async fn an_adopted_key_passes_an_empty_balance() {
    let origin = Origin::start([
        Step::Close,
        Step::Answer(json(402, &[], EMPTY)),
        Step::Answer(billed(7)),
    ])
    .await;
    let (bursar, _) = on_a_clock(&origin.url(), "[retry]\nattempts = 1\n").await;
    assert_eq!(
        ask(&bursar, "again", &[]).await.code(),
        Some("outcome_unknown")
    );
    assert_eq!(ask(&bursar, "other", &[]).await.status, 402);
    let adopted = ask(&bursar, "again", &[]).await;
    assert_eq!(adopted.status, 200);
    assert!(adopted.header("x-bursar-adopted").is_some());
}

#[tokio::test]
async fn a_reload_asks_at_once() {
    let origin =
        Origin::start([Step::Answer(json(401, &[], EMPTY)), Step::Answer(billed(7))]).await;
    let (bursar, _) = on_a_clock(&origin.url(), "").await;
    assert_eq!(ask(&bursar, "one", &[]).await.status, 401);
    assert_eq!(
        ask(&bursar, "two", &[]).await.code(),
        Some("upstream_refused_key")
    );
    bursar.forget_refusals();
    assert_eq!(ask(&bursar, "three", &[]).await.status, 200);
}

/// A request that waits for a place when the balance is found empty is refused as soon as its turn
/// comes.
#[tokio::test]
async fn a_waiting_request_is_refused_instead_of_sent() {
    let origin = Origin::start([on_cue(json(402, &[], EMPTY))]).await;
    let bursar = Bursar::with(&origin.url(), ONE_PLACE).await;
    let mut first = begin(&bursar, "first", &[]).await;
    received(&origin, 1).await;
    let mut second = begin(&bursar, "second", &[]).await;
    waiting(&bursar, 1).await;
    origin.go();
    assert_eq!(first.answer().await.status, 402);
    assert_eq!(second.answer().await.code(), Some("balance_empty"));
    assert_eq!(origin.received().len(), 1);
    assert_eq!(bursar.metrics.traffic.now().in_flight, 0);
}

#[tokio::test]
async fn a_dead_service_fails_at_once_after_five_attempts() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let (bursar, clock) = on_a_clock(&url, "").await;
    let attempts = || bursar.metric("bursar_upstream_attempts_total", "") as u32;
    for prompt in ["one", "two"] {
        let answer = ask(&bursar, prompt, &[]).await;
        assert_eq!(
            (answer.status, answer.code()),
            (502, Some("upstream_unreachable"))
        );
        assert_eq!(answer.header("retry-after"), None);
    }
    assert_eq!(attempts(), 6);
    let held = ask(&bursar, "three", &[]).await;
    assert_eq!(
        (held.status, held.code()),
        (502, Some("upstream_unreachable"))
    );
    assert_eq!(held.header("retry-after"), Some("1"));
    assert!(held.text().contains("did not connect"), "{}", held.text());
    let free = bursar.connect().await.get("/v1/models").await;
    assert_eq!(free.code(), Some("upstream_unreachable"));
    assert_eq!(attempts(), 6, "no request tried");
    assert!(bursar.metric("bursar_breaker_open", "cause=\"upstream\"") > 0.5);
    clock.advance(Duration::from_secs(1));
    let probe = bursar.connect().await.get("/v1/models").await;
    assert_eq!(
        (probe.code(), attempts()),
        (Some("upstream_unreachable"), 9)
    );
    assert_eq!(
        ask(&bursar, "four", &[]).await.header("retry-after"),
        Some("2")
    );
    assert_eq!(bursar.settled(2).await.len(), 2);
}

/// What may have been sent is no sign of a dead service.
#[tokio::test]
async fn connections_that_break_off_close_nothing() {
    let origin = Origin::always(Step::Close).await;
    let bursar = Bursar::before(&origin.url()).await;
    for n in 1..=4 {
        let answer = ask(&bursar, &format!("{n}"), &[]).await;
        assert_eq!(answer.code(), Some("outcome_unknown"));
        assert_eq!(origin.received().len(), 3 * n);
    }
}
