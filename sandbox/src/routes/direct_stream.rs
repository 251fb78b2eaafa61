//! A streamed answer of an endpoint: OpenAI chunks with the endpoint's id as `model`, then `[DONE]`.
//!
//! Promise: debited when the generation is complete and before `[DONE]`; no receipt comment, as direct model
//! calls carry no receipt.

use super::{
    completion::{completion_id, stream_headers, usage},
    direct::Call,
};
use crate::{
    endpoints::metrics::put,
    error::mark_assumed,
    models::{Lane, Served, tokens},
    spec, sse,
    sse::writer::EventWriter,
};
use axum::response::Response;
use serde_json::{Value, json};

/// Answers with the head and leaves the rest to a task.
pub fn start(call: Call, served: Served, took_ms: u64) -> Response {
    let (frames, body) = sse::body(call.inbound.line.clone());
    let mut response = Response::new(body);
    *response.headers_mut() = stream_headers(None, Lane::Agent);
    mark_assumed(&mut response, "endpoint-inference");
    let writer = EventWriter::new(call.inbound.fault.clone(), frames);
    let tasks = call.state.tasks.clone();
    tasks.spawn(produce(call, served, took_ms, writer));
    response
}

async fn produce(call: Call, served: Served, took_ms: u64, mut writer: EventWriter) {
    let state = &call.state;
    let (id, created) = (completion_id(state), state.clock.unix_s());
    let chunk = |choices: Value, usage: Option<Value>| {
        let mut chunk = json!({
            "id": id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": call.endpoint.name,
            "choices": choices,
        });
        if call.request.include_usage {
            put(&mut chunk, "usage", usage.unwrap_or(Value::Null));
        }
        [format!("data: {chunk}")]
    };
    for delta in deltas(&served) {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": null}]);
        writer.event(state, &chunk(choices, None)).await;
    }
    let finish_reason = served.draft.finish_reason();
    let choices = json!([{"index": 0, "delta": {}, "finish_reason": finish_reason}]);
    writer.event(state, &chunk(choices, None)).await;
    if call.request.include_usage {
        let last = chunk(json!([]), Some(usage(&served)));
        writer.event(state, &last).await;
    }
    if writer.aborted() && !state.settings().bill_aborted_stream {
        // Assumed (aborted-stream): a setting; off means that an unfinished stream is free.
        call.run.bind();
        return;
    }
    let Ok(bill) = call.charge(&served, true) else {
        // The books could not take it: break off rather than end a stream that was not billed.
        writer.cut().await;
        return;
    };
    call.settle(&served, &bill, took_ms);
    let fault = call.inbound.fault.clone();
    let Call {
        run, slot, state, ..
    } = call;
    run.bind();
    if let Err(error) = state.commit().await {
        // What is not on disk is not told.
        tracing::error!(%error, "a debit could not be written");
        writer.cut().await;
        return;
    }
    drop(slot);
    if fault.cut_before_receipt || fault.cut_before_done {
        writer.cut().await;
    }
    if !fault.no_done {
        writer
            .event(&state, &[format!("data: {}", spec::DONE)])
            .await;
    }
}

/// The deltas of an answer, the role first.
fn deltas(served: &Served) -> Vec<Value> {
    let mut deltas = vec![json!({"role": "assistant"})];
    let content = served.draft.content.as_deref().unwrap_or_default();
    let pieces = tokens::pieces(content).into_iter();
    deltas.extend(pieces.map(|piece| json!({"content": piece})));
    for (index, call) in served.draft.tool_calls.iter().enumerate() {
        deltas.push(json!({"tool_calls": [{
            "index": index,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }]}));
    }
    deltas
}
