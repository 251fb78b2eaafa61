//! The Idempotency-Key table of the interface, row by row, over the wire.

use crate::support::*;
use serde_json::json;

const KEY: [(&str, &str); 1] = [("Idempotency-Key", "k-1")];

fn warm(text: &str) -> serde_json::Value {
    with(ask(text), "temperature", json!(1))
}

#[tokio::test]
async fn a_replay_is_the_same_answer_billed_0_even_with_an_empty_balance() {
    let sandbox = Sandbox::start().await;
    let first = sandbox.post(CHAT, &KEY, &warm("rivers")).await;
    sandbox.control("balance", json!({"micro_usd": 0})).await;

    let body =
        r#" { "temperature":1 , "messages":[{"content":"rivers","role":"user"}], "model":"auto" }"#;
    let replay = sandbox.send("POST", CHAT, &KEY, Some(body.into())).await;

    assert_eq!((replay.status, &replay.body), (200, &first.body));
    assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    assert_eq!((first.billed() > 0, replay.billed()), (true, 0));
    for name in [
        "x-service-frontier-would-have-cost",
        "x-service-served-by",
        "x-service-specialist",
        "x-service-route-version",
        "content-type",
    ] {
        assert_eq!(replay.header(name), first.header(name), "{name}");
    }
    assert_eq!(sandbox.debits().await, [first.billed()]);
    assert_eq!(sandbox.books().await["replays"], 1);
}

#[tokio::test]
async fn another_body_session_rte_query_or_endpoint_is_422() {
    let sandbox = Sandbox::start().await;
    sandbox.post(CHAT, &KEY, &warm("rivers")).await;

    let rows = [
        (CHAT, vec![KEY[0]], warm("bridges")),
        (
            CHAT,
            vec![KEY[0], ("X-Service-Session", "s")],
            warm("rivers"),
        ),
        (
            CHAT,
            vec![KEY[0], ("X-Service-RTE-Query", "q")],
            warm("rivers"),
        ),
        (
            CHAT,
            vec![KEY[0]],
            with(warm("rivers"), "stream", json!(true)),
        ),
        (AGENT, vec![KEY[0]], warm("rivers")),
    ];
    for (path, headers, body) in rows {
        let reply = sandbox.post(path, &headers, &body).await;
        assert_eq!(reply.status, 422, "{headers:?} {body}");
        assert!(!reply.text().contains("rivers"));
    }
    assert_eq!(sandbox.debits().await.len(), 1);
}

#[tokio::test]
async fn a_duplicate_waits_for_the_running_first_and_gets_its_answer() {
    let sandbox = Sandbox::start().await;
    sandbox.fault(json!({"hold": "first"})).await;
    let body = warm("rivers");

    let (first, second, ()) = tokio::join!(
        sandbox.post(CHAT, &KEY, &body),
        async {
            sandbox.until_in_flight(1).await;
            sandbox.post(CHAT, &KEY, &body).await
        },
        async {
            sandbox.until_in_flight(2).await;
            sandbox.control("release", json!({"hold": "first"})).await;
        },
    );

    assert_eq!(first.body, second.body);
    assert_eq!(
        (second.billed(), second.header("idempotent-replayed")),
        (0, Some("true"))
    );
    assert_eq!(sandbox.debits().await, [first.billed()]);
}

#[tokio::test]
async fn after_9_minutes_the_duplicate_is_409_with_retry_after() {
    let sandbox = Sandbox::start().await;
    sandbox.fault(json!({"hold": "first"})).await;
    let body = warm("rivers");

    let (first, second) = tokio::join!(sandbox.post(CHAT, &KEY, &body), async {
        sandbox.until_in_flight(1).await;
        let (second, ()) = tokio::join!(sandbox.post(CHAT, &KEY, &body), async {
            sandbox.until_in_flight(2).await;
            sandbox.control("clock", json!({"advance_s": 541})).await;
        });
        sandbox.control("release", json!({"hold": "first"})).await;
        second
    });

    assert_eq!((first.status, second.status), (200, 409));
    assert!(second.header("retry-after").is_some());
    assert!(second.json()["detail"].is_string());
}

