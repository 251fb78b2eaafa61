//! A chat completion on either lane: from a checked request to one debit and one answer.
//!
//! Order, cheapest refusal first: limits, form, key, balance, work, debit.
//! Promise: the debit comes after the work and before the head; an error anywhere leaves nothing billed.

use super::{
    chat_object::{completion_id, whole},
    streaming,
};
use crate::{
    error::{ServiceError, mark_assumed},
    fleet::Answer,
    idempotency::{Begin, Stored, WhileRunning},
    inbound::Inbound,
    models::{Lane, Pinned, Served, request::ChatRequest},
    pins::PinKey,
    receipt::{self, Receipt},
    spec,
    state::State,
};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
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
    state.billing.check_balance(&inbound.org, &run)?;
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
    let charged = state.charge(&inbound, &run, &fingerprint, served.price, false)?;
    if !charged.free_repeat {
        state.billing.count_saving(&inbound.org, &served);
    }
    let body = whole(&state.clock, &served, &completion_id(&state.clock));
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
