//! One app whose requests wait, and all others.

use bursar::apps::AppAdd;
use bursar::ledger::entry::State;
use tokio::task::JoinSet;

use super::*;
use crate::support::origin::{billed, json};

/// More than bursar has places for.
const GREEDY: usize = 660;

/// What one app among several may have waiting.
const OF_ONE_APP: usize = 384;

fn app(bursar: &Bursar, name: &str) -> String {
    let new = AppAdd {
        name: name.to_owned(),
        ..AppAdd::default()
    };
    let token = bursar.apps.add(&new, 1).expect("the app is added");
    format!("Bearer {}", token.reveal())
}

#[tokio::test]
async fn requests_that_wait_for_room_leave_connections_for_other_apps() {
    let origin = Origin::start([on_cue(billed(1)), Step::Answer(json(200, &[], "{}"))]).await;
    let caps = "[caps]\nday_micro_usd = 1000\nrequest_floor_micro_usd = 600\n";
    let bursar = Bursar::with(&origin.url(), caps).await;
    let (greedy, other) = (app(&bursar, "greedy"), app(&bursar, "second"));
    let as_greedy = [("Authorization", greedy.as_str())];
    let mut first = begin(&bursar, "first", &as_greedy).await;
    received(&origin, 1).await;
    let mut wires = Vec::new();
    for n in 0..GREEDY {
        wires.push(begin(&bursar, &format!("{n}"), &as_greedy).await);
    }
    let mut turned_away = Vec::new();
    for mut wire in wires.split_off(OF_ONE_APP) {
        let answer = wire.answer().await;
        assert_eq!((answer.status, answer.code()), (429, Some("queue_full")));
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert_eq!(answer.header("x-should-retry"), None);
        turned_away.push(wire);
    }
    eventually("the others to wait", || async {
        let waiting = bursar.gateway.caps().view().waiting;
        (waiting == OF_ONE_APP).then_some(())
    })
    .await;
    // Its connections are its own; that of a refused request is not kept.
    for wire in &mut turned_away {
        assert!(wire.ends().await);
    }
    let mut wire = bursar.connect().await;
    let as_other = [("Authorization", other.as_str())];
    wire.send(request("GET", "/v1/models", &as_other, "")).await;
    assert_eq!(wire.answer().await.status, 200, "another app is served");
    drop(wires);
    origin.go();
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(bursar.settled(1).await.len(), 1, "nothing else was sent");
}

/// Nothing is read from a body that waits for memory: its bytes stay unread, and yet its connection counts as
/// waiting.
#[tokio::test]
async fn bodies_that_wait_for_memory_leave_connections_for_other_apps() {
    const MIB: usize = 1024 * 1024;
    let origin = Origin::start([]).await;
    let bursar = Bursar::with(&origin.url(), "").await;
    let (greedy, other) = (app(&bursar, "greedy"), app(&bursar, "second"));
    let head = |length: usize| {
        format!(
            "POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Authorization: {greedy}\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    // The share of one app among several, in bodies that arrived whole and are being served.
    let mut served = Vec::new();
    for length in [30, 30, 30, 30, 30, 30, 12].map(|count| count * MIB) {
        origin.push(Step::Stall);
        let mut wire = bursar.connect().await;
        wire.send(head(length)).await;
        wire.send(vec![b' '; length]).await;
        served.push(wire);
        received(&origin, served.len()).await;
    }
    let mut wires = Vec::new();
    for _ in 0..GREEDY {
        let mut wire = bursar.connect().await;
        wire.try_send(head(MIB)).await;
        wire.try_send(vec![b' '; 192 * 1024]).await;
        wires.push(wire);
    }
    origin.push(Step::Answer(json(200, &[], "{}")));
    let mut wire = bursar.connect().await;
    let as_other = [("Authorization", other.as_str())];
    wire.send(request("GET", "/v1/models", &as_other, "")).await;
    let answer = wire.answer().await;
    assert_eq!(
        answer.status,
        200,
        "another app is served: {}",
        answer.text()
    );
    let mut waiting = 0;
    for wire in &mut wires {
        let answer = wire.answer().await;
        waiting += usize::from(answer.code() == Some("memory_full"));
    }
    assert!(waiting <= OF_ONE_APP, "{waiting} waited for memory");
    assert!(waiting > 0, "and those that may wait do");
}

/// A service that answers 503 and a long `Retry-After` makes each request wait for that long.
#[tokio::test]
async fn requests_that_rest_between_attempts_leave_connections_for_other_apps() {
    const TOO_MANY: usize = 10;
    let later = json(503, &[("Retry-After", "300")], r#"{"detail":"warming"}"#);
    let origin = Origin::always(Step::Answer(later)).await;
    let bursar = Bursar::before(&origin.url()).await;
    let (greedy, other) = (app(&bursar, "greedy"), app(&bursar, "second"));
    let as_greedy = [("Authorization", greedy.as_str())];
    let mut asked = JoinSet::new();
    for n in 0..OF_ONE_APP + TOO_MANY {
        let mut wire = begin(&bursar, &format!("{n}"), &as_greedy).await;
        asked.spawn(async move { (wire.answer().await, wire) });
    }
    let mut sent = OF_ONE_APP;
    for _ in 0..TOO_MANY {
        let turned_away = asked.join_next().await.expect("one that was turned away");
        let (answer, mut wire) = turned_away.expect("an answer");
        assert_eq!((answer.status, answer.code()), (429, Some("queue_full")));
        assert_eq!(answer.header("x-should-retry"), None);
        assert!(wire.ends().await);
        if answer.header("retry-after") == Some("1") {
            // It came when all the others waited: nothing of it was sent.
            continue;
        }
        sent += 1;
        assert_eq!(answer.header("retry-after"), Some("300"));
        assert!(answer.text().contains("answered 503"), "{}", answer.text());
        let entry = bursar.entry_of(&answer);
        assert_eq!((entry.state, entry.attempts.len()), (State::Failed, 1));
    }
    // The app's timeout is too short for that wait.
    let as_other = [
        ("Authorization", other.as_str()),
        ("x-stainless-timeout", "20"),
    ];
    let served = begin(&bursar, "other", &as_other).await.answer().await;
    assert_eq!(served.status, 503);
    assert_eq!(served.header("x-bursar-error"), None, "{}", served.text());
    assert_eq!(asked.len(), OF_ONE_APP, "the others rest");
    assert_eq!(origin.received().len(), sent + 1);
}
