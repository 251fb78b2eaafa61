//! Clients that leave: the work ends, is debited and stored.

use crate::support::*;
use serde_json::json;
use tokio::io::AsyncReadExt;

#[tokio::test]
async fn a_first_request_whose_client_left_is_debited_and_replayed_to_the_next() {
    let sandbox = Sandbox::start().await;
    let key = [("Idempotency-Key", "k")];
    sandbox.fault(json!({"hold": "first"})).await;

    let socket = sandbox
        .open("POST", CHAT, &key, Some(ask("rivers").to_string().into()))
        .await;
    sandbox.until_in_flight(1).await;
    drop(socket);
    sandbox.control("release", json!({"hold": "first"})).await;
    sandbox.until_in_flight(0).await;

    assert_eq!(sandbox.debits().await.len(), 1);
    let next = sandbox.post(CHAT, &key, &ask("rivers")).await;
    assert_eq!(
        (next.billed(), next.header("idempotent-replayed")),
        (0, Some("true"))
    );
}

#[tokio::test]
async fn a_stream_whose_client_left_is_debited_when_complete_unless_the_setting_is_off() {
    for (bill, debits) in [(true, 1), (false, 0)] {
        let sandbox = Sandbox::start().await;
        sandbox
            .control("settings", json!({"bill_aborted_stream": bill}))
            .await;
        sandbox
            .fault(json!({"hold_after_chunks": 2, "hold_chunks_name": "s"}))
            .await;

        let mut socket = sandbox
            .open(
                "POST",
                CHAT,
                &[],
                Some(ask_stream("rivers").to_string().into()),
            )
            .await;
        let mut some = [0; 10];
        within(socket.read_exact(&mut some)).await.unwrap();
        assert_eq!(sandbox.debits().await.len(), 0);
        drop(socket);
        sandbox.control("release", json!({"hold": "s"})).await;
        sandbox.until_in_flight(0).await;

        assert_eq!(
            sandbox.debits().await.len(),
            debits,
            "bill_aborted_stream = {bill}"
        );
    }
}

#[tokio::test]
async fn shutting_down_waits_for_the_answer_that_is_on_its_way() {
    let sandbox = Sandbox::start().await;
    sandbox.fault(json!({"delay_ms": 3_600_000})).await;
    let mut socket = sandbox
        .open("POST", CHAT, &[], Some(ask("rivers").to_string().into()))
        .await;
    sandbox.until_in_flight(1).await;

    let clock = sandbox.clock.clone();
    let (_, read) = tokio::join!(sandbox.stop(), async {
        clock.advance(std::time::Duration::from_secs(3600));
        let mut text = String::new();
        within(socket.read_to_string(&mut text)).await.unwrap();
        text
    });

    assert!(read.starts_with("HTTP/1.1 200"), "{read}");
}
