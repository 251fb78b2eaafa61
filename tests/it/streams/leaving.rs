//! Bytes that an app received are distinguished from bytes that were only meant for it, for every
//! kind of app and every way of leaving.

use bursar::ledger::entry::{InDoubt, State};

use super::{CHAT, DONE, EVENT, RECEIPT, begin, open, pieces, settled, whole};
use crate::support::origin::{billed, chunk, json, stream_head};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, chat, chat_stream, eventually};

async fn counted(bursar: &Bursar, family: &str, labels: &str) {
    eventually(family, || async {
        (bursar.metric(family, labels) > 0.5).then_some(())
    })
    .await;
}

async fn left(bursar: &Bursar, phase: &str) {
    let labels = format!("phase=\"{phase}\"");
    counted(bursar, "bursar_client_disconnects_total", &labels).await;
}

async fn received(origin: &Origin, count: usize) {
    eventually("the service to receive", || async {
        (origin.received().len() >= count).then_some(())
    })
    .await;
}

/// Bytes after a request do not hide that its app left: the untaken answer belongs to the retry,
/// and nothing is bought twice.
#[tokio::test]
async fn an_app_that_sent_more_and_left_was_not_given_its_answer() {
    let next = request("POST", CHAT, &[], &chat("next"));
    for (name, more) in [
        ("a line end", "\r\n"),
        ("a pipelined request", next.as_str()),
    ] {
        for together in [true, false] {
            let origin =
                Origin::start([Step::Pieces(vec![billed(7)]), Step::Answer(billed(8))]).await;
            let bursar = Bursar::before(&origin.url()).await;
            let mut wire = bursar.connect().await;
            let first = request("POST", CHAT, &[], &chat("hi"));
            if together {
                wire.send(format!("{first}{more}")).await;
                received(&origin, 1).await;
            } else {
                wire.send(first).await;
                received(&origin, 1).await;
                wire.send(more).await;
            }
            drop(wire);
            left(&bursar, "waiting").await;
            origin.go();
            bursar.settled(1).await;
            bursar.gateway.idle().await;
            let retry = bursar.post(CHAT, &chat("hi")).await;
            assert_eq!(
                retry.header("x-service-billed"),
                Some("7"),
                "{name}, {together}"
            );
            assert_eq!(
                origin.received().len(),
                1,
                "{name}, {together}: one purchase"
            );
        }
    }
}

/// Bytes after a request belong to the next one, in their order, even if they were read early.
#[tokio::test]
async fn what_was_sent_ahead_is_the_next_request() {
    let origin = Origin::start([
        Step::Pieces(vec![billed(7)]),
        Step::Answer(json(200, &[], "{}")),
    ])
    .await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &[], &chat("hi"))).await;
    received(&origin, 1).await;
    let body = chat(&"y".repeat(200_000));
    let next = request("POST", "/v1/tasks/match", &[], &body);
    let (one, two) = next.split_at(20);
    wire.send(one).await;
    wire.send(two).await;
    origin.go();
    assert_eq!(wire.answer().await.header("x-service-billed"), Some("7"));
    assert_eq!(wire.answer().await.status, 200);
    assert_eq!(origin.received()[1].body, body.as_bytes());
}

/// Towards a close-delimited app the first chunk waits for its successor: it was not sent.
#[tokio::test]
async fn a_chunk_that_is_held_was_not_given() {
    let old = request("POST", CHAT, &[], &chat_stream("hi")).replacen("HTTP/1.1", "HTTP/1.0", 1);
    let given = format!("{EVENT}{RECEIPT}{DONE}");
    let origin = Origin::start([
        pieces(&[whole(&[EVENT, &format!("{RECEIPT}{DONE}")])]),
        Step::Answer(whole(&[&given])),
    ])
    .await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send(&old).await;
    received(&origin, 1).await;
    drop(wire);
    left(&bursar, "waiting").await;
    origin.go();
    bursar.settled(1).await;
    bursar.gateway.idle().await;
    let mut retry = bursar.connect().await;
    retry.send(&old).await;
    assert_eq!(retry.answer().await.text(), given, "nothing is missing");
    assert_eq!(origin.received().len(), 1, "one purchase");
}

/// A follower that leaves too leaves the stream to a drain, which is bounded.
#[tokio::test]
async fn a_stream_is_drained_in_bounds_when_its_follower_has_left_too() {
    let origin = Origin::start([pieces(&[open(&[EVENT]), vec![]])]).await;
    let config = "[streams]\ndrain_timeout_s = 1\n";
    let bursar = Bursar::with(&origin.url(), config).await;
    let wire = begin(&bursar).await;
    received(&origin, 1).await;
    drop(wire);
    left(&bursar, "waiting").await;
    let mut follower = begin(&bursar).await;
    counted(&bursar, "bursar_joined_retries_total", "").await;
    origin.go();
    let mut answer = follower.head().await;
    follower.chunk(&mut answer).await.expect("a piece");
    drop(follower);
    // The service sends nothing more, and its own timeout is ten minutes.
    let gone = State::InDoubt {
        reason: InDoubt::ClientGone,
    };
    assert_eq!(bursar.settled(1).await[0].state, gone);
    counted(&bursar, "bursar_drains_total", "result=\"cut\"").await;
}

