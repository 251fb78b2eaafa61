//! A chat completion on either lane: from a checked request to one debit and one answer.
//!
//! Order, cheapest refusal first: limits, form, key, balance, work, debit.
//! Promise: the debit comes after the work and before the head; an error anywhere leaves nothing billed.

use super::streaming;
use crate::{
    billing,
    error::{ServiceError, mark_assumed},
    fleet::Answer,
    front::Inbound,
    idempotency::{Begin, Fingerprint, FormPart, Stored, WhileRunning},
    models::{Lane, MissingInput, Pinned, Served, request::ChatRequest},
    pins::PinKey,
    receipt::{self, Receipt},
    spec,
    state::State,
};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use std::sync::Arc;

pub async fn complete(
    state: Arc<State>,
    inbound: Inbound,
    lane: Lane,
) -> Result<Response, ServiceError> {
    let slot = state.limits.admit()?;
    let request = ChatRequest::parse(&inbound.body, lane)?;
    let fingerprint = inbound.fingerprint();
    let while_running = if request.stream || lane == Lane::Agent {
        WhileRunning::RunAlongside
    } else {
        WhileRunning::Wait
    };
    let begin = state
        .keys
        .begin(inbound.key.clone(), fingerprint.clone(), while_running)
        .await?;
    let run = match begin {
        // Interface: a replay succeeds even with zero balance.
        Begin::Replay(stored) => return Ok(stored.to_replay()),
        Begin::Run(run) => run,
    };
    billing::check_balance(&state, &inbound, &run)?;
    let answer = work(&state, &inbound, &request, lane).await?;
    inbound.fault.work(&state.clock, &state.holds).await;

    let served = match answer {
        answer if request.stream => {
            return Ok(streaming::start(streaming::Job {
                state,
                inbound,
                request,
                fingerprint,
                answer,
                run,
                slot,
                lane,
            }));
        }
        Answer::Whole(served) => served,
        // Nothing is relayed that was not asked to be.
        Answer::Flowing(_) => return Err(ServiceError::Internal),
    };
    let charged = billing::charge(&state, &inbound, &run, &fingerprint, served.price, false)?;
    if !charged.free_repeat {
        billing::count_saving(&state, &inbound.org, &served);
    }
    let body = whole(&state, &served, &completion_id(&state));
    let body = serde_json::to_vec(&body).map_err(|_| ServiceError::Internal)?;
    let receipt = Receipt::new(&served, charged.shown);
    let mut headers = match lane {
        Lane::Inference => receipt.headers(),
        Lane::Agent => receipt.agent_headers(),
    };
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    receipt::set(&mut headers, spec::ASSUMED, &marks(&served, lane).join(","));
    let stored = Stored::new(StatusCode::OK, &headers, Bytes::from(body));
    let mut response = stored.to_response();
    if charged.free_repeat {
        mark_assumed(&mut response, "repeat-billed");
    }
    match lane {
        Lane::Inference => run.store(stored),
        // Interface: agent turns are never stored.
        Lane::Agent => run.bind(),
    }
    drop(slot);
    Ok(response)
}

async fn work(
    state: &State,
    inbound: &Inbound,
    request: &ChatRequest,
    lane: Lane,
) -> Result<Answer, ServiceError> {
    let fleet = &state.fleet;
    let relay = request.stream;
    if lane == Lane::Inference {
        let routed = fleet.route(request, lane, Pinned::default(), relay);
        return Ok(routed.await?.answer);
    }
    let pin = pin_key(inbound, request);
    let routed = fleet
        .route(request, lane, state.pins.route(&pin), relay)
        .await?;
    if let Some(category) = routed.category {
        state.pins.remember(pin, category, routed.escalated);
    }
    Ok(routed.answer)
}

fn pin_key(inbound: &Inbound, request: &ChatRequest) -> PinKey {
    match &inbound.session {
        Some(session) => PinKey::session(&inbound.org, session.as_bytes()),
        None => PinKey::derived(&inbound.org, &request.pin_basis()),
    }
}

pub fn completion_id(state: &State) -> String {
    format!("chatcmpl-{}", state.clock.new_id())
}

/// The assumptions that a whole answer rests on; a replay rests on the same.
fn marks(served: &Served, lane: Lane) -> Vec<&'static str> {
    let mut marks = vec!["object-members"];
    if lane == Lane::Agent {
        marks.push("agent-receipt-headers");
        return marks;
    }
    if !served.escalated {
        marks.push("escalated-false");
    }
    if !served.draft.tool_calls.is_empty() {
        marks.push("tool-calls-on-v1");
    }
    if served.missing_input.is_some() {
        marks.extend(["clarification-form", "clarification-rule"]);
    }
    marks
}

/// The chat completion object.
pub fn whole(state: &State, served: &Served, id: &str) -> Value {
    let mut message = json!({"role": "assistant", "content": served.draft.content});
    if !served.draft.tool_calls.is_empty() {
        let calls: Vec<Value> = served
            .draft
            .tool_calls
            .iter()
            .map(|call| {
                json!({
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                })
            })
            .collect();
        if let Some(message) = message.as_object_mut() {
            message.insert("tool_calls".to_owned(), Value::Array(calls));
        }
    }
    let mut choice = json!({
        "index": 0,
        "message": message,
        "finish_reason": served.draft.finish_reason(),
    });
    if let (Some(logprobs), Some(choice)) = (&served.draft.logprobs, choice.as_object_mut()) {
        choice.insert("logprobs".to_owned(), logprobs.clone());
    }
    json!({
        "id": id,
        "object": "chat.completion",
        "created": state.clock.unix_s(),
        "model": spec::MODEL,
        "choices": [choice],
        "usage": usage(served),
    })
}

pub fn usage(served: &Served) -> Value {
    let usage = served.usage;
    json!({
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens.saturating_add(usage.completion_tokens),
    })
}

/// Headers of a stream's head: what is known before the first byte.
pub fn stream_headers(missing_input: Option<MissingInput>, lane: Lane) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let (Some(missing), Lane::Inference) = (missing_input, lane) {
        // Assumed (stream-clarification): a streamed clarification names the input in its head.
        receipt::set(&mut headers, spec::INPUT_REQUIRED, missing.names().0);
    }
    headers
}

// === impl Inbound ===

impl Inbound {
    /// What the key binds to.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(
            &self.path,
            &self.body,
            self.session.as_ref().map(HeaderValue::as_bytes),
            self.rte_query.as_ref().map(HeaderValue::as_bytes),
        )
    }

    /// The same for a multipart body, whose boundary is another at every sending.
    pub fn form_fingerprint<'a>(
        &self,
        parts: impl IntoIterator<Item = FormPart<'a>>,
    ) -> Fingerprint {
        Fingerprint::of_form(
            &self.path,
            parts,
            self.session.as_ref().map(HeaderValue::as_bytes),
            self.rte_query.as_ref().map(HeaderValue::as_bytes),
        )
    }
}
