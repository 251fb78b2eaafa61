use std::time::Duration;

use http::StatusCode;

use super::*;
use crate::clock::ManualClock;
use crate::ledger::entry::{EntryId, Fingerprint};
use crate::proxy::purchase::claim::{Claim, ClaimTable};
use crate::proxy::purchase::claimant::{AdoptPolicy, Claimant, RequestKey};

/// A connection that follows a request whose app has left.
fn follower() -> Follower {
    let table = ClaimTable::new(Arc::new(ManualClock::at(1_778_284_800_000)));
    let claim = |entry| {
        let claimant = Claimant {
            request_key: RequestKey {
                app: Arc::from("default"),
                fingerprint: Fingerprint([7; 32]),
            },
            entry: EntryId(uuid::Uuid::from_u128(entry)),
            own_key: None,
            keyed: true,
            marked_retry: false,
            keeps_answer: true,
        };
        let policy = AdoptPolicy {
            adopt: crate::config::Adopt::Always,
            window: Duration::from_secs(900),
        };
        table.claim(&claimant, policy, false)
    };
    let Claim::Lead(purchase) = claim(1) else {
        panic!("nothing is there before it");
    };
    purchase.app_left();
    let Claim::Follow(follower) = claim(2) else {
        panic!("its app has left");
    };
    follower
}

fn item_head(status: StatusCode, flowing: bool) -> FollowEvent {
    let head = Arc::new(ResponseHeader::build(status, None).unwrap());
    FollowEvent::Came(ReplayItem::Head { head, flowing })
}

fn chunk() -> FollowEvent {
    FollowEvent::Came(ReplayItem::Chunk(Bytes::from_static(b"data: {}")))
}

fn complete() -> FollowEvent {
    FollowEvent::Came(ReplayItem::End(ReplayEnd::Complete))
}

fn broken(code: Code) -> FollowEvent {
    FollowEvent::Came(ReplayItem::End(ReplayEnd::Broken(code.into())))
}

/// The events of one answer to an app that is there, whether it is a stream, and what became of it.
type Row = (
    &'static str,
    Vec<FollowEvent>,
    bool,
    FollowedEnd,
    &'static str,
);

#[test]
fn what_counts_as_delivered_depends_on_the_kind_of_answer() {
    let ok = || item_head(StatusCode::OK, true);
    let out = || FollowEvent::Wrote(Written::Out);
    let held = || FollowEvent::Wrote(Written::Held);
    let end = |is_delivered, is_whole, code| FollowedEnd {
        is_delivered,
        is_whole,
        code,
    };
    let did = || FollowEvent::Did;
    let rows: Vec<Row> = vec![
        (
            "the first byte of a stream",
            vec![ok(), did(), chunk(), out()],
            true,
            end(true, false, None),
            "Wait",
        ),
        (
            "a byte of a stream that was held back",
            vec![ok(), did(), chunk(), held()],
            true,
            end(false, false, None),
            "Wait",
        ),
        (
            "the beginning of a document",
            vec![ok(), did(), chunk(), out()],
            false,
            end(false, false, None),
            "Wait",
        ),
        (
            "the whole of a document",
            vec![ok(), did(), chunk(), out(), complete(), did()],
            false,
            end(true, true, None),
            "Done",
        ),
        (
            "an error, read whole",
            vec![
                item_head(StatusCode::BAD_GATEWAY, false),
                did(),
                chunk(),
                out(),
                complete(),
                did(),
            ],
            false,
            end(false, true, None),
            "Done",
        ),
        (
            "a break before any head",
            vec![broken(Code::UpstreamBroken)],
            true,
            end(false, false, Some(Code::UpstreamBroken)),
            "Refuse",
        ),
        (
            "the end of a run that is not this one's",
            vec![broken(Code::RunEnded)],
            true,
            end(false, false, Some(Code::RunAwaited)),
            "Refuse",
        ),
        (
            "a break in a stream",
            vec![ok(), did(), chunk(), out(), broken(Code::UpstreamBroken)],
            true,
            end(true, false, Some(Code::UpstreamBroken)),
            "Break(Some",
        ),
        (
            "a break in a document",
            vec![ok(), did(), chunk(), out(), broken(Code::UpstreamBroken)],
            false,
            end(false, false, Some(Code::UpstreamBroken)),
            "Break(None",
        ),
    ];
    for (what, events, is_stream, wanted, last) in rows {
        let mut follower = follower();
        let mut following = Following::new(true);
        let mut action = FollowAction::Wait;
        for event in events {
            action = following.on(event, Presence::Here, &mut follower, |_| is_stream);
        }
        assert_eq!(following.end(), wanted, "{what}");
        let said = format!("{action:?}");
        assert!(said.starts_with(last), "{what}: {said}");
        assert_eq!(
            follower.purchase().is_delivered(),
            wanted.is_delivered,
            "{what}"
        );
    }
}

#[test]
fn an_app_that_has_left_is_given_nothing_until_something_counted() {
    let mut follower = follower();
    let mut following = Following::new(true);
    let action = following.on(
        item_head(StatusCode::OK, true),
        Presence::Suspect,
        &mut follower,
        |_| true,
    );
    assert!(matches!(action, FollowAction::Done), "{action:?}");

    let mut following = Following::new(true);
    for event in [
        item_head(StatusCode::OK, true),
        FollowEvent::Did,
        chunk(),
        FollowEvent::Wrote(Written::Out),
    ] {
        following.on(event, Presence::Here, &mut follower, |_| true);
    }
    let action = following.on(chunk(), Presence::Suspect, &mut follower, |_| true);
    assert!(matches!(action, FollowAction::Write(_)), "{action:?}");
}
