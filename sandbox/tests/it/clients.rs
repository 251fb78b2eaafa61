//! What clients announce, and the answers they get with an empty balance.

use crate::support::*;
use serde_json::json;

// Interface, Authentication: Other request headers used by the interface: `Accept`, `Content-Type`.
#[tokio::test]
async fn what_a_client_announces_changes_no_answer() {
    let sandbox = Sandbox::start().await;
    let plain = sandbox.post(CHAT, &[], &ask("rivers")).await;

    for headers in [
        [
            ("Accept", "application/json"),
            ("Content-Type", "application/json; charset=utf-8"),
        ],
        [
            ("Accept", "text/event-stream"),
            ("Content-Type", "application/json"),
        ],
        [("Accept", "*/*"), ("User-Agent", "x")],
    ] {
        let reply = sandbox.post(CHAT, &headers, &ask("rivers")).await;
        assert_eq!(
            (reply.status, reply.content()),
            (200, plain.content()),
            "{headers:?}"
        );
        assert_eq!(reply.header("content-type"), Some("application/json"));
        let stream = sandbox.post(CHAT, &headers, &ask_stream("rivers")).await;
        assert!(
            stream
                .header("content-type")
                .unwrap()
                .starts_with("text/event-stream")
        );
        assert_eq!(stream.streamed_content(), plain.content());
    }
}

// Interface, POST /v1/playground/frontier: An empty balance returns 402.
#[tokio::test]
async fn an_empty_balance_stops_the_comparison() {
    let sandbox = Sandbox::start().await;
    let body = json!({"model": "frontier-a", "messages": [{"role": "user", "content": "rivers"}]});
    sandbox.control("balance", json!({"micro_usd": 0})).await;

    let reply = sandbox.post("/v1/playground/frontier", &[], &body).await;

    assert_eq!(reply.status, 402);
    assert!(reply.json()["detail"].is_string());
    assert_eq!(sandbox.debits().await, [] as [i64; 0]);
}
