//! `GET /v1/auto/metrics` against what really happened.

use crate::{endpoints::*, support::*};
use serde_json::{Value, json};

async fn document(sandbox: &Sandbox) -> Value {
    let reply = sandbox.get("/v1/auto/metrics").await;
    assert_eq!(reply.header("x-sandbox-assumed"), Some("auto-metrics"));
    reply.json()
}

fn amount(reply: &Reply, name: &str) -> i64 {
    reply.header(name).unwrap().parse().unwrap()
}

// Interface, Auto metrics document: "requests and success rate over 30 days …, billed spend, hourly p50/p95/error
// buckets over 7 days, daily success cells over 30 days, and projected savings versus frontier"
#[tokio::test]
async fn every_kind_of_inference_is_in_the_organizations_document() {
    let sandbox = Sandbox::start_with(quick()).await;
    let empty = document(&sandbox).await;
    assert_eq!(empty["requests_30d"], 0);
    assert_eq!(empty["success_rate_30d"], Value::Null);
    named(&sandbox, "mine").await;
    let chat = sandbox.post(CHAT, &[], &ask("rivers")).await;
    let saved = amount(&chat, "x-service-frontier-would-have-cost") - chat.billed();
    sandbox.post(AGENT, &[], &ask("rivers")).await;
    sandbox
        .post("/v1/embeddings", &[], &json!({"model": "m", "input": "a"}))
        .await;
    let comparison = json!({"model": "frontier-a", "messages": [{"role": "user", "content": "x"}]});
    sandbox
        .post("/v1/playground/frontier", &[], &comparison)
        .await;
    let direct = with(ask("rivers"), "model", json!("mine"));
    sandbox
        .post("/v1/endpoints/mine/chat/completions", &[], &direct)
        .await;
    // Two that fail, and three that are no inference.
    sandbox
        .post(CHAT, &[], &with(ask("x"), "n", json!(2)))
        .await;
    sandbox.fault(json!({"status": 502})).await;
    sandbox.post(CHAT, &[], &ask("x")).await;
    for free in ["/v1/models", "/v1/endpoints", "/v1/endpoints/mine"] {
        sandbox.get(free).await;
    }

    let document = document(&sandbox).await;

    assert_eq!(document["requests_30d"], 7);
    assert_eq!(document["success_rate_30d"], 5.0 / 7.0);
    let debits = sandbox.debits().await;
    assert_eq!(debits.len(), 5);
    assert_eq!(document["billed_micro_usd_30d"], debits.iter().sum::<i64>());
    let savings = document["savings_vs_frontier_micro_usd_30d"]
        .as_i64()
        .unwrap();
    assert!(
        savings > saved,
        "the turn and the endpoint saved, too: {savings}"
    );
    let hours = document["hourly_7d"].as_array().unwrap();
    let days = document["daily_30d"].as_array().unwrap();
    assert_eq!((hours.len(), days.len()), (7 * 24, 30));
    let sum = |cells: &[Value], name: &str| {
        cells
            .iter()
            .map(|one| one[name].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!((sum(hours, "requests"), sum(hours, "errors")), (7, 2));
    assert_eq!((sum(days, "requests"), sum(days, "successes")), (7, 5));
}

#[tokio::test]
async fn thirty_days_pass_by_the_clock() {
    let sandbox = Sandbox::start_with(quick()).await;
    sandbox.post(CHAT, &[], &ask("rivers")).await;
    let day_s = 24 * 3_600;

    sandbox
        .control("clock", json!({"advance_s": 8 * day_s}))
        .await;
    let after_a_week = document(&sandbox).await;
    sandbox
        .control("clock", json!({"advance_s": 23 * day_s}))
        .await;
    let after_a_month = document(&sandbox).await;

    let hours = after_a_week["hourly_7d"].as_array().unwrap();
    assert!(hours.iter().all(|hour| hour["requests"] == 0));
    assert_eq!(after_a_week["requests_30d"], 1);
    assert_eq!(after_a_month["requests_30d"], 0);
    assert_eq!(after_a_month["billed_micro_usd_30d"], 0);
}

// Interface, Authentication: "The organization scopes balance, …"
#[tokio::test]
async fn each_organization_has_a_document_of_its_own() {
    let sandbox = Sandbox::start_with(quick()).await;
    let other = [("Authorization", "Bearer second-key")];
    sandbox.post(CHAT, &other, &ask("rivers")).await;

    let theirs = sandbox
        .send("GET", "/v1/auto/metrics", &other, None)
        .await
        .json();

    assert_eq!(theirs["requests_30d"], 1);
    assert_eq!(document(&sandbox).await["requests_30d"], 0);
}
