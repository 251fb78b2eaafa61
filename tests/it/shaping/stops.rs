//! What ends a request between two attempts, although another is allowed: the answer comes at once,
//! with the present reason and the result of the attempt before.

use super::*;
use crate::support::Answer;
use crate::support::origin::{billed, json};

fn busy(headers: &[(&str, &str)]) -> Vec<u8> {
    json(503, headers, r#"{"detail":"warming"}"#)
}

fn refused_with(answer: &Answer, status: u16, code: &str, part: &str) {
    assert_eq!((answer.status, answer.code()), (status, Some(code)));
    assert!(answer.text().contains(part), "{}", answer.text());
}

/// A retry that waits for its place, while another request is at the service.
async fn retry_waits(before: Step) -> (Origin, Bursar, Wire, Wire) {
    let origin = Origin::start([before, on_cue(billed(7))]).await;
    let bursar = Bursar::with(&origin.url(), ONE_PLACE).await;
    let tried = begin(&bursar, "tried", &[]).await;
    received(&origin, 1).await;
    let other = begin(&bursar, "other", &[]).await;
    waiting(&bursar, 1).await;
    origin.go();
    received(&origin, 2).await;
    waiting(&bursar, 1).await;
    (origin, bursar, tried, other)
}

#[tokio::test]
async fn a_retry_that_waits_for_its_place_is_refused_by_a_freeze_at_once() {
    let (origin, bursar, mut tried, mut other) = retry_waits(on_cue(busy(&[]))).await;
    let caps = bursar.gateway.caps();
    caps.freeze(None, "the test").expect("an order");
    let answer = tried.answer().await;
    refused_with(&answer, 403, "frozen", "answered 503");
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(bursar.entry_of(&answer).state, State::Failed);
    origin.go();
    assert_eq!(other.answer().await.status, 200, "what runs ends");
    assert_eq!(prompts(&origin), ["tried", "other"]);
}

/// A request that may have run is not reported as free, and its key can still be taken over.
#[tokio::test]
async fn a_freeze_leaves_the_key_of_what_may_have_run_adoptable() {
    let broken = Step::PiecesAndClose(vec![
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{".to_vec(),
    ]);
    let (origin, bursar, mut tried, mut other) = retry_waits(broken).await;
    let caps = bursar.gateway.caps();
    caps.freeze(None, "the test").expect("an order");
    let answer = tried.answer().await;
    refused_with(&answer, 403, "frozen", "may have run");
    let state = bursar.entry_of(&answer).state;
    assert!(matches!(state, State::InDoubt { .. }), "{state:?}");
    origin.go();
    assert_eq!(other.answer().await.status, 200);
    caps.thaw(None, "the test").expect("an order");
    origin.push(Step::Answer(billed(7)));
    let again = begin(&bursar, "tried", &[]).await.answer().await;
    assert_eq!(again.status, 200);
    assert_eq!(
        again.header("x-bursar-adopted"),
        answer.header("x-bursar-entry")
    );
    let received = origin.received();
    let key = |at: usize| received[at].header("idempotency-key").map(str::to_owned);
    assert_eq!(key(0), key(2));
}

#[tokio::test]
async fn a_retry_that_waits_is_refused_when_bursar_stops() {
    let (origin, bursar, mut tried, mut other) = retry_waits(on_cue(busy(&[]))).await;
    bursar.gateway.close_queue();
    refused_with(&tried.answer().await, 503, "shutting_down", "answered 503");
    origin.go();
    assert_eq!(other.answer().await.status, 200);
    assert_eq!(origin.received().len(), 2);
}

#[tokio::test]
async fn a_cap_that_was_reached_meanwhile_stops_a_retry() {
    let origin = Origin::start([
        Step::Answer(billed(1)),
        Step::Answer(busy(&[("Retry-After", "1")])),
        Step::Answer(billed(2_000)),
    ])
    .await;
    let caps = "[caps]\nday_micro_usd = 1000\nrequest_floor_micro_usd = 1\n";
    let bursar = Bursar::with(&origin.url(), caps).await;
    // The first request of its kind runs alone below a cap.
    let cheap = begin(&bursar, "cheap", &[]).await.answer().await;
    assert_eq!(cheap.status, 200);
    let mut tried = begin(&bursar, "tried", &[]).await;
    received(&origin, 2).await;
    assert_eq!(begin(&bursar, "dear", &[]).await.answer().await.status, 200);
    let answer = tried.answer().await;
    refused_with(&answer, 402, "cap_reached", "answered 503");
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(origin.received().len(), 3, "nothing more was sent");
    assert_eq!(bursar.billed(), 2_001);
}
