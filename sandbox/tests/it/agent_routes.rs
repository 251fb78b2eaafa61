//! The agent lane's routing, seen through model servers that take each place: which one got the turn, and
//! what.

use crate::{model_server::*, own_models::sandbox_with, support::*};
use serde_json::{Value, json};

const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A server for each route of the lane, each of which names itself.
async fn lane(server: &ModelServer) -> Sandbox {
    sandbox_with(&[
        server.model("specialist", "category = \"general-chat\"", says("general")),
        server.model("specialist", "category = \"coding\"", says("coding")),
        server.model("specialist", "category = \"vision\"", says("vision")),
        server.model("frontier", "", says("frontier")),
    ])
    .await
}

fn turn(messages: Value) -> Value {
    json!({"messages": messages, "temperature": 0})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn picture() -> Value {
    json!({"role": "user", "content": [
        {"type": "text", "text": "What is on it?"},
        {"type": "image_url", "image_url": {"url": PIXEL}},
    ]})
}

async fn route(sandbox: &Sandbox, headers: &[(&str, &str)], body: &Value) -> String {
    let reply = sandbox.post(AGENT, headers, body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.content()
}

// Interface, POST /agent/v1/chat/completions, Routing: "each turn is routed by shape (general reasoning,
// coding, vision)".
#[tokio::test]
async fn a_turn_is_routed_by_its_shape() {
    let server = ModelServer::start();
    let sandbox = lane(&server).await;
    let rows = [
        (user("Good morning"), "general"),
        (user("Summarize: rivers run."), "general"),
        (user("Fix this bug"), "coding"),
        (user("What is this?\n```\nx = 1\n```"), "coding"),
        (picture(), "vision"),
    ];

    for (n, (message, expected)) in rows.into_iter().enumerate() {
        let session = n.to_string();
        let session = [("X-Service-Session", session.as_str())];
        let got = route(&sandbox, &session, &turn(json!([message]))).await;
        assert_eq!(got, expected);
    }
}

// Interface, POST /agent/v1/chat/completions, X-Service-Session: "pins the conversation's route so
// consecutive turns do not re-derive routing"; "pins expire after about 30 minutes idle".
#[tokio::test]
async fn a_session_keeps_its_route_until_30_minutes_idle() {
    let server = ModelServer::start();
    let sandbox = lane(&server).await;
    let session = [("X-Service-Session", "s")];
    let coding = turn(json!([user("Fix this bug")]));
    let chat = turn(json!([user("Good morning")]));

    assert_eq!(route(&sandbox, &session, &coding).await, "coding");
    assert_eq!(route(&sandbox, &session, &chat).await, "coding");
    assert_eq!(
        route(&sandbox, &[("X-Service-Session", "t")], &chat).await,
        "general"
    );
    // Each turn restarts the 30 minutes.
    for _ in 0..3 {
        sandbox.control("clock", json!({"advance_s": 1799})).await;
        assert_eq!(route(&sandbox, &session, &chat).await, "coding");
    }
    sandbox.control("clock", json!({"advance_s": 1800})).await;
    assert_eq!(route(&sandbox, &session, &chat).await, "general");
}

// Interface, POST /agent/v1/chat/completions, X-Service-Session: "without it the pin key derives from
// organization + system prompt + tool-schema names".
#[tokio::test]
async fn without_a_session_the_pin_is_by_organization_system_prompt_and_tool_names() {
    let server = ModelServer::start();
    let general = server.model("specialist", "category = \"general-chat\"", says("general"));
    let coding = server.model("specialist", "category = \"coding\"", says("coding"));
    let second = "[[organization]]\nname = \"org-2\"\napi_key = \"second-key\"\n".to_owned();
    let sandbox = sandbox_with(&[general, coding, second]).await;
    let of = |system: &str, tool: &str, text: &str| {
        let tool = json!({"type": "function", "function": {"name": tool}});
        let mut body = turn(json!([{"role": "system", "content": system}, user(text)]));
        body["tools"] = json!([tool]);
        // So that the servers' plain text is an answer.
        body["tool_choice"] = json!("none");
        body
    };
    let none: [(&str, &str); 0] = [];

    assert_eq!(
        route(&sandbox, &none, &of("A", "zip", "Fix this bug")).await,
        "coding"
    );
    let rows = [
        (&none[..], of("A", "zip", "Good morning"), "coding"),
        (&none[..], of("B", "zip", "Good morning"), "general"),
        (&none[..], of("A", "zap", "Good morning"), "general"),
        (
            &[("Authorization", "Bearer second-key")][..],
            of("A", "zip", "Good morning"),
            "general",
        ),
    ];
    for (headers, body, expected) in rows {
        assert_eq!(route(&sandbox, headers, &body).await, expected, "{body}");
    }
}

// Interface, POST /agent/v1/chat/completions, X-Service-Session: "a modality change (an image turn in a text
// conversation) re-routes".
#[tokio::test]
async fn an_image_turn_re_routes_a_text_conversation_even_one_on_the_frontier() {
    let server = ModelServer::start();
    let sandbox = lane(&server).await;
    let session = [("X-Service-Session", "s")];
    let hard = turn(json!([user("hard: why?")]));

    for _ in 0..2 {
        assert_eq!(route(&sandbox, &session, &hard).await, "frontier");
    }
    let chat = turn(json!([user("Good morning")]));
    assert_eq!(route(&sandbox, &session, &chat).await, "frontier");
    let with_picture = turn(json!([user("Good morning"), picture()]));
    assert_eq!(route(&sandbox, &session, &with_picture).await, "vision");
    // The picture stays in the transcript: what serves must see it.
    let later = turn(json!([picture(), user("Thank you")]));
    assert_eq!(route(&sandbox, &session, &later).await, "vision");
    assert_eq!(route(&sandbox, &session, &chat).await, "general");
}

// Interface, POST /agent/v1/chat/completions, Routing: "A conversation that escalates repeatedly pins to the
// frontier route." Assumed (pin-escalations): twice.
#[tokio::test]
async fn a_conversation_that_escalated_twice_goes_straight_to_the_frontier() {
    let server = ModelServer::start();
    let sandbox = lane(&server).await;
    let session = [("X-Service-Session", "s")];
    let asked = async |text: &str| {
        let before = server.seen().await.len();
        let got = route(&sandbox, &session, &turn(json!([user(text)]))).await;
        (got, server.seen().await.len() - before)
    };

    assert_eq!(asked("hard: one").await, ("frontier".to_owned(), 2));
    assert_eq!(asked("Good morning").await, ("general".to_owned(), 1));
    assert_eq!(asked("hard: two").await, ("frontier".to_owned(), 2));
    assert_eq!(asked("Good morning").await, ("frontier".to_owned(), 1));
}

fn lookup_tool() -> Value {
    json!({"type": "function", "function": {"name": "lookup", "description": "Find a part", "strict": true,
        "parameters": {"type": "object", "required": ["part"], "properties": {"part": {"type": "string"}}}}})
}

fn call(name: &str, arguments: &str) -> Value {
    json!({"say": null, "finish": "tool_calls", "tool_calls": [
        {"id": "call_9", "type": "function", "function": {"name": name, "arguments": arguments}}]})
}

// Interface, POST /agent/v1/chat/completions: "A low-confidence turn is re-run on a frontier model with the
// tools intact"; "None of this changes the wire shape or the one-debit-per-turn billing". Assumed
// (agent-confidence).
#[tokio::test]
async fn a_turn_of_low_confidence_is_re_run_with_its_tools_intact_and_billed_once() {
    let server = ModelServer::start();
    let unlikely = json!({"say": "Perhaps.", "logprobs": {"content": [
        {"token": "Perhaps", "logprob": -2.0}, {"token": ".", "logprob": -0.1}]}});
    let likely =
        json!({"say": "Surely.", "logprobs": {"content": [{"token": "Surely.", "logprob": -0.1}]}});
    let rows = [
        (call("lookup", r#"{"part": 7}"#), true),
        (call("lookup", "part: P-1"), true),
        (call("delete_all", "{}"), true),
        (unlikely, true),
        (likely, false),
        (call("lookup", r#"{"part": "P-2"}"#), false),
    ];
    for (script, is_low) in rows {
        let before = server.seen().await.len();
        let sandbox = sandbox_with(&[
            server.model("specialist", "", script.clone()),
            server.model("frontier", "", call("lookup", r#"{"part": "P-1"}"#)),
        ])
        .await;
        let mut body = turn(json!([user("Please find it")]));
        body["tools"] = json!([lookup_tool()]);
        body["tool_choice"] = json!("auto");
        body["parallel_tool_calls"] = json!(false);
        body["logprobs"] = json!(true);

        let reply = sandbox.post(AGENT, &[], &body).await;

        assert_eq!(reply.status, 200, "{script}: {}", reply.text());
        let seen = server.seen().await.split_off(before);
        assert_eq!(seen.len(), 1 + usize::from(is_low), "{script}");
        for one in &seen {
            for field in ["messages", "tools", "tool_choice", "parallel_tool_calls"] {
                assert_eq!(one["body"][field], body[field], "{field}");
            }
        }
        if is_low {
            let called = &reply.json()["choices"][0]["message"]["tool_calls"][0];
            assert_eq!(called["function"]["arguments"], r#"{"part": "P-1"}"#);
        }
        assert_eq!(sandbox.debits().await, [reply.billed()]);
    }
}

// Interface, POST /agent/v1/chat/completions, messages: "full transcript …; nothing dropped or rewritten";
// "any other field: ignored, never a 400"; "`max_tokens` defaults to 8192 when omitted".
#[tokio::test]
async fn the_transcript_of_a_tool_loop_passes_through_and_unknown_fields_do_not() {
    let server = ModelServer::start();
    let sandbox = lane(&server).await;
    let messages = json!([
        {"role": "system", "content": "You find parts."},
        {"role": "user", "content": "Find P-1", "name": "ada"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "lookup", "arguments": "{\"part\":  \"P-1\"}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "shelf 4"},
    ]);
    let mut body = turn(messages.clone());
    body["tools"] = json!([lookup_tool()]);
    body["seed"] = json!(3);
    body["stop"] = json!(["\n\n"]);
    body["made_up"] = json!({"x": 1});
    body["user"] = json!("ada");

    let whole = sandbox.post(AGENT, &[], &body).await;
    let mut streamed = body.clone();
    streamed["stream"] = json!(true);
    streamed["stream_options"] = json!({"include_usage": false});
    let stream = sandbox.post(AGENT, &[], &streamed).await;

    assert_eq!(whole.status, 200, "{}", whole.text());
    assert!(stream.chunks().last().unwrap()["usage"].is_object());
    for one in server.seen().await {
        let sent = &one["body"];
        assert_eq!(sent["messages"], messages);
        assert_eq!(sent["tools"], body["tools"]);
        assert_eq!(sent["seed"], 3);
        assert_eq!(sent["stop"], json!(["\n\n"]));
        assert_eq!(sent["max_tokens"], 8192);
        assert!(sent.get("made_up").is_none() && sent.get("user").is_none());
    }
    let mut limited = body.clone();
    limited["max_completion_tokens"] = json!(9);
    sandbox.post(AGENT, &[], &limited).await;
    let last = server.seen().await.pop().unwrap();
    assert_eq!(last["body"]["max_completion_tokens"], 9);
    assert!(last["body"].get("max_tokens").is_none());
}

// Interface, Limits: "context window, 131,072 tokens per turn, agent lane". Assumed (context-window): 400.
#[tokio::test]
async fn a_transcript_that_fills_the_window_is_400_and_one_within_is_served() {
    let server = ModelServer::start();
    let sandbox = lane(&server).await;
    // A message costs 4 more, and `a ` is one token each.
    for (tokens, status) in [(131_072 - 5, 200), (131_072 - 4, 400)] {
        let text = "a ".repeat(tokens - 1) + "a";
        let reply = sandbox.post(AGENT, &[], &turn(json!([user(&text)]))).await;
        assert_eq!(reply.status, status, "{tokens}");
    }
    assert_eq!(sandbox.debits().await.len(), 1);
}

// Interface, Errors: 502 "on the agent lane, a turn that could not complete (never a raw 500)".
#[tokio::test]
async fn a_turn_that_cannot_complete_is_502() {
    let server = ModelServer::start();
    let sandbox = sandbox_with(&[
        server.model("specialist", "", call("lookup", "{}")),
        server.model("frontier", "", json!({"status": 500})),
    ])
    .await;
    let mut body = turn(json!([user("Please find it")]));
    body["tools"] = json!([lookup_tool()]);

    for stream in [false, true] {
        body["stream"] = json!(stream);
        let reply = sandbox.post(AGENT, &[], &body).await;
        assert_eq!(reply.status, 502, "{}", reply.text());
        assert!(reply.json()["detail"].is_string());
    }
    assert_eq!(sandbox.debits().await, Vec::<i64>::new());
}
