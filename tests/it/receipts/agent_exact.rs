//! `[streams] agent_receipts = "exact"`: an agent turn that an app wants as a stream is requested
//! whole, so that it has a price, and sent as the stream it would have been.

use bursar::ledger::entry::State;
use serde_json::{Value, json};

use super::settled;
use crate::support::origin::{billed, chunk, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Sandbox, Step, chat_stream, eventually};

const AGENT: &str = "/agent/v1/chat/completions";
const EXACT: &str = "[streams]\nagent_receipts = \"exact\"\n";

async fn exact(upstream: &str) -> Bursar {
    Bursar::with(upstream, EXACT).await
}

fn turn(message: Value) -> Value {
    json!({
        "id": "chatcmpl-9", "object": "chat.completion", "created": 1_700_000_000, "model": "auto",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    })
}

fn answer(headers: &[(&str, &str)], body: &Value) -> Vec<u8> {
    crate::support::origin::json(200, headers, &body.to_string())
}

/// The chunks of a stream that ended as it should.
fn chunks(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.complete, "{}", answer.text());
    let kind = answer.header("content-type").expect("a type");
    assert!(kind.starts_with("text/event-stream"), "{kind}");
    let text = answer.text();
    let events = text.strip_suffix("data: [DONE]\n\n").expect("the end mark");
    events
        .split_terminator("\n\n")
        .map(|event| event.strip_prefix("data: ").expect("a data line"))
        .map(|event| serde_json::from_str(event).expect("JSON"))
        .collect()
}

/// The parts of one member in all chunks, joined.
fn text_of(chunks: &[Value], pointer: &str) -> String {
    chunks
        .iter()
        .filter_map(|chunk| chunk.pointer(pointer)?.as_str())
        .collect()
}

#[tokio::test]
async fn a_streamed_turn_is_billed_to_the_micro_dollar() {
    let weather = json!([{"type": "function", "function": {"name": "weather", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
    }}}]);
    let rows = [
        ("content", json!({})),
        (
            "a tool call",
            json!({"tools": weather, "tool_choice": "required"}),
        ),
        (
            "escalated",
            json!({"messages": [{"role": "user", "content": "hard: prove it"}]}),
        ),
        (
            "usage asked for",
            json!({"stream_options": {"include_usage": true}}),
        ),
        ("cut short", json!({"max_tokens": 2})),
    ];
    let sandbox = Sandbox::start().await;
    let bursar = exact(&sandbox.url()).await;
    for (at, (name, more)) in rows.into_iter().enumerate() {
        let mut body = json!({
            "model": "auto", "stream": true,
            "messages": [{"role": "user", "content": "What is the weather in Oslo?"}],
        });
        let members = more.as_object().expect("members").clone();
        body.as_object_mut().expect("members").extend(members);
        let answer = bursar.post(AGENT, &body.to_string()).await;
        let chunks = chunks(&answer);

        let debit = sandbox.debits().await[at].clone();
        let amount = debit["amount_micro_usd"].as_u64().expect("an amount");
        let entry = bursar.entry_of(&answer);
        assert_eq!(entry.state, settled(amount), "{name}");
        assert!(amount > 0, "{name}");
        assert_eq!(debit["stream"], false, "{name}: asked whole");
        assert_eq!(debit["key"].as_str(), entry.key.as_deref(), "{name}");
        assert_eq!(entry.stream, Some(true), "{name}: what the app wanted");
        assert_eq!(
            answer.header("x-service-billed"),
            Some(&*amount.to_string())
        );

        assert_eq!(
            chunks[0]["choices"][0]["delta"]["role"], "assistant",
            "{name}"
        );
        let content = text_of(&chunks, "/choices/0/delta/content");
        let arguments = text_of(&chunks, "/choices/0/delta/tool_calls/0/function/arguments");
        if name == "a tool call" {
            let arguments: Value = serde_json::from_str(&arguments).expect("JSON");
            assert!(arguments["city"].is_string(), "{name}: {arguments}");
        } else {
            assert!(!content.is_empty(), "{name}");
        }
        let usage = &chunks.last().expect("a chunk")["usage"];
        assert_eq!(
            usage["completion_tokens"].as_u64(),
            entry.usage.completion_tokens
        );
        let finish = text_of(&chunks, "/choices/0/finish_reason");
        assert_eq!(finish == "length", name == "cut short", "{name}: {finish}");
    }
    assert_eq!(bursar.billed(), sandbox.debited().await);
    let streams = bursar.metric("bursar_requests_total", "stream=\"true\"");
    assert!((streams - 5.0).abs() < 0.1, "{streams}");
}

