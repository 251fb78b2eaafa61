//! Model servers of the user's own behind `auto`: streams.

use crate::{model_server::*, own_models::sandbox_with, support::*};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

fn stream_with_usage(text: &str) -> Value {
    with(
        ask_stream(text),
        "stream_options",
        json!({"include_usage": true}),
    )
}

/// Reads until the text is there; what was read.
pub async fn read_until(socket: &mut tokio::net::TcpStream, wanted: &str) -> String {
    within(async {
        let mut read = Vec::new();
        while !String::from_utf8_lossy(&read).contains(wanted) {
            let mut some = [0; 4096];
            let n = socket.read(&mut some).await.unwrap();
            assert!(n > 0, "the stream ended before {wanted}");
            read.extend_from_slice(&some[..n]);
        }
        String::from_utf8_lossy(&read).into_owned()
    })
    .await
}

// Interface, POST /v1/chat/completions, Streaming: "Each `data:` line is one JSON chunk"; "receipt values
// ride as SSE comment lines just before `[DONE]`".
#[tokio::test]
async fn a_stream_is_relayed_while_it_is_written_and_billed_by_the_servers_usage() {
    let server = ModelServer::start();
    let script = json!({"say": "One two three", "hold_after": 3,
        "usage": {"prompt_tokens": 2000, "completion_tokens": 300}});
    let sandbox = sandbox_with(&[server.model(
        "specialist",
        "prompt_micro_usd_per_million = 1_000_000\ncompletion_micro_usd_per_million = 2_000_000",
        script.clone(),
    )])
    .await;

    let body = stream_with_usage("Good morning").to_string().into_bytes();
    let mut socket = sandbox.open("POST", CHAT, &[], Some(body)).await;
    let early = read_until(&mut socket, "One ").await;
    assert!(!early.contains("three"), "{early}");
    assert_eq!(sandbox.debits().await, Vec::<i64>::new());
    server.release().await;
    let late = read_until(&mut socket, "[DONE]").await;

    let chunks: Vec<Value> = early
        .lines()
        .chain(late.lines())
        .filter_map(|line| line.strip_prefix("data: {"))
        .map(|rest| serde_json::from_str(&format!("{{{rest}")).unwrap())
        .collect();
    let first = &chunks[0]["choices"][0]["delta"];
    assert_eq!(first, &json!({"role": "assistant"}));
    let said: String = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(said, "One two three");
    let (last, before) = chunks.split_last().unwrap();
    assert_eq!(last["usage"]["total_tokens"], 2300);
    assert_eq!(last["choices"], json!([]));
    let finish = &before.last().unwrap()["choices"][0];
    assert_eq!(finish["finish_reason"], "stop");
    assert!(chunks.iter().all(|chunk| chunk["model"] == "auto"));
    assert!(chunks.iter().all(|chunk| chunk["id"] == chunks[0]["id"]));
    assert!(late.contains(": service-billed-micro-usd 2600\n"), "{late}");
    assert!(late.contains(": service-served-by specialist\n"));
    assert_eq!(sandbox.debits().await, [2600]);
    let sent = server.seen().await[0]["body"].clone();
    assert_eq!(sent["stream"], true);
    assert_eq!(sent["stream_options"], json!({"include_usage": true}));
}

// Interface, POST /v1/chat/completions, Streaming; Errors 502. Assumed (broken-relay).
#[tokio::test]
async fn a_server_that_breaks_mid_stream_ends_the_stream_without_done_unbilled_and_its_key_free() {
    let server = ModelServer::start();
    for fault in [
        json!({"say": "One two three four", "break_after": 4}),
        json!({"say": "One two three four", "error_after": 4}),
        // The end comes without a finish.
        json!({"say": "One two three four", "finish": null}),
        json!({"say": "One two three four", "finish": null, "no_done": true}),
    ] {
        // The first word is out before the rest comes.
        let script = with(fault.clone(), "hold_after", json!(3));
        let sandbox = sandbox_with(&[server.model("specialist", "", script)]).await;
        let key = [("Idempotency-Key", "k")];

        let body = ask_stream("Good morning").to_string().into_bytes();
        let mut socket = sandbox.open("POST", CHAT, &key, Some(body)).await;
        let early = read_until(&mut socket, "One ").await;
        server.release().await;
        let mut late = Vec::new();
        let _ = within(socket.read_to_end(&mut late)).await;

        let all = early + &String::from_utf8_lossy(&late);
        assert!(all.starts_with("HTTP/1.1 200"), "{fault}");
        for sign in ["[DONE]", ": service-", "out of memory", "\r\n0\r\n"] {
            assert!(!all.contains(sign), "{fault}: {all}");
        }
        sandbox.until_in_flight(0).await;
        assert_eq!(sandbox.debits().await, Vec::<i64>::new(), "{fault}");
        // Interface, Idempotency-Key: "First request failed: nothing stored".
        let other = sandbox.post(CHAT, &key, &ask("What is 1 + 1?")).await;
        assert_eq!(other.status, 200, "{}", other.text());
    }
}

