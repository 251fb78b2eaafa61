//! A streamed answer of an endpoint: OpenAI chunks with the endpoint's id as `model`, then `[DONE]`.
//!
//! Promise: debited when the generation is complete and before `[DONE]`; no receipt comment, as direct model
//! calls carry no receipt; in the endpoint's metrics once, as what it turned out to be.

use super::{chat_object::stream_headers, chunks::ChunkStream, endpoint_call::Call};
use crate::{
    endpoints::traffic::Outcome,
    error::{ServiceError, mark_assumed},
    fleet::Answer,
    models::Lane,
    spec,
    sse::{self, writer::EventWriter},
};
use axum::response::Response;
use http::StatusCode;
use std::sync::Arc;

/// Answers with the head and leaves the rest to a task. `took_ms` until here, for an answer that is whole.
pub fn start(call: Call, answer: Answer, took_ms: u64) -> Response {
    let (frames, body) = sse::body(call.inbound.line.clone());
    let mut response = Response::new(body);
    *response.headers_mut() = stream_headers(None, Lane::Agent);
    mark_assumed(&mut response, "endpoint-inference");
    let writer = call.state.event_writer(call.inbound.fault.clone(), frames);
    let tasks = call.state.tasks.clone();
    tasks.spawn(produce(call, answer, took_ms, writer));
    response
}

async fn produce(mut call: Call, answer: Answer, took_ms: u64, mut writer: EventWriter) {
    let state = Arc::clone(&call.state);
    let request = &call.request;
    let whole = matches!(answer, Answer::Whole(_));
    let name = &call.endpoint.name;
    let mut stream = ChunkStream::new(&state, &mut writer, name, request.include_usage);
    let given = stream.give(answer, request, Lane::Inference).await;
    let took_ms = if whole { took_ms } else { call.took_ms() };
    let served = match given {
        Ok(served) => served,
        // Assumed (broken-relay): no [DONE], nothing billed, and the key is as if nothing had run.
        Err(error) => return broken_off(&call, error.status(), took_ms, writer).await,
    };
    if writer.aborted() && !state.settings().bill_aborted_stream {
        // Assumed (aborted-stream): a setting; off means that an unfinished stream is free.
        call.settle(&served, &call.free(&served), took_ms);
        call.run.take().bind();
        return;
    }
    let bill = match call.charge(&served, true) {
        Ok(bill) => bill,
        // The books could not take it: break off rather than end a stream that was not billed.
        Err(error) => return broken_off(&call, error.status(), took_ms, writer).await,
    };
    call.run.take().bind();
    if let Err(error) = state.checkpoint.settle(&call.inbound.request_id).await {
        // What is not on disk is not told.
        let error = ServiceError::from(error);
        return broken_off(&call, error.status(), took_ms, writer).await;
    }
    call.settle(&served, &bill, took_ms);
    let fault = call.inbound.fault.clone();
    let Call { slot, .. } = call;
    drop(slot);
    if fault.cut_before_receipt || fault.cut_before_done {
        writer.cut().await;
    }
    if !fault.no_done {
        writer
            .lines(&[format!("data: {}", spec::DONE), String::new()])
            .await;
    }
}

async fn broken_off(call: &Call, status: StatusCode, took_ms: u64, mut writer: EventWriter) {
    call.observe(took_ms, Outcome::Failed(status.as_u16()));
    writer.cut().await;
}
