//! Freeze: effective at once wherever a request is, and what is under way finishes.

use bursar::ledger::entry::State;
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::{CHAT, ask, on_cue, received};
use crate::support::origin::{billed, chunk, json, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Step, Wire, chat, chat_stream, eventually};

pub(super) fn is_frozen(answer: &Answer) {
    assert_eq!(answer.status, 403, "{}", answer.text());
    assert_eq!(answer.code(), Some("frozen"));
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert!(answer.text().contains("frozen since"), "{}", answer.text());
    assert!(answer.text().contains("by the test"), "{}", answer.text());
}

pub(super) fn freeze(bursar: &Bursar, app: Option<&str>) {
    let ordered = bursar.gateway.caps().freeze(app, "the test");
    ordered.expect("an order");
}

pub(super) fn thaw(bursar: &Bursar, app: Option<&str>) {
    let ordered = bursar.gateway.caps().thaw(app, "the test");
    ordered.expect("an order");
}

/// bursar in front of a service that answers one request on cue, that request, and another one.
async fn beside_one(config: &str) -> (Origin, Bursar, Wire, Wire) {
    let origin = Origin::start([on_cue(billed(1))]).await;
    let bursar = Bursar::with(&origin.url(), config).await;
    let mut first = bursar.connect().await;
    first.send(request("POST", CHAT, &[], &chat("first"))).await;
    received(&origin, 1).await;
    let mut waits = bursar.connect().await;
    waits.send(request("POST", CHAT, &[], &chat("waits"))).await;
    (origin, bursar, first, waits)
}