#[tokio::test]
async fn a_failed_first_stores_nothing_and_the_key_runs_again() {
    let sandbox = Sandbox::start().await;
    sandbox
        .fault(json!({"status": 503, "retry_after": "1"}))
        .await;

    assert_eq!(sandbox.post(CHAT, &KEY, &warm("rivers")).await.status, 503);
    let second = sandbox.post(CHAT, &KEY, &warm("rivers")).await;

    assert_eq!(
        (second.status, second.header("idempotent-replayed")),
        (200, None)
    );
    assert_eq!(sandbox.debits().await, [second.billed()]);
}

#[tokio::test]
async fn after_24_hours_the_key_is_a_new_billed_request() {
    let sandbox = Sandbox::start().await;
    let first = sandbox.post(CHAT, &KEY, &warm("rivers")).await;

    sandbox
        .control("clock", json!({"advance_s": 24 * 3600}))
        .await;
    let second = sandbox.post(CHAT, &KEY, &warm("rivers")).await;

    assert_eq!(second.header("idempotent-replayed"), None);
    assert_ne!(first.body, second.body);
    assert_eq!(sandbox.debits().await, [first.billed(), second.billed()]);
}

#[tokio::test]
async fn a_streamed_repeat_runs_alongside_and_is_billed_once() {
    let sandbox = Sandbox::start().await;
    let body = with(warm("rivers"), "stream", json!(true));
    sandbox
        .fault(json!({"hold_after_chunks": 2, "hold_chunks_name": "s"}))
        .await;

    let (first, second) = tokio::join!(sandbox.post(CHAT, &KEY, &body), async {
        sandbox.until_in_flight(1).await;
        let second = sandbox.post(CHAT, &KEY, &body).await;
        sandbox.control("release", json!({"hold": "s"})).await;
        second
    });

    let billed = |reply: &Reply| {
        reply
            .comment("service-billed-micro-usd")
            .unwrap()
            .parse::<i64>()
            .unwrap()
    };
    assert!(billed(&second) > 0);
    assert_eq!(billed(&first), 0);
    assert_eq!(sandbox.debits().await, [billed(&second)]);
    assert!(first.complete && first.header("idempotent-replayed").is_none());
}

#[tokio::test]
async fn embeddings_are_not_stored_and_a_repeat_is_billed_once() {
    let sandbox = Sandbox::start().await;
    let body = json!({"model": "auto", "input": ["a river", "a bridge"]});

    let first = sandbox.post("/v1/embeddings", &KEY, &body).await;
    let second = sandbox.post("/v1/embeddings", &KEY, &body).await;

    assert_eq!(second.header("idempotent-replayed"), None);
    assert_eq!((first.billed() > 0, second.billed()), (true, 0));
    assert_eq!(sandbox.debits().await, [first.billed()]);
}

#[tokio::test]
async fn an_answer_over_1_mb_is_not_stored_and_its_repeat_is_billed_once() {
    let sandbox = Sandbox::start().await;
    let schema =
        json!({"type": "array", "minItems": 600, "items": {"type": "string", "minLength": 2000}});
    let format = json!({"type": "json_schema", "json_schema": {"name": "long", "schema": schema}});
    let body = with(warm("rivers"), "response_format", format);

    let first = sandbox.post(CHAT, &KEY, &body).await;
    let second = sandbox.post(CHAT, &KEY, &body).await;

    assert!(first.body.len() > 1024 * 1024);
    assert_eq!(second.status, 200);
    assert_eq!(second.header("idempotent-replayed"), None);
    assert_eq!((first.billed() > 0, second.billed()), (true, 0));
    assert_eq!(sandbox.debits().await, [first.billed()]);
    assert_eq!(sandbox.post(CHAT, &KEY, &ask("x")).await.status, 422);
}
