//! Answers that never end and have no reader any more: they are read on within bounds.

use crate::support::origin::stream_head;
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, chat, chat_stream, eventually, within};

use super::CHAT;
use std::time::Duration;

const QUICK: &str =
    "[upstream]\nread_timeout_s = 1\n[streams]\ndrain_timeout_s = 1\n[retry]\nattempts = 1\n";

/// What an app asks for and leaves, and what the service does then.
fn endless() -> Vec<(&'static str, String, Step)> {
    let stream = request("POST", CHAT, &[], &chat_stream("x"));
    let whole = request("POST", CHAT, &[], &chat("x"));
    let speech = request("POST", "/v1/audio/speech", &[], r#"{"text":"x"}"#);
    let free = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned();
    let ok = |more: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nX-Service-Billed: 7\r\n{more}Transfer-Encoding: chunked\r\n\r\n"
        )
        .into_bytes()
    };
    let large = [
        ok(""),
        format!("{:x}\r\n{}\r\n", 2 << 20, "x".repeat(2 << 20)).into_bytes(),
    ]
    .concat();
    let error = b"HTTP/1.1 400 No\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let drop = b"1\r\nx\r\n".to_vec();
    let gzip = [b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(), drop.clone()].concat();
    vec![
        (
            "a small document",
            whole.clone(),
            Step::Drip(ok(""), drop.clone()),
        ),
        (
            "a large document",
            whole.clone(),
            Step::Drip(large, drop.clone()),
        ),
        (
            "a document without a key",
            speech.clone(),
            Step::Drip(ok(""), drop.clone()),
        ),
        ("a free document", free, Step::Drip(ok(""), drop.clone())),
        (
            "a stream",
            stream.clone(),
            Step::Drip(
                [stream_head(), b"4\r\n: a\n\r\n".to_vec()].concat(),
                drop.clone(),
            ),
        ),
        ("a coded stream", stream, Step::Drip(gzip, drop.clone())),
        (
            "an error",
            whole.clone(),
            Step::Drip(error.clone(), drop.clone()),
        ),
        ("an error without a key", speech, Step::Drip(error, drop)),
    ]
}

#[tokio::test]
async fn a_dripping_answer_without_a_reader_is_given_up() {
    for (name, asks, step) in endless() {
        let origin = Origin::start([step]).await;
        let bursar = Bursar::with(&origin.url(), QUICK).await;
        let mut wire = bursar.connect().await;
        wire.send(&asks).await;
        eventually("the request to arrive", || async {
            (!origin.received().is_empty()).then_some(())
        })
        .await;
        tokio::task::yield_now().await;
        drop(wire);
        within(Duration::from_secs(12), name, || async {
            (bursar.gateway.in_flight() == 0).then_some(())
        })
        .await;
        let open = bursar.entries();
        assert!(
            open.iter().all(|entry| entry.ended_ms.is_some()),
            "{name}: its entry is open"
        );
    }
}

/// An endless document is not read for ever, however fast it arrives; its price was in its head.
#[tokio::test]
async fn a_flood_without_a_reader_is_given_up_by_its_bytes() {
    let head =
        b"HTTP/1.1 200 OK\r\nX-Service-Billed: 7\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let piece = [
        b"100000\r\n".to_vec(),
        vec![b'x'; 1 << 20],
        b"\r\n".to_vec(),
    ]
    .concat();
    let origin = Origin::start([Step::Flood(head, piece, usize::MAX)]).await;
    let bursar = Bursar::with(&origin.url(), "[retry]\nattempts = 1\n").await;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &[], &chat("x"))).await;
    let answer = wire.head().await;
    assert_eq!(answer.status, 200);
    drop(wire);
    within(
        Duration::from_secs(15),
        "the flood to be given up",
        || async { (bursar.gateway.in_flight() == 0).then_some(()) },
    )
    .await;
    assert!(
        origin.written() < 200 << 20,
        "{} bytes were read",
        origin.written()
    );
    assert_eq!(bursar.billed(), 7);
}

/// The dripping body of an error is given up even while its app waits: the status is enough.
#[tokio::test]
async fn a_dripping_error_is_reported_as_broken() {
    let error = b"HTTP/1.1 400 No\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let origin = Origin::start([Step::Drip(error, b"1\r\nx\r\n".to_vec())]).await;
    let bursar = Bursar::with(&origin.url(), QUICK).await;
    let answer = bursar.post(CHAT, &chat("x")).await;
    assert_eq!(answer.code(), Some("upstream_broken"), "{}", answer.text());
    let entry = bursar.entry_of(&answer);
    assert_eq!(entry.state, bursar::ledger::entry::State::Failed);
}
