//! Waiting for room below a limit: nothing is bought for an app that hangs up, a stop refuses waiting
//! requests, and a request that had to wait for a place is checked again before it is sent.

use std::sync::Arc;
use std::time::Duration;

use bursar::apps::runs::Run;
use bursar::clock::ManualClock;
use bursar::config::{App, Token};
use bursar::ledger::usage::RunSoFar;
use bursar::money::MicroUsd;

use super::{CHAT, is_reached, on_cue, received};
use crate::support::origin::{billed, json};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, Wire, chat, eventually};

const ROOM_FOR_ONE: &str = "[caps]\nday_micro_usd = 1000\nrequest_floor_micro_usd = 600\n";

async fn begin(bursar: &Bursar, prompt: &str, headers: &[(&str, &str)]) -> Wire {
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, headers, &chat(prompt)))
        .await;
    wire
}

/// Nothing of the request is under way any more.
async fn in_flight(bursar: &Bursar, count: usize) {
    eventually("requests in flight", || async {
        (bursar.gateway.in_flight() == count).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_request_that_waits_for_its_run_ends_with_its_app() {
    let origin = Origin::start([on_cue(billed(1)), Step::Answer(billed(1))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let run = Run::new(&App::new("default"), 1).expect("a run");
    let caps = bursar.gateway.caps();
    let limit = caps.open_run(
        &run.id,
        MicroUsd::new(1_000_000),
        || Ok(RunSoFar::default()),
    );
    let _limit = limit.expect("a limit");
    let token = Token::draw().expect("a token");
    let _open = bursar
        .apps
        .open_run(run, token.hash())
        .expect("the run is open");
    let bearer = format!("Bearer {}", token.reveal());
    let as_run: &[(&str, &str)] = &[("Authorization", &bearer)];

    let mut first = begin(&bursar, "first", as_run).await;
    received(&origin, 1).await;
    let waits = begin(&bursar, "waits", as_run).await;
    in_flight(&bursar, 2).await;
    drop(waits);
    in_flight(&bursar, 1).await;
    origin.go();
    assert_eq!(first.answer().await.status, 200);

    assert_eq!(origin.received().len(), 1, "the second is not waited for");
    assert_eq!(bursar.settled(1).await.len(), 1);
}

#[tokio::test]
async fn a_request_that_waits_for_room_is_refused_when_bursar_stops() {
    let origin = Origin::start([on_cue(billed(1))]).await;
    let bursar = Bursar::with(&origin.url(), ROOM_FOR_ONE).await;
    let mut first = begin(&bursar, "first", &[]).await;
    received(&origin, 1).await;
    let mut waits = begin(&bursar, "waits", &[]).await;
    in_flight(&bursar, 2).await;

    bursar.gateway.close_queue();

    let refused = waits.answer().await;
    assert_eq!(
        (refused.status, refused.code()),
        (503, Some("shutting_down"))
    );
    origin.go();
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(origin.received().len(), 1);
}

/// All of a burst may have room below the cap on arrival, at the prices that are known then.
#[tokio::test]
async fn a_cap_that_is_reached_meanwhile_stops_requests_that_wait_for_a_place() {
    let steps = [Step::Answer(billed(1)), on_cue(billed(2_000))];
    let origin = Origin::start(steps).await;
    let config =
        "[caps]\nday_micro_usd = 1000\nrequest_floor_micro_usd = 1\n[shaping]\nin_flight = 1\n";
    let bursar = Bursar::with(&origin.url(), config).await;
    let cheap = begin(&bursar, "cheap", &[]).await.answer().await;
    assert_eq!(cheap.status, 200);
    let mut dear = begin(&bursar, "dear", &[]).await;
    received(&origin, 2).await;
    let mut behind = Vec::new();
    for number in 0..2 {
        behind.push(begin(&bursar, &format!("behind {number}"), &[]).await);
    }
    in_flight(&bursar, 3).await;
    eventually("them to wait", || async {
        (bursar.metric("bursar_queue_depth", "") == 2.0).then_some(())
    })
    .await;
    origin.go();
    assert_eq!(dear.answer().await.status, 200);
    // The place was given back when the price counted, so no request took it in between.
    for mut wire in behind {
        is_reached(&wire.answer().await);
    }
    assert_eq!(origin.received().len(), 2);
}

/// The price of an eval run is known when it is over.
#[tokio::test]
async fn the_price_of_an_eval_run_reaches_the_run_that_started_it() {
    let over = r#"{"run":{"id":"e1","status":"completed","cost_micro_usd":7},"results":[]}"#;
    let started = r#"{"run_id":"e1","status":"queued"}"#;
    let steps = [json(200, &[], started), json(200, &[], over), billed(1)];
    let origin = Origin::start(steps.map(Step::Answer)).await;
    let bursar = Bursar::before(&origin.url()).await;
    let run = Run::new(&App::new("default"), 1).expect("a run");
    let max = MicroUsd::new(10_000);
    let limit = bursar
        .gateway
        .caps()
        .open_run(&run.id, max, || Ok(RunSoFar::default()));
    let _limit = limit.expect("a limit");
    let token = Token::draw().expect("a token");
    let open = bursar.apps.open_run(run, token.hash());
    let _open = open.expect("the run is open");
    let bearer = format!("Bearer {}", token.reveal());
    let as_run: &[(&str, &str)] = &[("Authorization", &bearer)];

    let mut wire = bursar.connect().await;
    let start = r#"{"eval_set_id":"e1","candidate_model_ids":["auto"]}"#;
    wire.send(request("POST", "/v1/eval-runs", as_run, start))
        .await;
    assert_eq!(wire.answer().await.status, 200);
    let refused = begin(&bursar, "held", as_run).await.answer().await;
    is_reached(&refused);
    assert!(
        refused.text().contains("$0.010000 set aside"),
        "{}",
        refused.text()
    );
    let looked = bursar.connect().await.get("/v1/eval-runs/e1").await;
    assert_eq!(looked.status, 200);
    let answer = begin(&bursar, "there is room again", as_run)
        .await
        .answer()
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[tokio::test]
async fn the_wait_for_room_is_reported_and_is_not_bursars_own_time() {
    let origin = Origin::start([on_cue(billed(1)), Step::Answer(billed(1))]).await;
    let clock = ManualClock::at(1_700_000_000_000);
    let bursar = Bursar::with_clock(&origin.url(), ROOM_FOR_ONE, Arc::new(clock.clone())).await;
    let mut first = begin(&bursar, "first", &[]).await;
    received(&origin, 1).await;
    let mut waits = begin(&bursar, "waits", &[]).await;
    eventually("it to wait", || async {
        (bursar.gateway.caps().view().waiting == 1).then_some(())
    })
    .await;
    clock.advance(Duration::from_millis(60));
    origin.go();
    assert_eq!(first.answer().await.status, 200);
    let answer = waits.answer().await;

    assert_eq!(answer.header("x-bursar-queue-ms"), Some("60"));
    let timings = bursar.entry_of(&answer).timings.expect("timings");
    assert_eq!((timings.queue_ms, timings.own_us), (60, 0), "{timings:?}");
}
