//! Streams whose service, app or follower is slow, old or gone: whose time it is, who was given
//! what, and that a shutdown waits for none of them.

use std::time::Duration;
use tokio::time::timeout;

use bursar::clock::ManualClock;
use bursar::ledger::entry::{InDoubt, State};

use super::{CHAT, DONE, EVENT, RECEIPT, begin, open, pieces, settled, whole};
use crate::support::origin::{chunk, last_chunk};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, Wire, chat_stream, eventually};

/// Half a day after midnight in 2023: no day ends while a test runs.
const NOON_MS: u64 = 1_700_000_000_000;

async fn received(origin: &Origin, count: usize) {
    eventually("the service to receive", || async {
        (origin.received().len() >= count).then_some(())
    })
    .await;
}

async fn counted(bursar: &Bursar, family: &str, labels: &str) {
    eventually(family, || async {
        (bursar.metric(family, labels) > 0.5).then_some(())
    })
    .await;
}

/// Waits until the service cannot write on, because bursar does not read on, because its app does
/// not read. All of them run on this thread, so nobody only lacks the time.
async fn everything_stands_still(origin: &Origin) {
    let mut seen = 0;
    let mut looks = 0;
    eventually("everything to stand still", || {
        let written = origin.written();
        looks = if written > seen { 0 } else { looks + 1 };
        seen = written;
        std::future::ready((written > 0 && looks >= 20).then_some(()))
    })
    .await;
}

/// Sends a request as an HTTP/1.0 app does.
async fn begin_1_0(bursar: &Bursar) -> Wire {
    let text = request("POST", CHAT, &[], &chat_stream("hi"));
    let mut wire = bursar.connect().await;
    wire.send(text.replacen("HTTP/1.1", "HTTP/1.0", 1)).await;
    wire
}

/// A stream that is running and whose app has left before it was given anything.
async fn left_alone(origin: &Origin, bursar: &Bursar) {
    let wire = begin(bursar).await;
    received(origin, 1).await;
    drop(wire);
    let labels = "phase=\"waiting\"";
    counted(bursar, "bursar_client_disconnects_total", labels).await;
}

