//! A ledger that cannot be written: no request is sent without a durable intent (rule I1), and no
//! success goes out without a durable receipt (rule I2).

use crate::support::origin::{billed, chunk, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, chat, chat_stream, eventually};

const CHAT: &str = "/v1/chat/completions";

async fn received(origin: &Origin) {
    eventually("the service to receive", || async {
        (!origin.received().is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn nothing_is_sent_when_its_intent_cannot_be_written() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let bursar = Bursar::before(&origin.url()).await;
    bursar.ledger.close().await;
    for body in [chat("hi"), chat_stream("hi")] {
        let answer = bursar.post(CHAT, &body).await;
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert_eq!(answer.code(), Some("ledger_unavailable"));
    }
    assert_eq!(origin.received().len(), 0, "nothing was sent");
}

#[tokio::test]
async fn no_success_is_given_when_its_receipt_cannot_be_written() {
    let origin = Origin::start([Step::Pieces(vec![billed(7)])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &[], &chat("hi"))).await;
    received(&origin).await;
    bursar.ledger.close().await;
    origin.go();
    let answer = wire.answer().await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(answer.code(), Some("ledger_unavailable"));
}

#[tokio::test]
async fn no_stream_is_ended_well_when_its_receipt_cannot_be_written() {
    let first = [stream_head(), chunk("data: {\"n\":1}\n\n")].concat();
    let end = [
        chunk(": service-billed-micro-usd 7\n\n"),
        chunk("data: [DONE]\n\n"),
        last_chunk(),
    ];
    let origin = Origin::start([Step::Pieces(vec![first, end.concat()])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &[], &chat_stream("hi")))
        .await;
    received(&origin).await;
    origin.go();
    let mut answer = wire.head().await;
    wire.chunk(&mut answer).await.expect("a piece");
    bursar.ledger.close().await;
    origin.go();
    wire.rest(&mut answer).await;
    let text = answer.text();
    assert!(text.contains("ledger_unavailable"), "{text}");
    assert!(!text.contains("[DONE]"), "{text}");
}
