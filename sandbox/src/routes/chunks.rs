//! The chunks of a streamed completion: role, words, tool calls, finish, usage; of `auto` and of an endpoint.
//!
//! Promise: an answer that a server is still writing is sent word by word as it comes, a tool call when it is
//! whole and checked; a stream that breaks is an error, and the part that the client received has no end.

use super::chat_object::{completion_id, usage};
use crate::{
    error::ServiceError,
    fleet::Completion,
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
            id: completion_id(&state.clock),
            created: state.clock.unix_s(),
            state,
            writer,
            model,
            include_usage,
        }
    }

    /// Writes an answer up to and including its usage. Fails if a server's stream breaks.
    pub async fn give(
        &mut self,
        answer: Completion,
        request: &ChatRequest,
        lane: Lane,
    ) -> Result<Served, ServiceError> {
        // Interface: `delta.content` is absent or null on the opening role chunk.
        self.delta(json!({"role": "assistant"}), None).await;
        let served = match answer {
            Completion::Whole(served) => {
                self.draft(&served.draft).await;
                served
            }
            Completion::Flowing(mut flow) => {
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
        for (delta, logprobs) in deltas(draft) {
            self.delta(delta, logprobs.as_ref()).await;
        }
    }

    async fn delta(&mut self, delta: Value, logprobs: Option<&Value>) {
        let chunk = self.chunk(delta, logprobs, None);
        self.write(&chunk).await;
    }

    async fn write(&mut self, chunk: &Value) {
        self.writer.event(&[format!("data: {chunk}")]).await;
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

/// The deltas of an answer, after the role's, each with the `logprobs` of its own words.
fn deltas(draft: &Draft) -> Vec<(Value, Option<Value>)> {
    let mut deltas = Vec::new();
    if let Some(content) = &draft.content {
        let said = |text: &str| json!({"content": text});
        match &draft.logprobs {
            None => deltas.extend(
                tokens::pieces(content)
                    .iter()
                    .map(|text| (said(text), None)),
            ),
            Some(logprobs) => match by_token(logprobs, content) {
                Some(tokens) => deltas.extend(
                    tokens
                        .into_iter()
                        .map(|(text, logprobs)| (said(text), Some(logprobs))),
                ),
                // Of a server whose tokens are not its text: one chunk carries them all.
                None => deltas.push((said(content), Some(logprobs.clone()))),
            },
        }
    }
    for (index, call) in draft.tool_calls.iter().enumerate() {
        let begin = json!({"tool_calls": [{
            "index": index,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }]});
        deltas.push((begin, None));
        deltas.extend(tokens::pieces(&call.arguments).into_iter().map(|piece| {
            let more = json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
            (more, None)
        }));
    }
    deltas
}

/// Each token with its own `logprobs`; `None` when the tokens joined are not the content.
fn by_token<'a>(logprobs: &'a Value, content: &str) -> Option<Vec<(&'a str, Value)>> {
    let tokens = logprobs.get("content")?.as_array()?;
    let mut rest = content;
    let mut all = Vec::new();
    for one in tokens {
        let token = one.get("token")?.as_str()?;
        rest = rest.strip_prefix(token)?;
        all.push((token, json!({"content": [one], "refusal": null})));
    }
    rest.is_empty().then_some(all)
}
