//! The table of undelivered requests, on a clock that stands still.

mod given_up;
mod handover;
mod hang_up;
mod kept;
mod unsent;

use crate::proxy::purchase::shared::Received;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use pingora::http::ResponseHeader;
use uuid::Uuid;

use super::{Claim, ClaimTable};
use crate::clock::{ManualClock, SharedClock};
use crate::config::Adopt;
use crate::ledger::entry::{EntryId, Fingerprint, KeyOrigin};
use crate::proxy::purchase::age;
use crate::proxy::purchase::claimant::{AdoptPolicy, Claimant, RequestKey};
use crate::proxy::purchase::shared::Fate;
use crate::proxy::purchase::shared::{Follower, Purchase, ReplayEnd, ReplayItem};

const POLICY: AdoptPolicy = AdoptPolicy {
    adopt: Adopt::Always,
    window: Duration::from_secs(900),
};

struct Bench {
    clock: ManualClock,
    table: ClaimTable,
    entries: u128,
}

impl Bench {
    fn new() -> Self {
        let clock = ManualClock::at(1_000_000);
        let shared: SharedClock = Arc::new(clock.clone());
        Self {
            clock,
            table: ClaimTable::new(shared),
            entries: 0,
        }
    }

    fn claimant(&mut self, prompt: u8) -> Claimant {
        self.entries += 1;
        Claimant {
            request_key: RequestKey {
                app: Arc::from("default"),
                fingerprint: Fingerprint([prompt; 32]),
            },
            entry: EntryId(Uuid::from_u128(self.entries)),
            own_key: None,
            keyed: true,
            marked_retry: false,
            keeps_answer: true,
        }
    }

    fn claim(&mut self, prompt: u8) -> Claim {
        let claimant = self.claimant(prompt);
        self.table.claim(&claimant, POLICY, false)
    }

    fn lead(&mut self, prompt: u8) -> Arc<Purchase> {
        lead(self.claim(prompt))
    }
}

fn lead(claim: Claim) -> Arc<Purchase> {
    match claim {
        Claim::Lead(purchase) => purchase,
        other => panic!("expected to lead: {other:?}"),
    }
}

fn follow(claim: Claim) -> Follower {
    match claim {
        Claim::Follow(follower) => follower,
        other => panic!("expected to follow: {other:?}"),
    }
}

fn key_of(purchase: &Purchase) -> String {
    purchase
        .key
        .as_ref()
        .expect("a keyed request")
        .value
        .to_string()
}

async fn record_whole(purchase: &Purchase) {
    let head = ResponseHeader::build(StatusCode::OK, None).expect("a plain head");
    purchase.record_head(Arc::new(head), false);
    purchase.record_chunk(Bytes::from_static(b"answer")).await;
    purchase.record_end(ReplayEnd::Complete);
}

#[test]
fn equal_prompts_in_flight_are_separate_purchases() {
    let mut bench = Bench::new();
    let keys: Vec<String> = (0..5).map(|_| key_of(&bench.lead(1))).collect();
    for (n, key) in keys.iter().enumerate() {
        assert!(!keys[..n].contains(key), "key {n} was used twice");
    }
}

#[test]
fn a_delivered_request_is_never_collapsed_with_a_later_one() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    bench.table.finish(&first, Fate::Closed);
    let second = bench.lead(1);
    assert_ne!(key_of(&first), key_of(&second));
    assert_eq!(second.adoptions, 0);
}

#[tokio::test]
async fn the_retry_of_a_running_request_joins_it_once() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    first.app_left();
    let mut follower = follow(bench.claim(1));
    // The next equal request has no answer left to follow.
    let third = bench.lead(1);
    assert_ne!(key_of(&first), key_of(&third));
    record_whole(&first).await;
    assert!(matches!(
        follower.next().await,
        ReplayItem::Head { flowing: false, .. }
    ));
    assert!(matches!(follower.next().await, ReplayItem::Chunk(bytes) if bytes == "answer"));
    assert!(matches!(
        follower.next().await,
        ReplayItem::End(ReplayEnd::Complete)
    ));
}

