//! Requests in other dialects are one purchase of a chat completion: sent translated, billed once, answered in the
//! app's own form.
// Tables are spelled where they are read.
#![allow(clippy::type_complexity)]

mod allocations;
pub mod errors;
mod explained;
mod live;
mod memory;
mod repeats;

use bursar::ledger::entry::State;
use bursar::money::MicroUsd;
use bursar::protocol::Dialect;
use serde_json::{Value, json};

use crate::support::origin;
use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Sandbox, Step};

const RESPONSES: &str = "/v1/responses";
const AGENT_RESPONSES: &str = "/agent/v1/responses";
const MESSAGES: &str = "/agent/v1/messages";

/// Each translated route, the service's route that it is sent to, and its dialect.
const ROUTES: [(&str, &str, Dialect); 3] = [
    (RESPONSES, "/v1/chat/completions", Dialect::Responses),
    (
        AGENT_RESPONSES,
        "/agent/v1/chat/completions",
        Dialect::Responses,
    ),
    (MESSAGES, "/agent/v1/chat/completions", Dialect::Messages),
];

/// A request in the dialect of a route.
fn asks(path: &str, prompt: &str, stream: bool) -> String {
    match path {
        MESSAGES => json!({
            "model": "auto", "max_tokens": 100, "stream": stream,
            "messages": [{"role": "user", "content": prompt}],
        }),
        _ => json!({"model": "auto", "stream": stream, "input": prompt}),
    }
    .to_string()
}

/// The service's whole answer, with its price.
pub fn answers(billed: u64, text: &str) -> Vec<u8> {
    let body = json!({
        "id": "chatcmpl-9", "object": "chat.completion", "created": 1_700_000_000, "model": "auto",
        "choices": [{
            "index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop",
        }],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    });
    let headers = [
        ("X-Service-Billed", &*billed.to_string()),
        ("X-Service-Served-By", "specialist"),
    ];
    origin::json(200, &headers, &body.to_string())
}

async fn ask(bursar: &Bursar, path: &str, body: &str, headers: &[(&str, &str)]) -> Answer {
    let mut wire = bursar.connect().await;
    wire.send(request("POST", path, headers, body)).await;
    wire.answer().await
}

/// The text of an answer, in whichever form it is given.
fn text_of(path: &str, answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.complete, "{}", answer.text());
    let kind = answer.header("content-type").expect("a type");
    let document = if kind.starts_with("text/event-stream") {
        return events(answer).iter().filter_map(delta).collect();
    } else {
        answer.json()
    };
    match path {
        MESSAGES => document["content"][0]["text"]
            .as_str()
            .expect("a text")
            .to_owned(),
        _ => document["output"][0]["content"][0]["text"]
            .as_str()
            .expect("a text")
            .to_owned(),
    }
}

/// The events of a stream, each with the name that its `event:` line has.
fn events(answer: &Answer) -> Vec<Value> {
    let text = answer.text();
    let events = text.split_terminator("\n\n").map(|event| {
        let (name, data) = event.split_once('\n').expect("two lines");
        let name = name.strip_prefix("event: ").expect("a name");
        let data = data.strip_prefix("data: ").expect("data");
        let data: Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(data["type"], name);
        data
    });
    events.collect()
}

fn delta(event: &Value) -> Option<String> {
    let text = match event["type"].as_str()? {
        "response.output_text.delta" => &event["delta"],
        "content_block_delta" => &event["delta"]["text"],
        _ => return None,
    };
    text.as_str().map(str::to_owned)
}

fn settled(amount: u64) -> State {
    State::Settled {
        billed: MicroUsd::new(amount),
    }
}

#[tokio::test]
async fn a_request_goes_to_the_services_route_as_a_chat_completion_and_is_billed_once() {
    for (path, service, dialect) in ROUTES {
        for stream in [false, true] {
            let origin = Origin::start([Step::Answer(answers(1234, "Fine, thank you."))]).await;
            let bursar = Bursar::before(&origin.url()).await;

            let answer = ask(&bursar, path, &asks(path, "How are you?", stream), &[]).await;

            assert_eq!(
                text_of(path, &answer),
                "Fine, thank you.",
                "{path} {stream}"
            );
            let [sent] = &origin.received()[..] else {
                panic!("{path}: {} requests", origin.received().len());
            };
            assert_eq!(sent.request_line(), format!("POST {service} HTTP/1.1"));
            let body: Value = serde_json::from_slice(&sent.body).expect("JSON");
            assert_eq!(body["messages"][0]["content"], "How are you?", "{body}");
            assert_ne!(body["stream"], true, "{path}: asked whole");
            assert!(sent.header("idempotency-key").is_some());
            let entry = bursar.entry_of(&answer);
            assert_eq!(entry.state, settled(1234), "{path}");
            assert_eq!(entry.spoken, dialect);
            assert_eq!(entry.stream, Some(stream), "{path}: what the app asked for");
            assert_eq!(answer.header("x-service-billed"), Some("1234"));
        }
    }
}