/// The message that the app puts together equals the service's.
#[tokio::test]
async fn the_whole_message_arrives() {
    let long = "ü\n\"x\" ".repeat(40_000);
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": long}});
    let message = json!({
        "role": "assistant", "reasoning_content": "why", "content": long, "refusal": null,
        "tool_calls": [call], "novelty": {"a": 1.50},
    });
    let origin = Origin::start([Step::Answer(answer(
        &[("X-Service-Billed", "7"), ("X-Service-Escalated", "true")],
        &turn(message),
    ))])
    .await;
    let bursar = exact(&origin.url()).await;
    let answer = bursar.post(AGENT, &chat_stream("hi")).await;
    let chunks = chunks(&answer);

    let at = "/choices/0/delta";
    assert_eq!(text_of(&chunks, &format!("{at}/content")), long);
    assert_eq!(text_of(&chunks, &format!("{at}/reasoning_content")), "why");
    let call = format!("{at}/tool_calls/0");
    assert_eq!(text_of(&chunks, &format!("{call}/id")), "c1");
    assert_eq!(text_of(&chunks, &format!("{call}/function/name")), "f");
    assert_eq!(
        text_of(&chunks, &format!("{call}/function/arguments")),
        long
    );
    let novelty = chunks
        .iter()
        .find_map(|chunk| chunk.pointer(&format!("{at}/novelty")));
    assert_eq!(novelty, Some(&json!({"a": 1.5})));
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk["id"] == "chatcmpl-9" && chunk["model"] == "auto")
    );
    assert_eq!(answer.header("x-service-escalated"), Some("true"));
    let entry = bursar.entry_of(&answer);
    assert_eq!(entry.escalated, bursar::protocol::Escalated::True);
}

/// Rule I8: of the body only the wish for a stream changes, and only on this lane and setting.
#[tokio::test]
async fn only_the_wish_for_a_stream_changes() {
    let wish =
        r#"{ "model":"m", "stream" : true, "n":1.0, "stream_options":{"include_usage":true} }"#;
    let whole = r#"{ "model":"auto", "stream" : false, "n":1.0 }"#;
    let alias =
        r#"{ "model":"auto", "stream" : true, "n":1.0, "stream_options":{"include_usage":true} }"#;
    let no_wish = r#"{ "model":"auto", "stream" : false , "stream_options":null}"#;
    let twice = r#"{"model":"auto","stream":true,"stream":true}"#;
    let chat = "/v1/chat/completions";
    let unreported = "[streams]\nagent_receipts = \"unreported\"\n";
    let rows = [
        (EXACT, AGENT, wish, whole, "application/json"),
        (EXACT, AGENT, no_wish, no_wish, "text/event-stream"),
        (EXACT, AGENT, twice, twice, "text/event-stream"),
        (EXACT, chat, wish, alias, "text/event-stream"),
        (unreported, AGENT, wish, alias, "text/event-stream"),
        ("", AGENT, wish, alias, "text/event-stream"),
    ];
    for (streams, path, sent, wanted, accept) in rows {
        let origin = Origin::always(Step::Answer(billed(7))).await;
        let lines = format!("{streams}[models]\naliases = {{ m = \"auto\" }}\n");
        let bursar = Bursar::with(&origin.url(), &lines).await;
        let mut wire = bursar.connect().await;
        let headers = [("Accept", "text/event-stream")];
        wire.send(request("POST", path, &headers, sent)).await;
        wire.answer().await;
        let received = &origin.received()[0];
        let body = String::from_utf8_lossy(&received.body).into_owned();
        assert_eq!(body, wanted, "{streams} {path}");
        assert_eq!(received.header("accept"), Some(accept), "{streams} {path}");
        let length = wanted.len().to_string();
        assert_eq!(received.header("content-length"), Some(&*length));
    }
}

