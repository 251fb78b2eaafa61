//! Waiting requests: in what order, for how long, and how the wait ends.

use std::sync::Arc;
use std::time::Duration;

use bursar::clock::ManualClock;

use super::*;
use crate::support::daemon::{Daemon, Signal, send};
use crate::support::origin::{billed, chunk, json, last_chunk, stream_head};
use crate::support::{Answer, chat_stream};

/// One request is at the service and stays there until [`Origin::go`].
async fn occupied(config: &str, then: impl IntoIterator<Item = Step>) -> (Origin, Bursar, Wire) {
    let origin = Origin::start([on_cue(billed(7))]).await;
    for step in then {
        origin.push(step);
    }
    let bursar = Bursar::with(&origin.url(), config).await;
    let first = begin(&bursar, "first", &[]).await;
    received(&origin, 1).await;
    (origin, bursar, first)
}

fn refused_here(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.code()), (status, Some(code)));
    let body = answer.json();
    assert_eq!(body["error"]["code"], code);
    assert_eq!(body["detail"], body["error"]["message"]);
}

#[tokio::test]
async fn the_wait_is_in_the_answer_the_ledger_and_the_metrics() {
    let clock = ManualClock::at(1_700_000_000_000);
    let origin = Origin::start([on_cue(billed(7)), Step::Answer(billed(7))]).await;
    let bursar = Bursar::with_clock(&origin.url(), ONE_PLACE, Arc::new(clock.clone())).await;
    let mut first = begin(&bursar, "first", &[]).await;
    received(&origin, 1).await;
    let mut second = begin(&bursar, "second", &[]).await;
    waiting(&bursar, 1).await;
    assert_eq!(bursar.metrics.traffic.now().in_flight, 1);
    clock.advance(Duration::from_millis(50));
    origin.go();
    let (first, second) = (first.answer().await, second.answer().await);
    assert_eq!((first.status, second.status), (200, 200));
    assert_eq!(first.header("x-bursar-queue-ms"), Some("0"));
    assert_eq!(second.header("x-bursar-queue-ms"), Some("50"));
    bursar.settled(2).await;
    let timings = bursar.entry_of(&second).timings.expect("timings");
    let times = (timings.queue_ms, timings.total_ms, timings.own_us);
    assert_eq!(times, (50, 50, 0), "the wait is not own time");
    let waits = bursar.metric("bursar_queue_wait_seconds_count", "");
    assert!((waits - 2.0).abs() < 0.1, "{waits}");
    let waited = bursar.metric("bursar_queue_wait_seconds_sum", "");
    assert!((waited - 0.05).abs() < 1e-9, "{waited}");
}

