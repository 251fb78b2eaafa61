//! Reading without a reader is bounded in time, bytes and number; an answer that is not a stream is
//! finished.

use std::time::Duration;
use tokio::time::{Instant, timeout};

use bursar::clock::SystemClock;
use bursar::ledger::entry::{AttemptEnd, InDoubt, State};
use bursar::ledger::{Ledger, LedgerOptions};
use bursar::money::MicroUsd;

use super::{CHAT, counted, left, on_cue, received, send};
use crate::support::origin::{billed, chunk, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, Wire, chat, chat_stream, eventually};

const GONE: State = State::InDoubt {
    reason: InDoubt::ClientGone,
};
const EVENT: &str = "data: {\"n\":1}\n\n";
const END: &str = ": service-billed-micro-usd 7\n\ndata: [DONE]\n\n";

/// A stream that sends one event and then nothing more.
fn silent() -> Step {
    Step::Answer([stream_head(), chunk(EVENT)].concat())
}

/// Reads the first event of a stream.
async fn read_first(wire: &mut Wire) {
    wire.send(request("POST", CHAT, &[], &chat_stream("hi")))
        .await;
    let mut answer = wire.head().await;
    assert_eq!(
        wire.chunk(&mut answer).await.as_deref(),
        Some(EVENT.as_bytes())
    );
}

fn drains(bursar: &Bursar, result: &str) -> f64 {
    bursar.metric("bursar_drains_total", &format!("result=\"{result}\""))
}

/// The service sends nothing more, so no write ever fails; its own timeout is ten minutes.
#[tokio::test]
async fn a_drain_of_a_silent_service_ends_after_its_time() {
    for resets in [true, false] {
        let origin = Origin::start([silent()]).await;
        let bursar = Bursar::with(&origin.url(), "[streams]\ndrain_timeout_s = 1\n").await;
        let mut wire = match resets {
            true => Wire::tcp_that_resets(bursar.address).await,
            false => bursar.connect().await,
        };
        read_first(&mut wire).await;
        drop(wire);
        let began = Instant::now();
        let entries = bursar.settled(1).await;
        let took = began.elapsed();
        assert_eq!(entries[0].state, GONE, "resets: {resets}");
        assert!(took > Duration::from_millis(800), "{resets}: {took:?}");
        bursar.gateway.idle().await;
        assert!((drains(&bursar, "cut") - 1.0).abs() < 0.1, "{resets}");
    }
}

/// An end of input is only suspicion: an app that still takes bytes afterwards is there, however
/// long the service is silent.
#[tokio::test]
async fn an_app_that_closed_its_sending_half_is_waited_for() {
    let pieces = vec![
        [stream_head(), chunk(EVENT)].concat(),
        chunk(EVENT),
        [chunk(END), last_chunk()].concat(),
    ];
    let origin = Origin::start([Step::Pieces(pieces)]).await;
    let bursar = Bursar::with(&origin.url(), "[streams]\ndrain_timeout_s = 1\n").await;
    let mut wire = send(&bursar, &origin, &chat_stream("hi"), &[]).await;
    origin.go();
    let mut answer = wire.head().await;
    wire.chunk(&mut answer).await.expect("an event");
    wire.half_close().await;
    left(&bursar, 1).await;
    origin.go();
    wire.chunk(&mut answer).await.expect("another event");
    let silence = timeout(Duration::from_millis(1500), wire.chunk(&mut answer)).await;
    assert!(silence.is_err(), "not ended, and not broken");
    origin.go();
    wire.rest(&mut answer).await;
    assert!(answer.complete && answer.text() == END, "{}", answer.text());
    let entry = &bursar.settled(1).await[0];
    assert!(!entry.drained, "it was read");
    assert!(drains(&bursar, "") < 0.1);
}

