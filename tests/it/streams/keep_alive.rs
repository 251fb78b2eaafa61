//! Comments while the service is silent (`[streams] keepalive_s`).

use std::time::Duration;

use super::{CHAT, DONE, EVENT, RECEIPT, begin, pieces, settled};
use crate::support::origin::{chunk, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Wire, chat_stream};

const COMMENT: &str = ": keepalive\n\n";

/// A short second: a comment is due after this silence.
const ON: &str = "[streams]\nkeepalive_s = 1\n";

/// Nothing comes for longer than a comment is due.
const SILENCE: Duration = Duration::from_millis(1600);

async fn next(wire: &mut Wire, answer: &mut crate::support::Answer) -> String {
    let piece = wire.chunk(answer).await.expect("a piece");
    String::from_utf8(piece).expect("text")
}

/// Whether bytes come within a silence.
async fn is_silent(wire: &mut Wire, answer: &mut crate::support::Answer) -> bool {
    tokio::time::timeout(SILENCE, wire.chunk(answer))
        .await
        .is_err()
}

#[tokio::test]
async fn a_silent_stream_gets_comments_between_events_and_no_other_byte_is_changed() {
    for path in [CHAT, "/agent/v1/chat/completions"] {
        let half = EVENT.split_at(20);
        let origin = Origin::start([pieces(&[
            [stream_head(), chunk(EVENT)].concat(),
            chunk(half.0),
            chunk(half.1),
            [chunk(RECEIPT), chunk("data: [DO")].concat(),
            [chunk("NE]\n\n"), last_chunk()].concat(),
        ])])
        .await;
        let bursar = Bursar::with(&origin.url(), ON).await;
        let mut wire = bursar.connect().await;
        wire.send(request("POST", path, &[], &chat_stream("hi")))
            .await;
        // Never before the head: it would have to say 200 before that is known.
        assert!(
            tokio::time::timeout(SILENCE, wire.bytes(1)).await.is_err(),
            "{path}"
        );
        origin.go();
        let mut answer = wire.head().await;
        assert_eq!(next(&mut wire, &mut answer).await, EVENT);
        assert_eq!(next(&mut wire, &mut answer).await, COMMENT, "{path}");
        assert_eq!(next(&mut wire, &mut answer).await, COMMENT, "again");
        origin.go();
        let mut came = next(&mut wire, &mut answer).await;
        // One may have been on its way.
        if came == COMMENT {
            came = next(&mut wire, &mut answer).await;
        }
        assert_eq!(came, half.0, "{path}");
        assert!(
            is_silent(&mut wire, &mut answer).await,
            "inside of an event"
        );
        origin.go();
        assert_eq!(next(&mut wire, &mut answer).await, half.1);
        origin.go();
        let mut rest = String::new();
        while !rest.contains(COMMENT) || !rest.contains(RECEIPT) {
            rest.push_str(&next(&mut wire, &mut answer).await);
        }
        assert!(!rest.contains("[DO"), "the end mark is held: {rest}");
        origin.go();
        while !rest.contains(DONE) {
            rest.push_str(&next(&mut wire, &mut answer).await);
        }
        assert_eq!(rest.replace(COMMENT, ""), format!("{RECEIPT}{DONE}"));
        assert!(rest.ends_with(DONE));
        assert_eq!(
            wire.chunk(&mut answer).await,
            Some(Vec::new()),
            "a clean end"
        );
        assert_eq!(bursar.entries()[0].state, settled(7), "{path}");
        let entry = &bursar.entries()[0];
        // Counted to the end mark.
        let served = [EVENT, EVENT, RECEIPT, DONE.trim_end()].concat().len();
        assert_eq!(
            entry.response_bytes,
            Some(served as u64),
            "comments are not the service's"
        );
    }
}

#[tokio::test]
async fn without_the_setting_and_once_the_service_is_gone_there_is_no_comment() {
    let first = [stream_head(), chunk(EVENT)].concat();
    let origin = Origin::start([pieces(std::slice::from_ref(&first))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = begin(&bursar).await;
    origin.go();
    let mut answer = wire.head().await;
    assert_eq!(next(&mut wire, &mut answer).await, EVENT);
    assert!(is_silent(&mut wire, &mut answer).await, "off by default");

    let origin = Origin::start([crate::support::Step::PiecesAndClose(vec![first])]).await;
    let bursar = Bursar::with(&origin.url(), ON).await;
    let mut wire = begin(&bursar).await;
    origin.go();
    let mut answer = wire.head().await;
    wire.rest(&mut answer).await;
    assert!(
        !answer.complete && !answer.text().contains("keepalive"),
        "{}",
        answer.text()
    );
    assert!(answer.text().starts_with(EVENT), "{}", answer.text());
}

/// A stream that is still silent when its app leaves is drained as any other.
#[tokio::test]
async fn an_app_that_leaves_between_two_comments_loses_no_receipt() {
    let origin = Origin::start([pieces(&[
        [stream_head(), chunk(EVENT)].concat(),
        [chunk(RECEIPT), chunk(DONE), last_chunk()].concat(),
    ])])
    .await;
    let bursar = Bursar::with(&origin.url(), ON).await;
    let mut wire = begin(&bursar).await;
    origin.go();
    let mut answer = wire.head().await;
    assert_eq!(next(&mut wire, &mut answer).await, EVENT);
    assert_eq!(next(&mut wire, &mut answer).await, COMMENT);
    drop(wire);
    crate::support::eventually("the app to be missed", || async {
        (bursar.metric("bursar_client_disconnects_total", "") >= 1.0).then_some(())
    })
    .await;
    origin.go();
    assert_eq!(bursar.settled(1).await[0].state, settled(7));
}