#[tokio::test]
async fn free_routes_runs_and_deploys_pass_waiting_requests() {
    let free = json(200, &[], r#"{"data":[]}"#);
    let (_origin, bursar, _first) = occupied(ONE_PLACE, vec![Step::Answer(free); 3]).await;
    let _second = begin(&bursar, "second", &[]).await;
    waiting(&bursar, 1).await;
    let models = bursar.connect().await.get("/v1/models").await;
    assert_eq!(
        (models.status, models.header("x-bursar-queue-ms")),
        (200, None)
    );
    let run = bursar.post("/v1/eval-runs", r#"{"eval_set_id":"e"}"#).await;
    assert_eq!(run.status, 200);
    assert_eq!(
        bursar.post("/v1/endpoints", r#"{"task":"t"}"#).await.status,
        200
    );
    assert_eq!(bursar.metrics.traffic.now().waiting, 1);
}

/// Each operation under the ceilings takes a place.
#[tokio::test]
async fn every_inference_route_takes_a_place() {
    let routes = [
        "/v1/chat/completions",
        "/agent/v1/chat/completions",
        "/v1/embeddings",
        "/v1/rerank",
        "/v1/images/generations",
        "/v1/images/edits",
        "/v1/audio/transcriptions",
        "/v1/audio/speech",
        "/v1/playground/frontier",
    ];
    let (_origin, bursar, _first) = occupied(ONE_PLACE, []).await;
    let mut wires = Vec::new();
    for (count, route) in (1..).zip(routes) {
        let mut wire = bursar.connect().await;
        wire.send(request("POST", route, &[], r#"{"model":"auto"}"#))
            .await;
        wires.push(wire);
        waiting(&bursar, count).await;
    }
}

#[tokio::test]
async fn an_overflow_is_refused_at_once_and_costs_nothing() {
    let config = "[shaping]\nin_flight = 1\nqueue_max = 1\n";
    let (origin, bursar, mut first) = occupied(config, [Step::Answer(billed(7))]).await;
    let mut second = begin(&bursar, "second", &[]).await;
    waiting(&bursar, 1).await;
    let third = begin(&bursar, "third", &[]).await.answer().await;
    refused_here(&third, 429, "queue_full");
    assert_eq!(third.header("retry-after"), Some("1"));
    assert_eq!(third.header("x-should-retry"), None);
    origin.go();
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(second.answer().await.status, 200);
    assert_eq!(
        bursar.settled(2).await.len(),
        2,
        "no entry of what was not sent"
    );
    assert_eq!(prompts(&origin), ["first", "second"]);
}

#[tokio::test]
async fn a_wait_ends_with_the_apps_own_patience_or_the_configured_one() {
    let rows: [(&str, &[(&str, &str)]); 2] = [
        (
            "[shaping]\nin_flight = 1\n",
            &[("x-stainless-read-timeout", "2")],
        ),
        ("[shaping]\nin_flight = 1\nqueue_wait_s = 1\n", &[]),
    ];
    for (config, headers) in rows {
        let (origin, bursar, mut first) = occupied(config, []).await;
        let began = tokio::time::Instant::now();
        let second = begin(&bursar, "second", headers).await.answer().await;
        let took = began.elapsed();
        refused_here(&second, 429, "queue_timeout");
        assert!(second.text().contains("waited 1."), "{}", second.text());
        assert!(second.header("retry-after").is_some());
        let queued = second.header("x-bursar-queue-ms").unwrap_or_default();
        let queued: u64 = queued.parse().expect("a number");
        // Its patience begins with its first byte, and the queue somewhat later.
        assert!((900..3_000).contains(&queued), "{queued}");
        assert!(
            took >= Duration::from_secs(1) && took < Duration::from_secs(3),
            "{took:?}"
        );
        assert_eq!(bursar.metrics.traffic.now().waiting, 0);
        origin.go();
        assert_eq!(first.answer().await.status, 200);
        assert_eq!(bursar.settled(1).await.len(), 1);
        assert_eq!(origin.received().len(), 1, "nothing was sent");
    }
}

#[tokio::test]
async fn a_request_whose_app_hangs_up_leaves_the_line_at_once_and_is_not_sent() {
    let (origin, bursar, mut first) = occupied(ONE_PLACE, [Step::Answer(billed(7))]).await;
    let second = begin(&bursar, "second", &[]).await;
    waiting(&bursar, 1).await;
    let mut third = begin(&bursar, "third", &[]).await;
    waiting(&bursar, 2).await;
    drop(second);
    waiting(&bursar, 1).await;
    let left = bursar.metric("bursar_client_disconnects_total", "phase=\"waiting\"");
    assert!((left - 1.0).abs() < 0.1, "{left}");
    origin.go();
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(third.answer().await.status, 200);
    assert_eq!(prompts(&origin), ["first", "third"]);
    assert_eq!(bursar.settled(2).await.len(), 2);
}

/// The key of a request that may have run is not lost when another request waits with it and
/// leaves.
#[tokio::test]
async fn an_adopted_key_outlives_a_wait_that_was_given_up() {
    let origin = Origin::start([Step::Close, on_cue(billed(7)), Step::Answer(billed(7))]).await;
    let config = format!("{ONE_PLACE}[retry]\nattempts = 1\n");
    let bursar = Bursar::with(&origin.url(), &config).await;
    let lost = begin(&bursar, "again", &[]).await.answer().await;
    assert_eq!(lost.code(), Some("outcome_unknown"));
    let mut other = begin(&bursar, "other", &[]).await;
    received(&origin, 2).await;
    let second = begin(&bursar, "again", &[]).await;
    waiting(&bursar, 1).await;
    drop(second);
    waiting(&bursar, 0).await;
    let mut third = begin(&bursar, "again", &[]).await;
    waiting(&bursar, 1).await;
    origin.go();
    assert_eq!(other.answer().await.status, 200);
    let third = third.answer().await;
    assert_eq!(third.status, 200);
    assert!(third.header("x-bursar-adopted").is_some());
    let keys: Vec<_> = origin
        .received()
        .iter()
        .map(|got| got.header("idempotency-key").map(str::to_owned))
        .collect();
    assert_eq!(keys[0], keys[2]);
}

#[tokio::test]
async fn a_retry_goes_before_what_was_never_tried() {
    let origin = Origin::start([
        on_cue(json(503, &[], r#"{"detail":"warming"}"#)),
        on_cue(billed(7)),
        Step::Answer(billed(7)),
        Step::Answer(billed(7)),
    ])
    .await;
    let bursar = Bursar::with(&origin.url(), ONE_PLACE).await;
    let mut wires = vec![begin(&bursar, "tried", &[]).await];
    received(&origin, 1).await;
    for (count, prompt) in [(1, "one"), (2, "two")] {
        wires.push(begin(&bursar, prompt, &[]).await);
        waiting(&bursar, count).await;
    }
    origin.go();
    // Between its attempts it holds no place.
    received(&origin, 2).await;
    waiting(&bursar, 2).await;
    origin.go();
    for wire in &mut wires {
        assert_eq!(wire.answer().await.status, 200);
    }
    assert_eq!(prompts(&origin), ["tried", "one", "tried", "two"]);
    let entries = bursar.settled(3).await;
    let tried = entries
        .iter()
        .find(|entry| entry.attempts.len() == 2)
        .expect("the tried one");
    assert_eq!(tried.state, SETTLED);
}

#[tokio::test]
async fn a_stop_refuses_waiting_requests_and_lets_those_that_run_end() {
    let origin = Origin::start([on_cue(billed(7))]).await;
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("c.toml");
    std::fs::write(&config, ONE_PLACE).unwrap();
    let config = config.to_str().unwrap();
    let state = directory.path().join("state");
    let mut daemon = Daemon::start(&origin.url(), &state, &["--config", config]).await;
    let mut first = Wire::tcp(daemon.proxy).await;
    first.send(request("POST", CHAT, &[], &chat("first"))).await;
    received(&origin, 1).await;
    let mut second = Wire::tcp(daemon.proxy).await;
    second
        .send(request("POST", CHAT, &[], &chat("second")))
        .await;
    eventually("the second to wait", || async {
        let metrics = Wire::tcp(daemon.admin).await.get("/metrics").await.text();
        metrics.contains("bursar_queue_depth 1").then_some(())
    })
    .await;
    send(&daemon.child, Signal::TERM);
    let second = second.answer().await;
    refused_here(&second, 503, "shutting_down");
    origin.go();
    assert_eq!(first.answer().await.status, 200);
    assert!(daemon.child.wait().await.unwrap().success());
    assert_eq!(origin.received().len(), 1);
}

/// A stream's first piece, and the app leaves.
async fn drained_stream(origin: &Origin, bursar: &Bursar) {
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &[], &chat_stream("stream")))
        .await;
    received(origin, 1).await;
    origin.go();
    let mut answer = wire.head().await;
    wire.chunk(&mut answer).await.expect("a piece");
    drop(wire);
    eventually("the app to be missed", || async {
        (bursar.metric("bursar_client_disconnects_total", "") >= 1.0).then_some(())
    })
    .await;
    // The next piece shows that the app does not read.
    origin.go();
}

fn stream_pieces() -> Step {
    let first = [stream_head(), chunk("data: {\"n\":1}\n\n")].concat();
    let next = || chunk("data: {\"n\":2}\n\n");
    let rest = [
        chunk(": service-billed-micro-usd 7\n\n"),
        chunk("data: [DONE]\n\n"),
        last_chunk(),
    ];
    Step::Pieces(vec![first, next(), next(), rest.concat()])
}

#[tokio::test]
async fn a_stream_without_a_reader_makes_room_for_a_waiting_request() {
    let origin = Origin::start([stream_pieces(), Step::Answer(billed(7))]).await;
    let bursar = Bursar::with(&origin.url(), ONE_PLACE).await;
    drained_stream(&origin, &bursar).await;
    assert_eq!(
        bursar.metrics.traffic.now().in_flight,
        1,
        "a drain holds its place"
    );
    let second = begin(&bursar, "second", &[]).await.answer().await;
    assert_eq!(second.status, 200);
    let entries = bursar.settled(2).await;
    assert_eq!([entries[0].state, entries[1].state], [GONE, SETTLED]);
    let displaced = bursar.metric("bursar_drains_total", "result=\"displaced\"");
    assert!((displaced - 1.0).abs() < 0.1, "{displaced}");
}

#[tokio::test]
async fn a_whole_answer_is_read_for_its_receipt_even_while_others_wait() {
    let (origin, bursar, first) = occupied(ONE_PLACE, [Step::Answer(billed(7))]).await;
    drop(first);
    let mut second = begin(&bursar, "second", &[]).await;
    waiting(&bursar, 1).await;
    assert_eq!(origin.received().len(), 1);
    origin.go();
    assert_eq!(second.answer().await.status, 200);
    let entries = bursar.settled(2).await;
    assert_eq!([entries[0].state, entries[1].state], [SETTLED, SETTLED]);
}

#[tokio::test]
async fn a_follower_needs_no_place() {
    let (origin, bursar, first) = occupied(ONE_PLACE, []).await;
    drop(first);
    eventually("the app to be missed", || async {
        (bursar.metric("bursar_client_disconnects_total", "") >= 1.0).then_some(())
    })
    .await;
    let mut again = begin(&bursar, "first", &[]).await;
    eventually("the repeat to join", || async {
        (bursar.metric("bursar_joined_retries_total", "") >= 1.0).then_some(())
    })
    .await;
    assert_eq!(bursar.metrics.traffic.now().waiting, 0);
    origin.go();
    assert_eq!(again.answer().await.status, 200);
}
