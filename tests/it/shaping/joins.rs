//! An app that hangs up while its request waits, and asks again: the repeat takes over the place in the
//! queue and the key, even if it arrives before bursar has noticed the end of the old connection.

use super::*;
use crate::support::Answer;
use crate::support::origin::billed;

const ONCE: &str = "[shaping]\nin_flight = 1\n[retry]\nattempts = 1\n";

async fn joined(bursar: &Bursar, count: u32) {
    eventually("a repeat to join", || async {
        (bursar.metric("bursar_joined_retries_total", "") >= f64::from(count)).then_some(())
    })
    .await;
}

/// Hangs up, and asks for the same on a connection that is open already: bursar hears of the request
/// first, and the end of the old connection is there by then.
async fn asks_again(bursar: &Bursar, old: Wire, prompt: &str) -> Wire {
    let mut wire = bursar.connect().await;
    // After its answer bursar reads from the connection.
    wire.send(request("GET", "/", &[], "")).await;
    assert_eq!(wire.answer().await.status, 200);
    wire.send(request("POST", CHAT, &[], &chat(prompt))).await;
    drop(old);
    wire
}

fn keys(origin: &Origin) -> Vec<String> {
    let key =
        |got: &crate::support::origin::Received| got.header("idempotency-key").map(str::to_owned);
    origin.received().iter().filter_map(key).collect()
}

/// The app never got the answer to this: its key may have run.
async fn lost(bursar: &Bursar, prompt: &str) -> Answer {
    let lost = begin(bursar, prompt, &[]).await.answer().await;
    assert_eq!(lost.code(), Some("outcome_unknown"));
    lost
}

#[tokio::test]
async fn a_repeat_takes_over_the_place_and_the_key_of_the_request_that_waited() {
    let origin = Origin::start([Step::Close, on_cue(billed(7))]).await;
    origin.push(Step::Answer(billed(7)));
    origin.push(Step::Answer(billed(7)));
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    lost(&bursar, "again").await;
    let mut other = begin(&bursar, "other", &[]).await;
    received(&origin, 2).await;
    let waits = begin(&bursar, "again", &[]).await;
    waiting(&bursar, 1).await;
    let mut behind = begin(&bursar, "behind", &[]).await;
    waiting(&bursar, 2).await;
    let mut repeat = asks_again(&bursar, waits, "again").await;
    joined(&bursar, 1).await;
    assert_eq!(bursar.metrics.traffic.now().waiting, 2);
    origin.go();
    assert_eq!(other.answer().await.status, 200);
    let repeat = repeat.answer().await;
    assert_eq!(repeat.status, 200, "{}", repeat.text());
    assert!(repeat.header("x-bursar-adopted").is_some());
    assert_eq!(behind.answer().await.status, 200);
    assert_eq!(prompts(&origin), ["again", "other", "again", "behind"]);
    let keys = keys(&origin);
    assert_eq!(keys[0], keys[2], "one purchase");
    assert_eq!(bursar.settled(4).await.len(), 4);
}

/// While a request waits, its app hangs up and asks again that many times.
async fn is_sent_once(repeats: u32) {
    let origin = Origin::start([on_cue(billed(7)), Step::Answer(billed(7))]).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    let mut first = begin(&bursar, "first", &[]).await;
    received(&origin, 1).await;
    let mut second = begin(&bursar, "second", &[]).await;
    waiting(&bursar, 1).await;
    for count in 1..=repeats {
        second = asks_again(&bursar, second, "second").await;
        joined(&bursar, count).await;
    }
    assert_eq!(bursar.metrics.traffic.now().waiting, 1, "one purchase");
    origin.go();
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(second.answer().await.status, 200);
    assert_eq!(prompts(&origin), ["first", "second"]);
    assert_eq!(bursar.settled(2).await.len(), 2);
}

#[tokio::test]
async fn a_repeat_of_what_was_never_sent_is_sent_once() {
    is_sent_once(1).await;
}

/// The second may hang up as well, unnoticed, before the third comes.
#[tokio::test]
async fn a_third_request_takes_over_from_a_second_that_has_hung_up() {
    is_sent_once(4).await;
}

/// The first request runs; the second waits, its app has hung up and asked again.
async fn taken_over() -> (Origin, Bursar, Wire, Wire) {
    let origin = Origin::start([on_cue(billed(7))]).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    let first = begin(&bursar, "first", &[]).await;
    received(&origin, 1).await;
    let waits = begin(&bursar, "second", &[]).await;
    waiting(&bursar, 1).await;
    let repeat = asks_again(&bursar, waits, "second").await;
    joined(&bursar, 1).await;
    (origin, bursar, first, repeat)
}

#[tokio::test]
async fn a_repeat_that_took_over_gets_the_reason_of_a_refusal_and_can_leave_too() {
    let (origin, bursar, mut first, mut repeat) = taken_over().await;
    assert_eq!(bursar.metrics.traffic.now().waiting, 1, "still in the line");
    let caps = bursar.gateway.caps();
    caps.freeze(Some("default"), "the test").expect("an order");
    let refused = repeat.answer().await;
    assert_eq!((refused.status, refused.code()), (403, Some("frozen")));
    waiting(&bursar, 0).await;

    caps.thaw(Some("default"), "the test").expect("an order");
    let waits = begin(&bursar, "second", &[]).await;
    waiting(&bursar, 1).await;
    let repeat = asks_again(&bursar, waits, "second").await;
    joined(&bursar, 2).await;
    drop(repeat);
    waiting(&bursar, 0).await;
    origin.go();
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(
        origin.received().len(),
        1,
        "nothing is bought without a reader"
    );
}

/// As that of any other request that bursar refuses when it stops.
#[tokio::test]
async fn the_connection_of_a_repeat_that_took_over_ends_when_bursar_stops() {
    let (origin, bursar, mut first, mut repeat) = taken_over().await;
    bursar.gateway.close_queue();
    let refused = repeat.answer().await;
    assert_eq!(
        (refused.status, refused.code()),
        (503, Some("shutting_down"))
    );
    assert_eq!(refused.header("connection"), Some("close"));
    assert_eq!(
        refused.header("x-bursar-adopted"),
        refused.header("x-bursar-entry")
    );
    assert!(repeat.ends().await, "bursar ends it");
    origin.go();
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(origin.received().len(), 1);
}

/// Refusals of bursar's own are not adoptions: after three adoptions the answer says not to retry.
#[tokio::test]
async fn what_was_refused_here_leaves_the_key_as_it_was() {
    let busy = || {
        Step::Answer(crate::support::origin::json(
            503,
            &[],
            r#"{"detail":"busy"}"#,
        ))
    };
    let origin = Origin::start([Step::Close, busy()]).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    let lost = lost(&bursar, "again").await;
    let caps = bursar.gateway.caps();
    caps.freeze(None, "the test").expect("an order");
    for _ in 0..4 {
        let frozen = begin(&bursar, "again", &[]).await.answer().await;
        assert_eq!(frozen.code(), Some("frozen"));
    }
    caps.thaw(None, "the test").expect("an order");
    let next = begin(&bursar, "again", &[]).await.answer().await;
    assert_eq!(next.status, 503);
    assert_eq!(
        next.header("x-bursar-adopted"),
        lost.header("x-bursar-entry"),
        "an entry of the ledger"
    );
    assert_eq!(next.header("x-should-retry"), None, "it was adopted once");
    let keys = keys(&origin);
    assert_eq!(keys[0], keys[1]);
}
