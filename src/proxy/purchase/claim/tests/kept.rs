//! Whole answers that no app took: for how long they are kept, and which are not.

use super::*;
use crate::proxy::purchase::shared::Received;

#[tokio::test]
async fn a_kept_answer_is_given_for_60_s_and_its_key_after_that() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    first.app_left();
    record_whole(&first).await;
    bench.table.finish(&first, Fate::Undelivered);

    bench.clock.advance(Duration::from_secs(59));
    drop(follow(bench.claim(1)));

    bench.clock.advance(Duration::from_secs(2));
    let adopting = bench.lead(1);
    assert_eq!(key_of(&adopting), key_of(&first));
    assert_eq!(adopting.adoptions, 1);
    let key = adopting.key.as_ref().expect("a key");
    assert_eq!(key.origin, KeyOrigin::Adopted { from: first.entry });
}

/// What a deploy made may have been deleted since: its answer is given to a request that joins while it runs, and
/// to none after its end.
#[tokio::test]
async fn an_answer_that_may_be_undone_is_not_kept() {
    let mut bench = Bench::new();
    let claimant = |bench: &mut Bench| Claimant {
        keyed: false,
        keeps_answer: false,
        ..bench.claimant(1)
    };
    let deploy = claimant(&mut bench);
    let first = lead(bench.table.claim(&deploy, POLICY, false));
    first.app_left();
    let again = claimant(&mut bench);
    drop(follow(bench.table.claim(&again, POLICY, false)));
    record_whole(&first).await;
    bench.table.finish(&first, Fate::Undelivered);

    let later = claimant(&mut bench);
    let own = lead(bench.table.claim(&later, POLICY, false));
    assert_eq!(own.entry, later.entry);
}

#[tokio::test]
async fn a_kept_answer_that_was_handed_over_is_gone() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    first.app_left();
    record_whole(&first).await;
    bench.table.finish(&first, Fate::Undelivered);
    let mut follower = follow(bench.claim(1));
    follower.received(Received::Answer);
    drop(follower);
    bench.table.delivered(&first);
    let later = bench.lead(1);
    assert_ne!(key_of(&later), key_of(&first));
}

/// The first byte of a stream delivers it, whatever comes behind it unread.
#[tokio::test]
async fn a_stream_that_a_follower_began_to_take_is_delivered_when_it_has_left() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    first.app_left();
    let mut follower = follow(bench.claim(1));
    let head = ResponseHeader::build(StatusCode::OK, None).expect("a plain head");
    first.record_head(Arc::new(head), true);
    first.record_chunk(Bytes::from_static(b"data: {}")).await;
    assert!(matches!(follower.next().await, ReplayItem::Head { .. }));
    assert!(matches!(follower.next().await, ReplayItem::Chunk(_)));
    follower.received(Received::Answer);
    drop(follower);
    for _ in 0..3 {
        first.record_chunk(Bytes::from(vec![b'x'; 1 << 20])).await;
    }
    first.record_end(ReplayEnd::Complete);
    let fate = first.fate(None);
    bench.table.finish(&first, fate);
    let later = bench.lead(1);
    assert_ne!(key_of(&later), key_of(&first));
}

#[tokio::test]
async fn the_oldest_answers_go_where_all_that_are_kept_exceed_64_mib_and_their_keys_stay() {
    let mut bench = Bench::new();
    let mib = Bytes::from(vec![b'x'; 1024 * 1024]);
    for prompt in 1..=66 {
        let purchase = bench.lead(prompt);
        purchase.app_left();
        let head = ResponseHeader::build(StatusCode::OK, None).expect("a plain head");
        purchase.record_head(Arc::new(head), false);
        purchase.record_chunk(mib.clone()).await;
        purchase.record_end(ReplayEnd::Complete);
        bench.table.finish(&purchase, Fate::Undelivered);
    }
    assert_eq!(bench.table.sizes(), (66, 64, 64 * 1024 * 1024));
    assert!(matches!(bench.claim(1), Claim::Lead(again) if again.adoptions == 1));
    drop(follow(bench.claim(66)));
}
