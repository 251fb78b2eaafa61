//! Deploys: named events as they come, byte for byte; sent once; a break is a break.

use bursar::ledger::entry::{InDoubt, State};
use bursar::protocol::Operation;
use serde_json::{Value, json};

use crate::support::wire::request;
use crate::support::{Answer, Bursar, Wire, eventually};

use super::{ENDPOINTS, ask, bare, fault, in_doubt, left, received, release, stage, stage_with};

const STAGES: [&str; 5] = [
    "validated",
    "allocating",
    "loading",
    "warming",
    "health_check",
];

fn body(name: &str) -> Value {
    json!({"task": "contact-extraction", "name": name})
}

/// The named events of a stream, in order.
fn events(text: &str) -> Vec<(String, Value)> {
    text.split_terminator("\n\n")
        .map(|event| {
            let (name, data) = event.split_once('\n').expect("two lines");
            let data = data.strip_prefix("data: ").expect("data");
            let name = name.strip_prefix("event: ").expect("a name");
            (name.to_owned(), serde_json::from_str(data).expect("JSON"))
        })
        .collect()
}

/// Reads until that many events are there, and fails if there is one byte more.
async fn read_events(wire: &mut Wire, answer: &mut Answer, count: usize) {
    while answer.text().matches("\n\n").count() < count {
        let piece = wire.chunk(answer).await.expect("an event");
        assert!(!piece.is_empty(), "ended after {:?}", answer.text());
        answer.body.extend_from_slice(&piece);
    }
    assert_eq!(events(&answer.text()).len(), count);
}

async fn begin(bursar: &Bursar, name: &str) -> Wire {
    let mut wire = bursar.connect().await;
    let text = body(name).to_string();
    wire.send(request("POST", ENDPOINTS, &[], &text)).await;
    wire
}

/// The sandbox pauses after each event in turn: the app has read everything sent before the sandbox
/// continues.
#[tokio::test]
async fn each_event_of_a_real_deploy_is_with_the_app_before_the_next_is_sent() {
    let (sandbox, bursar) = stage().await;
    for count in 1..=STAGES.len() {
        let name = format!("mine-{count}");
        let hold = json!({"hold_after_chunks": count, "hold_chunks_name": name});
        fault(&sandbox, ENDPOINTS, hold).await;
        let mut wire = begin(&bursar, &name).await;
        let mut answer = wire.head().await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-sandbox-assumed"), Some("deploy-stages"));
        read_events(&mut wire, &mut answer, count).await;
        release(&sandbox, &name).await;
        read_events(&mut wire, &mut answer, STAGES.len() + 1).await;
        wire.rest(&mut answer).await;
        assert!(answer.complete, "a clean end");

        let events = events(&answer.text());
        let (stages, last) = events.split_at(STAGES.len());
        for (stage, (event, body)) in STAGES.iter().zip(stages) {
            assert_eq!(
                (event.as_str(), body["stage"].as_str()),
                ("progress", Some(*stage))
            );
        }
        assert_eq!(last[0].0, "complete");
        let shown = bare(&bursar, "GET", &format!("{ENDPOINTS}/{name}")).await;
        assert_eq!(last[0].1["endpoint"], shown.json());
        let entry = bursar.entry_of(&answer);
        assert_eq!(entry.state, State::Unreported);
        assert_eq!((entry.operation, entry.key), (Operation::Deploy, None));
    }
    let unreported = bursar.metric("bursar_unreported_requests", "operation=\"deploy\"");
    assert!((unreported - 5.0).abs() < 0.1, "{unreported}");
    assert_eq!(sandbox.debits().await.len(), 0, "a deploy costs nothing");
}

#[tokio::test]
async fn a_deploy_that_the_service_cuts_is_a_cut_and_no_event_of_ours() {
    let (sandbox, bursar) = stage().await;
    for (at, cut) in ["close", "reset"].into_iter().enumerate() {
        let rule = json!({"cut_after_chunks": 3, "cut": cut});
        fault(&sandbox, ENDPOINTS, rule).await;
        let answer = ask(&bursar, ENDPOINTS, &[], &body(cut)).await;
        assert_eq!(answer.status, 200, "{cut}");
        assert!(!answer.complete, "{cut}: never a clean end");
        let events = events(&answer.text());
        assert_eq!(events.len(), 3, "{cut}: {events:?}");
        assert!(events.iter().all(|(name, _)| name == "progress"), "{cut}");
        let entry = &bursar.settled(at + 1).await[at];
        assert_eq!(entry.state, in_doubt(InDoubt::StreamDrop), "{cut}");
    }
    assert_eq!(
        received(&sandbox, "POST", ENDPOINTS).await.len(),
        2,
        "each once"
    );
}

