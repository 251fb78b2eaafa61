//! Stories: steps of a scenario, and what the verdict says about a client.

use crate::support::*;
use bursar_sandbox::{Options, Scenario};
use serde_json::json;

fn scenario(text: &str) -> Options {
    let scenario = Scenario::from_toml_str(text).unwrap();
    scenario.apply(Options::default())
}

#[tokio::test]
async fn steps_happen_at_their_request_or_time_in_their_order_and_once() {
    let sandbox = Sandbox::start_with(scenario(
        r#"
        [[step]]
        at_request = 2
        do = { fault = { times = 1, fault = { status = 503, retry_after = "1" } } }
        [[step]]
        at_request = 3
        do = { balance_micro_usd = 0 }
        [[step]]
        at_s = 3600
        do = { balance_micro_usd = 5_000_000, advance_s = 60, limits = { in_flight = 1 } }
        [[step]]
        at_s = 3660
        do = { settings = { agent_enabled = false } }
    "#,
    ))
    .await;
    let mut statuses = Vec::new();
    for n in 0..6 {
        if n == 4 {
            sandbox.control("clock", json!({"advance_s": 3600})).await;
        }
        let path = if n == 5 { AGENT } else { CHAT };
        statuses.push(sandbox.post(path, &[], &ask("rivers")).await.status);
    }

    assert_eq!(statuses, [200, 503, 402, 402, 200, 404]);
    let steps = sandbox.get("/sandbox/steps").await.json();
    assert_eq!((&steps["done"], &steps["requests"]), (&json!(4), &json!(6)));
    let limits = sandbox.get("/sandbox/limits").await.json();
    assert_eq!(limits["in_flight_max"], 1);
}

#[tokio::test]
async fn a_story_goes_on_over_a_restart_and_begins_again_with_a_reset() {
    let directory = std::env::temp_dir().join(format!("sandbox-story-{}", std::process::id()));
    let text = format!(
        "state_dir = {directory:?}\n[[step]]\nat_request = 2\ndo = {{ fault = {{ fault = {{ status = 503 }} }} }}"
    );
    let sandbox = Sandbox::start_with(scenario(&text)).await;
    assert_eq!(sandbox.post(CHAT, &[], &ask("a")).await.status, 200);
    sandbox.stop().await;

    let sandbox = Sandbox::start_with(scenario(&text)).await;
    assert_eq!(sandbox.post(CHAT, &[], &ask("a")).await.status, 503);
    sandbox.stop().await;
    let sandbox = Sandbox::start_with(scenario(&text)).await;
    assert_eq!(sandbox.post(CHAT, &[], &ask("a")).await.status, 200);

    sandbox.control("reset", json!({})).await;
    let statuses = [
        sandbox.post(CHAT, &[], &ask("a")).await.status,
        sandbox.post(CHAT, &[], &ask("a")).await.status,
    ];
    assert_eq!(statuses, [200, 503]);
    sandbox.stop().await;
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn steps_can_be_added_and_a_wrong_one_is_refused() {
    let sandbox = Sandbox::start().await;

    for wrong in [
        json!({"do": {}}),
        json!({"at_request": 0, "do": {}}),
        json!({"at_request": 1, "at_s": 1, "do": {}}),
        json!({"at_s": 1, "do": {"org": "org-1"}}),
        json!([{"at_s": 1, "do": {"wait": 1}}]),
    ] {
        let reply = sandbox.post("/sandbox/steps", &[], &wrong).await;
        assert_eq!(reply.status, 422, "{wrong}");
    }
    sandbox
        .control("steps", json!({"at_s": 0, "do": {"balance_micro_usd": 0}}))
        .await;
    assert_eq!(sandbox.post(CHAT, &[], &ask("a")).await.status, 402);

    // A reset is the start, where this step was not.
    sandbox.control("reset", json!({})).await;
    sandbox
        .control("balance", json!({"micro_usd": 1_000_000}))
        .await;
    assert_eq!(sandbox.post(CHAT, &[], &ask("a")).await.status, 200);
}

// Interface, Errors: Client retry guidance.
#[tokio::test]
async fn the_verdict_on_real_requests_distinguishes_a_polite_client_from_a_rude_one() {
    let sandbox = Sandbox::start().await;
    let key = [("Idempotency-Key", "k")];
    sandbox
        .fault(json!({"status": 503, "retry_after": "2"}))
        .await;
    sandbox.post(CHAT, &key, &ask("rivers")).await;
    sandbox.control("clock", json!({"advance_s": 2})).await;
    sandbox.post(CHAT, &key, &ask("rivers")).await;
    let polite = sandbox.get("/sandbox/verdict").await.json();
    assert_eq!(
        (&polite["ok"], &polite["requests"]),
        (&json!(true), &json!(2)),
        "{polite}"
    );
    assert_eq!(
        (&polite["findings"], &polite["remarks"]),
        (&json!([]), &json!([]))
    );
    assert!(!polite["cannot_tell"].as_array().unwrap().is_empty());

    let reused = sandbox.post(CHAT, &key, &ask("lakes")).await;
    assert_eq!(reused.status, 422);
    sandbox.control("limits", json!({"in_flight": 0})).await;
    let over = sandbox
        .post(CHAT, &[("Idempotency-Key", "o")], &ask("seas"))
        .await;
    let again = sandbox
        .post(CHAT, &[("Idempotency-Key", "o")], &ask("seas"))
        .await;
    assert_eq!((over.status, again.status), (429, 429));

    let rude = sandbox.get("/sandbox/verdict").await.json();
    let found: Vec<&str> = rude["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["rule"].as_str().unwrap())
        .collect();
    assert_eq!(
        found,
        ["retry-after-ignored", "key-reused", "too-many-in-flight"]
    );
    assert_eq!(rude["ok"], false);
    assert_eq!(
        rude["findings"][1]["examples"][0].as_str(),
        reused.header("x-request-id")
    );
    sandbox.send("DELETE", "/sandbox/requests", &[], None).await;
    assert_eq!(sandbox.get("/sandbox/verdict").await.json()["ok"], true);
}