#[test]
fn an_adopted_request_that_stays_undelivered_passes_the_key_on() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    bench.table.finish(&first, Fate::Undelivered);
    let second = bench.lead(1);
    bench.table.finish(&second, Fate::Undelivered);
    let third = bench.lead(1);
    assert_eq!(key_of(&third), key_of(&first));
    assert_eq!(third.adoptions, 2);
}

#[test]
fn a_key_is_held_by_one_live_request_and_the_oldest_goes_first() {
    let mut bench = Bench::new();
    let (older, newer) = (bench.lead(1), bench.lead(1));
    bench.table.finish(&older, Fate::Undelivered);
    bench.clock.advance(Duration::from_secs(1));
    bench.table.finish(&newer, Fate::Undelivered);
    assert_eq!(key_of(&bench.lead(1)), key_of(&older));
    assert_eq!(key_of(&bench.lead(1)), key_of(&newer));
    let fresh = bench.lead(1);
    assert_eq!(fresh.adoptions, 0);
}

#[test]
fn adoption_ends_with_its_window() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    bench.table.finish(&first, Fate::Undelivered);
    bench.clock.advance(Duration::from_secs(901));
    assert_ne!(key_of(&bench.lead(1)), key_of(&first));
}

#[test]
fn the_window_counts_from_the_keys_first_use() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    bench.clock.advance(Duration::from_secs(800));
    bench.table.finish(&first, Fate::Undelivered);
    bench.clock.advance(Duration::from_secs(200));
    assert_ne!(key_of(&bench.lead(1)), key_of(&first));
}

#[test]
fn config_decides_which_requests_adopt() {
    for (adopt, marked, adopts) in [
        (Adopt::Always, false, true),
        (Adopt::Marked, false, false),
        (Adopt::Marked, true, true),
        (Adopt::Never, true, false),
    ] {
        let mut bench = Bench::new();
        let first = bench.lead(1);
        bench.table.finish(&first, Fate::Undelivered);
        let claimant = Claimant {
            marked_retry: marked,
            ..bench.claimant(1)
        };
        let policy = AdoptPolicy { adopt, ..POLICY };
        let second = lead(bench.table.claim(&claimant, policy, false));
        assert_eq!(
            key_of(&second) == key_of(&first),
            adopts,
            "{adopt} {marked}"
        );
    }
}

#[test]
fn another_app_and_another_prompt_never_match() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    bench.table.finish(&first, Fate::Undelivered);
    assert_ne!(key_of(&bench.lead(2)), key_of(&first));
    let mut stranger = bench.claimant(1);
    stranger.request_key.app = Arc::from("other");
    let stranger = lead(bench.table.claim(&stranger, POLICY, false));
    assert_ne!(key_of(&stranger), key_of(&first));
}

#[test]
fn the_apps_own_key_wins_and_is_never_given_away() {
    let mut bench = Bench::new();
    let minted = bench.lead(1);
    bench.table.finish(&minted, Fate::Undelivered);
    let own = Claimant {
        own_key: Some("mine".into()),
        ..bench.claimant(1)
    };
    let own = lead(bench.table.claim(&own, POLICY, false));
    assert_eq!(key_of(&own), "mine");
    own.app_left();
    // Without the key it is another request: it adopts the minted one instead.
    assert_eq!(key_of(&bench.lead(1)), key_of(&minted));
    let again = Claimant {
        own_key: Some("mine".into()),
        ..bench.claimant(1)
    };
    drop(follow(bench.table.claim(&again, POLICY, false)));
}

#[test]
fn an_unkeyed_request_is_joined_and_never_adopted() {
    let mut bench = Bench::new();
    let unkeyed = |bench: &mut Bench| Claimant {
        keyed: false,
        ..bench.claimant(1)
    };
    let claimant = unkeyed(&mut bench);
    let first = lead(bench.table.claim(&claimant, POLICY, false));
    assert!(first.key.is_none());
    first.app_left();
    let claimant = unkeyed(&mut bench);
    drop(follow(bench.table.claim(&claimant, POLICY, false)));
    bench.table.finish(&first, Fate::Undelivered);
    let claimant = unkeyed(&mut bench);
    let third = lead(bench.table.claim(&claimant, POLICY, false));
    assert_eq!(third.adoptions, 0);
}

