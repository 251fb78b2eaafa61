//! Streams whose service, app or follower is slow, old or gone: which side the time counts for,
//! which bytes each app got, and that a shutdown waits for none of them.

use std::time::Duration;
use tokio::time::timeout;

use bursar::clock::ManualClock;
use bursar::ledger::entry::{InDoubt, State};

use super::{CHAT, DONE, EVENT, RECEIPT, begin, open, pieces, settled, whole};
use crate::support::origin::{billed, chunk, last_chunk};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, Wire, chat, chat_stream, eventually};

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
/// not read. All of them run on this thread, so none of them merely lacks the time.
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

/// A running stream whose app has left before its first byte.
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
    // Half of the minute that the write would have had. The outcome is written meanwhile, as fast as the disk is.
    let idle = timeout(Duration::from_secs(30), bursar.gateway.idle()).await;
    assert!(idle.is_ok(), "the write goes on");
    let shutdown = State::InDoubt {
        reason: InDoubt::Shutdown,
    };
    assert_eq!(bursar.entries()[0].state, shutdown);
    drop(wire);
}

/// A request whose body does not come whole, and one that was refused, of whose body the rest is thrown away.
async fn two_bodies_that_drip(bursar: &Bursar) -> (Wire, Wire) {
    let text = request("POST", CHAT, &[], &chat("slowly"));
    let (begun, _) = text.split_at(text.len() - 10);
    let mut wire = bursar.connect().await;
    wire.send(begun).await;
    let mut refused = bursar.connect().await;
    let head = "POST /v1/none HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    refused
        .send(format!("{head}Content-Length: 1000\r\n\r\n{{"))
        .await;
    assert_eq!(refused.answer().await.status, 404);
    eventually("the requests to be there", || async {
        (bursar.gateway.in_flight() == 2).then_some(())
    })
    .await;
    (wire, refused)
}

/// Nor does a stop wait for a body that drips, or for what is thrown away of one. An equal bursar that is not stopped,
/// and began to wait earlier, still does: however slow the machine is, the stop was it that ended the others.
#[tokio::test]
async fn a_shutdown_cuts_a_body_that_drips() {
    let origin = Origin::start([]).await;
    let goes_on = Bursar::before(&origin.url()).await;
    let _dripping = two_bodies_that_drip(&goes_on).await;
    let bursar = Bursar::before(&origin.url()).await;
    let (mut wire, _refused) = two_bodies_that_drip(&bursar).await;
    bursar.gateway.cut();
    bursar.gateway.idle().await;
    assert_eq!(goes_on.gateway.in_flight(), 2, "the bodies were waited for");
    assert_eq!(wire.answer().await.code(), Some("shutting_down"));
    assert!(bursar.entries().is_empty(), "nothing was sent");
    assert!(origin.received().is_empty());
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

/// What is kept for an app is full, and it reads after a while: neither the service's time nor bursar's.
#[tokio::test]
async fn writing_to_a_slow_app_is_the_app_s_time() {
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
    assert_eq!((timings.total_ms, timings.own_us), (5_000, 0));
}

#[tokio::test]
async fn a_body_that_comes_slowly_is_the_app_s_time() {
    let clock = ManualClock::at(NOON_MS);
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let shared = std::sync::Arc::new(clock.clone());
    let bursar = Bursar::with_clock(&origin.url(), "", shared).await;
    let text = request("POST", CHAT, &[], &chat("slowly"));
    let (begun, rest) = text.split_at(text.len() - 10);
    let mut wire = bursar.connect().await;
    wire.send(begun).await;
    eventually("the request to be there", || async {
        (bursar.gateway.in_flight() == 1).then_some(())
    })
    .await;
    clock.advance(Duration::from_secs(5));
    wire.send(rest).await;
    assert_eq!(wire.answer().await.status, 200);
    let timings = bursar.settled(1).await[0].timings.expect("timings");
    assert_eq!((timings.total_ms, timings.own_us), (5_000, 0));
}

/// A stream of that many MiB, and its receipt.
fn large(mebibytes: usize) -> Vec<u8> {
    let event = chunk(&format!("data: \"{}\"\n\n", "x".repeat(1024 * 1024)));
    let end = [chunk(RECEIPT), chunk(DONE), last_chunk()].concat();
    [open(&[EVENT]), event.repeat(mebibytes), end].concat()
}

async fn begin_as(bursar: &Bursar, prompt: &str) -> Wire {
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &[], &chat_stream(prompt)))
        .await;
    wire
}

