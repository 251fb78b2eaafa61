//! Apps that speak HTTP/1.0, perhaps through their own proxy: the end of the connection is the end of
//! the answer, so a piece is held until the next one is there.
//!
//! Promise: a held piece counts as not delivered; a repeat gets all of it.

use crate::support::origin::{chunk, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, Wire, chat_stream, eventually};

use super::{left, reached};

const MIB: usize = 1024 * 1024;
const CHAT: &str = "/v1/chat/completions";

async fn begin(bursar: &Bursar, path: &str, headers: &[(&str, &str)], body: &str) -> Wire {
    let mut wire = bursar.connect().await;
    let text = request("POST", path, headers, body).replacen("HTTP/1.1", "HTTP/1.0", 1);
    wire.send(text).await;
    wire
}

#[tokio::test]
async fn a_large_document_is_followed_to_its_end() {
    const IMAGES: &str = "/v1/images/generations";
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Service-Billed: 7\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    let mib = "x".repeat(MIB);
    let pieces = vec![
        [head.as_bytes().to_vec(), chunk(&mib)].concat(),
        chunk(&mib),
        chunk(&mib),
        last_chunk(),
    ];
    let origin = Origin::start([Step::Pieces(pieces)]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let body = r#"{"prompt": "a blue circle"}"#;
    let first = begin(&bursar, IMAGES, &[], body).await;
    reached(&origin, 1).await;
    drop(first);
    left(&bursar, 1).await;

    let mut second = begin(&bursar, IMAGES, &[], body).await;
    eventually("the repeat to have joined", || async {
        (bursar.metric("bursar_joined_retries_total", "") >= 1.0).then_some(())
    })
    .await;
    let read = async {
        let answer = second.head().await;
        assert_eq!(answer.status, 200);
        assert_eq!(second.bytes(3 * MIB).await.len(), 3 * MIB);
        assert!(second.ends().await);
    };
    let goes = async {
        loop {
            origin.go();
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = read => {}
        () = goes => {}
    }
    assert_eq!(origin.received().len(), 1);
    assert_eq!(bursar.billed(), 7);
}

#[tokio::test]
async fn a_stream_of_which_the_app_has_only_the_head_is_joined_by_its_retry() {
    let pieces = vec![
        [stream_head(), chunk("data: {\"n\":1}\n\n")].concat(),
        chunk("data: {\"n\":2}\n\n"),
        [
            chunk(": service-billed-micro-usd 7\n\ndata: [DONE]\n\n"),
            last_chunk(),
        ]
        .concat(),
    ];
    let origin = Origin::start([Step::Pieces(pieces)]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut first = begin(&bursar, CHAT, &[], &chat_stream("hi")).await;
    reached(&origin, 1).await;
    origin.go();
    assert_eq!(first.head().await.status, 200);
    drop(first);
    left(&bursar, 1).await;

    let marked = [("x-stainless-retry-count", "1")];
    let mut second = begin(&bursar, CHAT, &marked, &chat_stream("hi")).await;
    eventually("the repeat to have joined", || async {
        (bursar.metric("bursar_joined_retries_total", "") >= 1.0).then_some(())
    })
    .await;
    origin.go();
    origin.go();
    let mut answer = second.head().await;
    second.rest(&mut answer).await;
    let text = answer.text();
    assert!(text.starts_with("data: {\"n\":1}"), "{text}");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert_eq!(origin.received().len(), 1, "one purchase");
    assert_eq!(bursar.billed(), 7);
}