#[tokio::test]
async fn a_stream_is_joined_only_while_no_byte_was_given() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    first.delivered();
    first.app_left();
    assert!(matches!(bench.claim(1), Claim::Lead(_)));
}

#[tokio::test]
async fn what_is_kept_without_a_reader_is_bounded_and_the_key_remains() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    first.app_left();
    let head = ResponseHeader::build(StatusCode::OK, None).expect("a plain head");
    first.record_head(Arc::new(head), true);
    for _ in 0..3 {
        first
            .record_chunk(Bytes::from(vec![b'x'; 400 * 1024]))
            .await;
    }
    first.record_end(ReplayEnd::Complete);
    bench.table.finish(&first, Fate::Undelivered);
    let second = bench.lead(1);
    assert_eq!(key_of(&second), key_of(&first));
}

#[test]
fn a_marked_retry_looks_again_while_its_twin_is_connected() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    let retry = Claimant {
        marked_retry: true,
        ..bench.claimant(1)
    };
    let Claim::LookAgain { left, .. } = bench.table.claim(&retry, POLICY, true) else {
        panic!("it has to wait for its twin");
    };
    assert!(!left.has_changed().expect("the table lives"));
    first.app_left();
    assert!(left.has_changed().expect("the table lives"));
    drop(follow(bench.table.claim(&retry, POLICY, true)));
    let unmarked = bench.claimant(1);
    assert!(matches!(
        bench.table.claim(&unmarked, POLICY, true),
        Claim::Follow(_)
    ));
}

#[test]
fn an_app_that_asks_again_at_once_after_an_error_waits_for_the_end_of_its_first() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    assert!(first.take());
    first.fails();
    let again = bench.claimant(1);
    let Claim::LookAgain { left, .. } = bench.table.claim(&again, POLICY, true) else {
        panic!("the end of the first is on its way");
    };
    bench.table.finish(&first, Fate::Undelivered);
    assert!(left.has_changed().expect("the table lives"));
    assert_eq!(key_of(&bench.lead(1)), key_of(&first));
    // A slow reader of its error holds up no repeat for longer than one look.
    let second = bench.lead(2);
    second.fails();
    let other = bench.claimant(2);
    assert!(matches!(
        bench.table.claim(&other, POLICY, false),
        Claim::Lead(_)
    ));
}

/// The app of the one that follows has read the whole error, whose end is not recorded yet.
#[tokio::test]
async fn an_app_that_asks_again_at_once_after_an_error_that_it_joined_waits_for_its_end() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    first.app_left();
    let mut follower = follow(bench.claim(1));
    let head = ResponseHeader::build(StatusCode::BAD_GATEWAY, None).expect("a plain head");
    first.record_head(Arc::new(head), false);
    first.record_chunk(Bytes::from_static(b"error")).await;
    assert!(matches!(follower.next().await, ReplayItem::Head { .. }));
    assert!(matches!(follower.next().await, ReplayItem::Chunk(_)));
    let again = bench.claimant(1);
    let Claim::LookAgain { left, .. } = bench.table.claim(&again, POLICY, true) else {
        panic!("the end of the first is on its way");
    };
    first.record_end(ReplayEnd::Complete);
    bench.table.finish(&first, Fate::Undelivered);
    assert!(left.has_changed().expect("the table lives"));
    assert_eq!(key_of(&bench.lead(1)), key_of(&first));
}

/// Between the leader's look and its write no follower can attach: it would wait for nothing.
#[test]
fn an_answer_goes_to_the_leader_or_to_a_follower_and_never_to_both() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    first.app_left();
    assert!(first.take(), "nobody follows");
    assert_ne!(key_of(&bench.lead(1)), key_of(&first), "nobody can follow");
    first.write_failed();
    let follower = follow(bench.claim(1));
    assert!(!first.take(), "an equal request follows");
    drop(follower);
    assert!(first.take());
}

#[tokio::test]
async fn a_leader_that_ends_without_a_word_leaves_no_follower_waiting() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    first.app_left();
    let mut follower = follow(bench.claim(1));
    bench.table.finish(&first, Fate::Undelivered);
    assert!(matches!(
        follower.next().await,
        ReplayItem::End(ReplayEnd::Broken(_))
    ));
}