/// More than the kernel takes, less than bursar keeps for an app that does not read.
#[tokio::test]
async fn answers_that_their_apps_do_not_read_hold_no_place_when_the_service_is_done() {
    const MEBIBYTES: usize = 14;
    let unread = || Step::Answer(large(MEBIBYTES));
    let origin = Origin::start([unread(), unread(), Step::Answer(billed(7))]).await;
    let bursar = Bursar::with(&origin.url(), "[shaping]\nin_flight = 2\n").await;
    let mut wires = vec![
        begin_as(&bursar, "one").await,
        begin_as(&bursar, "two").await,
    ];
    received(&origin, 2).await;
    let mut third = begin_as(&bursar, "three").await;
    let answer = timeout(Duration::from_secs(20), third.answer()).await;
    assert_eq!(answer.expect("its place is free").status, 200);
    // Priced, and not one byte of them was read.
    let entries = bursar.settled(3).await;
    assert!(entries.iter().all(|entry| entry.state == settled(7)));
    for wire in &mut wires {
        let answer = wire.answer().await;
        assert!(answer.complete, "{} bytes came", answer.body.len());
        assert!(answer.body.len() > MEBIBYTES * 1024 * 1024);
        assert!(answer.body.ends_with(DONE.as_bytes()));
    }
}