/// What an answer of this route says of tokens and cost.
fn usage(path: &str, answer: &Answer, is_stream: bool) -> Value {
    match (path, is_stream) {
        (_, false) => answer.json()["usage"].clone(),
        (MESSAGES, true) => events(answer)
            .iter()
            .find(|event| event["type"] == "message_delta")
            .expect("a message_delta")["usage"]
            .clone(),
        (_, true) => events(answer).last().expect("an event")["response"]["usage"].clone(),
    }
}

#[tokio::test]
async fn the_exact_price_is_in_the_answer_before_its_end() {
    for (path, ..) in ROUTES {
        for stream in [false, true] {
            for (billed, cost) in [(1234, "0.001234"), (0, "0"), (2_500_000, "2.5")] {
                let origin = Origin::start([Step::Answer(answers(billed, "x"))]).await;
                let bursar = Bursar::before(&origin.url()).await;
                let answer = ask(&bursar, path, &asks(path, "price?", stream), &[]).await;
                let usage = usage(path, &answer, stream);
                let said: f64 = usage["cost"].as_f64().expect("a cost");
                assert_eq!(
                    said,
                    cost.parse::<f64>().expect("a number"),
                    "{path} {stream}"
                );
                assert!(!answer.text().contains("e-"), "no exponent");
            }
            // A price that is not known is absent.
            let body = json!({"choices": [{"index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": "x"}}]});
            let origin =
                Origin::start([Step::Answer(origin::json(200, &[], &body.to_string()))]).await;
            let bursar = Bursar::before(&origin.url()).await;
            let answer = ask(&bursar, path, &asks(path, "price?", stream), &[]).await;
            assert_eq!(usage(path, &answer, stream).get("cost"), None, "{path}");
        }
    }
}

#[tokio::test]
async fn an_app_that_wants_no_cost_in_usage_gets_none_on_translated_routes_either() {
    let off = "[[app]]\nname = \"default\"\ncost_in_usage = false\n";
    for (path, ..) in ROUTES {
        for stream in [false, true] {
            let origin = Origin::start([Step::Answer(answers(1234, "x"))]).await;
            let bursar = Bursar::with(&origin.url(), off).await;
            let answer = ask(&bursar, path, &asks(path, "price?", stream), &[]).await;
            assert_eq!(text_of(path, &answer), "x", "{path} {stream}");
            let usage = usage(path, &answer, stream);
            assert!(usage.is_object(), "{path} {stream}: {usage}");
            assert_eq!(usage.get("cost"), None, "{path} {stream}");
            assert_eq!(bursar.entry_of(&answer).state, settled(1234), "{path}");
        }
    }
}

