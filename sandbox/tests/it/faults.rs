//! Faults: what the client sees, and what the books know.

use crate::support::*;
use serde_json::json;

#[tokio::test]
async fn a_status_fault_refuses_before_the_work_as_often_as_it_says() {
    let sandbox = Sandbox::start().await;
    sandbox
        .control("faults", json!({"times": 2, "fault": {"status": 503, "retry_after": "7", "retry_after_ms": "7000", "x_should_retry": "false", "body": "<html>", "content_type": "text/html"}}))
        .await;

    let first = sandbox.post(CHAT, &[], &ask("hi")).await;
    let second = sandbox.post(CHAT, &[], &ask("hi")).await;
    let third = sandbox.post(CHAT, &[], &ask("hi")).await;

    assert_eq!([first.status, second.status, third.status], [503, 503, 200]);
    assert_eq!(
        (first.header("retry-after"), first.header("retry-after-ms")),
        (Some("7"), Some("7000"))
    );
    assert_eq!(
        (first.header("content-type"), first.text()),
        (Some("text/html"), "<html>".to_owned())
    );
    assert_eq!(first.header("x-should-retry"), Some("false"));
    assert_eq!(sandbox.debits().await.len(), 1);
    assert_eq!(sandbox.books().await["refusals_by_status"]["503"], 2);
}

#[tokio::test]
async fn warm_up_asks_for_30_seconds_on_the_agent_lane_and_an_empty_balance_is_402() {
    let sandbox = Sandbox::start().await;
    sandbox
        .control(
            "faults",
            json!([{"fault": {"warm_up": true}}, {"fault": {"empty_balance": true}}]),
        )
        .await;

    let cold = sandbox.post(AGENT, &[], &ask("hi")).await;
    assert_eq!((cold.status, cold.header("retry-after")), (503, Some("30")));
    assert_eq!(sandbox.post(AGENT, &[], &ask("hi")).await.status, 402);
}

#[tokio::test]
async fn a_cut_before_the_head_hides_a_debit_that_a_retry_gets_replayed() {
    let sandbox = Sandbox::start().await;
    let key = [("Idempotency-Key", "k")];

    for (kind, error) in [
        ("close", None),
        ("reset", Some(std::io::ErrorKind::ConnectionReset)),
    ] {
        let body = ask(kind);
        sandbox
            .fault(json!({"cut_before_head": true, "cut": kind}))
            .await;
        let cut = sandbox
            .post(CHAT, &[("Idempotency-Key", kind)], &body)
            .await;
        assert_eq!(
            (cut.status, cut.body.len(), cut.error),
            (0, 0, error),
            "{kind}"
        );

        let retry = sandbox
            .post(CHAT, &[("Idempotency-Key", kind)], &body)
            .await;
        assert_eq!(
            (retry.billed(), retry.header("idempotent-replayed")),
            (0, Some("true"))
        );
    }
    assert_eq!(sandbox.debits().await.len(), 2);

    sandbox.fault(json!({"cut_before_work": true})).await;
    assert_eq!(sandbox.post(CHAT, &key, &ask("x")).await.status, 0);
    assert_eq!(sandbox.debits().await.len(), 2);
}

#[tokio::test]
async fn a_stream_is_cut_where_the_fault_says_and_debited_all_the_same() {
    let sandbox = Sandbox::start().await;
    let whole = sandbox.post(CHAT, &[], &ask_stream("rivers")).await;
    let n = whole.chunks().len();
    let rows = [
        (json!({"cut_after_chunks": 0}), 0, false),
        (json!({"cut_after_chunks": 3}), 3, false),
        (json!({"cut_after_chunks": 3, "cut": "reset"}), 3, false),
        (json!({"cut_before_receipt": true}), n, false),
        (json!({"cut_before_done": true}), n, true),
    ];
    let made = rows.len();

    for (fault, chunks, receipt) in rows {
        sandbox.fault(fault.clone()).await;
        let cut = sandbox.post(CHAT, &[], &ask_stream("rivers")).await;
        assert_eq!(cut.chunks().len(), chunks, "{fault}");
        assert!(!cut.complete, "{fault}");
        assert_eq!(
            cut.comment("service-billed-micro-usd").is_some(),
            receipt,
            "{fault}"
        );
        assert!(!cut.text().contains("[DONE]"), "{fault}");
    }
    sandbox
        .until("books", |books| books["debits_made"] == made + 1)
        .await;
}

