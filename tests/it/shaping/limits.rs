//! What a 429 of the service changes, and that the minute is kept, on a clock of the test's own.

use std::sync::Arc;
use std::time::Duration;

use bursar::clock::ManualClock;

use super::*;
use crate::support::origin::{billed, json};

fn busy(headers: &[(&str, &str)]) -> Vec<u8> {
    json(429, headers, r#"{"detail":"too many requests"}"#)
}

/// Others use the organization's places: no app sees the 429, all pause, fewer go at once, and more
/// again with what is served.
#[tokio::test]
async fn a_429_pauses_all_lowers_the_limit_and_reaches_no_app() {
    let origin = Origin::start([
        on_cue(busy(&[("retry-after-ms", "400")])),
        on_cue(busy(&[("retry-after-ms", "300")])),
    ])
    .await;
    for _ in 0..6 {
        origin.push(Step::Answer(billed(7)));
    }
    let bursar = Bursar::with(&origin.url(), "[shaping]\nin_flight = 4\n").await;
    let mut one = begin(&bursar, "one", &[]).await;
    received(&origin, 1).await;
    let mut two = begin(&bursar, "two", &[]).await;
    received(&origin, 2).await;
    origin.go();
    eventually("the limit to fall", || async {
        (bursar.metrics.traffic.now().in_flight_limit == Some(1)).then_some(())
    })
    .await;
    let refused_at = tokio::time::Instant::now();
    // A new one waits for the pause, too.
    let mut three = begin(&bursar, "three", &[]).await;
    waiting(&bursar, 1).await;
    origin.go();
    for wire in [&mut one, &mut two, &mut three] {
        assert_eq!(wire.answer().await.status, 200);
    }
    let third = origin.received()[2].at;
    let paused = third.duration_since(refused_at);
    assert!(
        paused >= Duration::from_millis(250),
        "sent after {paused:?}"
    );
    for prompt in ["four", "five", "six"] {
        assert_eq!(begin(&bursar, prompt, &[]).await.answer().await.status, 200);
    }
    let now = bursar.metrics.traffic.now();
    assert!(now.in_flight_limit > Some(1), "{now:?}");
    let attempts: usize = bursar
        .settled(6)
        .await
        .iter()
        .map(|entry| entry.attempts.len())
        .sum();
    assert_eq!(attempts, 8);
}

/// The third in a minute waits until the first has been there for one, and not a moment less.
#[tokio::test]
async fn no_minute_holds_more_than_the_rate() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let clock = ManualClock::at(1_700_000_000_000);
    let config = "[shaping]\nin_flight = 8\nper_minute = 2\nqueue_wait_s = 600\n";
    let bursar = Bursar::with_clock(&origin.url(), config, Arc::new(clock.clone())).await;
    for prompt in ["one", "two"] {
        assert_eq!(begin(&bursar, prompt, &[]).await.answer().await.status, 200);
        clock.advance(Duration::from_secs(10));
    }
    let mut three = begin(&bursar, "three", &[]).await;
    waiting(&bursar, 1).await;
    let mut four = begin(&bursar, "four", &[]).await;
    waiting(&bursar, 2).await;
    // 20 s have passed; at 60 s a service may still count the first.
    clock.advance(Duration::from_secs(40));
    // A new request makes the queue check its line against the clock.
    let _five = begin(&bursar, "five", &[]).await;
    waiting(&bursar, 3).await;
    assert_eq!(origin.received().len(), 2);
    clock.advance(Duration::from_secs(2));
    assert_eq!(three.answer().await.status, 200);
    assert_eq!(bursar.metrics.traffic.now().waiting, 2);
    clock.advance(Duration::from_secs(10));
    let four = four.answer().await;
    assert_eq!(four.status, 200);
    let waited: u64 = four.header("x-bursar-queue-ms").unwrap().parse().unwrap();
    assert_eq!(waited, 52_000);
    assert_eq!(prompts(&origin), ["one", "two", "three", "four"]);
}

/// Attempts count one by one, and those that never left do not. The second gets its 429 at once: of
/// the two places of its minute none can become free within its second.
#[tokio::test]
async fn every_attempt_counts_in_its_minute() {
    let origin = Origin::start([
        Step::Answer(json(503, &[], r#"{"detail":"warming"}"#)),
        Step::Answer(billed(7)),
    ])
    .await;
    let bursar = Bursar::with(
        &origin.url(),
        "[shaping]\nper_minute = 2\nqueue_wait_s = 1\n",
    )
    .await;
    assert_eq!(begin(&bursar, "one", &[]).await.answer().await.status, 200);
    let late = begin(&bursar, "two", &[]).await.answer().await;
    assert_eq!(late.code(), Some("queue_timeout"));
    let again: u64 = late.header("retry-after").unwrap().parse().unwrap();
    assert!((60..=62).contains(&again), "{again}");
    let waited: u64 = late.header("x-bursar-queue-ms").unwrap().parse().unwrap();
    assert!(waited < 1_000, "{waited}");
    assert!(late.text().contains("minute is full"), "{}", late.text());
}

/// A place that the minute took is free after 61 s.
#[tokio::test]
async fn a_burst_above_the_minutes_ceiling_waits_and_is_served_with_the_defaults() {
    const BURST: usize = 140;
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let clock = ManualClock::at(1_700_000_000_000);
    let config = "[shaping]\n[ledger]\ndurability = \"process\"\n";
    let bursar = Bursar::with_clock(&origin.url(), config, Arc::new(clock.clone())).await;
    let mut wires = Vec::new();
    for number in 0..BURST {
        let mut wire = bursar.connect().await;
        let body = format!("{{\"model\":\"auto\",\"input\":\"text {number}\"}}");
        wire.send(request("POST", "/v1/embeddings", &[], &body))
            .await;
        wires.push(wire);
    }
    received(&origin, 120).await;
    waiting(&bursar, 20).await;
    // What is on its way counts from its arrival.
    bursar.settled(120).await;
    clock.advance(Duration::from_secs(60));
    let _look = begin(&bursar, "time is looked at", &[]).await;
    waiting(&bursar, 21).await;
    assert_eq!(origin.received().len(), 120);
    clock.advance(Duration::from_secs(2));
    for wire in &mut wires {
        let answer = wire.answer().await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

/// "nothing is refused by an estimate of how long answers take": here the first answer never comes.
#[tokio::test]
async fn behind_a_slow_answer_no_request_is_refused_before_its_time() {
    let origin = Origin::start([Step::Stall]).await;
    let clock = ManualClock::at(1_700_000_000_000);
    let config = "[shaping]\nin_flight = 1\nper_minute = 40\n";
    let bursar = Bursar::with_clock(&origin.url(), config, Arc::new(clock.clone())).await;
    let _slow = begin(&bursar, "slow", &[]).await;
    received(&origin, 1).await;
    let mut line = Vec::new();
    for number in 0..79 {
        line.push(begin(&bursar, &format!("{number}"), &[]).await);
        waiting(&bursar, number + 1).await;
    }
    // Those ahead fill the minutes until 90 s, so this one gets its 429 at once.
    let late = begin(&bursar, "late", &[]).await.answer().await;
    assert_eq!((late.status, late.code()), (429, Some("queue_timeout")));
    assert_eq!(late.header("retry-after"), Some("123"));
    // But requests ahead whose time is up earlier are not counted against its window.
    clock.advance(Duration::from_secs(70));
    let _behind = begin(&bursar, "behind", &[]).await;
    waiting(&bursar, 80).await;
}
