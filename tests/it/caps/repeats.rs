//! What a repeat repeats is charged already: in the window of its purchase, and in the run that bought it.

use std::sync::Arc;
use std::time::Duration;

use bursar::apps::runs::Run;
use bursar::clock::ManualClock;
use bursar::config::{App, Token};
use bursar::ledger::usage::RunSoFar;
use bursar::money::MicroUsd;

use super::{CHAT, ask, is_reached, on_cue, received};
use crate::support::origin::{billed, json};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, chat, eventually};

/// 2026-03-28T23:59:50Z.
const BEFORE_MIDNIGHT: u64 = 1_774_742_390_000;

/// A run with a limit, open as long as the first is kept, and its bearer.
pub(super) fn run_of(bursar: &Bursar, limit: u64) -> (impl Sized, String) {
    let run = Run::new(&App::new("default"), 1).expect("a run");
    let so_far = || Ok(RunSoFar::default());
    let limit = bursar
        .gateway
        .caps()
        .open_run(&run.id, MicroUsd::new(limit), so_far);
    let token = Token::draw().expect("a token");
    let open = bursar.apps.open_run(run, token.hash());
    let held = (limit.expect("a limit"), open.expect("the run is open"));
    (held, format!("Bearer {}", token.reveal()))
}

/// Its key existed before midnight, its purchase came after.
#[tokio::test]
async fn a_repeat_of_a_purchase_that_waited_over_midnight_is_charged_in_the_new_day() {
    let steps = [on_cue(billed(7)), Step::Close, Step::Answer(billed(7))];
    let origin = Origin::start(steps).await;
    let caps = "[retry]\nattempts = 1\n[caps]\ntime_zone = \"UTC\"\nday_micro_usd = 1000\n\
                request_floor_micro_usd = 1000\n";
    let clock = ManualClock::at(BEFORE_MIDNIGHT);
    let bursar = Bursar::with_clock(&origin.url(), caps, Arc::new(clock.clone())).await;
    let mut first = bursar.connect().await;
    first.send(request("POST", CHAT, &[], &chat("first"))).await;
    received(&origin, 1).await;
    let mut waits = bursar.connect().await;
    waits.send(request("POST", CHAT, &[], &chat("waits"))).await;
    eventually("it to wait for room", || async {
        (bursar.gateway.caps().view().waiting == 1).then_some(())
    })
    .await;
    clock.advance(Duration::from_secs(20));
    origin.go();
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(waits.answer().await.code(), Some("outcome_unknown"));

    // All of the new day is held for it.
    is_reached(&ask(&bursar, &chat("another"), &[]).await);
    let repeat = ask(&bursar, &chat("waits"), &[]).await;
    assert_eq!(repeat.status, 200, "{}", repeat.text());
    assert!(repeat.header("x-bursar-adopted").is_some());
}

#[tokio::test]
async fn a_replay_under_the_apps_own_key_passes_at_the_limit_of_the_run_that_bought_it() {
    let headers = [("X-Service-Billed", "0"), ("Idempotent-Replayed", "true")];
    let replay = || Step::Answer(json(200, &headers, r#"{"choices":[]}"#));
    let origin = Origin::start([Step::Answer(billed(60)), replay(), replay()]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let ((_one, buyer), (_other, stranger)) = (run_of(&bursar, 50), run_of(&bursar, 0));
    let as_run = |bearer| [("Authorization", bearer), ("Idempotency-Key", "mine")];
    let bought = ask(&bursar, &chat("hi"), &as_run(&buyer)).await;
    assert_eq!(bought.status, 200, "{}", bought.text());
    for _ in 0..2 {
        let again = ask(&bursar, &chat("hi"), &as_run(&buyer)).await;
        assert_eq!(again.status, 200, "{}", again.text());
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
    }
    let another = [("Authorization", &*buyer), ("Idempotency-Key", "another")];
    is_reached(&ask(&bursar, &chat("hi"), &another).await);
    // Another run has not bought it.
    is_reached(&ask(&bursar, &chat("hi"), &as_run(&stranger)).await);
    assert_eq!(bursar.billed(), 60);
}

#[tokio::test]
async fn what_is_in_doubt_under_the_apps_own_key_is_held_once_in_its_run() {
    let steps = [Step::Close, Step::Close, Step::Answer(billed(7))];
    let origin = Origin::start(steps).await;
    let floor = "[retry]\nattempts = 1\n[caps]\nrequest_floor_micro_usd = 600\n";
    let bursar = Bursar::with(&origin.url(), floor).await;
    let (_open, bearer) = run_of(&bursar, 1_000);
    for (key, prompt, code) in [
        ("mine", "lost", Some("outcome_unknown")),
        ("mine", "lost", Some("outcome_unknown")),
        // 600 of 1,000 are held, so one more is sent.
        ("another", "served", None),
    ] {
        let headers = [("Authorization", &*bearer), ("Idempotency-Key", key)];
        let answer = ask(&bursar, &chat(prompt), &headers).await;
        assert_eq!(answer.code(), code, "{key}: {}", answer.text());
    }
    assert_eq!(origin.received().len(), 3);
}
