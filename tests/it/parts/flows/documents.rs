//! Large answers on cue, from a raw origin: what each request waits for, what is held in memory,
//! and to which purchase a repeat belongs while the first answer is still being read.

use bursar::ledger::entry::State;
use serde_json::json;

use crate::support::origin::json as answer_json;
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, Wire, eventually};

use super::{left, reached, settled};

const IMAGES: &str = "/v1/images/generations";
const MIB: usize = 1024 * 1024;

fn ask() -> String {
    let body = json!({"prompt": "a blue circle"}).to_string();
    request("POST", IMAGES, &[], &body)
}

async fn begin(bursar: &Bursar) -> Wire {
    let mut wire = bursar.connect().await;
    wire.send(ask()).await;
    wire
}

/// A document of that many bytes, priced in its head, in two pieces.
fn document(first: usize, rest: usize) -> Vec<Vec<u8>> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Service-Billed: 7\r\nContent-Length: {}\r\n\r\n",
        first + rest
    );
    let first = [head.into_bytes(), vec![b'x'; first]].concat();
    vec![first, vec![b'x'; rest]]
}

fn replay() -> Step {
    let headers = [("X-Service-Billed", "0"), ("Idempotent-Replayed", "true")];
    Step::Answer(answer_json(200, &headers, "{\"data\":[]}"))
}

/// Both requests went out under one key, and are one purchase.
fn check_one_purchase(origin: &Origin, bursar: &Bursar) {
    let received = origin.received();
    let keys: Vec<_> = received
        .iter()
        .map(|one| one.header("idempotency-key").expect("a key"))
        .collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
    let states: Vec<_> = bursar.entries().iter().map(|entry| entry.state).collect();
    assert_eq!(states, [settled(7), State::Replayed]);
}

/// Waits until bursar is silent on a request of its app: nothing was sent for it.
async fn waits(origin: &Origin, bursar: &Bursar, sent: usize) {
    let in_flight = bursar.gateway.in_flight();
    eventually("the repeat to have come", || async {
        (bursar.gateway.in_flight() >= in_flight.max(2)).then_some(())
    })
    .await;
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert_eq!(origin.received().len(), sent, "nothing is sent for it yet");
}

