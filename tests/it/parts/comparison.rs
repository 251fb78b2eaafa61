//! The frontier comparison carries its price in the body: it counts once a call, and a missing
//! price is not guessed.

use bursar::ledger::entry::{InDoubt, State};
use bursar::money::MicroUsd;
use serde_json::{Value, json};

use super::stage::{COMPARISON, ask, post, release, rows, send, spend};
use crate::support::{Bursar, Sandbox, eventually};

fn prompt(text: &str) -> Value {
    json!({"model": "frontier-b", "messages": [{"role": "user", "content": text}]})
}

fn settled(billed: u64) -> State {
    State::Settled {
        billed: MicroUsd::new(billed),
    }
}

async fn next(sandbox: &Sandbox, fault: Value) {
    let rule = json!({"match": {"path": COMPARISON}, "fault": fault});
    sandbox.control("/sandbox/faults", rule).await;
}

async fn row(bursar: &Bursar) -> Value {
    let document = spend(&bursar.state_dir(), "operation").await;
    rows(&document, "operation")["frontier_comparison"].clone()
}

#[tokio::test]
async fn a_comparison_counts_once_a_call_with_what_the_books_say() {
    let sandbox = Sandbox::start().await;
    let bursar = Bursar::before(&sandbox.url()).await;
    let body = prompt("Compare tea and coffee.");
    let mut sum = 0;
    for _ in 0..2 {
        let answer = post(bursar.address, COMPARISON, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let cost = answer.json()["cost_micro_usd"].as_u64().expect("a cost");
        assert_eq!(bursar.entry_of(&answer).state, settled(cost));
        sum += cost;
    }
    assert_eq!(sandbox.debits().await.len(), 2, "one debit a call");
    assert_eq!(sandbox.debited().await, sum);
    let row = row(&bursar).await;
    assert_eq!((&row["requests"], &row["settled"]), (&json!(2), &json!(2)));
    assert_eq!(row["billed_micro_usd"], sum);
    let metric = bursar.metric(
        "bursar_billed_usd_total",
        "operation=\"frontier_comparison\"",
    );
    assert!((metric - sum as f64 / 1e6).abs() < 1e-9, "{metric}");
}

/// The answer is read to its end without a reader, and sent to the app when it asks again.
#[tokio::test]
async fn an_app_that_leaves_meanwhile_is_billed_once_and_gets_the_answer_later() {
    let sandbox = Sandbox::start().await;
    let bursar = Bursar::before(&sandbox.url()).await;
    let body = prompt("Compare tea and coffee.").to_string();
    next(&sandbox, json!({"hold": "work"})).await;
    let wire = send(bursar.address, "POST", COMPARISON, &[], body.as_bytes()).await;
    eventually("the service to receive", || async {
        let log = sandbox.get("/sandbox/requests").await;
        (log["received"] == 1).then_some(())
    })
    .await;
    drop(wire);
    eventually("the app to be missed", || async {
        (bursar.metric("bursar_client_disconnects_total", "") >= 1.0).then_some(())
    })
    .await;
    release(&sandbox, "work").await;
    let entries = bursar.settled(1).await;

    let debited = sandbox.debited().await;
    assert!(debited > 0);
    assert_eq!(entries[0].state, settled(debited));
    assert_eq!(row(&bursar).await["drained_micro_usd"], debited);
    let again = ask(bursar.address, "POST", COMPARISON, &[], body.as_bytes()).await;
    assert_eq!(again.json()["cost_micro_usd"], debited);
    assert!(again.header("x-bursar-adopted").is_some());
    assert_eq!(sandbox.debited().await, debited, "not bought again");
    assert_eq!(bursar.billed(), debited);
}

/// The route is not keyed: what surely did not run is sent again, and what may have run is not.
#[tokio::test]
async fn a_retry_buys_again_only_what_surely_did_not_run() {
    let doubt = |reason| State::InDoubt { reason };
    let html =
        json!({"status": 502, "body": "<html>bad gateway</html>", "content_type": "text/html"});
    let rows = [
        ("429", json!({"status": 429}), 2, None),
        ("503", json!({"status": 503}), 2, None),
        (
            "vendor failed",
            json!({"status": 502}),
            1,
            Some(State::Failed),
        ),
        (
            "402",
            json!({"empty_balance": true}),
            1,
            Some(State::Failed),
        ),
        ("gateway", html, 1, Some(doubt(InDoubt::Gateway))),
        (
            "lost",
            json!({"cut_before_head": true}),
            1,
            Some(doubt(InDoubt::NoResponse)),
        ),
        (
            "broken",
            json!({"cut_after_bytes": 5}),
            1,
            Some(doubt(InDoubt::StreamDrop)),
        ),
    ];
    for (name, fault, sends, state) in rows {
        let sandbox = Sandbox::start().await;
        let bursar = Bursar::before(&sandbox.url()).await;
        next(&sandbox, fault).await;
        let body = prompt("Compare tea and coffee.");
        let first = post(bursar.address, COMPARISON, &body).await;
        let log = sandbox.get("/sandbox/requests").await;
        assert_eq!(log["received"], sends, "{name}");
        let Some(state) = state else {
            assert_eq!(first.status, 200, "{name}: {}", first.text());
            assert_eq!(sandbox.debits().await.len(), 1, "{name}");
            assert_eq!(bursar.billed(), sandbox.debited().await, "{name}");
            continue;
        };
        assert_eq!(bursar.entry_of(&first).state, state, "{name}");
        assert_eq!(first.header("x-should-retry"), Some("false"), "{name}");
        assert_eq!(bursar.billed(), 0, "{name}");
        let lost = sandbox.debited().await;

        bursar.forget_refusals();
        let second = post(bursar.address, COMPARISON, &body).await;
        let cost = second.json()["cost_micro_usd"].as_u64().expect("a cost");
        assert_eq!(bursar.entry_of(&second).state, settled(cost), "{name}");
        assert_eq!(sandbox.debited().await, lost + cost, "{name}");
        let row = row(&bursar).await;
        assert_eq!(row["billed_micro_usd"], cost, "{name}");
        let in_doubt = u64::from(state != State::Failed);
        assert_eq!(row["in_doubt"], in_doubt, "{name}");
        assert_eq!(row["failed"], 1 - in_doubt, "{name}");
    }
}

/// Absent, malformed and zero are three things (rule I5).
#[tokio::test]
async fn a_cost_that_is_absent_malformed_or_zero() {
    let cases = [
        (json!({"content": "c"}), State::Unreported, "missing"),
        (
            json!({"content": "\"cost_micro_usd\": 9", "cost_micro_usd": null}),
            State::Unreported,
            "missing",
        ),
        (
            json!({"cost_micro_usd": 4.2}),
            State::Unreported,
            "malformed",
        ),
        (
            json!({"cost_micro_usd": "42"}),
            State::Unreported,
            "malformed",
        ),
        (
            json!({"cost_micro_usd": -1}),
            State::Unreported,
            "malformed",
        ),
        (json!({"cost_micro_usd": 0}), settled(0), "body"),
    ];
    for (body, state, source) in cases {
        let sandbox = Sandbox::start().await;
        let bursar = Bursar::before(&sandbox.url()).await;
        next(&sandbox, json!({"status": 200, "body": body})).await;
        let answer = post(bursar.address, COMPARISON, &prompt("hi")).await;
        assert_eq!(answer.json(), body, "bytes are the service's");
        assert_eq!(bursar.entry_of(&answer).state, state, "{body}");
        let counted = bursar.metric("bursar_receipts_total", &format!("\"{source}\""));
        assert!((counted - 1.0).abs() < 1e-9, "{body}: {counted}");
        let row = row(&bursar).await;
        let unreported = u64::from(state == State::Unreported);
        assert_eq!(row["unreported"], unreported, "{body}");
        assert_eq!(row["settled"], 1 - unreported, "{body}");
        assert_eq!(row["billed_micro_usd"], 0, "{body}");
    }
}

/// A long answer flows through, and its price at the end is read all the same.
#[tokio::test]
async fn the_price_behind_megabytes_counts_and_one_inside_the_text_does_not() {
    let text = "\"cost_micro_usd\": 9, ".repeat(80_000);
    for (body, state) in [
        (
            json!({"content": text, "cost_micro_usd": 1234}),
            settled(1234),
        ),
        (json!({"content": text}), State::Unreported),
        (
            json!({"content": text, "cost_micro_usd": "1234"}),
            State::Unreported,
        ),
    ] {
        assert!(body.to_string().len() > 1 << 20);
        let sandbox = Sandbox::start().await;
        let bursar = Bursar::before(&sandbox.url()).await;
        next(&sandbox, json!({"status": 200, "body": body})).await;
        let answer = post(bursar.address, COMPARISON, &prompt("hi")).await;
        assert!(answer.complete && answer.json() == body);
        assert_eq!(bursar.entry_of(&answer).state, state);
    }
}
