//! A streamed chat completion: role chunk, deltas, finish chunk, usage, receipt comments, `[DONE]`.
//!
//! A task of its own writes the frames, so that a client that leaves does not stop the generation.
//! Promise: the debit is made when the generation is complete and before the receipt is written; a client
//! that saw a receipt was billed what it says.

use super::{chat_object::stream_headers, chunks::ChunkStream};
use crate::{
    error::mark_assumed,
    fingerprint::Fingerprint,
    fleet::Answer,
    idempotency::Run,
    inbound::Inbound,
    limits::Slot,
    models::{Lane, request::ChatRequest},
    receipt::Receipt,
    spec,
    sse::{self, writer::EventWriter},
    state::State,
};
use axum::response::Response;
use std::sync::Arc;

pub struct Job {
    pub state: Arc<State>,
    pub inbound: Inbound,
    pub request: ChatRequest,
    pub fingerprint: Fingerprint,
    pub answer: Answer,
    pub run: Run,
    pub slot: Slot,
    pub lane: Lane,
}

/// Answers with the head and leaves the rest to a task.
pub fn start(job: Job) -> Response {
    let (frames, body) = sse::body(job.inbound.line.clone());
    let mut response = Response::new(body);
    let missing_input = match &job.answer {
        Answer::Whole(served) => served.missing_input,
        Answer::Flowing(_) => None,
    };
    *response.headers_mut() = stream_headers(missing_input, job.lane);
    mark_assumed(&mut response, "object-members");
    mark_assumed(&mut response, "stream-head");
    if missing_input.is_some() {
        mark_assumed(&mut response, "stream-clarification");
    }
    let tasks = job.state.tasks.clone();
    let writer = job.state.event_writer(job.inbound.fault.clone(), frames);
    tasks.spawn(produce(job, writer));
    response
}

async fn produce(job: Job, mut writer: EventWriter) {
    let Job {
        state,
        inbound,
        request,
        fingerprint,
        answer,
        run,
        slot,
        lane,
    } = job;
    let mut stream = ChunkStream::new(&state, &mut writer, spec::MODEL, request.include_usage);
    let Ok(served) = stream.give(answer, &request, lane).await else {
        // Assumed (broken-relay): no [DONE], nothing billed, and the key is as if nothing had run.
        writer.cut().await;
        return;
    };
    if writer.aborted() && !state.settings().bill_aborted_stream {
        // Assumed (aborted-stream): a setting; off means that an unfinished stream is free.
        run.bind();
        return;
    }
    let Ok(charged) = state.charge(&inbound, &run, &fingerprint, served.price, true) else {
        // The books could not take it: break off rather than end a stream that was not billed.
        writer.cut().await;
        return;
    };
    if !charged.free_repeat {
        state.billing.count_saving(&inbound.org, &served);
    }
    run.bind();
    if let Err(error) = state.checkpoint.settle(&inbound.request_id).await {
        // What is not on disk is not told.
        tracing::error!(%error, "a debit could not be written");
        writer.cut().await;
        return;
    }
    drop(slot);
    if inbound.fault.cut_before_receipt {
        writer.cut().await;
    }
    if lane == Lane::Inference || inbound.fault.agent_stream_receipt {
        let receipt = Receipt::new(&served, charged.shown);
        writer.lines(&receipt.comments(&inbound.fault)).await;
    }
    if inbound.fault.cut_before_done {
        writer.cut().await;
    }
    if !inbound.fault.no_done {
        writer
            .lines(&[format!("data: {}", spec::DONE), String::new()])
            .await;
    }
}
