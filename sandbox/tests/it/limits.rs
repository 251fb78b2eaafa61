//! Concurrency and rate, over the wire.

use crate::support::*;
use serde_json::json;

#[tokio::test]
async fn the_ninth_request_in_flight_is_429_with_retry_after_5() {
    let sandbox = Sandbox::start().await;
    sandbox
        .control("faults", json!({"times": 8, "fault": {"hold": "all"}}))
        .await;
    let body = ask("hi");
    let held = || sandbox.post(CHAT, &[], &body);

    let (a, b, c, d, e, f, g, h, ninth) = tokio::join!(
        held(),
        held(),
        held(),
        held(),
        held(),
        held(),
        held(),
        held(),
        async {
            sandbox.until_in_flight(8).await;
            let ninth = sandbox.post(CHAT, &[], &ask("hi")).await;
            sandbox.control("release", json!({"hold": "all"})).await;
            ninth
        }
    );

    assert!(
        [a, b, c, d, e, f, g, h]
            .iter()
            .all(|reply| reply.status == 200)
    );
    assert_eq!(
        (ninth.status, ninth.header("retry-after")),
        (429, Some("5"))
    );
    assert_eq!(sandbox.debits().await.len(), 8);
}

#[tokio::test]
async fn the_request_above_the_rate_is_429_with_retry_after_15_until_the_minute_is_over() {
    let sandbox = Sandbox::start().await;
    sandbox.control("limits", json!({"per_minute": 2})).await;

    let statuses = async |n: u8| {
        let mut statuses = Vec::new();
        for _ in 0..n {
            let reply = sandbox.post(CHAT, &[], &ask("hi")).await;
            statuses.push((reply.status, reply.header("retry-after").map(str::to_owned)));
        }
        statuses
    };

    assert_eq!(
        statuses(3).await,
        [(200, None), (200, None), (429, Some("15".to_owned()))]
    );
    sandbox.control("clock", json!({"advance_s": 60})).await;
    assert_eq!(statuses(1).await, [(200, None)]);
    assert_eq!(sandbox.debits().await.len(), 3);
}