#[tokio::test]
async fn a_stream_that_falls_silent_is_ended_by_the_deadline() {
    let server = ModelServer::start();
    let script = json!({"say": "One two three", "hang_after": 3});
    let sandbox = sandbox_with(&[server.model("specialist", "timeout_s = 20", script)]).await;

    let body = ask_stream("Good morning").to_string().into_bytes();
    let mut socket = sandbox.open("POST", CHAT, &[], Some(body)).await;
    read_until(&mut socket, "One ").await;
    sandbox.control("clock", json!({"advance_s": 20})).await;

    let mut rest = Vec::new();
    let _ = within(socket.read_to_end(&mut rest)).await;
    assert!(!String::from_utf8_lossy(&rest).contains("[DONE]"));
    sandbox.until_in_flight(0).await;
    assert_eq!(sandbox.debits().await, Vec::<i64>::new());
}

// Interface, POST /v1/chat/completions, Streaming: "Headers cannot be set after the first byte", so what
// fails before it is a plain error; X-Service-Escalated: "specialist deadline expired".
#[tokio::test]
async fn before_its_first_word_a_stream_can_still_be_escalated() {
    let server = ModelServer::start();
    let frontier = server.model("frontier", "", says("From the frontier."));
    for (script, late) in [
        (json!({"say": ""}), false),
        (json!({"hang": true}), true),
        (json!({"say": "One", "hang_after": 1}), true),
    ] {
        let before = server.seen().await.len();
        let models = [
            server.model("specialist", "timeout_s = 20", script.clone()),
            frontier.clone(),
        ];
        let sandbox = sandbox_with(&models).await;

        let asked = ask_stream("Good morning");
        let (reply, ()) = tokio::join!(sandbox.post(CHAT, &[], &asked), async {
            if late {
                server.until_seen(before + 1).await;
                sandbox.control("clock", json!({"advance_s": 20})).await;
            }
        });

        assert_eq!(reply.streamed_content(), "From the frontier.", "{script}");
        let by = reply.comment("service-served-by");
        assert_eq!(by.as_deref(), Some("frontier"));
        assert_eq!(reply.data().last().map(String::as_str), Some("[DONE]"));
        assert_eq!(sandbox.debits().await.len(), 1);
    }
}