#[tokio::test]
async fn bytes_can_be_counted_too() {
    let sandbox = Sandbox::start().await;

    for body in [ask("rivers"), ask_stream("rivers")] {
        sandbox.fault(json!({"cut_after_bytes": 25})).await;
        let cut = sandbox.post(CHAT, &[], &body).await;
        assert_eq!((cut.status, cut.body.len(), cut.complete), (200, 25, false));
    }
}

#[tokio::test]
async fn a_receipt_can_be_absent_malformed_or_twice_in_headers_and_comments() {
    let sandbox = Sandbox::start().await;
    let malformed = json!({"receipt": {"billed": "12x", "served_by": null}});

    sandbox.fault(malformed.clone()).await;
    let reply = sandbox.post(CHAT, &[], &ask("rivers")).await;
    assert_eq!(reply.header("x-service-billed"), Some("12x"));
    assert_eq!(reply.header("x-service-served-by"), None);
    sandbox.fault(malformed).await;
    let stream = sandbox.post(CHAT, &[], &ask_stream("rivers")).await;
    assert_eq!(
        stream.comment("service-billed-micro-usd").as_deref(),
        Some("12x")
    );
    assert_eq!(stream.comments().len(), 3);

    sandbox
        .control("faults", json!({"times": 2, "fault": {"no_receipt": true}}))
        .await;
    let reply = sandbox.post(CHAT, &[], &ask("rivers")).await;
    assert!(
        !reply
            .headers
            .iter()
            .any(|(name, _)| name.starts_with("x-service-")),
        "{:?}",
        reply.headers
    );
    assert_eq!(
        sandbox
            .post(CHAT, &[], &ask_stream("rivers"))
            .await
            .comments(),
        Vec::<String>::new()
    );

    sandbox
        .control(
            "faults",
            json!({"times": 2, "fault": {"duplicate_receipt": 1}}),
        )
        .await;
    assert_eq!(
        sandbox
            .post(CHAT, &[], &ask("rivers"))
            .await
            .header_count("x-service-billed"),
        2
    );
    assert_eq!(
        sandbox
            .post(CHAT, &[], &ask_stream("rivers"))
            .await
            .comments()
            .len(),
        8
    );
}

#[tokio::test]
async fn a_stream_can_have_crlf_extra_comments_and_no_end_mark() {
    let sandbox = Sandbox::start().await;
    sandbox.fault(json!({"crlf": true, "extra_comments": ["ping", "service-billed-micro-usd"], "no_done": true})).await;

    let stream = sandbox.post(CHAT, &[], &ask_stream("rivers")).await;

    assert!(stream.complete);
    assert!(
        stream
            .text()
            .starts_with(": ping\r\n: service-billed-micro-usd\r\ndata: {")
    );
    assert!(!stream.text().replace("\r\n", "").contains('\n'));
    assert!(!stream.text().contains("[DONE]"));
}

#[tokio::test]
async fn delays_are_by_the_sandbox_clock_and_the_debit_is_at_their_end() {
    let sandbox = Sandbox::start().await;
    sandbox.fault(json!({"delay_ms": 3_600_000})).await;
    let body = ask("rivers");

    let (reply, before) = tokio::join!(sandbox.post(CHAT, &[], &body), async {
        sandbox.until_in_flight(1).await;
        let before = sandbox.debits().await.len();
        sandbox.control("clock", json!({"advance_s": 3600})).await;
        before
    });

    assert_eq!((before, reply.status), (0, 200));
    assert_eq!(sandbox.debits().await, [reply.billed()]);
}
