//! A streamed chat completion: role chunk, deltas, finish chunk, usage, receipt comments, `[DONE]`.
//!
//! A task of its own writes the frames, so that a client that leaves does not stop the generation.
//! Promise: the debit is made when the generation is complete and before the receipt is written; a client
//! that saw a receipt was billed what it says.

use super::completion::{completion_id, stream_headers, usage};
use crate::{
    billing,
    error::{ServiceError, mark_assumed},
    fault::Fault,
    fleet::Answer,
    front::Inbound,
    idempotency::{Fingerprint, Run},
    limits::Slot,
    models::{Lane, Served, request::ChatRequest, tokens},
    receipt::Receipt,
    spec,
    sse::{self, FrameSender},
    state::State,
};
use axum::response::Response;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Duration};

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
    if missing_input.is_some() {
        mark_assumed(&mut response, "stream-clarification");
    }
    let tasks = job.state.tasks.clone();
    let writer = Writer {
        fault: job.inbound.fault.clone(),
        frames: Some(frames),
        chunks: 0,
        bytes: 0,
        aborted: false,
    };
    tasks.spawn(produce(job, writer));
    response
}

async fn produce(job: Job, mut writer: Writer) {
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
    if inbound.fault.slow_first_chunk_ms > 0 {
        state
            .clock
            .sleep(Duration::from_millis(inbound.fault.slow_first_chunk_ms))
            .await;
    }
    let shape = Shape {
        id: completion_id(&state),
        created: state.clock.unix_s(),
        null_usage: request.include_usage,
    };
    let Ok(served) = give(answer, &shape, &state, &mut writer).await else {
        // Assumed (broken-relay): no [DONE], nothing billed, and the key is as if nothing had run.
        writer.cut().await;
        return;
    };
    writer
        .chunk(
            &state,
            &shape.chunk(json!({}), None, Some(served.draft.finish_reason())),
        )
        .await;
    // Interface: on /v1 as OpenAI; on the agent lane the final chunk always carries usage.
    if request.include_usage {
        writer.chunk(&state, &shape.usage(usage(&served))).await;
    }
    writer.notice_departure();
    if writer.aborted && !state.settings().bill_aborted_stream {
        // Assumed (aborted-stream): a setting; off means that an unfinished stream is free.
        run.bind();
        return;
    }
    let Ok(charged) = billing::charge(&state, &inbound, &run, &fingerprint, served.price, true)
    else {
        // The books could not take it: break off rather than end a stream that was not billed.
        writer.cut().await;
        return;
    };
    if !charged.free_repeat {
        billing::count_saving(&state, &inbound.org, &served);
    }
    run.bind();
    if let Err(error) = state.commit().await {
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

/// Writes the words of an answer, the role first. Fails when a server's stream breaks.
async fn give(
    answer: Answer,
    shape: &Shape,
    state: &State,
    writer: &mut Writer,
) -> Result<Served, ServiceError> {
    let mut flow = match answer {
        Answer::Whole(served) => {
            let logprobs = served.draft.logprobs.as_ref();
            for delta in deltas(&served) {
                let logprobs = logprobs.filter(|_| delta.get("content").is_some());
                let chunk = shape.chunk(delta, logprobs, None);
                writer.chunk(state, &chunk).await;
            }
            return Ok(served);
        }
        Answer::Flowing(flow) => flow,
    };
    let role = shape.chunk(json!({"role": "assistant"}), None, None);
    writer.chunk(state, &role).await;
    while let Some(piece) = flow.next().await? {
        let delta = json!({"content": piece.content});
        let chunk = shape.chunk(delta, piece.logprobs.as_ref(), None);
        writer.chunk(state, &chunk).await;
    }
    flow.served()
}

/// The deltas of an answer, the role first.
fn deltas(served: &Served) -> Vec<Value> {
    // Interface: `delta.content` is absent or null on the opening role chunk.
    let mut deltas = vec![json!({"role": "assistant"})];
    if let (Some(content), Some(_)) = (&served.draft.content, &served.draft.logprobs) {
        // The logprobs are by the server's tokens, which are not ours: one chunk carries them all.
        deltas.push(json!({"content": content}));
    } else if let Some(content) = &served.draft.content {
        deltas.extend(
            tokens::pieces(content)
                .into_iter()
                .map(|piece| json!({"content": piece})),
        );
    }
    for (index, call) in served.draft.tool_calls.iter().enumerate() {
        deltas.push(json!({"tool_calls": [{
            "index": index,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }]}));
        deltas.extend(tokens::pieces(&call.arguments).into_iter().map(
            |piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
        ));
    }
    deltas
}

struct Shape {
    id: String,
    created: i64,
    null_usage: bool,
}

// === impl Shape ===

impl Shape {
    fn base(&self, choices: Value) -> Map<String, Value> {
        let mut chunk = Map::new();
        chunk.insert("id".to_owned(), Value::from(self.id.as_str()));
        chunk.insert("object".to_owned(), Value::from("chat.completion.chunk"));
        chunk.insert("created".to_owned(), Value::from(self.created));
        chunk.insert("model".to_owned(), Value::from(spec::MODEL));
        chunk.insert("choices".to_owned(), choices);
        chunk
    }

    fn chunk(&self, delta: Value, logprobs: Option<&Value>, finish_reason: Option<&str>) -> Value {
        let mut choice = json!({"index": 0, "delta": delta});
        if let Some(choice) = choice.as_object_mut() {
            if let Some(logprobs) = logprobs {
                choice.insert("logprobs".to_owned(), logprobs.clone());
            }
            choice.insert("finish_reason".to_owned(), Value::from(finish_reason));
        }
        let mut chunk = self.base(json!([choice]));
        if self.null_usage {
            chunk.insert("usage".to_owned(), Value::Null);
        }
        Value::Object(chunk)
    }

    fn usage(&self, usage: Value) -> Value {
        let mut chunk = self.base(json!([]));
        chunk.insert("usage".to_owned(), usage);
        Value::Object(chunk)
    }
}

/// Writes frames as the fault wants them; after a cut or a departure it only keeps the time.
struct Writer {
    fault: Fault,
    frames: Option<FrameSender>,
    chunks: u64,
    bytes: u64,
    aborted: bool,
}

// === impl Writer ===

impl Writer {
    async fn chunk(&mut self, state: &State, chunk: &Value) {
        if self.chunks > 0 && self.fault.chunk_delay_ms > 0 {
            state
                .clock
                .sleep(Duration::from_millis(self.fault.chunk_delay_ms))
                .await;
        }
        let mut lines: Vec<String> = self
            .fault
            .extra_comments
            .iter()
            .map(|text| format!(": {text}"))
            .collect();
        lines.push(format!("data: {chunk}"));
        lines.push(String::new());
        if self.fault.cut_after_chunks == Some(self.chunks) {
            self.aborted = true;
            self.cut().await;
        }
        self.lines(&lines).await;
        self.chunks += 1;
        if self.fault.hold_after_chunks == Some(self.chunks) {
            let name = self.fault.hold_chunks_name.clone().unwrap_or_default();
            state.holds.wait(&name).await;
        }
    }

    /// Writes lines, each with its line end, as one frame.
    async fn lines(&mut self, lines: &[String]) {
        let end = if self.fault.crlf { "\r\n" } else { "\n" };
        let mut text: String = lines.iter().flat_map(|line| [line.as_str(), end]).collect();
        let mut cut_here = false;
        if let Some(most) = self.fault.cut_after_bytes {
            let left = usize::try_from(most.saturating_sub(self.bytes)).unwrap_or(usize::MAX);
            if text.len() >= left {
                let left = (0..=left)
                    .rev()
                    .find(|at| text.is_char_boundary(*at))
                    .unwrap_or(0);
                text.truncate(left);
                cut_here = true;
            }
        }
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        if let Some(frames) = &self.frames
            && !text.is_empty()
            && !frames.send(Bytes::from(text)).await
        {
            self.frames = None;
            self.aborted = true;
        }
        if cut_here {
            self.aborted = true;
            self.cut().await;
        }
    }

    /// Ends the connection; what follows is written to nobody.
    async fn cut(&mut self) {
        if let Some(frames) = self.frames.take() {
            frames.cut().await;
        }
    }

    /// A client may leave without a write to tell us.
    fn notice_departure(&mut self) {
        if self.frames.as_ref().is_some_and(FrameSender::is_closed) {
            self.frames = None;
            self.aborted = true;
        }
    }
}
