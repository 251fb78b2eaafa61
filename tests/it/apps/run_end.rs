//! A run that has ended spends nothing more, wherever its requests wait: `bursar exec` may be killed while
//! they are in a queue.

use bursar::apps::OpenRun;
use bursar::apps::runs::Run;
use bursar::caps::RunLimit;
use bursar::config::{App, Token};
use bursar::ledger::usage::RunSoFar;
use bursar::money::MicroUsd;

use super::{CHAT, bearer};
use crate::support::origin::{billed, json};
use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Step, Wire, chat, eventually};

/// A run of the default app, held as `bursar exec` holds it.
struct Held {
    token: Token,
    _open: OpenRun,
    _limit: Option<RunLimit>,
}

fn hold(bursar: &Bursar, max: Option<MicroUsd>) -> Held {
    let run = Run::new(&App::new("default"), 1).expect("a run");
    let caps = bursar.gateway.caps();
    let limit = max.map(|max| {
        let limit = caps.open_run(&run.id, max, || Ok(RunSoFar::default()));
        limit.expect("a limit")
    });
    let token = Token::draw().expect("a token");
    let open = bursar.apps.open_run(run, token.hash());
    Held {
        token,
        _open: open.expect("the run is open"),
        _limit: limit,
    }
}

async fn begin(bursar: &Bursar, held: &Held, body: &str) -> Wire {
    let mut wire = bursar.connect().await;
    let shown = bearer(held.token.reveal());
    wire.send(request(
        "POST",
        CHAT,
        &[("Authorization", &shown)],
        &chat(body),
    ))
    .await;
    wire
}

async fn in_flight(bursar: &Bursar, count: usize) {
    eventually("requests in flight", || async {
        (bursar.gateway.in_flight() == count).then_some(())
    })
    .await;
}

fn is_ended(answer: &Answer) {
    assert_eq!(answer.status, 401, "{}", answer.text());
    assert_eq!(answer.code(), Some("run_ended"));
    assert_eq!(answer.header("x-should-retry"), Some("false"));
}

#[tokio::test]
async fn a_request_that_waits_for_a_place_when_its_run_ends_is_not_sent() {
    let origin = Origin::start([Step::Pieces(vec![billed(7)])]).await;
    let bursar = Bursar::with(&origin.url(), "[shaping]\nin_flight = 1\n").await;
    let held = hold(&bursar, None);
    let mut first = begin(&bursar, &held, "first").await;
    eventually("it to be sent", || async {
        (origin.received().len() == 1).then_some(())
    })
    .await;
    let mut waits = begin(&bursar, &held, "waits").await;
    eventually("it to wait", || async {
        (bursar.metric("bursar_queue_depth", "") == 1.0).then_some(())
    })
    .await;

    drop(held);

    is_ended(&waits.answer().await);
    origin.go();
    assert_eq!(first.answer().await.status, 200, "what was sent finishes");
    assert_eq!(origin.received().len(), 1);
}

#[tokio::test]
async fn a_request_that_waits_for_room_when_its_run_ends_is_not_sent() {
    let origin = Origin::start([Step::Pieces(vec![billed(7)])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let held = hold(&bursar, Some(MicroUsd::new(1_000)));
    let mut first = begin(&bursar, &held, "first").await;
    eventually("it to be sent", || async {
        (origin.received().len() == 1).then_some(())
    })
    .await;
    let mut waits = begin(&bursar, &held, "waits").await;
    in_flight(&bursar, 2).await;

    drop(held);

    let answer = waits.answer().await;
    // It may not have passed the door yet: then its token is unknown by now.
    if answer.code() != Some("token_refused") {
        is_ended(&answer);
    }
    origin.go();
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(origin.received().len(), 1);
}

#[tokio::test]
async fn an_attempt_of_a_run_that_has_ended_is_not_repeated() {
    let busy = json(503, &[("Retry-After", "30")], r#"{"detail":"warming"}"#);
    let origin = Origin::start([Step::Answer(busy)]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let held = hold(&bursar, None);
    let mut waits = begin(&bursar, &held, "again").await;
    eventually("it to be sent", || async {
        (origin.received().len() == 1).then_some(())
    })
    .await;

    drop(held);

    let answer = waits.answer().await;
    is_ended(&answer);
    assert!(answer.text().contains("answered 503"), "{}", answer.text());
    assert_eq!(origin.received().len(), 1);
}

#[tokio::test]
async fn a_request_that_joined_one_of_a_run_that_ends_is_asked_to_come_again() {
    let origin = Origin::start([Step::Pieces(vec![billed(7)]), Step::Answer(billed(7))]).await;
    let bursar = Bursar::with(&origin.url(), "[shaping]\nin_flight = 1\n").await;
    let (ends, lives) = (hold(&bursar, None), hold(&bursar, None));
    let mut first = begin(&bursar, &ends, "first").await;
    eventually("it to be sent", || async {
        (origin.received().len() == 1).then_some(())
    })
    .await;
    let left = begin(&bursar, &ends, "again").await;
    eventually("it to wait", || async {
        (bursar.metric("bursar_queue_depth", "") == 1.0).then_some(())
    })
    .await;
    let mut wire = bursar.connect().await;
    let shown = bearer(lives.token.reveal());
    drop(left);
    wire.send(request(
        "POST",
        CHAT,
        &[("Authorization", &shown)],
        &chat("again"),
    ))
    .await;
    eventually("it to join, or to wait itself", || async {
        let joined = bursar.metric("bursar_joined_retries_total", "") == 1.0;
        (joined || bursar.gateway.in_flight() == 2).then_some(())
    })
    .await;

    drop(ends);

    let joined = bursar.metric("bursar_joined_retries_total", "") == 1.0;
    if joined {
        let answer = wire.answer().await;
        assert_eq!((answer.status, answer.code()), (503, Some("run_awaited")));
        assert_eq!(answer.header("x-should-retry"), None);
        origin.go();
    } else {
        origin.go();
        assert_eq!(wire.answer().await.status, 200);
    }
    assert_eq!(first.answer().await.status, 200);
}