/// A write that cannot end ends with bursar's shutdown, not with its own minute.
#[tokio::test]
async fn a_shutdown_cuts_a_write_that_its_app_holds_up() {
    let flood = chunk(&format!("data: \"{}\"\n\n", "x".repeat(1024 * 1024)));
    let origin = Origin::start([pieces(&[[open(&[EVENT]), flood.repeat(64)].concat()])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let wire = begin(&bursar).await;
    received(&origin, 1).await;
    origin.go();
    everything_stands_still(&origin).await;
    bursar.gateway.cut();
    let idle = timeout(Duration::from_secs(5), bursar.gateway.idle()).await;
    assert!(idle.is_ok(), "the write goes on");
    let shutdown = State::InDoubt {
        reason: InDoubt::Shutdown,
    };
    assert_eq!(bursar.entries()[0].state, shutdown);
    drop(wire);
}

/// Own time is the total less the service's time, before the first byte and between chunks.
#[tokio::test]
async fn the_service_s_silence_is_not_our_own_time() {
    let clock = ManualClock::at(NOON_MS);
    let end = [chunk(RECEIPT), chunk(DONE), last_chunk()].concat();
    let origin = Origin::start([pieces(&[open(&[EVENT]), end])]).await;
    let shared = std::sync::Arc::new(clock.clone());
    let bursar = Bursar::with_clock(&origin.url(), "", shared).await;
    let mut wire = begin(&bursar).await;
    received(&origin, 1).await;
    clock.advance(Duration::from_secs(10));
    origin.go();
    let mut answer = wire.head().await;
    wire.chunk(&mut answer).await.expect("an event");
    clock.advance(Duration::from_secs(20));
    origin.go();
    wire.rest(&mut answer).await;
    assert!(answer.complete);
    let timings = bursar.entries()[0].timings.expect("timings");
    assert_eq!(timings.first_byte_ms, Some(10_000));
    assert_eq!((timings.total_ms, timings.own_us), (30_000, 0));
}

/// The time that an app takes to read is bursar's to bear, as no other part of it is the service's.
#[tokio::test]
async fn writing_to_a_slow_app_is_our_own_time() {
    let clock = ManualClock::at(NOON_MS);
    let flood = chunk(&format!("data: \"{}\"\n\n", "x".repeat(1024 * 1024)));
    let end = [chunk(RECEIPT), chunk(DONE), last_chunk()].concat();
    let all = [open(&[EVENT]), flood.repeat(32), end].concat();
    let origin = Origin::start([pieces(&[all])]).await;
    let shared = std::sync::Arc::new(clock.clone());
    let bursar = Bursar::with_clock(&origin.url(), "", shared).await;
    let mut wire = begin(&bursar).await;
    received(&origin, 1).await;
    origin.go();
    everything_stands_still(&origin).await;
    clock.advance(Duration::from_secs(5));
    let answer = wire.answer().await;
    assert!(answer.complete);
    let timings = bursar.entries()[0].timings.expect("timings");
    assert_eq!((timings.total_ms, timings.own_us), (5_000, 5_000_000));
}

/// Towards a follower whose answer ends with its connection a break is a reset too.
#[tokio::test]
async fn an_http_1_0_follower_sees_an_end_as_an_end_and_a_break_as_a_break() {
    let text = format!("{EVENT}{EVENT}{RECEIPT}{DONE}");
    let rows = [
        ("an end", whole(&[EVENT, EVENT, RECEIPT, DONE]), true),
        ("a break", open(&[EVENT, EVENT]), false),
        ("a break behind one chunk", open(&[EVENT]), false),
    ];
    for (name, bytes, ends) in rows {
        let origin = Origin::start([Step::PiecesAndClose(vec![bytes])]).await;
        let bursar = Bursar::before(&origin.url()).await;
        left_alone(&origin, &bursar).await;
        let mut follower = begin_1_0(&bursar).await;
        counted(&bursar, "bursar_joined_retries_total", "").await;
        origin.go();
        let answer = follower.answer().await;
        assert_eq!(answer.status, 200, "{name}");
        assert_eq!(answer.header("transfer-encoding"), None, "{name}");
        assert_eq!((answer.complete, answer.reset), (ends, !ends), "{name}");
        if ends {
            assert_eq!(answer.text(), text, "{name}");
            assert_eq!(bursar.settled(1).await[0].state, settled(7), "{name}");
        }
        assert_eq!(origin.received().len(), 1, "{name}: one purchase");
    }
}

/// The chunk that is held back for an HTTP/1.0 follower was not given to it: who comes next gets all.
#[tokio::test]
async fn what_was_held_for_a_follower_that_left_is_still_to_be_had() {
    let end = [chunk(&format!("{RECEIPT}{DONE}")), last_chunk()].concat();
    let origin = Origin::start([pieces(&[open(&[EVENT]), end])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    left_alone(&origin, &bursar).await;
    let follower = begin_1_0(&bursar).await;
    counted(&bursar, "bursar_joined_retries_total", "").await;
    origin.go();
    everything_stands_still(&origin).await;
    drop(follower);
    // It had its head, and not one byte of the answer.
    counted(&bursar, "bursar_requests_total", "code=\"200\"").await;
    let mut next = begin(&bursar).await;
    eventually("the next to join", || async {
        (bursar.metric("bursar_joined_retries_total", "") > 1.5).then_some(())
    })
    .await;
    origin.go();
    let answer = next.answer().await;
    assert_eq!(answer.text(), format!("{EVENT}{RECEIPT}{DONE}"));
    assert_eq!(origin.received().len(), 1, "one purchase");
    assert_eq!(bursar.settled(1).await[0].state, settled(7));
}

/// A follower that leaves before there is a head was answered nothing; the report says so.
#[tokio::test]
async fn a_follower_that_leaves_before_a_head_is_reported_with_499() {
    let end = [RECEIPT, DONE].concat();
    let origin = Origin::start([pieces(&[whole(&[EVENT, &end])])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    left_alone(&origin, &bursar).await;
    let follower = begin(&bursar).await;
    counted(&bursar, "bursar_joined_retries_total", "").await;
    drop(follower);
    counted(&bursar, "bursar_requests_total", "code=\"499\"").await;
    origin.go();
    assert_eq!(bursar.settled(1).await[0].state, settled(7));
    bursar.gateway.idle().await;
    let requests = bursar.metric("bursar_requests_total", "");
    assert!((requests - 2.0).abs() < 0.1, "one report each: {requests}");
}
