//! Inference on deployed endpoints, at the path of their `url` and by their id as `model`.

use bursar::ledger::entry::{InDoubt, KeyOrigin, State};
use bursar::protocol::Operation;
use serde_json::{Value, json};

use crate::support::daemon::command;
use crate::support::{Bursar, Sandbox};

use super::{ENDPOINTS, ask, bare, fault, in_doubt, received, stage};

const CHAT: &str = "/v1/chat/completions";
const AT_URL: &str = "/v1/endpoints/mine/chat/completions";

fn to_mine(stream: bool) -> Value {
    json!({
        "model": "mine",
        "stream": stream,
        "messages": [{"role": "user", "content": "Extract the email: a@example.org"}],
    })
}

/// Deploys through bursar; the endpoint as `complete` describes it.
async fn deployed(bursar: &Bursar) -> Value {
    let body = json!({"task": "contact-extraction", "name": "mine"});
    let answer = ask(bursar, ENDPOINTS, &[], &body).await;
    let text = answer.text();
    let last = text.rsplit("data: ").next().expect("an event");
    let last: Value = serde_json::from_str(last.trim()).expect("JSON");
    last["endpoint"].clone()
}

async fn with_endpoint() -> (Sandbox, Bursar) {
    let (sandbox, bursar) = stage().await;
    deployed(&bursar).await;
    (sandbox, bursar)
}

/// The `url` names the service's own host; its path is reached through bursar.
#[tokio::test]
async fn an_endpoint_is_reached_at_its_path_and_by_its_id_whole_and_streamed() {
    let (sandbox, bursar) = stage().await;
    let endpoint = deployed(&bursar).await;
    let url = endpoint["url"].as_str().expect("a url");
    let path = url
        .strip_prefix(&sandbox.url())
        .expect("the service's host");
    assert_eq!(format!("{path}/chat/completions"), AT_URL);

    for (at, (path, operation)) in [(AT_URL, Operation::EndpointChat), (CHAT, Operation::Chat)]
        .into_iter()
        .enumerate()
    {
        for stream in [false, true] {
            let answer = ask(&bursar, path, &[], &to_mine(stream)).await;
            let text = answer.text();
            assert_eq!(answer.status, 200, "{path}: {text}");
            // In a stream the address comes in pieces.
            let expected = if stream {
                "completion.chunk"
            } else {
                "a@example.org"
            };
            assert!(answer.complete && text.contains(expected), "{path}: {text}");
            assert_eq!(text.ends_with("data: [DONE]\n\n"), stream, "{path}");
            let entry = bursar.entry_of(&answer);
            // "direct model calls carry none of them"
            assert_eq!(entry.state, State::Unreported, "{path}");
            assert_eq!((entry.operation, entry.stream), (operation, Some(stream)));
            // The `url` is not one of the routes on which a key is honored.
            let minted = (operation == Operation::Chat).then_some(KeyOrigin::Minted);
            assert_eq!(entry.key_origin, minted, "{path}");
        }
        let seen = received(&sandbox, "POST", path).await;
        assert_eq!(seen.len(), 2);
        for line in seen {
            let keyed = line["idempotency_key"].is_string();
            assert_eq!(keyed, operation == Operation::Chat, "{path}");
        }
        assert_eq!(sandbox.debits().await.len(), 2 * (at + 1));
    }
    assert_eq!(bursar.billed(), 0, "what is not reported is not guessed");
    let unreported = bursar.metric("bursar_unreported_requests", "operation=\"endpoint_chat\"");
    assert!((unreported - 2.0).abs() < 0.1, "{unreported}");
}