#[tokio::test]
async fn a_translated_turn_is_pinned_to_its_session_as_an_untranslated_one_is() {
    let named = [
        "X-Claude-Code-Session-Id",
        "session-id",
        "X-Service-Session",
    ];
    for (path, ..) in ROUTES {
        for name in named {
            let origin = Origin::always(Step::Answer(answers(5, "x"))).await;
            let bursar = Bursar::before(&origin.url()).await;
            for id in ["0190a6c1-first", "0190a6c1-second"] {
                let answer = ask(&bursar, path, &asks(path, "hi", false), &[(name, id)]).await;
                assert_eq!(answer.status, 200, "{}", answer.text());
                let session = bursar.entry_of(&answer).session.expect("a session");
                let received = origin.received().pop().expect("a request");
                let wanted = match name {
                    "X-Service-Session" => Some(id.to_owned()),
                    _ if path.starts_with("/agent") => Some(session.hash.to_string()),
                    _ => None,
                };
                let sent = received.header("x-service-session").map(str::to_owned);
                assert_eq!(sent, wanted, "{path} {name}");
                if name != "X-Service-Session" {
                    assert!(!received.head.contains(id), "{path} {name}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_query_for_the_services_routing_goes_along_and_another_one_is_another_purchase() {
    const NAME: &str = "X-Service-RTE-Query";
    for (path, ..) in ROUTES {
        let origin = Origin::always(Step::Answer(answers(5, "x"))).await;
        let bursar = Bursar::before(&origin.url()).await;
        for query in ["one", "two"] {
            let headers = [(NAME, query), ("Idempotency-Key", query)];
            let answer = ask(&bursar, path, &asks(path, "hi", false), &headers).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            let sent = origin.received().pop().expect("a request");
            assert_eq!(sent.header("x-service-rte-query"), Some(query), "{path}");
        }
        // The key is bound to it, so this is no repeat: the service decides, and bursar has no answer of its own.
        let headers = [(NAME, "three"), ("Idempotency-Key", "two")];
        ask(&bursar, path, &asks(path, "hi", false), &headers).await;
        let sent = origin.received().pop().expect("a request");
        assert_eq!(origin.received().len(), 3, "{path}");
        assert_eq!(sent.header("idempotency-key"), Some("two"), "{path}");
        assert_eq!(sent.header("x-service-rte-query"), Some("three"), "{path}");
    }
}

#[tokio::test]
async fn a_session_is_stopped_at_its_cap_in_the_apps_own_form_before_anything_is_sent() {
    let app = "[caps]\nrequest_floor_micro_usd = 1\n[[app]]\nname = \"default\"\nsession_cap_micro_usd = 100\n";
    for (path, ..) in ROUTES {
        let origin = Origin::always(Step::Answer(answers(60, "x"))).await;
        let bursar = Bursar::with(&origin.url(), app).await;
        let of = |session| [("session-id", session)];
        for (prompt, stream) in [("first", false), ("second", true)] {
            let answer = ask(&bursar, path, &asks(path, prompt, stream), &of("0190-one")).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        }
        for stream in [false, true] {
            let stopped = ask(&bursar, path, &asks(path, "third", stream), &of("0190-one")).await;
            assert_eq!(stopped.status, 402, "{path}: {}", stopped.text());
            assert_eq!(stopped.header("x-should-retry"), Some("false"), "{path}");
            let document = stopped.json();
            let kind = if path == MESSAGES { "error" } else { "" };
            assert_eq!(
                document["type"].as_str().unwrap_or_default(),
                kind,
                "{path}"
            );
            let text = stopped.text();
            assert!(text.contains("session_cap_reached"), "{path}: {text}");
        }
        assert_eq!(origin.received().len(), 2, "{path}");
        let other = ask(&bursar, path, &asks(path, "third", false), &of("0190-two")).await;
        assert_eq!(other.status, 200, "{path}: {}", other.text());
    }
}

#[tokio::test]
async fn of_the_apps_headers_only_what_is_for_the_service_goes_there() {
    let origin = Origin::start([Step::Answer(answers(5, "x"))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let headers = [
        ("anthropic-version", "2023-06-01"),
        ("anthropic-beta", "claude-code-20250219"),
        ("x-api-key", "whatever"),
        ("openai-organization", "org-1"),
        ("x-app", "cli"),
        ("user-agent", "claude-cli/2.1.197 (external, sdk-cli)"),
        ("cookie", "a=b"),
        (
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ),
        ("x-service-session", "s-1"),
        ("accept", "text/event-stream"),
    ];
    let path = format!("{MESSAGES}?beta=true");

    let answer = ask(&bursar, &path, &asks(MESSAGES, "hi", false), &headers).await;

    assert_eq!(answer.status, 200, "{}", answer.text());
    let received = origin.received();
    let sent = &received[0];
    assert_eq!(
        sent.request_line(),
        "POST /agent/v1/chat/completions HTTP/1.1"
    );
    for (name, stays) in [
        ("anthropic-version", false),
        ("anthropic-beta", false),
        ("x-api-key", false),
        ("openai-organization", false),
        ("x-app", false),
        ("user-agent", false),
        ("cookie", false),
        ("traceparent", true),
        ("x-service-session", true),
    ] {
        assert_eq!(sent.header(name).is_some(), stays, "{name}");
    }
    assert_eq!(sent.header("accept"), Some("application/json"));
}

#[tokio::test]
async fn the_sandboxs_books_and_the_ledger_agree_over_all_dialects() {
    let sandbox = Sandbox::start().await;
    let bursar = Bursar::before(&sandbox.url()).await;
    for (path, ..) in ROUTES {
        for (at, stream) in [false, true].into_iter().enumerate() {
            let prompt = format!("What is the capital of France? ({path} {at})");
            let answer = ask(&bursar, path, &asks(path, &prompt, stream), &[]).await;
            assert!(!text_of(path, &answer).is_empty(), "{path}");
        }
    }
    assert_eq!(sandbox.debits().await.len(), 6);
    assert!(sandbox.debited().await > 0);
    assert_eq!(bursar.billed(), sandbox.debited().await);
}

#[tokio::test]
async fn what_was_left_out_is_in_the_ledger() {
    let origin = Origin::start([Step::Answer(answers(5, "x"))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let body = json!({
        "model": "auto", "max_tokens": 9, "top_k": 5,
        "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": "hi"}],
    });

    let answer = ask(&bursar, MESSAGES, &body.to_string(), &[]).await;

    let dropped = bursar.entry_of(&answer).dropped;
    let names: Vec<&str> = dropped.iter().map(|(name, _)| name).collect();
    assert!(names.iter().any(|name| name.contains("top_k")), "{names:?}");
    assert!(
        names.iter().any(|name| name.contains("cache_control")),
        "{names:?}"
    );
    let sent: Value = serde_json::from_slice(&origin.received()[0].body).expect("JSON");
    assert_eq!(sent.get("top_k"), None);
}

#[tokio::test]
async fn a_model_alias_applies_and_the_answer_names_the_model_that_was_asked_for() {
    let lines = "[models]\naliases = { \"*\" = \"auto\" }\n";
    for (path, ..) in ROUTES {
        let origin = Origin::start([Step::Answer(answers(5, "x"))]).await;
        let bursar = Bursar::with(&origin.url(), lines).await;
        let body = asks(path, "hi", false).replace("\"auto\"", "\"some-model-5\"");

        let answer = ask(&bursar, path, &body, &[]).await;

        let sent: Value = serde_json::from_slice(&origin.received()[0].body).expect("JSON");
        assert_eq!(sent["model"], "auto", "{path}");
        assert_eq!(answer.json()["model"], "some-model-5", "{path}");
    }
}

#[tokio::test]
async fn a_call_that_was_cut_behind_its_name_is_offered_in_no_form() {
    for (path, ..) in ROUTES {
        for finish in ["length", "content_filter"] {
            for stream in [false, true] {
                let call = json!({"id": "call_1", "type": "function",
                    "function": {"name": "clean_up", "arguments": ""}});
                let body = json!({"choices": [{"index": 0, "finish_reason": finish, "message":
                    {"role": "assistant", "content": "I do.", "tool_calls": [call]}}]});
                let answered = origin::json(200, &[("X-Service-Billed", "5")], &body.to_string());
                let origin = Origin::start([Step::Answer(answered)]).await;
                let bursar = Bursar::before(&origin.url()).await;
                let mut asked: Value =
                    serde_json::from_str(&asks(path, "clean up", stream)).expect("JSON");
                asked["tools"] = match path {
                    MESSAGES => json!([{"name": "clean_up", "input_schema": {"type": "object"}}]),
                    _ => {
                        json!([{"type": "function", "name": "clean_up", "parameters": {"type": "object"}}])
                    }
                };

                let answer = ask(&bursar, path, &asked.to_string(), &[]).await;

                assert_eq!(text_of(path, &answer), "I do.", "{path} {finish} {stream}");
                for kind in ["tool_use", "function_call", "call_1"] {
                    assert!(!answer.text().contains(kind), "{path}: {}", answer.text());
                }
                assert_eq!(bursar.entry_of(&answer).state, settled(5), "{path}");
            }
        }
    }
}

#[tokio::test]
async fn without_translation_the_routes_are_refused_and_nothing_is_sent() {
    let origin = Origin::start([]).await;
    let bursar = Bursar::with(&origin.url(), "[models]\ntranslate = false\n").await;
    for (path, ..) in ROUTES {
        let answer = ask(&bursar, path, &asks(path, "hi", false), &[]).await;
        assert_eq!(answer.status, 404, "{path}");
    }
    assert!(origin.received().is_empty());
    assert!(bursar.entries().is_empty());
}
