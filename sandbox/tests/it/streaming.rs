//! Streams of `/v1`, and the receipt in their comments.

use crate::support::*;
use serde_json::{Value, json};

// Interface, POST /v1/chat/completions, Streaming: "receipt values ride as SSE comment lines just before
// `[DONE]`"; `: service-billed-micro-usd`, `: service-frontier-would-have-cost-micro-usd`, `:
// service-served-by`, `: service-route-version`.
// Interface, Streaming chunk: "`delta.content` is absent or null on the opening role chunk and on the
// final finish chunk".
#[tokio::test]
async fn a_stream_is_the_same_answer_with_its_receipt_just_before_done() {
    let sandbox = Sandbox::start().await;
    let whole = sandbox.post(CHAT, &[], &ask("Tell me about rivers")).await;

    let stream = sandbox
        .post(CHAT, &[], &ask_stream("Tell me about rivers"))
        .await;

    assert_eq!(
        stream.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    assert!(stream.complete);
    assert_eq!(stream.streamed_content(), whole.content());
    let chunks = stream.chunks();
    assert_eq!(
        chunks[0]["choices"][0]["delta"],
        json!({"role": "assistant"})
    );
    let last = chunks.last().unwrap();
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!(last["choices"][0]["delta"], json!({}));
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk["object"] == "chat.completion.chunk" && chunk["model"] == "auto")
    );
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
    assert!(chunks.iter().all(|chunk| chunk["id"] == chunks[0]["id"]));
    let version = whole.header("x-service-route-version").unwrap();
    let cost = whole.header("x-service-frontier-would-have-cost").unwrap();
    let end = format!(
        ": service-billed-micro-usd {}\n: service-frontier-would-have-cost-micro-usd {cost}\n: service-served-by specialist\n: service-route-version {version}\ndata: [DONE]\n\n",
        whole.billed()
    );
    assert!(stream.text().ends_with(&end), "{}", stream.text());
    assert_eq!(stream.header("x-service-billed"), None);
    assert_eq!(sandbox.debits().await, [whole.billed(), whole.billed()]);
}

// Interface, Events: Chat completions, "data-only SSE; JSON chunks".
#[tokio::test]
async fn usage_comes_when_it_is_asked_for() {
    let sandbox = Sandbox::start().await;
    let body = with(
        ask_stream("Tell me about rivers"),
        "stream_options",
        json!({"include_usage": true}),
    );

    let stream = sandbox.post(CHAT, &[], &body).await;

    let chunks = stream.chunks();
    let (last, before) = chunks.split_last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert!(last["usage"]["total_tokens"].as_u64().unwrap() > 0);
    assert!(before.iter().all(|chunk| chunk["usage"] == Value::Null));
}

// Interface, Errors: bodies `{detail: <message>}`, for a request that asked for a stream, too.
#[tokio::test]
async fn a_refused_stream_is_a_plain_error() {
    let sandbox = Sandbox::start().await;

    let reply = sandbox
        .post(CHAT, &[], &with(ask_stream("hi"), "model", json!("x")))
        .await;

    assert_eq!(
        (reply.status, reply.header("content-type")),
        (404, Some("application/json"))
    );
}

// Interface, POST /v1/chat/completions: `X-Service-Served-By` "`none` on a clarification response".
#[tokio::test]
async fn a_streamed_clarification_names_the_input_in_its_head_and_is_free() {
    let sandbox = Sandbox::start().await;

    let stream = sandbox
        .post(CHAT, &[], &ask_stream("Describe this image"))
        .await;

    assert_eq!(stream.header("x-service-input-required"), Some("image"));
    assert_eq!(
        stream.header("x-sandbox-assumed"),
        Some("object-members,stream-head,stream-clarification")
    );
    assert_eq!(
        stream.comment("service-billed-micro-usd").as_deref(),
        Some("0")
    );
    assert_eq!(stream.comment("service-served-by").as_deref(), Some("none"));
    assert_eq!(sandbox.debits().await, Vec::<i64>::new());
}