// Interface, What the service does: "The result is checked against the bar".
#[tokio::test]
async fn a_structured_stream_is_checked_before_a_word_of_it_is_given() {
    let server = ModelServer::start();
    let schema =
        json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
    let body = with(ask_stream("How many?"), "response_format", format);
    for (frontier, status) in [(r#"{"n": 3}"#, 200), ("three", 502)] {
        let sandbox = sandbox_with(&[
            server.model("specialist", "", says(r#"{"n": "three"}"#)),
            server.model("frontier", "", says(frontier)),
        ])
        .await;

        let reply = sandbox.post(CHAT, &[], &body).await;

        assert_eq!(reply.status, status, "{}", reply.text());
        if status == 200 {
            assert_eq!(reply.streamed_content(), r#"{"n": 3}"#);
        }
        let debits = usize::from(status == 200);
        assert_eq!(sandbox.debits().await.len(), debits);
    }
}

// Interface, Chat completion (OpenAI shape): "each choice carries `delta` (`role`, `content`, tool-call
// deltas)".
#[tokio::test]
async fn tool_calls_of_a_server_stream_in_the_shape_of_the_interface() {
    let server = ModelServer::start();
    let call = json!({"id": "call_7", "type": "function",
        "function": {"name": "lookup", "arguments": "{\"part\": \"P-1\"}"}});
    let script = json!({"say": null, "tool_calls": [call], "finish": "tool_calls"});
    let sandbox = sandbox_with(&[server.model("specialist", "", script)]).await;
    let tool = json!({"type": "function", "function": {"name": "lookup", "parameters": {
        "type": "object", "required": ["part"], "properties": {"part": {"type": "string"}}}}});
    let body = with(ask_stream("Look it up"), "tools", json!([tool]));

    for path in [CHAT, AGENT] {
        let reply = sandbox.post(path, &[], &body).await;

        let deltas: Vec<Value> = reply
            .chunks()
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].get(0).cloned())
            .collect();
        assert_eq!(deltas[0]["id"], "call_7");
        assert_eq!(deltas[0]["function"]["name"], "lookup");
        let arguments: String = deltas
            .iter()
            .map(|delta| delta["function"]["arguments"].as_str().unwrap())
            .collect();
        assert_eq!(arguments, "{\"part\": \"P-1\"}");
        let chunks = reply.chunks();
        let finish = chunks
            .iter()
            .find_map(|chunk| chunk["choices"][0]["finish_reason"].as_str());
        assert_eq!(finish, Some("tool_calls"));
    }
}

// Assumed (aborted-stream), for a relayed stream as for one of the built-in models.
#[tokio::test]
async fn a_relayed_stream_whose_client_left_is_read_to_its_end_and_debited_unless_the_setting_is_off()
 {
    let server = ModelServer::start();
    let script = json!({"say": "One two three", "hold_after": 3});
    for (bill, debits) in [(true, 1), (false, 0)] {
        let sandbox = sandbox_with(&[server.model("specialist", "", script.clone())]).await;
        let setting = json!({"bill_aborted_stream": bill});
        sandbox.control("settings", setting).await;

        let body = ask_stream("Good morning").to_string().into_bytes();
        let mut socket = sandbox.open("POST", CHAT, &[], Some(body)).await;
        read_until(&mut socket, "One ").await;
        drop(socket);
        server.release().await;
        sandbox.until_in_flight(0).await;

        assert_eq!(sandbox.debits().await.len(), debits, "{bill}");
    }
}

// Interface, POST /agent/v1/chat/completions: "usage inclusion is forced on, so the final chunk always
// carries `usage`".
#[tokio::test]
async fn an_agent_stream_carries_the_servers_usage_and_no_receipt() {
    let server = ModelServer::start();
    let script = json!({"say": "Good morning to you.", "finish": "length", "no_done": true});
    let sandbox = sandbox_with(&[server.model("specialist", "", script)]).await;

    let reply = sandbox.post(AGENT, &[], &ask_stream("Good morning")).await;

    assert_eq!(reply.streamed_content(), "Good morning to you.");
    let chunks = reply.chunks();
    let (last, before) = chunks.split_last().unwrap();
    assert_eq!(last["usage"]["prompt_tokens"], 1000);
    let finish = &before.last().unwrap()["choices"][0]["finish_reason"];
    assert_eq!(finish, "length");
    assert_eq!(reply.comments(), Vec::<String>::new());
    assert_eq!(reply.data().last().map(String::as_str), Some("[DONE]"));
}

// Interface, POST /agent/v1/chat/completions: "logprobs, top_logprobs, …: forwarded unchanged". A turn whose
// confidence depends on them is checked before a word of it is sent.
#[tokio::test]
async fn logprobs_come_back_and_a_streamed_turn_of_low_confidence_is_re_run() {
    let server = ModelServer::start();
    let logprobs = |logprob: f64| json!({"content": [{"token": "Yes.", "logprob": logprob}]});
    for (logprob, on_v1, on_agent) in [(-0.1, "Yes.", "Yes."), (-3.0, "Yes.", "No.")] {
        let sure = json!({"say": "Yes.", "logprobs": logprobs(logprob)});
        let sandbox = sandbox_with(&[
            server.model("specialist", "", sure),
            server.model("frontier", "", says("No.")),
        ])
        .await;
        let whole = with(ask("Good morning"), "logprobs", json!(true));
        let stream = with(whole.clone(), "stream", json!(true));

        for (path, said) in [(CHAT, on_v1), (AGENT, on_agent)] {
            let reply = sandbox.post(path, &[], &whole).await;
            assert_eq!(reply.content(), said, "{path}");
            if said == "Yes." {
                let got = &reply.json()["choices"][0]["logprobs"];
                assert_eq!(got, &logprobs(logprob), "{path}");
            }
            let reply = sandbox.post(path, &[], &stream).await;
            assert_eq!(reply.streamed_content(), said, "{path}");
        }
        let carried = sandbox.post(AGENT, &[], &stream).await.chunks();
        let with_logprobs = carried
            .iter()
            .filter(|chunk| chunk["choices"][0]["logprobs"].is_object());
        assert_eq!(with_logprobs.count(), usize::from(on_agent == "Yes."));
    }
}
