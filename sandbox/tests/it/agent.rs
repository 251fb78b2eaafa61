//! `POST /agent/v1/chat/completions`.

use crate::support::*;
use serde_json::json;

// Interface, POST /agent/v1/chat/completions: "Non-streamed responses carry `X-Service-Billed`"; `model`
// "`auto` or omitted"; "any other field: ignored, never a 400".
#[tokio::test]
async fn a_turn_carries_billed_and_no_other_amount() {
    let sandbox = Sandbox::start().await;
    let body =
        json!({"messages": [{"role": "user", "content": "Good morning"}], "made_up": {"x": 1}});

    let reply = sandbox.post(AGENT, &[], &body).await;

    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.json()["model"], "auto");
    assert_eq!(sandbox.debits().await, [reply.billed()]);
    assert_eq!(reply.header("x-service-frontier-would-have-cost"), None);
}

// Interface, POST /agent/v1/chat/completions: "then a final chunk with `usage`, then `data: [DONE]`".
#[tokio::test]
async fn a_streamed_turn_carries_usage_and_no_amount() {
    let sandbox = Sandbox::start().await;

    let stream = sandbox.post(AGENT, &[], &ask_stream("Good morning")).await;

    let chunks = stream.chunks();
    assert!(
        chunks.last().unwrap()["usage"]["prompt_tokens"]
            .as_u64()
            .unwrap()
            > 0
    );
    assert_eq!(stream.comments(), Vec::<String>::new());
    assert_eq!(stream.data().last().map(String::as_str), Some("[DONE]"));
    assert_eq!(sandbox.debits().await.len(), 1);
}

// Interface, POST /agent/v1/chat/completions: `model` "any other value returns 400"; `n` "greater than 1
// returns 400".
#[tokio::test]
async fn another_model_and_n_over_1_are_400() {
    let sandbox = Sandbox::start().await;

    for body in [
        with(ask("hi"), "model", json!("gpt-4o")),
        with(ask("hi"), "n", json!(2)),
    ] {
        let reply = sandbox.post(AGENT, &[], &body).await;
        assert_eq!(reply.status, 400);
        assert_eq!(reply.header("x-sandbox-assumed"), Some("agent-error-body"));
    }
}

// Interface, POST /agent/v1/chat/completions: Idempotency-Key "turns are never stored, so a repeat runs
// again and is not billed a second time"; "same key with a different body or session returns 422".
#[tokio::test]
async fn a_repeat_runs_again_alongside_or_after_and_is_billed_once() {
    let sandbox = Sandbox::start().await;
    let key = [("Idempotency-Key", "turn-1")];

    let first = sandbox.post(AGENT, &key, &ask("Good morning")).await;
    let second = sandbox.post(AGENT, &key, &ask("Good morning")).await;

    assert_eq!(second.status, 200);
    assert_eq!(second.header("idempotent-replayed"), None);
    assert_eq!(second.billed(), 0);
    let marks = second.header("x-sandbox-assumed").unwrap();
    assert!(marks.ends_with(",repeat-billed"), "{marks}");
    assert_eq!(sandbox.debits().await, [first.billed()]);

    sandbox
        .control("settings", json!({"repeat_billed": "same"}))
        .await;
    let third = sandbox.post(AGENT, &key, &ask("Good morning")).await;
    assert_eq!(third.billed(), first.billed());
    assert_eq!(sandbox.books().await["free_repeats"], 2);

    sandbox.control("balance", json!({"micro_usd": 0})).await;
    assert_eq!(
        sandbox.post(AGENT, &key, &ask("Good morning")).await.status,
        200
    );

    let other_session = [key[0], ("X-Service-Session", "s")];
    assert_eq!(
        sandbox
            .post(AGENT, &other_session, &ask("Good morning"))
            .await
            .status,
        422
    );
}

// Interface, Limits: agent route pin "expires after about 30 minutes idle".
#[tokio::test]
async fn a_session_that_escalated_twice_stays_on_the_frontier_until_30_minutes_idle() {
    let sandbox = Sandbox::start().await;
    let session = [("X-Service-Session", "s1")];
    let price_of = async |text: &str| {
        let reply = sandbox.post(AGENT, &session, &ask(text)).await;
        let tokens = reply.json()["usage"]["completion_tokens"].as_i64().unwrap();
        reply.billed() / tokens
    };

    assert!(price_of("Good morning").await < 5);
    price_of("hard: one").await;
    price_of("hard: two").await;
    assert!(price_of("Good morning").await >= 15);

    sandbox.control("clock", json!({"advance_s": 1800})).await;
    assert!(price_of("Good morning").await < 5);
}

// Interface, Errors: 404 "agent surface not enabled (agent lane)".
#[tokio::test]
async fn the_agent_surface_can_be_off() {
    let sandbox = Sandbox::start().await;
    sandbox
        .control("settings", json!({"agent_enabled": false}))
        .await;

    assert_eq!(sandbox.post(AGENT, &[], &ask("hi")).await.status, 404);
    assert_eq!(sandbox.get("/agent/v1/models").await.status, 404);
    assert_eq!(sandbox.post(CHAT, &[], &ask("hi")).await.status, 200);
}
