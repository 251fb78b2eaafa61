//! A leaving app loses no receipt, and reading without a reader is bounded.

use std::time::Duration;
use tokio::time::Instant;

use bursar::ledger::entry::{InDoubt, State};
use bursar::money::MicroUsd;

use super::{left, on_cue, send};
use crate::support::origin::{billed, chunk, last_chunk, stream_head};
use crate::support::{Bursar, Origin, Step, chat, chat_stream, eventually};

const SETTLED: State = State::Settled {
    billed: MicroUsd::new(7),
};
const GONE: State = State::InDoubt {
    reason: InDoubt::ClientGone,
};

fn first_piece() -> Vec<u8> {
    [stream_head(), chunk("data: {\"n\":1}\n\n")].concat()
}

fn next_piece() -> Vec<u8> {
    chunk("data: {\"n\":2}\n\n")
}

fn receipt_and_end() -> Vec<u8> {
    [
        chunk(": service-billed-micro-usd 7\n\n"),
        chunk("data: [DONE]\n\n"),
        last_chunk(),
    ]
    .concat()
}

/// Reads the first piece of a stream and leaves.
async fn read_and_leave(bursar: &Bursar, origin: &Origin) {
    let mut wire = send(bursar, origin, &chat_stream("hi"), &[]).await;
    origin.go();
    let mut answer = wire.head().await;
    wire.chunk(&mut answer).await.expect("a piece");
    drop(wire);
    left(bursar, 1).await;
}

#[tokio::test]
async fn a_json_answer_is_read_for_its_receipt_when_the_app_has_left() {
    let origin = Origin::start([on_cue(billed(7))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    drop(send(&bursar, &origin, &chat("hi"), &[]).await);
    left(&bursar, 1).await;
    origin.go();
    assert_eq!(bursar.settled(1).await[0].state, SETTLED);
}

#[tokio::test]
async fn a_stream_is_read_on_for_its_receipt_when_the_app_has_left() {
    let origin = Origin::start([Step::Pieces(vec![
        first_piece(),
        next_piece(),
        receipt_and_end(),
    ])])
    .await;
    let bursar = Bursar::before(&origin.url()).await;
    read_and_leave(&bursar, &origin).await;
    assert_eq!(bursar.gateway.in_flight(), 1, "a drain counts as in flight");
    eventually("the stream to be drained", || async {
        origin.go();
        (bursar.entries()[0].state == SETTLED).then_some(())
    })
    .await;
    bursar.gateway.idle().await;
    let drains = bursar.metric("bursar_drains_total", "result=\"completed\"");
    assert!((drains - 1.0).abs() < 0.1, "{drains}");
    let cost = bursar.metric("bursar_drained_usd_total", "");
    assert!((cost - 0.000_007).abs() < 1e-9, "{cost}");
}

/// "`on_disconnect = cancel`": the first write that fails ends the reading.
#[tokio::test]
async fn a_stream_is_cancelled_where_the_config_says_so() {
    let pieces = vec![first_piece(), next_piece(), next_piece(), receipt_and_end()];
    let origin = Origin::start([Step::Pieces(pieces)]).await;
    let bursar = Bursar::with(&origin.url(), "[streams]\non_disconnect = \"cancel\"\n").await;
    read_and_leave(&bursar, &origin).await;
    origin.go();
    let entries = bursar.settled(1).await;
    assert_eq!(entries[0].state, GONE);
}

#[tokio::test]
async fn a_drain_ends_after_its_time() {
    let pieces = vec![first_piece(), next_piece(), receipt_and_end()];
    let origin = Origin::start([Step::Pieces(pieces)]).await;
    let bursar = Bursar::with(&origin.url(), "[streams]\ndrain_timeout_s = 1\n").await;
    read_and_leave(&bursar, &origin).await;
    origin.go();
    let began = Instant::now();
    let entries = bursar.settled(1).await;
    assert_eq!(entries[0].state, GONE);
    assert!(
        began.elapsed() > Duration::from_millis(800),
        "{:?}",
        began.elapsed()
    );
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    bursar.gateway.idle().await;
    let cut = bursar.metric("bursar_drains_total", "result=\"cut\"");
    assert!((cut - 1.0).abs() < 0.1, "{cut}");
}