/// Bytes kept for an app that is gone are dropped at once, although its answer is read on.
#[tokio::test]
async fn what_is_kept_for_an_app_that_is_gone_makes_room_for_others() {
    let flood = chunk(&format!("data: \"{}\"\n\n", "x".repeat(1024 * 1024)));
    let begun = || pieces(&[[open(&[EVENT]), flood.repeat(20)].concat()]);
    let origin = Origin::start([begun(), begun(), Step::Answer(large(14))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut gone = Vec::new();
    for prompt in ["one", "two"] {
        let mut wire = Wire::tcp_that_resets(bursar.address).await;
        wire.send(request("POST", CHAT, &[], &chat_stream(prompt)))
            .await;
        gone.push(wire);
        received(&origin, gone.len()).await;
        origin.go();
    }
    everything_stands_still(&origin).await;
    drop(gone);
    eventually("both to be noticed", || async {
        let left = bursar.metric("bursar_client_disconnects_total", "");
        (left > 1.5).then_some(())
    })
    .await;
    let mut unread = begin_as(&bursar, "three").await;
    eventually(
        "the third to be settled, and nothing of it was read",
        || async {
            let entries = bursar.entries();
            entries
                .iter()
                .any(|entry| entry.state == settled(7))
                .then_some(())
        },
    )
    .await;
    assert!(unread.answer().await.complete);
}

/// An app that closed its sending half and reads what is kept for it is there, however long it takes from then on. The
/// time is the test's own: on a busy machine the app would not have read within the second that it has for that.
#[tokio::test]
async fn a_half_closed_app_that_reads_what_is_kept_is_not_drained() {
    let flood = chunk(&format!("data: \"{}\"\n\n", "x".repeat(1024 * 1024)));
    let end = [chunk(RECEIPT), chunk(DONE), last_chunk()].concat();
    let begun = [open(&[EVENT]), flood.repeat(12)].concat();
    let origin = Origin::start([pieces(&[begun, end])]).await;
    let clock = ManualClock::at(NOON_MS);
    let config = "[streams]\ndrain_timeout_s = 1\n";
    let shared = std::sync::Arc::new(clock.clone());
    let bursar = Bursar::with_clock(&origin.url(), config, shared).await;
    let mut wire = begin(&bursar).await;
    received(&origin, 1).await;
    origin.go();
    let mut answer = wire.head().await;
    everything_stands_still(&origin).await;
    wire.half_close().await;
    counted(&bursar, "bursar_client_disconnects_total", "").await;
    // More than the kernel had of it.
    let mut took = 0;
    while took < 10 * 1024 * 1024 {
        took += wire.chunk(&mut answer).await.expect("a piece").len();
    }
    clock.advance(Duration::from_secs(10));
    while took < 11 * 1024 * 1024 {
        took += wire.chunk(&mut answer).await.expect("a piece").len();
    }
    clock.advance(Duration::from_secs(10));
    origin.go();
    wire.rest(&mut answer).await;
    assert!(answer.complete, "{} more bytes came", answer.body.len());
    let entries = bursar.settled(1).await;
    assert_eq!((entries[0].state, entries[0].drained), (settled(7), false));
}

/// Beyond what may be kept, a stream is given up like one without a reader: when another request
/// waits.
#[tokio::test]
async fn an_unread_stream_beyond_what_is_kept_loses_its_place_to_a_waiting_request() {
    let origin = Origin::start([pieces(&[large(64)]), Step::Answer(billed(7))]).await;
    let bursar = Bursar::with(&origin.url(), "[shaping]\nin_flight = 1\n").await;
    let mut unread = begin_as(&bursar, "one").await;
    received(&origin, 1).await;
    origin.go();
    everything_stands_still(&origin).await;
    let mut second = begin_as(&bursar, "two").await;
    let answer = timeout(Duration::from_secs(40), second.answer()).await;
    assert_eq!(answer.expect("its place is given up").status, 200);
    let given_up = bursar.metric("bursar_drains_total", "result=\"displaced\"");
    assert!((given_up - 1.0).abs() < 0.1, "{given_up}");
    let gone = State::InDoubt {
        reason: InDoubt::ClientGone,
    };
    let states: Vec<_> = bursar
        .settled(2)
        .await
        .iter()
        .map(|entry| entry.state)
        .collect();
    assert!(
        states.contains(&gone) && states.contains(&settled(7)),
        "{states:?}"
    );
    assert!(
        !unread.answer().await.complete,
        "a break is seen as a break"
    );
}

/// One waiting request needs one place: the others that stall keep theirs, and their answers.
#[tokio::test]
async fn of_three_apps_that_stall_exactly_one_makes_room_for_a_waiting_request() {
    const STALLED: usize = 3;
    let unread = (0..STALLED).map(|_| pieces(&[large(40)]));
    let origin = Origin::start(unread.chain([Step::Answer(billed(7))])).await;
    let bursar = Bursar::with(&origin.url(), "[shaping]\nin_flight = 3\n").await;
    let mut wires = Vec::new();
    for (at, prompt) in ["one", "two", "three"].into_iter().enumerate() {
        wires.push(begin_as(&bursar, prompt).await);
        received(&origin, at + 1).await;
        origin.go();
    }
    everything_stands_still(&origin).await;
    let mut waits = begin_as(&bursar, "four").await;
    let answer = timeout(Duration::from_secs(40), waits.answer()).await;
    assert_eq!(answer.expect("one place is given up").status, 200);
    let mut whole = 0;
    for wire in &mut wires {
        whole += usize::from(wire.answer().await.complete);
    }
    assert_eq!(whole, STALLED - 1, "exactly one breaks");
    let given_up = bursar.metric("bursar_drains_total", "result=\"displaced\"");
    assert!((given_up - 1.0).abs() < 0.1, "{given_up}");
    let entries = bursar.settled(STALLED + 1).await;
    let priced = |state| state == settled(7);
    assert_eq!(
        entries.iter().filter(|entry| priced(entry.state)).count(),
        STALLED
    );
}

/// An app that joined an answer and does not read it is in the way of others like the first app.
#[tokio::test]
async fn the_place_of_a_follower_that_reads_nothing_goes_to_a_waiting_request() {
    let origin = Origin::start([pieces(&[large(64)]), Step::Answer(billed(7))]).await;
    let bursar = Bursar::with(&origin.url(), "[shaping]\nin_flight = 1\n").await;
    left_alone(&origin, &bursar).await;
    let mut follower = begin(&bursar).await;
    counted(&bursar, "bursar_joined_retries_total", "").await;
    origin.go();
    everything_stands_still(&origin).await;
    let mut second = begin_as(&bursar, "two").await;
    let answer = timeout(Duration::from_secs(40), second.answer()).await;
    assert_eq!(answer.expect("its place is given up").status, 200);
    let given_up = bursar.metric("bursar_drains_total", "result=\"displaced\"");
    assert!((given_up - 1.0).abs() < 0.1, "{given_up}");
    let answer = follower.answer().await;
    assert!(!answer.complete, "a break is seen as a break");
    assert!(answer.text().contains("took nothing of it"), "and says why");
}

/// Towards a follower whose answer ends with its connection, a break is a reset as well.
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

/// So it is towards one that closed its sending half, and reads still when bursar turns from it: the first app
/// of an answer that another follows by then, and a follower.
#[tokio::test]
async fn an_http_1_0_app_that_is_given_no_more_sees_a_break() {
    let end = [chunk(&format!("{RECEIPT}{DONE}")), last_chunk()].concat();
    for has_left_before in [false, true] {
        let origin = Origin::start([pieces(&[open(&[EVENT]), end.clone()])]).await;
        let bursar = Bursar::before(&origin.url()).await;
        if has_left_before {
            left_alone(&origin, &bursar).await;
        }
        let mut half_closed = begin_1_0(&bursar).await;
        if has_left_before {
            counted(&bursar, "bursar_joined_retries_total", "").await;
        }
        received(&origin, 1).await;
        origin.go();
        let head = half_closed.head().await;
        assert_eq!(head.status, 200);
        everything_stands_still(&origin).await;
        half_closed.half_close().await;
        if !has_left_before {
            counted(&bursar, "bursar_client_disconnects_total", "").await;
        }
        let mut next = begin(&bursar).await;
        eventually("the next to join", || async {
            let joined = if has_left_before { 1.5 } else { 0.5 };
            (bursar.metric("bursar_joined_retries_total", "") > joined).then_some(())
        })
        .await;
        origin.go();
        let answer = next.answer().await;
        assert_eq!(answer.text(), format!("{EVENT}{RECEIPT}{DONE}"));
        let mut broken = head;
        half_closed.rest(&mut broken).await;
        let seen = (broken.complete, broken.reset);
        assert_eq!(seen, (false, true), "a follower: {has_left_before}");
        assert_eq!(origin.received().len(), 1, "one purchase");
    }
}

/// The chunk that is held back for an HTTP/1.0 follower was not sent to it: the next request gets
/// everything.
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
    counted(&bursar, "bursar_requests_total", "status=\"200\"").await;
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

/// A follower that leaves before there is a head got no answer; the report says so.
#[tokio::test]
async fn a_follower_that_leaves_before_a_head_is_reported_with_499() {
    let end = [RECEIPT, DONE].concat();
    let origin = Origin::start([pieces(&[whole(&[EVENT, &end])])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    left_alone(&origin, &bursar).await;
    let follower = begin(&bursar).await;
    counted(&bursar, "bursar_joined_retries_total", "").await;
    drop(follower);
    counted(&bursar, "bursar_requests_total", "status=\"499\"").await;
    origin.go();
    assert_eq!(bursar.settled(1).await[0].state, settled(7));
    bursar.gateway.idle().await;
    let requests = bursar.metric("bursar_requests_total", "");
    assert!((requests - 2.0).abs() < 0.1, "one report each: {requests}");
}
