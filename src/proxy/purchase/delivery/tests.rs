use http::StatusCode;

use super::*;

const PIECE: &[u8] = b"data: {}";

/// A delivery and the follower that it has, or had last.
struct Bench {
    delivery: DeliveryState,
    cursor: Option<Cursor>,
}

fn head() -> Arc<ResponseHeader> {
    Arc::new(ResponseHeader::build(StatusCode::OK, None).unwrap())
}

fn kept() -> Bench {
    let mut delivery = DeliveryState::default();
    delivery.app_leaves();
    delivery.record_head(head(), true);
    assert!(delivery.record_chunk(Bytes::from_static(PIECE)).is_ok());
    Bench {
        delivery,
        cursor: None,
    }
}

fn leading() -> Bench {
    let mut bench = kept();
    assert!(bench.delivery.take());
    bench
}

fn begun() -> Bench {
    let mut bench = leading();
    bench.delivery.begins();
    bench
}

fn followed() -> Bench {
    let mut bench = kept();
    bench.cursor = bench.delivery.follow(|| false);
    bench
}

fn followed_with(has: Received) -> Bench {
    let mut bench = followed();
    let Bench { delivery, cursor } = &mut bench;
    let cursor = cursor.as_mut().unwrap();
    assert!(matches!(
        delivery.read(cursor),
        Some(ReplayItem::Head { .. })
    ));
    assert!(matches!(delivery.read(cursor), Some(ReplayItem::Chunk(_))));
    match has {
        Received::Nothing => {}
        Received::Beginning | Received::Answer => delivery.follower_received(cursor, has),
    }
    bench
}

fn word(delivery: &DeliveryState) -> &'static str {
    match delivery.state {
        DeliveryPhase::Kept => "kept",
        DeliveryPhase::Leading(_) => "leading",
        DeliveryPhase::Begun => "begun",
        DeliveryPhase::Followed { has, .. } => match has {
            Received::Nothing => "followed: nothing",
            Received::Beginning => "followed: beginning",
            Received::Answer => "followed: answer",
        },
        DeliveryPhase::GivenUp => "given up",
        DeliveryPhase::Delivered => "delivered",
    }
}

/// The table in the head of the file.
#[test]
fn each_state_answers_each_event_as_the_table_says() {
    let given_up = || {
        let mut bench = followed_with(Received::Beginning);
        bench.delivery.unfollow(bench.cursor.as_ref().unwrap());
        bench
    };
    let delivered = || {
        let mut bench = leading();
        bench.delivery.is_delivered_to_app();
        bench
    };
    let nothing = || followed_with(Received::Nothing);
    let beginning = || followed_with(Received::Beginning);
    let answer = || followed_with(Received::Answer);
    let states: [&dyn Fn() -> Bench; 8] = [
        &kept, &leading, &begun, &nothing, &beginning, &answer, &given_up, &delivered,
    ];
    let names = states.map(|state| word(&state().delivery));
    let take = |bench: &mut Bench| {
        let takes = bench.delivery.take();
        assert_eq!(takes, !bench.delivery.is_followed());
    };
    let fail = |bench: &mut Bench| bench.delivery.write_failed();
    let follow = |bench: &mut Bench| {
        bench.delivery.follow(|| true);
    };
    let leave = |bench: &mut Bench| {
        if let Some(cursor) = &bench.cursor {
            bench.delivery.unfollow(cursor);
        }
    };
    let stall = |bench: &mut Bench| bench.delivery.give_up_follower();
    /// What happens, and what each state becomes by it.
    type Row<'a> = (&'a str, &'a dyn Fn(&mut Bench), [&'a str; 8]);
    let events: [Row<'_>; 5] = [
        (
            "the leader takes it",
            &take,
            [
                "leading", "leading", names[2], names[3], names[4], names[5], names[6], names[7],
            ],
        ),
        (
            "the write fails",
            &fail,
            [
                "kept", "kept", names[2], names[3], names[4], names[5], names[6], names[7],
            ],
        ),
        (
            "an equal request comes",
            &follow,
            [
                "followed: nothing",
                names[1],
                names[2],
                names[3],
                names[4],
                names[5],
                names[6],
                names[7],
            ],
        ),
        (
            "the follower leaves",
            &leave,
            [
                names[0],
                names[1],
                names[2],
                "kept",
                "given up",
                "delivered",
                names[6],
                names[7],
            ],
        ),
        (
            "the follower stalls",
            &stall,
            [
                names[0],
                names[1],
                names[2],
                "given up",
                "given up",
                "delivered",
                names[6],
                names[7],
            ],
        ),
    ];
    for (event, act, wanted) in events {
        for (state, wanted) in states.iter().zip(wanted) {
            let mut bench = state();
            let before = word(&bench.delivery);
            act(&mut bench);
            assert_eq!(word(&bench.delivery), wanted, "{before}: {event}");
        }
    }
}

#[test]
fn a_follower_that_hung_up_unread_gives_way_and_reads_no_more() {
    let mut bench = followed();
    assert!(bench.delivery.follow(|| false).is_none(), "it is there");
    assert!(bench.delivery.follow(|| true).is_some());
    let first = bench.cursor.as_mut().unwrap();
    assert!(bench.delivery.read(first).is_none());
    bench.delivery.unfollow(first);
    assert!(bench.delivery.is_followed(), "the second one stays");
}

#[test]
fn what_a_follower_was_given_stays_delivered_however_much_comes_behind_it() {
    let mut bench = followed_with(Received::Answer);
    bench.delivery.unfollow(bench.cursor.as_ref().unwrap());
    let much = Bytes::from(vec![b'x'; REPLAY_BYTES_MAX]);
    for _ in 0..3 {
        assert!(bench.delivery.record_chunk(much.clone()).is_ok());
    }
    assert!(bench.delivery.is_delivered());
    assert_eq!(bench.delivery.kept_bytes(), 0);
}

#[test]
fn too_much_without_a_reader_is_given_up_and_a_slow_follower_is_waited_for() {
    let much = || Bytes::from(vec![b'x'; REPLAY_BYTES_MAX]);
    let mut bench = kept();
    assert!(bench.delivery.record_chunk(much()).is_ok());
    assert_eq!(word(&bench.delivery), "given up");
    assert_eq!(bench.delivery.kept_bytes(), 0);
    let mut bench = followed();
    assert!(bench.delivery.record_chunk(much()).is_err());
    assert_eq!(bench.delivery.kept_bytes(), PIECE.len());
}

#[test]
fn of_an_answer_that_was_read_whole_16_mib_are_kept_and_no_more() {
    for (bytes, is_kept) in [
        (WHOLE_REPLAY_BYTES_MAX, true),
        (WHOLE_REPLAY_BYTES_MAX + 1, false),
    ] {
        let mut delivery = DeliveryState::default();
        delivery.app_leaves();
        delivery.record_head(head(), false);
        let document = Bytes::from(vec![b'x'; bytes]);
        assert!(delivery.record_chunk(document).is_ok());
        delivery.record_end(ReplayEnd::Complete);
        assert_eq!(delivery.holds_answer(), is_kept, "{bytes}");
    }
}

#[test]
fn a_follower_that_is_given_up_is_shown_the_break() {
    let mut bench = followed_with(Received::Beginning);
    bench.delivery.give_up_follower();
    bench.delivery.record_end(ReplayEnd::Complete);
    let cursor = bench.cursor.as_mut().unwrap();
    let item = bench.delivery.read(cursor);
    assert!(
        matches!(item, Some(ReplayItem::End(ReplayEnd::Broken(_)))),
        "{item:?}"
    );
}
