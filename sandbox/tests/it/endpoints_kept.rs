//! Endpoints and metrics over a restart, a kill and a reset.

use crate::{endpoints::*, support::*};
use bursar_sandbox::{Options, Settings};
use serde_json::json;
use tokio::io::AsyncReadExt;

#[tokio::test]
async fn endpoints_and_what_they_served_are_there_after_a_restart() {
    let directory = std::env::temp_dir().join(format!("sandbox-endpoints-{}", std::process::id()));
    let options = || Options {
        state_dir: Some(directory.clone()),
        settings: Settings {
            endpoint_warm_up_ms: 3_600_000,
            ..quick().settings
        },
        ..quick()
    };
    let sandbox = Sandbox::start_with(options()).await;
    named(&sandbox, "live").await;
    named(&sandbox, "stopped").await;
    turn(&sandbox, "stopped", "stop").await;
    named(&sandbox, "warming").await;
    turn(&sandbox, "warming", "stop").await;
    turn(&sandbox, "warming", "start").await;
    let body = with(ask("rivers"), "model", json!("live"));
    assert_eq!(sandbox.post(CHAT, &[], &body).await.status, 200);
    let cost = sandbox.get("/v1/endpoints/live/cost").await.json();
    let month = sandbox.get("/v1/auto/metrics").await.json();
    // And one whose deploy the shutdown cuts.
    sandbox
        .control("settings", json!({"endpoint_stage_ms": 3_600_000}))
        .await;
    let body = json!({"task": TASK, "name": "cut"})
        .to_string()
        .into_bytes();
    let mut socket = sandbox.open("POST", ENDPOINTS, &[], Some(body)).await;
    socket.read_u8().await.unwrap();
    sandbox.stop().await;
    let mut rest = Vec::new();
    within(socket.read_to_end(&mut rest)).await.unwrap();
    assert!(String::from_utf8_lossy(&rest).contains("event: error"));

    let sandbox = Sandbox::start_with(options()).await;

    let list = sandbox.get(ENDPOINTS).await.json();
    let seen: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["status"].as_str().unwrap())
        .collect();
    assert_eq!(seen, ["live", "stopped", "starting"], "{list}");
    let again = sandbox.get("/v1/endpoints/live/cost").await.json();
    assert_eq!(again["spend_micro_usd"], cost["spend_micro_usd"]);
    assert_eq!(again["requests"], 1);
    let after = sandbox.get("/v1/auto/metrics").await.json();
    for name in [
        "requests_30d",
        "success_rate_30d",
        "billed_micro_usd_30d",
        "savings_vs_frontier_micro_usd_30d",
    ] {
        assert_eq!(after[name], month[name], "{name}");
    }
    assert_eq!(after["requests_30d"], 1);
    sandbox.stop().await;
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn a_kill_loses_neither_an_endpoint_nor_what_was_counted_a_moment_before() {
    let directory =
        |name| std::env::temp_dir().join(format!("sandbox-killed-{name}-{}", std::process::id()));
    let (first, copy) = (directory("first"), directory("copy"));
    let options = |directory: &std::path::Path| Options {
        state_dir: Some(directory.to_owned()),
        ..quick()
    };
    let sandbox = Sandbox::start_with(options(&first)).await;
    named(&sandbox, "mine").await;
    let body = with(ask("rivers"), "model", json!("mine"));
    assert_eq!(sandbox.post(CHAT, &[], &body).await.status, 200);
    std::fs::create_dir_all(&copy).unwrap();

    // What the file holds while the service runs is what a kill leaves.
    within(async {
        loop {
            sandbox.control("clock", json!({"advance_s": 1})).await;
            let read = || std::fs::read(first.join("sandbox.redb")).unwrap();
            let (bytes, again) = (read(), read());
            if bytes != again {
                continue; // a write was going on between them
            }
            std::fs::write(copy.join("sandbox.redb"), bytes).unwrap();
            let after = Sandbox::start_with(options(&copy)).await;
            assert_eq!(status(&after, "mine").await, "live");
            let activity = after.get("/v1/endpoints/mine/activity").await.json();
            let month = after.get("/v1/auto/metrics").await.json();
            after.stop().await;
            if activity["requests"] == 1 && month["requests_30d"] == 1 {
                break;
            }
        }
    })
    .await;

    sandbox.stop().await;
    for directory in [first, copy] {
        std::fs::remove_dir_all(directory).unwrap();
    }
}

#[tokio::test]
async fn a_reset_leaves_no_endpoint() {
    let sandbox = Sandbox::start_with(quick()).await;
    named(&sandbox, "mine").await;

    sandbox.control("reset", json!({})).await;

    assert_eq!(sandbox.get(ENDPOINTS).await.json(), json!([]));
    assert_eq!(
        sandbox.get("/v1/auto/metrics").await.json()["requests_30d"],
        0
    );
    named(&sandbox, "mine").await;
}

// Interface, Idempotency-Key: Same key, same endpoint and body, within 24 h; different body or endpoint.
#[tokio::test]
async fn a_key_knows_its_endpoint_from_a_successor_after_a_restart() {
    let directory = std::env::temp_dir().join(format!("sandbox-successor-{}", std::process::id()));
    let options = || Options {
        state_dir: Some(directory.clone()),
        ..quick()
    };
    let (key, body) = (
        [("Idempotency-Key", "k")],
        with(ask("rivers"), "model", json!("mine")),
    );
    let sandbox = Sandbox::start_with(options()).await;
    named(&sandbox, "mine").await;
    let first = sandbox.post(CHAT, &key, &body).await;
    assert_eq!(first.status, 200);
    sandbox.stop().await;

    let sandbox = Sandbox::start_with(options()).await;
    let live = sandbox.post(CHAT, &key, &body).await;
    sandbox
        .send("DELETE", "/v1/endpoints/mine", &[], None)
        .await;
    let gone = sandbox.post(CHAT, &key, &body).await;
    named(&sandbox, "mine").await;
    let successor = sandbox.post(CHAT, &key, &body).await;

    for replay in [live, gone] {
        assert_eq!(replay.header("idempotent-replayed"), Some("true"));
        assert!(replay.body == first.body);
    }
    assert_eq!(successor.status, 422);
    assert_eq!(sandbox.debits().await.len(), 1);
    sandbox.stop().await;
    std::fs::remove_dir_all(directory).unwrap();
}