/// "The stream ending without `complete` is a failure": the app's to see, and not dressed up.
#[tokio::test]
async fn a_deploy_that_fails_or_ends_without_complete_reaches_the_app_as_it_is() {
    let (sandbox, bursar) = stage().await;
    fault(&sandbox, ENDPOINTS, json!({"deploy_fails_at": "warming"})).await;
    let failed = ask(&bursar, ENDPOINTS, &[], &body("mine")).await;
    assert!(failed.complete);
    let seen = events(&failed.text());
    assert_eq!(seen.len(), 5, "{seen:?}");
    assert_eq!(seen[4].0, "error");
    assert_eq!(seen[4].1["stage"], "warming");
    assert_eq!(bare(&bursar, "GET", "/v1/endpoints/mine").await.status, 404);

    fault(&sandbox, ENDPOINTS, json!({"no_done": true})).await;
    let endless = ask(&bursar, ENDPOINTS, &[], &body("mine")).await;
    assert!(endless.complete);
    let seen = events(&endless.text());
    assert!(seen.len() == 5 && seen.iter().all(|(name, _)| name == "progress"));
    for answer in [failed, endless] {
        assert_eq!(bursar.entry_of(&answer).state, State::Unreported);
    }
    assert_eq!(
        received(&sandbox, "POST", ENDPOINTS).await.len(),
        2,
        "each once"
    );
}

/// A 409 is a conflict here, and no contention; what was not begun may be asked again; what may have
/// been begun may not.
#[tokio::test]
async fn a_deploy_is_asked_again_only_when_none_was_begun() {
    let (sandbox, bursar) = stage().await;
    let busy = json!({"status": 503, "retry_after": "0"});
    fault(&sandbox, ENDPOINTS, busy).await;
    let made = ask(&bursar, ENDPOINTS, &[], &body("mine")).await;
    assert_eq!(made.status, 200);
    assert_eq!(received(&sandbox, "POST", ENDPOINTS).await.len(), 2);

    let taken = ask(&bursar, ENDPOINTS, &[], &body("mine")).await;
    assert_eq!(taken.status, 409);
    assert_eq!(taken.header("x-should-retry"), Some("false"));
    assert_eq!(bursar.entry_of(&taken).state, State::Failed);
    assert_eq!(received(&sandbox, "POST", ENDPOINTS).await.len(), 3);

    fault(&sandbox, ENDPOINTS, json!({"cut_before_head": true})).await;
    let lost = ask(&bursar, ENDPOINTS, &[], &body("other")).await;
    assert_eq!(lost.status, 502, "{}", lost.text());
    assert_eq!(lost.header("x-should-retry"), Some("false"));
    let state = bursar.entry_of(&lost).state;
    assert_eq!(state, in_doubt(InDoubt::NoResponse));
    assert_eq!(received(&sandbox, "POST", ENDPOINTS).await.len(), 4);
}

/// An app that leaves is no reason to break a deploy off: its stream is read to its end, unless the
/// config says otherwise.
#[tokio::test]
async fn a_deploy_whose_app_leaves_is_read_to_its_end() {
    for (on_disconnect, state) in [
        ("drain", State::Unreported),
        ("cancel", in_doubt(InDoubt::ClientGone)),
    ] {
        let lines = format!("[streams]\non_disconnect = \"{on_disconnect}\"\n");
        let (sandbox, bursar) = stage_with(&lines).await;
        let hold = json!({"hold_after_chunks": 2, "hold_chunks_name": "deploy"});
        fault(&sandbox, ENDPOINTS, hold).await;
        let mut wire = begin(&bursar, "mine").await;
        let mut answer = wire.head().await;
        read_events(&mut wire, &mut answer, 2).await;
        drop(wire);
        left(&bursar, 1).await;
        release(&sandbox, "deploy").await;
        let entry = &bursar.settled(1).await[0];
        assert_eq!(entry.state, state, "{on_disconnect}");
        assert!(entry.drained, "{on_disconnect}: its end had no reader");
        eventually("the endpoint to be live", || async {
            let shown = bare(&bursar, "GET", "/v1/endpoints/mine").await;
            (shown.status == 200 && shown.json()["status"] == "live").then_some(())
        })
        .await;
    }
}
