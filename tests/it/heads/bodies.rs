//! Bodies of every form pass byte for byte, once and again.

use super::{CHAT, before};
use crate::support::origin::{billed, chunk, json, last_chunk};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step};

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn request_bytes_are_not_touched() {
    let rows: [(&str, &[u8]); 5] = [
        (
            "white space, order, doubles",
            b"{ \"b\":1 ,\n\"a\" : [1.0,1e3] , \"b\" : 2 }\r\n",
        ),
        ("not JSON", b"{not json"),
        ("bytes that are no text", b"{\"a\":\"\xff\xfe\x00\"}"),
        ("empty", b""),
        ("a byte", b"1"),
    ];
    let (origin, bursar) = before(billed(7)).await;
    for (index, (name, body)) in rows.iter().enumerate() {
        let head = format!(
            "POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len(),
        );
        let mut wire = bursar.connect().await;
        wire.send([head.as_bytes(), body].concat()).await;
        assert_eq!(wire.answer().await.status, 200, "{name}");
        let received = &origin.received()[index];
        assert_eq!(received.body, *body, "{name}");
        assert_eq!(
            received.header("content-length"),
            Some(body.len().to_string().as_str()),
            "{name}"
        );
    }
}

#[tokio::test]
async fn answer_bytes_are_not_touched() {
    let rows: [(&str, Vec<u8>, &str); 5] = [
        ("length", json(200, &[], "{ \"a\" : 1.0 }\n"), "{ \"a\" : 1.0 }\n"),
        ("empty", json(200, &[], ""), ""),
        (
            "chunked",
            [
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
                chunk("{\"a\""),
                chunk(":1}"),
                last_chunk(),
            ]
            .concat(),
            "{\"a\":1}",
        ),
        (
            "chunked with extensions and a trailer",
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3;x=1\r\n[1]\r\n0\r\nX-T: 1\r\n\r\n".to_vec(),
            "[1]",
        ),
        (
            "audio",
            b"HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\nContent-Length: 4\r\n\r\nRIFF".to_vec(),
            "RIFF",
        ),
    ];
    for (name, bytes, text) in rows {
        let (_origin, bursar) = before(bytes).await;
        let answer = bursar.post(CHAT, "{}").await;
        assert_eq!(answer.text(), text, "{name}");
        assert!(answer.complete, "{name}");
        assert_eq!(
            answer.header("content-length"),
            Some(text.len().to_string().as_str()),
            "{name}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_ends_with_its_connection_passes() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Service-Billed: 7\r\n\r\n{\"a\":1}".to_vec();
    let origin = Origin::start([Step::AnswerAndClose(bytes)]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let answer = bursar.post(CHAT, "{}").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "{\"a\":1}"));
    assert_eq!(bursar.billed(), 7);
}

#[tokio::test]
async fn head_204_and_304_have_no_body_and_keep_their_connections() {
    let rows: [(&str, String, Vec<u8>, u16, Option<&str>); 6] = [
        (
            "HEAD with a length",
            "HEAD /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 25\r\n\r\n"
                .to_vec(),
            200,
            Some("25"),
        ),
        (
            "HEAD of an error",
            "HEAD /v1/tasks/none HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
            b"HTTP/1.1 404 X\r\nContent-Type: application/json\r\nContent-Length: 19\r\n\r\n"
                .to_vec(),
            404,
            Some("19"),
        ),
        (
            "204",
            "DELETE /v1/endpoints/x-1 HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
            b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
            204,
            None,
        ),
        (
            "204 with a length",
            "DELETE /v1/endpoints/x-1 HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
            b"HTTP/1.1 204 No Content\r\nContent-Length: 17\r\n\r\n".to_vec(),
            204,
            None,
        ),
        (
            "304",
            "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: \"e\"\r\n\r\n".into(),
            b"HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\n\r\n".to_vec(),
            304,
            None,
        ),
        (
            "HEAD of the greeting",
            "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
            Vec::new(),
            200,
            None,
        ),
    ];
    for (name, ask, bytes, status, length) in rows {
        let origin = Origin::start([
            Step::Answer(bytes.clone()),
            Step::Answer(json(200, &[], r#"{"data":[]}"#)),
        ])
        .await;
        let bursar = Bursar::before(&origin.url()).await;
        let mut wire = bursar.connect().await;
        wire.send(&ask).await;
        let answer = wire.head_answer().await;
        assert_eq!(answer.status, status, "{name}");
        if length.is_some() || status == 204 {
            assert_eq!(
                answer.header("content-length"),
                length,
                "{name}: the length is the service's"
            );
        }
        assert_eq!(answer.header("transfer-encoding"), None, "{name}");
        if bytes.is_empty() {
            continue;
        }
        // Nothing of a body is in the way of the next answer, on either side.
        wire.send("GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .await;
        let next = wire.answer().await;
        assert_eq!(
            (next.status, next.text().as_str()),
            (200, r#"{"data":[]}"#),
            "{name}: the next"
        );
    }
}

#[tokio::test]
async fn a_delete_without_a_body_has_no_length() {
    let (origin, bursar) = before(json(200, &[], "{}")).await;
    let mut wire = bursar.connect().await;
    wire.send("DELETE /v1/eval-sets/e1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    assert_eq!(wire.answer().await.status, 200);
    let received = &origin.received()[0];
    assert_eq!(received.request_line(), "DELETE /v1/eval-sets/e1 HTTP/1.1");
    assert_eq!(received.header("content-length"), None);
    assert_eq!(received.header("transfer-encoding"), None);
    assert_eq!(received.header("content-type"), None);
}

#[tokio::test]
async fn multipart_is_untouched() {
    let (origin, bursar) = before(json(200, &[], "{}")).await;
    let media_type = "multipart/form-data; boundary=\"a b:c\"";
    let body = "--a b:c\r\nContent-Disposition: form-data; name=\"items\"; filename=\"r.jsonl\"\r\n\r\n{\"input\":{}}\n\r\n--a b:c--\r\n";
    for path in [
        "/v1/eval-sets",
        "/v1/images/edits",
        "/v1/eval-sets/e1/attach-blob",
    ] {
        let mut wire = bursar.connect().await;
        wire.send(request("POST", path, &[("Content-Type", media_type)], body))
            .await;
        assert_eq!(wire.answer().await.status, 200, "{path}");
        let received = origin.received();
        let received = received.last().unwrap();
        assert_eq!(received.body, body.as_bytes(), "{path}");
        assert_eq!(received.header("content-type"), Some(media_type), "{path}");
    }
}

#[tokio::test]
async fn a_chunked_upload_arrives_whole_with_its_length() {
    let body = format!("{{\"a\":\"{}\"}}", "x".repeat(200_000));
    for size in [1_000, 65_536, 300_000] {
        let (origin, bursar) = before(billed(7)).await;
        let mut wire = bursar.connect().await;
        wire.send(format!("POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")).await;
        for piece in body.as_bytes().chunks(size) {
            wire.send(format!("{:x};ext=1\r\n", piece.len())).await;
            wire.send(piece).await;
            wire.send("\r\n").await;
        }
        wire.send("0\r\nX-Trailer: 1\r\n\r\n").await;
        assert_eq!(wire.answer().await.status, 200, "pieces of {size}");
        let received = &origin.received()[0];
        assert!(received.body == body.as_bytes(), "pieces of {size}");
        assert_eq!(
            received.header("transfer-encoding"),
            None,
            "pieces of {size}"
        );
    }
}

#[tokio::test]
async fn expect_100_continue_is_answered_and_not_passed_on() {
    let (origin, bursar) = before(billed(7)).await;
    let mut wire = bursar.connect().await;
    let body = "{\"model\":\"auto\"}";
    wire.send(format!(
        "POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len(),
    ))
    .await;
    assert_eq!(wire.head().await.status, 100, "before a byte of the body");
    assert!(origin.received().is_empty());
    wire.send(body).await;
    assert_eq!(wire.answer().await.status, 200);
    assert_eq!(origin.received()[0].header("expect"), None);
    assert_eq!(origin.received()[0].body, body.as_bytes());
}

#[tokio::test]
async fn a_body_of_30_mb_is_repeated_byte_for_byte() {
    let mut body = String::with_capacity(30 * MIB);
    body.push_str("{\"a\":\"");
    while body.len() < 30 * MIB - 2 {
        body.push(char::from(b'a' + u8::try_from(body.len() % 26).unwrap()));
    }
    body.push_str("\"}");
    let busy = Step::Answer(json(503, &[], "{}"));
    let origin = Origin::start([busy, Step::Close, Step::Answer(billed(7))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let answer = bursar.post(CHAT, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let received = origin.received();
    assert_eq!(received.len(), 3);
    for (index, attempt) in received.iter().enumerate() {
        assert!(attempt.body == body.as_bytes(), "attempt {index}");
    }
}

/// SDKs upload three times when the connection is cut instead.
#[tokio::test]
async fn a_body_of_31_mb_is_refused_at_once_and_the_rest_is_drained() {
    let (origin, bursar) = before(billed(7)).await;
    let mut wire = bursar.connect().await;
    let length = 31 * MIB;
    wire.send(format!(
        "POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ))
    .await;
    // At once: no byte of the body was sent yet.
    let mut answer = wire.head().await;
    wire.rest(&mut answer).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.code(), Some("body_too_large"));
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    let block = vec![b'x'; MIB];
    for sent in 0..31 {
        assert!(
            wire.try_send(&block).await,
            "{sent} MiB were read, then no more"
        );
    }
    assert!(origin.received().is_empty());
    assert!(bursar.entries().is_empty(), "nothing was spent");
}

#[tokio::test]
async fn a_chunked_body_beyond_30_mb_is_refused_too() {
    let (origin, bursar) = before(billed(7)).await;
    let mut wire = bursar.connect().await;
    wire.send(format!("POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")).await;
    let block = [
        format!("{MIB:x}\r\n").into_bytes(),
        vec![b'x'; MIB],
        b"\r\n".to_vec(),
    ]
    .concat();
    for sent in 0..32 {
        assert!(
            wire.try_send(&block).await,
            "{sent} MiB were read, then no more"
        );
    }
    assert!(wire.try_send("0\r\n\r\n").await);
    let answer = wire.answer().await;
    assert_eq!(answer.status, 413, "{}", answer.text());
    assert!(origin.received().is_empty());
}

#[tokio::test]
async fn a_body_that_ends_early_is_never_sent() {
    let (origin, bursar) = before(billed(7)).await;
    let mut wire = bursar.connect().await;
    wire.send(format!("POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{\"a\"")).await;
    wire.half_close().await;
    let answer = wire.answer().await;
    assert_eq!(answer.code(), Some("body_broken"), "{}", answer.text());
    assert!(origin.received().is_empty());
    assert!(bursar.entries().is_empty());
}