#[tokio::test]
async fn a_frozen_app_spends_nothing_its_stream_finishes_and_a_thawed_one_goes_on() {
    let mut piece = stream_head();
    piece.extend(chunk("data: {\"choices\":[]}\n\n"));
    let mut end = chunk(": service-billed-micro-usd 40\n\ndata: [DONE]\n\n");
    end.extend(last_chunk());
    let origin = Origin::start([Step::Pieces(vec![piece, end])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut stream = bursar.connect().await;
    stream
        .send(request("POST", CHAT, &[], &chat_stream("long")))
        .await;
    received(&origin, 1).await;
    origin.go();
    let mut head = stream.head().await;
    for app in [None, Some("default")] {
        freeze(&bursar, app);
        is_frozen(&ask(&bursar, &chat("hi"), &[]).await);
        thaw(&bursar, app);
    }
    freeze(&bursar, None);
    origin.go();
    stream.rest(&mut head).await;
    assert!(
        head.complete && head.text().ends_with("data: [DONE]\n\n"),
        "{}",
        head.text()
    );
    assert_eq!(bursar.settled(1).await.len(), 1);
    assert_eq!(bursar.billed(), 40);
    origin.push(Step::Answer(json(200, &[], r#"{"data":[]}"#)));
    let free = bursar.connect().await.get("/v1/models").await;
    assert_eq!(free.status, 200, "free routes go on");
    assert_eq!(bursar.metric("bursar_total_frozen", ""), 1.0);

    let bursar = bursar.restart("").await;
    is_frozen(&ask(&bursar, &chat("hi"), &[]).await);
    thaw(&bursar, None);
    origin.push(Step::Answer(billed(1)));
    assert_eq!(ask(&bursar, &chat("hi"), &[]).await.status, 200);
    assert_eq!(origin.received().len(), 3);
}

#[tokio::test]
async fn another_apps_freeze_is_its_own() {
    let origin = Origin::always(Step::Answer(billed(1))).await;
    let bursar = Bursar::before(&origin.url()).await;
    freeze(&bursar, Some("other-app"));
    assert_eq!(ask(&bursar, &chat("hi"), &[]).await.status, 200);
}

#[tokio::test]
async fn between_attempts_a_freeze_ends_the_retries() {
    let busy = || Step::Answer(json(503, &[("Retry-After", "1")], r#"{"detail":"busy"}"#));
    let origin = Origin::start([busy(), busy(), busy()]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &[], &chat("hi"))).await;
    received(&origin, 1).await;
    freeze(&bursar, None);
    let answer = wire.answer().await;
    is_frozen(&answer);
    assert!(answer.text().contains("answered 503"), "{}", answer.text());
    assert_eq!(origin.received().len(), 1, "nothing more was sent");
    assert_eq!(bursar.entry_of(&answer).state, State::Failed);
}

/// The permit is given and the intent is on its way to the disk: the last moment at which an order can
/// take effect.
/// Another thread asks the ledger again and again, until this is dropped.
fn keep_asking(bursar: &Bursar) -> oneshot::Sender<()> {
    let ledger = bursar.ledger.clone();
    let (sender, mut dropped) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    std::thread::spawn(move || {
        while dropped.try_recv() == Err(TryRecvError::Empty) {
            if runtime.block_on(ledger.undelivered()).is_err() {
                return;
            }
        }
    });
    sender
}

#[tokio::test]
async fn a_freeze_that_comes_while_the_intent_is_written_stops_the_request() {
    let origin = Origin::always(Step::Answer(billed(1))).await;
    let caps = "[caps]\nday_micro_usd = 1000\nrequest_floor_micro_usd = 600\n";
    for _ in 0..50 {
        let bursar = Bursar::with(&origin.url(), caps).await;
        let _asked = keep_asking(&bursar);
        let mut wire = bursar.connect().await;
        wire.send(request("POST", CHAT, &[], &chat("hi"))).await;
        let caps = bursar.gateway.caps();
        // One thread serves bursar and this test: after the permit the request runs until it waits
        // for the ledger, which serves others.
        while caps.view().caps[0].under_way == 0 {
            tokio::task::yield_now().await;
        }
        let sent = origin.received().len();
        caps.freeze(None, "the test").expect("an order");
        let answer = wire.answer().await;
        if answer.status == 200 {
            // The ledger had no other to serve just then, so the order came after the last check.
            continue;
        }
        is_frozen(&answer);
        assert_eq!(origin.received().len(), sent, "nothing was sent");
        let entry = bursar.entry_of(&answer);
        assert_eq!(entry.state, State::Failed, "its intent was written");
        assert_eq!(entry.attempts.len(), 0);
        return;
    }
    panic!("the order always came too late");
}

#[tokio::test]
async fn a_request_that_waits_below_a_cap_is_refused_at_once() {
    let caps = "[caps]\nday_micro_usd = 1000\nrequest_floor_micro_usd = 600\n";
    let (origin, bursar, mut first, mut waits) = beside_one(caps).await;
    eventually("it to wait", || async {
        (bursar.metric("bursar_cap_waiting_requests", "") == 1.0).then_some(())
    })
    .await;
    freeze(&bursar, None);
    is_frozen(&waits.answer().await);
    origin.go();
    assert_eq!(first.answer().await.status, 200);
}

#[tokio::test]
async fn a_request_that_waits_for_a_place_at_the_service_is_refused_at_once() {
    let one_place = "[shaping]\nin_flight = 1\n";
    let (origin, bursar, mut first, mut waits) = beside_one(one_place).await;
    eventually("it to wait", || async {
        (bursar.metric("bursar_queue_depth", "") == 1.0).then_some(())
    })
    .await;
    freeze(&bursar, Some("default"));
    is_frozen(&waits.answer().await);
    origin.go();
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(origin.received().len(), 1);
}

#[tokio::test]
async fn a_damaged_file_of_orders_freezes_everything() {
    let origin = Origin::always(Step::Answer(billed(1))).await;
    let bursar = Bursar::before(&origin.url()).await;
    freeze(&bursar, Some("other-app"));
    let path = bursar.state_dir().join("orders");
    let mut bytes = std::fs::read(&path).expect("the orders");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).expect("a bit flips");
    let bursar = bursar.restart("").await;
    let refused = ask(&bursar, &chat("hi"), &[]).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(
        refused.text().contains("cannot be read"),
        "{}",
        refused.text()
    );
    thaw(&bursar, None);
    assert_eq!(ask(&bursar, &chat("hi"), &[]).await.status, 200);
    let bursar = bursar.restart("").await;
    assert_eq!(ask(&bursar, &chat("hi"), &[]).await.status, 200);
}