/// An app that reads nothing holds up neither the shutdown nor the entry.
#[tokio::test]
async fn a_shutdown_cuts_an_answer_that_its_app_does_not_read() {
    let flood = chunk(&format!("data: \"{}\"\n\n", "x".repeat(1024 * 1024)));
    let origin = Origin::start([Step::Answer([stream_head(), flood.repeat(64)].concat())]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let wire = begin(&bursar).await;
    received(&origin, 1).await;
    bursar.gateway.cut();
    let shutdown = State::InDoubt {
        reason: InDoubt::Shutdown,
    };
    assert_eq!(bursar.settled(1).await[0].state, shutdown);
    bursar.gateway.idle().await;
    drop(wire);
}

/// A whole answer is settled before it is written, and stays so.
#[tokio::test]
async fn a_shutdown_leaves_the_receipt_of_a_whole_answer_that_is_not_read() {
    let body = format!("{{\"x\":\"{}\"}}", "y".repeat(1024 * 1024 - 64));
    let answer = json(200, &[("X-Service-Billed", "7")], &body);
    let origin = Origin::always(Step::Answer(answer)).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    // Enough answers to fill a socket's buffer.
    for prompt in 0..16 {
        wire.send(request("POST", CHAT, &[], &chat(&prompt.to_string())))
            .await;
    }
    received(&origin, 1).await;
    bursar.settled(1).await;
    bursar.gateway.cut();
    bursar.gateway.idle().await;
    let states = bursar.entries().into_iter().map(|entry| entry.state);
    assert!(states.into_iter().any(|state| state == settled(7)));
}

/// An error event is for those that read events; a large JSON document only breaks.
#[tokio::test]
async fn a_follower_of_a_large_document_that_breaks_gets_none_of_our_bytes() {
    let sent = format!("{{\"x\":\"{}", "y".repeat(1536 * 1024));
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        sent.len() + 60
    );
    let origin = Origin::start([Step::PiecesAndClose(vec![
        [head.as_bytes(), sent.as_bytes()].concat(),
    ])])
    .await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &[], &chat("hi"))).await;
    received(&origin, 1).await;
    drop(wire);
    left(&bursar, "waiting").await;
    let mut follower = bursar.connect().await;
    follower.send(request("POST", CHAT, &[], &chat("hi"))).await;
    counted(&bursar, "bursar_joined_retries_total", "").await;
    origin.go();
    let answer = follower.answer().await;
    assert!(!answer.complete);
    assert!(sent.starts_with(&answer.text()), "only the service's bytes");
}

#[tokio::test]
async fn an_app_that_leaves_inside_a_stream_is_counted_as_streaming() {
    let origin = Origin::start([pieces(&[open(&[EVENT]), vec![]])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = begin(&bursar).await;
    origin.go();
    let mut answer = wire.head().await;
    wire.chunk(&mut answer).await.expect("a piece");
    drop(wire);
    left(&bursar, "streaming").await;
}

/// The cost of a document without a reader is counted like a stream's; an error was not drained.
#[tokio::test]
async fn a_document_without_a_reader_is_counted_with_its_price() {
    let error = json(400, &[], "{\"detail\":\"no\"}");
    for (answer, drains, usd) in [(billed(7), 1.0, 0.000_007), (error, 0.0, 0.0)] {
        let origin = Origin::start([Step::Pieces(vec![answer])]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let mut wire = bursar.connect().await;
        wire.send(request("POST", CHAT, &[], &chat("hi"))).await;
        received(&origin, 1).await;
        drop(wire);
        left(&bursar, "waiting").await;
        origin.go();
        bursar.settled(1).await;
        bursar.gateway.idle().await;
        let counted = bursar.metric("bursar_drains_total", "result=\"completed\"");
        assert!((counted - drains).abs() < 0.1, "{counted}");
        let cost = bursar.metric("bursar_drained_usd_total", "");
        assert!((cost - usd).abs() < 1e-9, "{cost}");
    }
}

/// An app that is notified of the shutdown does not come back on the same connection.
#[tokio::test]
async fn a_refusal_at_shutdown_closes_the_connection() {
    let origin = Origin::start([pieces(&[billed(7)])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &[], &chat("hi"))).await;
    received(&origin, 1).await;
    bursar.gateway.cut();
    let answer = wire.answer().await;
    assert_eq!(answer.code(), Some("shutting_down"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(answer.complete && wire.ends().await);
}