#[tokio::test]
async fn spend_by_operation_shows_what_endpoints_did() {
    let (_sandbox, bursar) = with_endpoint().await;
    ask(&bursar, AT_URL, &[], &to_mine(false)).await;
    ask(&bursar, CHAT, &[], &to_mine(true)).await;
    bursar.settled(3).await;
    bursar.ledger.close().await;
    let state_dir = bursar.state_dir();
    let state_dir = state_dir.to_str().expect("a UTF-8 path");
    let arguments = [
        "spend",
        "--by",
        "operation",
        "--json",
        "--state-dir",
        state_dir,
    ];
    let done = command(&arguments).output().await.expect("it ends");
    let printed: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let rows = printed["rows"].as_array().expect("rows");
    for operation in ["deploy", "endpoint_chat", "chat"] {
        let row = rows.iter().find(|row| row["operation"] == operation);
        let row = row.unwrap_or_else(|| panic!("{operation}: {printed}"));
        assert_eq!(row["unreported"], 1, "{operation}: {row}");
        assert_eq!(row["billed_micro_usd"], 0, "{operation}: {row}");
    }
}

/// "While an endpoint is stopped or cold, inference against it returns 503": a warm-up is waited out,
/// within the patience that the app announced.
#[tokio::test]
async fn a_cold_endpoint_is_waited_for_within_the_patience_of_the_app() {
    for path in [AT_URL, CHAT] {
        let (sandbox, bursar) = with_endpoint().await;
        bare(&bursar, "POST", "/v1/endpoints/mine/stop").await;
        let stopped = ask(
            &bursar,
            path,
            &[("x-stainless-read-timeout", "5")],
            &to_mine(false),
        )
        .await;
        assert_eq!(stopped.status, 503, "{path}");
        // It names no wait, because waiting does not start it: bursar retries quickly, and passes it
        // on.
        assert_eq!(stopped.header("retry-after"), None, "{path}");
        assert_eq!(bursar.entry_of(&stopped).state, State::Failed, "{path}");
        assert_eq!(
            received(&sandbox, "POST", path).await.len(),
            3,
            "{path}: [retry] max_attempts"
        );

        bare(&bursar, "POST", "/v1/endpoints/mine/start").await;
        let warm = ask(&bursar, path, &[], &to_mine(false)).await;
        assert_eq!(warm.status, 200, "{path}: {}", warm.text());
        let entry = bursar.entry_of(&warm);
        assert_eq!(entry.state, State::Unreported, "{path}");
        let statuses: Vec<_> = entry.attempts.iter().map(|one| one.status).collect();
        assert_eq!(statuses.first(), Some(&Some(503)), "{path}");
        assert_eq!(statuses.last(), Some(&Some(200)), "{path}");
        assert!(entry.attempts[1].wait_ms >= 1_000, "{path}: {entry:?}");
        assert_eq!(sandbox.debits().await.len(), 1, "{path}");
    }
}

/// At the `url` no key distinguishes a repeat from a second purchase; by the id one does.
#[tokio::test]
async fn a_lost_answer_of_an_endpoint_is_asked_for_again_only_under_a_key() {
    let (sandbox, bursar) = with_endpoint().await;
    for (path, status, attempts) in [(AT_URL, 502, 1), (CHAT, 200, 2)] {
        fault(&sandbox, path, json!({"cut_before_head": true})).await;
        let answer = ask(&bursar, path, &[], &to_mine(false)).await;
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(
            received(&sandbox, "POST", path).await.len(),
            attempts,
            "{path}"
        );
        if status == 502 {
            let state = bursar.entry_of(&answer).state;
            assert_eq!(state, in_doubt(InDoubt::NoResponse));
        }
    }
    assert_eq!(sandbox.debits().await.len(), 2, "each was bought once");
}

#[tokio::test]
async fn a_stream_of_an_endpoint_that_breaks_is_a_break() {
    let (sandbox, bursar) = with_endpoint().await;
    fault(&sandbox, AT_URL, json!({"cut_after_chunks": 2})).await;
    let answer = ask(&bursar, AT_URL, &[], &to_mine(true)).await;
    assert!(!answer.complete && !answer.text().contains("[DONE]"));
    assert!(answer.text().contains("\"upstream_broken\""));
    let state = bursar.entry_of(&answer).state;
    assert_eq!(state, in_doubt(InDoubt::StreamDrop));
    assert_eq!(received(&sandbox, "POST", AT_URL).await.len(), 1);
}
