//! The chunks of a streamed completion: role, words, tool calls, finish, usage; of `auto` and of an endpoint.
//!
//! Promise: an answer that a server is still writing is given word by word as it comes, a tool call when it is
//! whole and checked; a stream that breaks is an error, and what the client saw of it has no end.

use super::completion::{completion_id, usage};
use crate::{
    error::ServiceError,
    fleet::Answer,
    models::{Draft, Lane, Served, request::ChatRequest, tokens},
    sse::writer::EventWriter,
    state::State,
};
use serde_json::{Map, Value, json};

pub struct ChunkStream<'a> {
    state: &'a State,
    writer: &'a mut EventWriter,
    id: String,
    created: i64,
    /// `auto`, or an endpoint's id.
    model: &'a str,
    include_usage: bool,
}

// === impl ChunkStream ===

impl<'a> ChunkStream<'a> {
    pub fn new(
        state: &'a State,
        writer: &'a mut EventWriter,
        model: &'a str,
        include_usage: bool,
    ) -> Self {
        Self {
            id: completion_id(state),
            created: state.clock.unix_s(),
            state,
            writer,
            model,
            include_usage,
        }
    }

    /// Writes an answer up to what comes after its usage. Fails when a server's stream breaks.
    pub async fn give(
        &mut self,
        answer: Answer,
        request: &ChatRequest,
        lane: Lane,
    ) -> Result<Served, ServiceError> {
        // Interface: `delta.content` is absent or null on the opening role chunk.
        self.delta(json!({"role": "assistant"}), None).await;
        let served = match answer {
            Answer::Whole(served) => {
                self.draft(&served.draft).await;
                served
            }
            Answer::Flowing(mut flow) => {
                while let Some(piece) = flow.next().await? {
                    let delta = json!({"content": piece.content});
                    self.delta(delta, piece.logprobs.as_ref()).await;
                }
                let finished = self.state.fleet.finish(flow, request, lane).await;
                let (served, rest) = finished?;
                self.draft(&rest).await;
                served
            }
        };
        let end = self.chunk(json!({}), None, Some(served.draft.finish_reason()));
        self.write(&end).await;
        // Interface: on /v1 as OpenAI; on the agent lane the final chunk always carries usage.
        if self.include_usage {
            let mut last = self.base(json!([]));
            last.insert("usage".to_owned(), usage(&served));
            self.write(&Value::Object(last)).await;
        }
        Ok(served)
    }

    async fn draft(&mut self, draft: &Draft) {
        let logprobs = draft.logprobs.as_ref();
        for delta in deltas(draft) {
            let logprobs = logprobs.filter(|_| delta.get("content").is_some());
            self.delta(delta, logprobs).await;
        }
    }

    async fn delta(&mut self, delta: Value, logprobs: Option<&Value>) {
        let chunk = self.chunk(delta, logprobs, None);
        self.write(&chunk).await;
    }

    async fn write(&mut self, chunk: &Value) {
        self.writer
            .event(self.state, &[format!("data: {chunk}")])
            .await;
    }

    fn base(&self, choices: Value) -> Map<String, Value> {
        let mut chunk = Map::new();
        chunk.insert("id".to_owned(), Value::from(self.id.as_str()));
        chunk.insert("object".to_owned(), Value::from("chat.completion.chunk"));
        chunk.insert("created".to_owned(), Value::from(self.created));
        chunk.insert("model".to_owned(), Value::from(self.model));
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
        if self.include_usage {
            chunk.insert("usage".to_owned(), Value::Null);
        }
        Value::Object(chunk)
    }
}

/// The deltas of an answer, after the role's.
fn deltas(draft: &Draft) -> Vec<Value> {
    let mut deltas = Vec::new();
    if let (Some(content), Some(_)) = (&draft.content, &draft.logprobs) {
        // The logprobs are by the server's tokens, which are not ours: one chunk carries them all.
        deltas.push(json!({"content": content}));
    } else if let Some(content) = &draft.content {
        deltas.extend(
            tokens::pieces(content)
                .into_iter()
                .map(|piece| json!({"content": piece})),
        );
    }
    for (index, call) in draft.tool_calls.iter().enumerate() {
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