#[tokio::test]
async fn the_key_of_an_answer_that_is_being_taken_is_not_adopted() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    first.app_left();
    record_whole(&first).await;
    bench.table.finish(&first, Fate::Undelivered);
    let follower = follow(bench.claim(1));
    assert_ne!(
        key_of(&bench.lead(1)),
        key_of(&first),
        "a purchase of its own"
    );
    drop(follower);
    drop(follow(bench.claim(1)));
}

#[test]
fn a_key_that_was_taken_over_before_a_sleep_is_not_sent_after_it() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    bench.table.finish(&first, Fate::Undelivered);
    let adopting = bench.lead(1);
    assert!(adopting.adoptions == 1 && adopting.may_begin(&bench.clock));
    bench.clock.set_wall_ms(1_000_000 + 86_400_000);
    assert!(!adopting.may_begin(&bench.clock));
    assert!(first.may_begin(&bench.clock), "a new key was never sent");
}

#[tokio::test]
async fn the_key_of_an_answer_that_is_taken_slowly_is_not_adopted() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    first.app_left();
    record_whole(&first).await;
    bench.table.finish(&first, Fate::Undelivered);
    let (key, follower) = (key_of(&first), follow(bench.claim(1)));
    drop(first);
    bench.clock.advance(Duration::from_secs(61));
    let other = bench.lead(1);
    assert_ne!(key_of(&other), key, "a purchase of its own");
    bench.table.finish(&other, Fate::Closed);
    drop(follower);
    assert_eq!(key_of(&bench.lead(1)), key, "no app took it");
}

#[tokio::test]
async fn the_key_of_a_broken_stream_that_somebody_takes_is_not_adopted() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    first.app_left();
    let head = ResponseHeader::build(StatusCode::OK, None).expect("a plain head");
    first.record_head(Arc::new(head), true);
    first.record_chunk(Bytes::from_static(b"data: {}")).await;
    let mut follower = follow(bench.claim(1));
    bench.table.finish(&first, Fate::Undelivered);
    assert_ne!(key_of(&bench.lead(1)), key_of(&first), "being taken");
    follower.received(Received::Answer);
    drop(follower);
    assert_ne!(key_of(&bench.lead(1)), key_of(&first), "taken");
}

#[tokio::test]
async fn an_unread_error_is_not_kept_in_place_of_an_answer() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    first.app_left();
    let head = ResponseHeader::build(StatusCode::BAD_GATEWAY, None).expect("a plain head");
    first.record_head(Arc::new(head), false);
    first.record_chunk(Bytes::from_static(b"error")).await;
    first.record_end(ReplayEnd::Complete);
    bench.table.finish(&first, Fate::Undelivered);
    let second = bench.lead(1);
    assert_eq!(key_of(&second), key_of(&first), "the key goes on");
}

/// "No automatic repeat once the key is 23 h old or its age is in doubt" (rule I6).
#[test]
fn a_key_whose_age_is_in_doubt_is_not_adopted() {
    let rows: [(&str, u64, bool); 4] = [
        ("the clock runs", 1_060_000, true),
        ("slept for a day", 1_060_000 + 86_400_000, false),
        ("set ahead by ten minutes", 1_060_000 + 600_000, false),
        ("set back", 900_000, false),
    ];
    for (name, wall_ms, adopts) in rows {
        let mut bench = Bench::new();
        let first = bench.lead(1);
        bench.table.finish(&first, Fate::Undelivered);
        bench.clock.advance(Duration::from_secs(60));
        bench.clock.set_wall_ms(wall_ms);
        let second = bench.lead(1);
        assert_eq!(key_of(&second) == key_of(&first), adopts, "{name}");
    }
}

#[test]
fn an_adopting_request_is_as_old_as_its_key() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    bench.table.finish(&first, Fate::Undelivered);
    bench.clock.advance(Duration::from_secs(600));
    let second = bench.lead(1);
    assert_eq!(key_of(&second), key_of(&first));
    bench.clock.advance(Duration::from_secs(22 * 3600));
    assert!(age::may_repeat(&second.first, &bench.clock));
    bench.clock.advance(Duration::from_secs(3600));
    assert!(!age::may_repeat(&second.first, &bench.clock));
}