/// An error is sent with its status, before anything else; and it is retried like any other.
#[tokio::test]
async fn an_error_stays_an_error() {
    for status in [400, 401, 402, 404, 422, 429, 503] {
        let error = crate::support::origin::json(status, &[], r#"{"detail":"no such luck"}"#);
        let origin = Origin::always(Step::Answer(error)).await;
        let bursar = exact(&origin.url()).await;
        let answer = bursar.post(AGENT, &chat_stream("hi")).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let document = answer.json();
        assert_eq!(document["detail"], "no such luck", "{status}");
        let message = document["error"]["message"].as_str().expect("a message");
        // If the key or the balance was refused, a hint follows the service's text.
        assert!(message.starts_with("no such luck"), "{message}");
        assert_eq!(bursar.entry_of(&answer).state, State::Failed, "{status}");
        let attempts = if matches!(status, 429 | 503) { 3 } else { 1 };
        assert_eq!(origin.received().len(), attempts, "{status}");
    }
}

/// A turn that broke is requested again under its key, because nothing was sent to the app.
#[tokio::test]
async fn a_broken_turn_is_repeated() {
    let whole = answer(&[("X-Service-Billed", "7")], &turn(json!({"content": "x"})));
    let half = whole[..whole.len() / 2].to_vec();
    let origin = Origin::start([Step::AnswerAndClose(half), Step::Answer(whole)]).await;
    let bursar = exact(&origin.url()).await;
    let answer = bursar.post(AGENT, &chat_stream("hi")).await;
    assert_eq!(text_of(&chunks(&answer), "/choices/0/delta/content"), "x");
    let received = origin.received();
    assert_eq!(received[0].body, received[1].body, "rule I6");
    let key = |at: usize| received[at].header("idempotency-key").map(str::to_owned);
    assert!(key(0).is_some() && key(0) == key(1));
    assert_eq!(bursar.billed(), 7);
}

/// The amount in the head is the receipt, whatever it is.
#[tokio::test]
async fn the_receipt_is_that_of_the_head() {
    type Headers = &'static [(&'static str, &'static str)];
    let rows: [(&str, Headers, State); 5] = [
        ("an amount", &[("X-Service-Billed", "12")], settled(12)),
        ("none", &[], State::Unreported),
        (
            "no amount",
            &[("X-Service-Billed", "1.5")],
            State::Unreported,
        ),
        (
            "a replay",
            &[("X-Service-Billed", "0"), ("Idempotent-Replayed", "true")],
            super::LOST_AMOUNT,
        ),
        (
            "a clarification",
            &[
                ("X-Service-Billed", "0"),
                ("X-Service-Served-By", "none"),
                ("X-Service-Input-Required", "document"),
            ],
            settled(0),
        ),
    ];
    for (name, headers, state) in rows {
        let message = json!({"role": "assistant", "content": "Which document?"});
        let origin = Origin::start([Step::Answer(answer(headers, &turn(message)))]).await;
        let bursar = exact(&origin.url()).await;
        let answer = bursar.post(AGENT, &chat_stream("hi")).await;
        let content = text_of(&chunks(&answer), "/choices/0/delta/content");
        assert_eq!(content, "Which document?", "{name}");
        assert_eq!(bursar.entry_of(&answer).state, state, "{name}");
        for (header, value) in headers {
            let header = header.to_ascii_lowercase();
            assert_eq!(answer.header(&header), Some(*value), "{name}: {header}");
        }
    }
}

/// An answer that cannot be made into a stream passes as it is: one that is a stream already, or
/// not a completion.
#[tokio::test]
async fn what_is_no_whole_turn_passes_as_it_is() {
    let stream = [
        stream_head(),
        chunk("data: {\"n\":1}\n\ndata: [DONE]\n\n"),
        last_chunk(),
    ]
    .concat();
    let rows = [
        (
            stream,
            "text/event-stream",
            "data: {\"n\":1}\n\ndata: [DONE]\n\n",
        ),
        (
            answer(&[], &json!({"choices": 7})),
            "application/json",
            r#"{"choices":7}"#,
        ),
    ];
    for (bytes, kind, text) in rows {
        let origin = Origin::start([Step::Answer(bytes)]).await;
        let bursar = exact(&origin.url()).await;
        let answer = bursar.post(AGENT, &chat_stream("hi")).await;
        assert_eq!((answer.status, answer.complete), (200, true));
        assert_eq!(answer.header("content-type"), Some(kind));
        assert_eq!(answer.text(), text);
        assert_eq!(bursar.entry_of(&answer).state, State::Unreported, "{kind}");
    }
}

/// A turn larger than other answers that are read whole is streamed as well; beyond 16 MiB the app
/// gets an error, and the amount is kept.
#[tokio::test]
async fn a_large_turn_is_a_stream_and_one_beyond_all_bounds_an_error() {
    for (mib, fits) in [(3, true), (17, false)] {
        let content = "y".repeat(mib * 1024 * 1024);
        let message = json!({"role": "assistant", "content": content});
        let whole = answer(&[("X-Service-Billed", "7")], &turn(message));
        let origin = Origin::start([Step::Answer(whole)]).await;
        let bursar = exact(&origin.url()).await;
        let answer = bursar.post(AGENT, &chat_stream("hi")).await;
        if fits {
            let found = text_of(&chunks(&answer), "/choices/0/delta/content");
            assert!(found == content, "{mib} MiB");
        } else {
            assert_eq!(
                (answer.status, answer.code()),
                (502, Some("upstream_broken"))
            );
        }
        assert_eq!(bursar.entry_of(&answer).state, settled(7), "{mib} MiB");
    }
}

/// An app's own retry is recognised, and gets a stream; a request for the same turn whole is a
/// different one, although the service sees the same bytes.
#[tokio::test]
async fn a_retry_gets_the_stream_of_its_first_try() {
    let first = answer(
        &[("X-Service-Billed", "7")],
        &turn(json!({"content": "first"})),
    );
    let origin = Origin::start([Step::Pieces(vec![first]), Step::Answer(billed(8))]).await;
    let bursar = exact(&origin.url()).await;
    let wish = r#"{"model":"auto","stream":true,"messages":[]}"#;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", AGENT, &[], wish)).await;
    eventually("the service to receive", || async {
        (!origin.received().is_empty()).then_some(())
    })
    .await;
    drop(wire);
    eventually("the app to have left", || async {
        (bursar.metric("bursar_client_disconnects_total", "") > 0.5).then_some(())
    })
    .await;
    let whole = bursar.post(AGENT, &wish.replace("true", "false")).await;
    assert_eq!(whole.header("content-type"), Some("application/json"));
    assert_eq!(
        whole.header("x-service-billed"),
        Some("8"),
        "a purchase of its own"
    );
    let received = origin.received();
    assert_eq!(received[0].body, received[1].body);

    let mut retry = bursar.connect().await;
    retry.send(request("POST", AGENT, &[], wish)).await;
    eventually("the retry to join", || async {
        (bursar.metric("bursar_joined_retries_total", "") > 0.5).then_some(())
    })
    .await;
    origin.go();
    let joined = retry.answer().await;
    assert_eq!(
        text_of(&chunks(&joined), "/choices/0/delta/content"),
        "first"
    );
    assert_eq!(joined.header("x-service-billed"), Some("7"));
    assert_eq!(origin.received().len(), 2, "two purchases in all");
    assert_eq!(bursar.settled(2).await.len(), 2);
}

#[tokio::test]
async fn an_http_1_0_app_and_one_on_a_unix_socket_get_it_too() {
    let whole = answer(&[("X-Service-Billed", "7")], &turn(json!({"content": "x"})));
    let origin = Origin::always(Step::Answer(whole)).await;
    let bursar = exact(&origin.url()).await;
    let text = request("POST", AGENT, &[], &chat_stream("hi"));
    let mut old = bursar.connect().await;
    old.send(text.replacen("HTTP/1.1", "HTTP/1.0", 1)).await;
    let mut local = crate::support::Wire::unix(&bursar.socket).await;
    local.send(&text).await;
    for wire in [&mut old, &mut local] {
        let found = chunks(&wire.answer().await);
        assert_eq!(text_of(&found, "/choices/0/delta/content"), "x");
    }
}