/// A reset is certain, even if it follows an end of input and the service is silent.
#[tokio::test]
async fn a_reset_behind_an_end_of_input_is_noticed() {
    let origin = Origin::start([silent()]).await;
    let bursar = Bursar::with(&origin.url(), "[streams]\non_disconnect = \"cancel\"\n").await;
    let mut wire = Wire::tcp_that_resets(bursar.address).await;
    read_first(&mut wire).await;
    wire.half_close().await;
    left(&bursar, 1).await;
    assert_eq!(bursar.entries()[0].state, State::Open, "only suspicion");
    drop(wire);
    assert_eq!(bursar.settled(1).await[0].state, GONE);
    bursar.gateway.idle().await;
    assert!((drains(&bursar, "cancelled") - 1.0).abs() < 0.1);
}

/// "16 MiB": 18 come, and then nothing.
#[tokio::test]
async fn a_drain_ends_after_its_bytes() {
    for (mib, wanted) in [(18, GONE), (15, State::Open)] {
        let flood = chunk(&format!("data: \"{}\"\n\n", "x".repeat(1024 * 1024)));
        let pieces = vec![
            [stream_head(), chunk(EVENT)].concat(),
            flood.repeat(mib),
            vec![],
        ];
        let origin = Origin::start([Step::Pieces(pieces)]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let mut wire = Wire::tcp_that_resets(bursar.address).await;
        wire.send(request("POST", CHAT, &[], &chat_stream("hi")))
            .await;
        received(&origin, 1).await;
        origin.go();
        let mut answer = wire.head().await;
        wire.chunk(&mut answer).await.expect("an event");
        drop(wire);
        left(&bursar, 1).await;
        origin.go();
        if wanted == GONE {
            assert_eq!(bursar.settled(1).await[0].state, GONE);
            bursar.gateway.idle().await;
            assert!((drains(&bursar, "cut") - 1.0).abs() < 0.1);
        } else {
            // The service has written all of it, so it was read but for what sockets hold.
            origin.go();
            eventually("the flood to be over", || async {
                (origin.written() > 15 * 1024 * 1024).then_some(())
            })
            .await;
            assert_eq!(bursar.entries()[0].state, wanted, "{mib} MiB are allowed");
        }
    }
}

/// "64 at once": the 65th is given up, and a place that becomes free is taken again.
#[tokio::test]
async fn a_drain_ends_at_once_where_64_go_on() {
    let origin = Origin::always(silent()).await;
    let bursar = Bursar::before(&origin.url()).await;
    for count in 1..=64 {
        let mut wire = Wire::tcp_that_resets(bursar.address).await;
        read_first(&mut wire).await;
        drop(wire);
        left(&bursar, count).await;
    }
    assert_eq!(bursar.gateway.in_flight(), 64, "all of them are read on");
    assert!(drains(&bursar, "refused") < 0.1);

    let mut wire = Wire::tcp_that_resets(bursar.address).await;
    read_first(&mut wire).await;
    drop(wire);
    let gone = eventually("the 65th to be given up", || async {
        let entries = bursar.entries();
        entries.into_iter().find(|entry| entry.state != State::Open)
    })
    .await;
    assert_eq!(gone.state, GONE);
    assert!((drains(&bursar, "refused") - 1.0).abs() < 0.1);
    eventually("the others to go on", || async {
        (bursar.gateway.in_flight() == 64).then_some(())
    })
    .await;
    bursar.gateway.cut();
    bursar.gateway.idle().await;
}

/// A request that is not a stream is finished, within the service's own time.
#[tokio::test]
async fn a_document_that_never_comes_ends_with_the_service_s_time() {
    let origin = Origin::always(Step::Stall).await;
    let config = "[streams]\non_disconnect = \"cancel\"\n[upstream]\nread_timeout_s = 1\n";
    let bursar = Bursar::with(&origin.url(), config).await;
    drop(send(&bursar, &origin, &chat("hi"), &[]).await);
    let entry = &bursar.settled(1).await[0];
    let silent = State::InDoubt {
        reason: InDoubt::NoResponse,
    };
    assert_eq!(entry.state, silent);
    assert_eq!(entry.attempts.len(), 1, "no app waits for another attempt");
    assert!(drains(&bursar, "") < 0.1, "there was no answer to drain");
}

/// More than a drain may read, and an app that has left: read to its end all the same, under both
/// settings. `cancel` is for streams.
#[tokio::test]
async fn a_large_document_is_read_to_its_end() {
    let body = "y".repeat(18 * 1024 * 1024);
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Service-Billed: 7\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    for on_disconnect in ["drain", "cancel"] {
        let whole = [head.as_bytes(), body.as_bytes()].concat();
        let origin = Origin::start([on_cue(whole)]).await;
        let lines = format!("[streams]\non_disconnect = \"{on_disconnect}\"\n");
        let bursar = Bursar::with(&origin.url(), &lines).await;
        drop(send(&bursar, &origin, &chat("hi"), &[]).await);
        left(&bursar, 1).await;
        origin.go();
        let entry = &bursar.settled(1).await[0];
        assert_eq!(entry.billed_micro_usd, Some(MicroUsd::new(7)));
        assert_eq!(
            entry.attempts[0].end,
            AttemptEnd::Answered,
            "{on_disconnect}"
        );
        assert_eq!(entry.response_bytes, u64::try_from(body.len()).ok());
        assert!(entry.drained);
        bursar.gateway.idle().await;
        assert!((drains(&bursar, "completed") - 1.0).abs() < 0.1);
        assert!(drains(&bursar, "cancelled") < 0.1);
    }
}

/// Rule I10: what draining cost is in the journal, and the same in all sums after a restart.
#[tokio::test]
async fn what_draining_cost_is_known_after_a_restart() {
    let origin = Origin::start([
        on_cue(billed(7)),
        Step::Answer(billed(11)),
        on_cue([stream_head(), chunk(EVENT), chunk(END), last_chunk()].concat()),
    ])
    .await;
    let bursar = Bursar::before(&origin.url()).await;
    drop(send(&bursar, &origin, &chat("one"), &[]).await);
    left(&bursar, 1).await;
    origin.go();
    counted(&bursar, "bursar_drains_total", 1).await;
    bursar.post(CHAT, &chat("two")).await;
    drop(send(&bursar, &origin, &chat_stream("three"), &[]).await);
    left(&bursar, 2).await;
    origin.go();
    bursar.settled(3).await;
    bursar.gateway.idle().await;

    let text = "bursar_drained_usd_total 0.000014";
    assert!(bursar.metrics_text().lines().any(|line| line == text));
    bursar.ledger.close().await;
    let options = LedgerOptions::new(bursar.state_dir(), SystemClock::shared());
    let again = Ledger::open(options).expect("the ledger opens");
    let totals = again.totals();
    assert_eq!((totals.billed().get(), totals.drained().get()), (25, 14));
    let shown = bursar
        .metrics
        .render(&totals, &again.health())
        .expect("metrics render");
    assert!(shown.lines().any(|line| line == text), "{shown}");
    let drained: Vec<bool> = bursar.entries().iter().map(|entry| entry.drained).collect();
    assert_eq!(drained, [true, false, true]);
}

/// A settled stream without a reader holds no place for a service that never ends it.
#[tokio::test]
async fn a_settled_stream_without_a_reader_waits_a_moment_for_its_end() {
    let origin = Origin::start([on_cue([stream_head(), chunk(EVENT), chunk(END)].concat())]).await;
    let bursar = Bursar::with(&origin.url(), "[streams]\ndrain_timeout_s = 1\n").await;
    let wire = send(&bursar, &origin, &chat_stream("hi"), &[]).await;
    drop(wire);
    left(&bursar, 1).await;
    origin.go();
    let entries = bursar.settled(1).await;
    assert_eq!(entries[0].billed_micro_usd, Some(MicroUsd::new(7)));
    let idle = timeout(Duration::from_secs(10), bursar.gateway.idle()).await;
    assert!(idle.is_ok(), "it is read on without an end");
}
