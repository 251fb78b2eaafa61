//! Connections of apps and of the service: kept, pipelined, old, local, and never mixed up.

use super::{CHAT, before};
use crate::support::origin::{billed, json};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, Wire, chat};

#[tokio::test]
async fn a_connection_is_kept_for_many_requests() {
    let (origin, bursar) = before(billed(7)).await;
    let mut wire = bursar.connect().await;
    for index in 0..20 {
        wire.send(request("POST", CHAT, &[], &chat(&format!("{index}"))))
            .await;
        let answer = wire.answer().await;
        assert_eq!(answer.status, 200, "{index}");
        assert_ne!(answer.header("connection"), Some("close"), "{index}");
    }
    assert_eq!(origin.connections(), 1, "upstream too");
    assert_eq!(bursar.settled(20).await.len(), 20);
}

#[tokio::test]
async fn a_connection_is_kept_after_errors_of_bursars_own() {
    let (_origin, bursar) = before(billed(7)).await;
    let mut wire = bursar.connect().await;
    // A body that was read leaves the connection in order.
    wire.send(request("GET", "/v1/models", &[], "")).await;
    assert_eq!(wire.answer().await.status, 200);
    wire.send(request(
        "POST",
        CHAT,
        &[("Idempotency-Key", "k")],
        &chat("hi"),
    ))
    .await;
    assert_eq!(wire.answer().await.status, 200);
}

#[tokio::test]
async fn connection_close_is_obeyed() {
    let (_origin, bursar) = before(billed(7)).await;
    let mut wire = bursar.connect().await;
    wire.send(request(
        "POST",
        CHAT,
        &[("Connection", "close")],
        &chat("hi"),
    ))
    .await;
    let answer = wire.answer().await;
    assert_eq!(answer.status, 200);
    assert!(answer.complete);
    assert!(wire.ends().await, "closed");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let origin = Origin::start([
        Step::Answer(billed(1)),
        Step::Answer(billed(2)),
        Step::Answer(billed(3)),
    ])
    .await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    let three: String = (1..=3)
        .map(|n| request("POST", CHAT, &[], &chat(&format!("{n}"))))
        .collect();
    wire.send(three).await;
    for n in 1..=3 {
        let answer = wire.answer().await;
        assert_eq!(
            answer.header("x-service-billed"),
            Some(n.to_string().as_str())
        );
    }
    let sent: Vec<_> = origin
        .received()
        .into_iter()
        .map(|received| received.body)
        .collect();
    let wanted: Vec<_> = (1..=3)
        .map(|n| chat(&format!("{n}")).into_bytes())
        .collect();
    assert_eq!(sent, wanted);
}

/// The second request comes while the first one's answer is still pending, byte by byte.
#[tokio::test]
async fn a_request_that_comes_early_waits_its_turn() {
    let origin = Origin::start([Step::Pieces(vec![billed(1)]), Step::Answer(billed(2))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &[], &chat("1"))).await;
    crate::support::eventually("the first upstream", || async {
        (origin.received().len() == 1).then_some(())
    })
    .await;
    for byte in request("POST", CHAT, &[], &chat("2")).as_bytes() {
        wire.send([*byte]).await;
    }
    origin.go();
    assert_eq!(wire.answer().await.header("x-service-billed"), Some("1"));
    assert_eq!(wire.answer().await.header("x-service-billed"), Some("2"));
    assert_eq!(
        bursar.metric("bursar_client_disconnects_total", "") as u32,
        0
    );
}

#[tokio::test]
async fn an_http_1_0_app_is_answered_and_its_connection_closed() {
    let (_origin, bursar) = before(billed(7)).await;
    for host in ["Host: localhost\r\n", "Host: 127.0.0.1:8327\r\n"] {
        let body = chat("hi");
        let mut wire = bursar.connect().await;
        wire.send(format!(
            "POST {CHAT} HTTP/1.0\r\n{host}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len(),
        ))
        .await;
        let answer = wire.answer().await;
        assert_eq!(answer.status, 200);
        assert!(answer.complete);
        assert_eq!(answer.header("transfer-encoding"), None);
        assert_eq!(answer.header("x-service-billed"), Some("7"));
        assert!(wire.ends().await, "closed");
    }
}

#[tokio::test]
async fn a_unix_socket_is_a_door_like_any_other() {
    let origin = Origin::start([
        Step::Answer(billed(7)),
        Step::Answer(crate::support::origin::stream_head()),
    ])
    .await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = Wire::unix(&bursar.socket).await;
    wire.send(request("POST", CHAT, &[], &chat("hi"))).await;
    let answer = wire.answer().await;
    assert_eq!(
        (answer.status, answer.header("x-service-billed")),
        (200, Some("7"))
    );
    wire.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(wire.answer().await.status, 200, "kept");
    assert_eq!(bursar.settled(1).await.len(), 1);
}

/// An app on a Unix socket that leaves is noticed as well.
#[tokio::test]
async fn an_app_that_leaves_a_unix_socket_keeps_its_answer_for_its_retry() {
    let origin = Origin::start([Step::Pieces(vec![billed(7)]), Step::Answer(billed(8))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut first = Wire::unix(&bursar.socket).await;
    first.send(request("POST", CHAT, &[], &chat("hi"))).await;
    crate::support::eventually("the request upstream", || async {
        (origin.received().len() == 1).then_some(())
    })
    .await;
    drop(first);
    crate::support::eventually("the app to leave", || async {
        (bursar.metric("bursar_client_disconnects_total", "") > 0.5).then_some(())
    })
    .await;
    origin.go();
    bursar.settled(1).await;
    let mut second = Wire::unix(&bursar.socket).await;
    second.send(request("POST", CHAT, &[], &chat("hi"))).await;
    assert_eq!(second.answer().await.header("x-service-billed"), Some("7"));
    assert_eq!(origin.received().len(), 1);
}

/// Bytes that a service sends after an answer's length belong to no answer.
#[tokio::test]
async fn bytes_behind_an_answer_never_answer_the_next_request() {
    let smuggled = json(200, &[("X-Service-Billed", "666")], r#"{"id":"smuggled"}"#);
    let rows = [
        ("length", [json(200, &[], "{}"), smuggled.clone()].concat()),
        ("chunked", [b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n".to_vec(), smuggled.clone()].concat()),
        ("a refusal", [json(400, &[], "{}"), smuggled.clone()].concat()),
        ("204", [b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(), smuggled.clone()].concat()),
        ("304", [b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec(), smuggled].concat()),
    ];
    for (name, bytes) in rows {
        let origin = Origin::start([Step::Answer(bytes), Step::Answer(billed(7))]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let mut wire = bursar.connect().await;
        wire.send(request("POST", CHAT, &[], &chat("1"))).await;
        let first = wire.answer().await;
        assert!(!first.text().contains("smuggled"), "{name}");
        let second = bursar.post(CHAT, &chat("2")).await;
        assert_eq!(
            second.header("x-service-billed"),
            Some("7"),
            "{name}: {}",
            second.text()
        );
    }
}

/// A head that announces a body where HEAD has none must not poison the pooled connection.
#[tokio::test]
async fn a_body_behind_a_head_answer_never_answers_the_next_request() {
    let wrong = json(200, &[], r#"{"id":"smuggled"}"#);
    let origin = Origin::start([Step::Answer(wrong), Step::Answer(billed(7))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send("HEAD /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    assert_eq!(wire.head_answer().await.status, 200);
    let second = bursar.post(CHAT, &chat("2")).await;
    assert_eq!(
        second.header("x-service-billed"),
        Some("7"),
        "{}",
        second.text()
    );
}
