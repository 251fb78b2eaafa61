//! An app that hung up and asked again before bursar's task had heard of it.

use tokio::net::UnixStream;

use super::*;
use crate::proxy::accept::connection::{Peer, Socket};

#[tokio::test]
async fn a_repeat_behind_a_hang_up_that_nobody_noticed_is_the_same_purchase() {
    let mut bench = Bench::new();
    let (app, ours) = UnixStream::pair().expect("a pair");
    let peer = Peer::new(Socket::Unix(ours));
    let first = bench.lead(1);
    first.led_by(peer.sight());

    // While the app is there, an equal request is a purchase of its own.
    let other = bench.lead(1);
    assert_ne!(key_of(&other), key_of(&first));
    bench.table.finish(&other, Fate::Closed);

    drop(app);
    let follower = follow(bench.claim(1));
    assert_eq!(follower.live.entry, first.entry);
}
