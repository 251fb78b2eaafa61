//! The other routes, the control route and the request log.

use crate::support::*;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bursar_sandbox::{Options, assumptions};
use serde_json::json;

#[tokio::test]
async fn both_model_lists_hold_auto_alone() {
    let sandbox = Sandbox::start().await;

    let list = sandbox.get("/v1/models").await.json();
    let agent = sandbox.get("/agent/v1/models").await.json();

    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    assert_eq!(list["data"][0]["id"], "auto");
    assert_eq!(agent["object"], "list");
    assert_eq!(agent["data"][0]["max_model_len"], 131_072);
    assert_eq!(agent["data"][0]["context_window"], 131_072);
}

#[tokio::test]
async fn the_frontier_comparison_debits_what_it_says() {
    let sandbox = Sandbox::start().await;
    let body = json!({"model": "frontier-b", "messages": [{"role": "user", "content": "Tell me about rivers"}]});

    let reply = sandbox
        .post(
            "/v1/playground/frontier",
            &[("Idempotency-Key", "k")],
            &body,
        )
        .await;
    let again = sandbox
        .post(
            "/v1/playground/frontier",
            &[("Idempotency-Key", "k")],
            &body,
        )
        .await;

    assert_eq!(reply.header("x-sandbox-assumed"), Some("frontier-ids"));
    assert_eq!(reply.header("x-service-billed"), None);
    let costs = [
        reply.json()["cost_micro_usd"].as_i64().unwrap(),
        again.json()["cost_micro_usd"].as_i64().unwrap(),
    ];
    assert_eq!(sandbox.debits().await, costs);
    assert_eq!(
        sandbox
            .post(
                "/v1/playground/frontier",
                &[],
                &with(body.clone(), "model", json!("x"))
            )
            .await
            .status,
        400
    );
    let messages = vec![json!({"role": "user", "content": "x"}); 41];
    assert_eq!(
        sandbox
            .post(
                "/v1/playground/frontier",
                &[],
                &with(body, "messages", json!(messages))
            )
            .await
            .status,
        422
    );
}

#[tokio::test]
async fn embeddings_of_texts_that_share_words_lie_closer() {
    let sandbox = Sandbox::start().await;
    let body = json!({"model": "auto", "input": ["a wide river", "a wide lake", "tax law"]});

    let reply = sandbox.post("/v1/embeddings", &[], &body).await;
    let vectors: Vec<Vec<f64>> = reply.json()["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| serde_json::from_value(one["embedding"].clone()).unwrap())
        .collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();

    assert!((dot(&vectors[0], &vectors[0]) - 1.0).abs() < 1e-5);
    assert!(dot(&vectors[0], &vectors[1]) > dot(&vectors[0], &vectors[2]));
    assert_eq!(reply.header("x-sandbox-assumed"), Some("embeddings"));
    let packed = sandbox
        .post(
            "/v1/embeddings",
            &[],
            &with(body, "encoding_format", json!("base64")),
        )
        .await;
    let bytes = STANDARD
        .decode(packed.json()["data"][0]["embedding"].as_str().unwrap())
        .unwrap();
    assert_eq!(bytes.len(), 256 * 4);
}

#[tokio::test]
async fn the_request_log_contains_keys_and_header_names_and_never_the_secret() {
    let sandbox = Sandbox::start().await;
    sandbox
        .post(
            CHAT,
            &[("Idempotency-Key", "k-9"), ("X-Odd", "secret-value")],
            &ask("rivers"),
        )
        .await;
    sandbox
        .post(CHAT, &[("Authorization", "Bearer stolen")], &ask("rivers"))
        .await;

    let log = sandbox.get("/sandbox/requests").await;

    let requests = log.json();
    assert_eq!(requests["by_route"]["POST /v1/chat/completions"], 2);
    let (first, second) = (&requests["requests"][0], &requests["requests"][1]);
    assert_eq!(
        (
            &first["idempotency_key"],
            &first["authorization"],
            &first["status"]
        ),
        (&json!("k-9"), &json!("ok"), &json!(200))
    );
    assert_eq!(
        (&second["authorization"], &second["status"]),
        (&json!("bad"), &json!(401))
    );
    assert!(
        first["header_names"]
            .as_array()
            .unwrap()
            .contains(&json!("x-odd"))
    );
    for secret in ["sandbox-key", "stolen", "secret-value", "rivers"] {
        assert!(!log.text().contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn the_control_route_needs_no_key_and_refuses_what_it_does_not_know() {
    let sandbox = Sandbox::start_with(Options {
        api_key: "other".to_owned(),
        ..Options::default()
    })
    .await;

    for (path, body) in [
        ("faults", json!({"fault": {"statu": 1}})),
        ("clock", json!({"advance": 1})),
        ("limits", json!({"x": 1})),
    ] {
        let reply = sandbox
            .post(&format!("/sandbox/{path}"), &[("Authorization", "")], &body)
            .await;
        assert_eq!(reply.status, 422, "{path}");
    }
    assert_eq!(sandbox.post(CHAT, &[], &ask("hi")).await.status, 401);
    sandbox.control("reset", json!({})).await;
    assert_eq!(sandbox.books().await["refused"], 0);
}

#[tokio::test]
async fn every_mark_on_the_wire_is_a_listed_assumption() {
    let sandbox = Sandbox::start().await;
    let listed = sandbox.get("/sandbox/assumptions").await.json();

    assert_eq!(
        listed["assumptions"].as_array().unwrap().len(),
        assumptions().len()
    );
    for id in [
        "repeat-billed",
        "embeddings",
        "frontier-ids",
        "agent-error-body",
        "stream-clarification",
    ] {
        assert!(assumptions().iter().any(|one| one.id == id), "{id}");
    }
}