/// The app asks again while the answer it did not wait for is still being read: the repeat waits for
/// the end, and takes the key over. A key of its own would have bought a second picture.
#[tokio::test]
async fn a_repeat_waits_while_the_first_answer_is_being_read() {
    let origin = Origin::start([Step::Pieces(document(2 * MIB, MIB)), replay()]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut first = begin(&bursar).await;
    reached(&origin, 1).await;
    origin.go();
    assert_eq!(first.head().await.status, 200);
    first.bytes(MIB / 2).await;
    drop(first);

    let mut second = begin(&bursar).await;
    waits(&origin, &bursar, 1).await;
    origin.go();
    let answer = second.answer().await;
    assert_eq!(answer.text(), "{\"data\":[]}");
    assert!(answer.header("x-bursar-adopted").is_some());
    check_one_purchase(&origin, &bursar);
}

/// The same for an answer of which the app had no byte, and that outgrew what is kept for a repeat;
/// and a repeat that leaves while it waits changes nothing.
#[tokio::test]
async fn a_repeat_that_leaves_while_it_waits_leaves_the_key_to_the_next() {
    let origin = Origin::start([Step::Pieces(document(24 * MIB, MIB)), replay()]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let first = begin(&bursar).await;
    reached(&origin, 1).await;
    drop(first);
    left(&bursar, 1).await;
    origin.go();
    eventually("more than is kept to be read", || async {
        (origin.written() > 24 * MIB).then_some(())
    })
    .await;

    let second = begin(&bursar).await;
    waits(&origin, &bursar, 1).await;
    drop(second);
    left(&bursar, 2).await;
    let mut third = begin(&bursar).await;
    waits(&origin, &bursar, 1).await;
    origin.go();
    let answer = third.answer().await;
    assert_eq!(answer.text(), "{\"data\":[]}");
    check_one_purchase(&origin, &bursar);
}

/// A repeat that joined the answer, and did not get it whole either, has not been delivered.
#[tokio::test]
async fn a_joined_document_that_is_left_is_still_to_be_had() {
    let origin = Origin::start([Step::Pieces(document(2 * MIB, MIB)), replay()]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let first = begin(&bursar).await;
    reached(&origin, 1).await;
    drop(first);
    left(&bursar, 1).await;
    let mut joined = begin(&bursar).await;
    eventually("the repeat to join", || async {
        (bursar.metric("bursar_joined_retries_total", "") > 0.5).then_some(())
    })
    .await;
    origin.go();
    assert_eq!(joined.head().await.status, 200);
    joined.bytes(MIB / 2).await;
    drop(joined);
    eventually("the repeat's leaving to be noticed", || async {
        (bursar.gateway.in_flight() == 1).then_some(())
    })
    .await;

    let mut third = begin(&bursar).await;
    waits(&origin, &bursar, 1).await;
    origin.go();
    let answer = third.answer().await;
    assert_eq!(answer.text(), "{\"data\":[]}");
    check_one_purchase(&origin, &bursar);
}

/// A repeat that joined a document gets all of it, however slowly, and that is the delivery.
#[tokio::test]
async fn a_joined_document_is_whole_and_then_delivered() {
    let origin = Origin::start([Step::Pieces(document(4 * MIB, 4 * MIB)), replay()]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let first = begin(&bursar).await;
    reached(&origin, 1).await;
    drop(first);
    left(&bursar, 1).await;
    let mut joined = begin(&bursar).await;
    eventually("the repeat to join", || async {
        (bursar.metric("bursar_joined_retries_total", "") > 0.5).then_some(())
    })
    .await;
    origin.go();
    let mut answer = joined.head().await;
    origin.go();
    joined.rest(&mut answer).await;
    assert!(answer.complete);
    assert!(answer.body.len() == 8 * MIB && answer.body.iter().all(|byte| *byte == b'x'));
    assert_eq!(bursar.settled(1).await[0].state, settled(7));
    bursar.gateway.idle().await;

    let mut other = begin(&bursar).await;
    let other = other.answer().await;
    assert_eq!(other.header("x-bursar-adopted"), None, "delivered");
    let keys: Vec<_> = origin
        .received()
        .iter()
        .map(|one| one.header("idempotency-key").map(str::to_owned))
        .collect();
    assert_ne!(keys[0], keys[1]);
}

/// If the answer that a repeat waits for takes longer than its app's timeout, the repeat is refused
/// in time.
#[tokio::test]
async fn a_repeat_that_waits_in_vain_is_refused_and_not_sent() {
    let origin = Origin::start([Step::Pieces(document(2 * MIB, MIB)), replay()]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut first = begin(&bursar).await;
    reached(&origin, 1).await;
    origin.go();
    first.head().await;
    first.bytes(MIB / 2).await;
    drop(first);

    let body = json!({"prompt": "a blue circle"}).to_string();
    let mut hasty = bursar.connect().await;
    let patience = [("x-stainless-read-timeout", "1")];
    hasty.send(request("POST", IMAGES, &patience, &body)).await;
    let refused = hasty.answer().await;
    assert_eq!(refused.status, 504, "{}", refused.text());
    assert_eq!(refused.code(), Some("upstream_timeout"));
    assert_eq!(
        refused.header("x-should-retry"),
        None,
        "a repeat is welcome"
    );
    assert_eq!(origin.received().len(), 1);
    assert_eq!(bursar.entries().len(), 1);

    origin.go();
    bursar.settled(1).await;
    bursar.gateway.idle().await;
    let mut again = begin(&bursar).await;
    assert_eq!(again.answer().await.text(), "{\"data\":[]}");
    check_one_purchase(&origin, &bursar);
}

/// A restart does not forget that the app had only a part.
#[tokio::test]
async fn a_document_that_its_app_had_in_part_is_adopted_over_a_restart() {
    let origin = Origin::start([Step::Pieces(document(2 * MIB, MIB)), replay()]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut first = begin(&bursar).await;
    reached(&origin, 1).await;
    origin.go();
    first.head().await;
    first.bytes(MIB / 2).await;
    drop(first);
    left(&bursar, 1).await;
    origin.go();
    bursar.settled(1).await;
    let bursar = bursar.restart("").await;
    let mut again = begin(&bursar).await;
    let answer = again.answer().await;
    assert!(answer.header("x-bursar-adopted").is_some());
    check_one_purchase(&origin, &bursar);
}

/// Of an answer that its app reads slowly bursar holds a moment's worth; the service waits.
#[tokio::test]
async fn a_document_that_is_read_slowly_stays_at_the_service() {
    let size = 48 * MIB;
    let origin = Origin::start([Step::Pieces(document(size, 0))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = begin(&bursar).await;
    reached(&origin, 1).await;
    origin.go();
    let mut answer = wire.head().await;
    let (mut seen, mut looks) = (0, 0);
    eventually("the service to stand still", || {
        let written = origin.written();
        looks = if written > seen { 0 } else { looks + 1 };
        seen = written;
        std::future::ready((written > 0 && looks >= 20).then_some(()))
    })
    .await;
    // Four buffers of the kernel, and what bursar reads at once.
    assert!(
        seen < 32 * MIB,
        "{seen} of {size} were taken from the service"
    );
    assert!(bursar.entries()[0].ended_ms.is_none(), "not settled yet");
    wire.rest(&mut answer).await;
    assert!(answer.complete);
    assert_eq!(answer.body.len(), size);
    assert_eq!(bursar.entries()[0].state, settled(7));
}
