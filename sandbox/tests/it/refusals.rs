//! What is wrong is refused by its name, before it runs or costs anything.

use crate::{endpoints::*, eval_support::*, support::*};
use serde_json::{Value, json};

const COMPARISON: &str = "/v1/playground/frontier";

fn saying(messages: Value) -> Value {
    json!({"model": "auto", "temperature": 0, "messages": messages})
}

// Interface, POST /v1/chat/completions: "messages | array of `{role, content}` | OpenAI message format"
#[tokio::test]
async fn a_message_that_no_model_can_read_is_422_on_every_chat_route_and_bills_nothing() {
    let sandbox = Sandbox::start_with(quick()).await;
    named(&sandbox, "mine").await;
    let good = json!({"role": "user", "content": "rivers"});
    for (wrong, place) in [
        (
            json!({"role": "banana", "content": "x"}),
            "messages[1].role",
        ),
        (json!({"role": "user"}), "messages[1].content"),
        (
            json!({"role": "user", "content": [{"type": "zzz"}]}),
            "messages[1].content[0].type",
        ),
    ] {
        for (path, model) in [
            (CHAT, "auto"),
            (AGENT, "auto"),
            (COMPARISON, "frontier-a"),
            ("/v1/endpoints/mine/chat/completions", "mine"),
        ] {
            let body = with(saying(json!([good, wrong])), "model", json!(model));
            let reply = sandbox.post(path, &[], &body).await;
            assert_eq!(reply.status, 422, "{path} {wrong}: {}", reply.text());
            let detail = reply.json()["detail"].as_str().unwrap().to_owned();
            assert!(detail.starts_with(place), "{path}: {detail}");
        }
    }
    assert!(sandbox.debits().await.is_empty());
}

// Interface, POST /agent/v1/chat/completions: "full transcript (system, user, assistant including prior
// `tool_calls`, and tool results)"; "any other field | ignored, never a 400"
#[tokio::test]
async fn a_transcript_as_clients_send_it_back_is_served() {
    let sandbox = Sandbox::start().await;
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let transcript = json!([
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": "rivers", "name": "ann", "odd": 1},
        {"role": "assistant", "content": null, "refusal": null, "annotations": [], "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "wide"},
        {"role": "assistant", "content": "They are wide.", "tool_calls": null, "audio": null},
        {"role": "user", "content": [{"type": "text", "text": "And lakes?", "odd": {}}]},
    ]);
    for path in [CHAT, AGENT] {
        let reply = sandbox.post(path, &[], &saying(transcript.clone())).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    }
}

// Interface: `model` "any other value returns 404" (chat), "any other value returns 400" (agent lane, frontier
// comparison): a value of another type is another value.
#[tokio::test]
async fn a_model_that_is_no_string_is_another_value() {
    let sandbox = Sandbox::start().await;
    for (path, status) in [(CHAT, 404), (AGENT, 400), (COMPARISON, 400)] {
        for model in [
            json!(7),
            json!(["auto"]),
            json!({"id": "auto"}),
            json!(true),
        ] {
            let body = with(ask("x"), "model", model);
            let reply = sandbox.post(path, &[], &body).await;
            assert_eq!(reply.status, status, "{path} {}", body["model"]);
            assert!(!reply.text().contains("required"), "{}", reply.text());
        }
    }
    for path in [CHAT, COMPARISON] {
        let reply = sandbox
            .post(path, &[], &with(ask("x"), "model", Value::Null))
            .await;
        assert_eq!(
            (reply.status, &reply.json()["detail"]),
            (422, &json!("model is required"))
        );
    }
}

// Interface, Endpoints: "Error bodies have the form `{detail: <message string>}`"
#[tokio::test]
async fn a_wrong_method_beside_the_interface_has_a_detail_too() {
    let sandbox = Sandbox::start().await;
    for (method, path) in [
        ("GET", "/storage/x"),
        ("DELETE", "/sandbox/books"),
        ("POST", "/openapi.json"),
        ("PUT", "/sandbox/faults"),
    ] {
        let reply = sandbox.send(method, path, &[], None).await;
        assert_eq!(reply.status, 405, "{method} {path}");
        assert!(reply.json()["detail"].is_string(), "{method} {path}");
    }
}

// Interface, POST /v1/tasks/match: "top_k (integer, default 5 …)"; null is not there, as elsewhere.
#[tokio::test]
async fn a_top_k_of_null_is_the_default() {
    let sandbox = Sandbox::start().await;
    let body = json!({"query": "extract contacts", "top_k": null});
    let reply = sandbox.post("/v1/tasks/match", &[], &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

// Interface, Other endpoint routes: "Each accepts arbitrary query parameters"; Errors 422: validation failure
#[tokio::test]
async fn a_metrics_window_that_cannot_be_read_is_422_by_its_name() {
    let sandbox = Sandbox::start_with(quick()).await;
    named(&sandbox, "mine").await;
    for (query, status) in [
        ("window=-5m", 422),
        ("window=zzz", 422),
        ("bucket=zzz&anything=", 200),
    ] {
        let path = format!("/v1/endpoints/mine/activity?{query}");
        let reply = sandbox.get(&path).await;
        assert_eq!(reply.status, status, "{query}: {}", reply.text());
    }
    let reply = sandbox.get("/v1/endpoints/none/cost?window=zzz").await;
    assert_eq!(reply.status, 404);
}

#[tokio::test]
async fn a_fault_that_cannot_work_is_422_and_none_of_its_list_is_taken() {
    let sandbox = Sandbox::start().await;
    for fault in [
        json!({"status": 99}),
        json!({"status": 503, "retry_after": "1\n2"}),
        json!({"deploy_fails_at": "warmed"}),
    ] {
        let rules = json!([{"fault": {"status": 500}}, {"fault": fault}]);
        let reply = sandbox.post("/sandbox/faults", &[], &rules).await;
        assert_eq!(reply.status, 422, "{fault}: {}", reply.text());
    }
    let kept = sandbox.get("/sandbox/faults").await.json();
    assert_eq!(kept, json!({"rules": []}));
}

// Interface, Limits: "context window | 131,072 tokens per turn": prompt and completion.
#[tokio::test]
async fn a_turn_ends_where_the_window_does() {
    let sandbox = Sandbox::start().await;
    // A message costs 4 more, and `a ` is one token each.
    let text = "a ".repeat(131_072 - 4 - 2 - 1) + "a";
    let reply = sandbox
        .post(
            AGENT,
            &[],
            &with(ask(&text), "max_completion_tokens", json!(8192)),
        )
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let body = reply.json();
    assert_eq!(body["usage"]["total_tokens"], 131_072);
    assert_eq!(body["choices"][0]["finish_reason"], "length");
}

// Interface, Eval set: "any other row shape is rejected"
#[tokio::test]
async fn a_row_with_a_member_twice_is_refused() {
    let sandbox = Sandbox::start().await;
    let row =
        br#"{"input": {"t": "a"}, "expected_output": {"x": "1"}, "expected_output": {"x": "2"}}"#;
    let form = Form::default()
        .file("items", row)
        .field("prompt", "Tell x of the text.");
    let reply = form.post(&sandbox, SETS, "sandbox-key").await;
    assert_eq!(
        (
            reply.status,
            reply.text().contains("line 1: a key stands twice")
        ),
        (422, true),
        "{}",
        reply.text()
    );
}