#[test]
fn config_decides_which_requests_join() {
    for (adopt, marked, own_key, joins) in [
        (Adopt::Always, false, false, true),
        (Adopt::Marked, false, false, false),
        (Adopt::Marked, true, false, true),
        (Adopt::Never, true, false, false),
        (Adopt::Never, false, true, true),
    ] {
        let mut bench = Bench::new();
        let own_key = own_key.then(|| "mine".to_owned());
        let leader = Claimant {
            own_key: own_key.clone(),
            ..bench.claimant(1)
        };
        let first = lead(bench.table.claim(&leader, POLICY, false));
        first.app_left();
        let claimant = Claimant {
            marked_retry: marked,
            keeps_answer: true,
            own_key,
            ..bench.claimant(1)
        };
        let policy = AdoptPolicy { adopt, ..POLICY };
        let claim = bench.table.claim(&claimant, policy, true);
        let name = format!("{adopt} {marked} {:?}", claimant.own_key);
        assert_eq!(matches!(claim, Claim::Follow(_)), joins, "{name}");
        assert!(!matches!(claim, Claim::LookAgain { .. }), "{name}: no wait");
    }
}

/// The leader decides that no app has its answer; a follower takes it before the table has that.
#[tokio::test]
async fn an_answer_that_a_follower_took_at_the_last_moment_is_delivered() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    first.app_left();
    let mut follower = follow(bench.claim(1));
    record_whole(&first).await;
    follower.received(Received::Answer);
    bench.table.finish(&first, Fate::Undelivered);
    assert_ne!(key_of(&bench.lead(1)), key_of(&first));
    assert_eq!(bench.table.sizes(), (0, 0, 0));
}

#[tokio::test]
async fn rows_that_were_adopted_or_delivered_leave_the_table() {
    let mut bench = Bench::new();
    let adopted = bench.lead(1);
    bench.table.finish(&adopted, Fate::Undelivered);
    let delivered = bench.lead(2);
    delivered.app_left();
    record_whole(&delivered).await;
    bench.table.finish(&delivered, Fate::Undelivered);
    assert_eq!(bench.table.sizes(), (2, 1, 6));

    let adopting = bench.lead(1);
    assert_eq!(bench.table.sizes(), (1, 1, 6));
    bench.table.delivered(&delivered);
    assert_eq!(bench.table.sizes(), (0, 0, 0));

    bench.table.finish(&adopting, Fate::Undelivered);
    assert_eq!(bench.table.sizes(), (1, 0, 0));
}

#[test]
fn the_table_is_bounded_and_forgets_the_oldest_first() {
    let mut bench = Bench::new();
    let (oldest, next) = (bench.lead(1), bench.lead(2));
    bench.table.finish(&oldest, Fate::Undelivered);
    bench.table.finish(&next, Fate::Undelivered);
    let lives: Vec<_> = (0..4095).map(|_| bench.lead(3)).collect();
    for purchase in &lives {
        bench.table.finish(purchase, Fate::Undelivered);
    }
    assert_eq!(bench.table.sizes(), (4096, 0, 0));
    assert_ne!(key_of(&bench.lead(1)), key_of(&oldest));
    assert_eq!(key_of(&bench.lead(2)), key_of(&next));
}

#[tokio::test]
async fn answers_go_before_their_keys() {
    let mut bench = Bench::new();
    for prompt in 1..=3 {
        let purchase = bench.lead(prompt);
        purchase.app_left();
        record_whole(&purchase).await;
        bench.table.finish(&purchase, Fate::Undelivered);
        bench.clock.advance(Duration::from_secs(25));
    }
    drop(bench.lead(9));
    assert_eq!(bench.table.sizes(), (3, 2, 12));
    bench.clock.advance(Duration::from_secs(60));
    drop(bench.lead(9));
    assert_eq!(bench.table.sizes(), (3, 0, 0));
    bench.clock.advance(Duration::from_secs(900));
    drop(bench.lead(9));
    assert_eq!(bench.table.sizes(), (0, 0, 0));
}
