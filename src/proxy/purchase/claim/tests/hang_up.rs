//! Apps that ask again before bursar's tasks have heard how their last request ended.

use crate::proxy::purchase::shared::Received;
use tokio::net::UnixStream;

use super::*;
use crate::proxy::downstream::connection::{Peer, Socket};

#[tokio::test]
async fn a_repeat_behind_an_unnoticed_hang_up_is_the_same_purchase() {
    let mut bench = Bench::new();
    let (app, ours) = UnixStream::pair().expect("a pair");
    let peer = Peer::new(Socket::Unix(ours), None);
    let first = bench.lead(1);
    first.led_by(peer.probe());

    // While the app is there, an equal request is a purchase of its own.
    let other = bench.lead(1);
    assert_ne!(key_of(&other), key_of(&first));
    bench.table.finish(&other, Fate::Closed);

    drop(app);
    let follower = follow(bench.claim(1));
    assert_eq!(follower.purchase().entry, first.entry);
}

#[tokio::test]
async fn a_repeat_while_a_follower_is_given_the_error_takes_the_key_over() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    first.app_left();
    let follower = follow(bench.claim(1));
    let head = ResponseHeader::build(StatusCode::BAD_GATEWAY, None).expect("a head");
    first.record_head(Arc::new(head), false);
    first.record_chunk(Bytes::from_static(b"{}")).await;
    first.record_end(ReplayEnd::Complete);
    bench.table.finish(&first, Fate::Undelivered);

    // The follower's app has read the error and asks before its first connection is done with.
    let again = bench.lead(1);

    assert_eq!(key_of(&again), key_of(&first));
    drop(follower);
}

/// The answer meets the end of its connection: until that refuses the bytes, it is not known whether they
/// were read.
#[tokio::test]
async fn a_repeat_waits_while_an_answer_is_written_to_an_app_that_has_hung_up() {
    for refused in [true, false] {
        let mut bench = Bench::new();
        let first = bench.lead(1);
        first.app_left();
        assert!(first.take(), "nobody follows");
        let repeat = bench.claimant(1);
        let Claim::LookAgain { left, .. } = bench.table.claim(&repeat, POLICY, true) else {
            panic!("it waits");
        };

        if refused {
            first.write_failed();
            assert!(left.has_changed().expect("the table is there"));
            let follower = follow(bench.table.claim(&repeat, POLICY, true));
            assert_eq!(follower.purchase().entry, first.entry);
        } else {
            first.delivered();
            assert!(left.has_changed().expect("the table is there"));
            let second = lead(bench.table.claim(&repeat, POLICY, true));
            assert_ne!(
                key_of(&second),
                key_of(&first),
                "it was read: another purchase"
            );
        }
    }
}

/// The last look counts, too: a document that is read on without a reader is not bought again meanwhile.
#[tokio::test]
async fn a_retry_whose_wait_is_over_still_waits_for_a_document_that_is_read_on() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    assert!(first.take(), "nobody follows");
    first.begins();
    let mut retry = bench.claimant(1);
    retry.marked_retry = true;
    assert!(matches!(
        bench.table.claim(&retry, POLICY, true),
        Claim::LookAgain { .. }
    ));

    first.app_left();
    let Claim::ReadOn(left) = bench.table.claim(&retry, POLICY, false) else {
        panic!("it waits for the end");
    };
    bench.table.finish(&first, Fate::Undelivered);
    assert!(left.has_changed().expect("the table is there"));
    let second = lead(bench.table.claim(&retry, POLICY, true));
    assert_eq!(key_of(&second), key_of(&first));
}

#[tokio::test]
async fn a_waiting_repeat_wakes_when_a_follower_leaves_a_document() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    first.app_left();
    let mut follower = follow(bench.claim(1));
    follower.received(Received::Beginning);
    let mut retry = bench.claimant(1);
    retry.marked_retry = true;
    let Claim::LookAgain { left, .. } = bench.table.claim(&retry, POLICY, true) else {
        panic!("it waits");
    };

    drop(follower);

    assert!(left.has_changed().expect("the table is there"));
    assert!(matches!(
        bench.table.claim(&retry, POLICY, true),
        Claim::ReadOn(_)
    ));
}
