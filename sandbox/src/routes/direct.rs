//! Inference on a deployed endpoint: through its `url`, or by its id as `model` on `/v1/chat/completions`.
//!
//! The interface leaves open which of the two holds ("Deploy-endpoint model-id question"). Assumed
//! (endpoint-model): both; the setting `endpoint_model = false` makes the id a 404 on the chat route.
//! Promise: one debit per answer and none per error; no receipt header or comment ("direct model calls carry
//! none of them"); every request that reached the endpoint is in its metrics once.

use super::{chat_object, direct_stream, endpoint_call::Call, in_path::InPath};
use crate::{
    endpoints::{metrics::put, record::Endpoint, traffic::Outcome},
    error::ServiceError,
    fleet::Answer,
    idempotency::{Begin, Stored, WhileRunning},
    inbound::Inbound,
    models::{Lane, Served, request::ChatRequest},
    spec,
    state::State,
};
use axum::{Extension, extract::State as Shared, response::Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// `POST {url}/chat/completions`. Assumed (endpoint-url): an Idempotency-Key is not honored here, as the
/// route is none of those the interface names.
pub async fn on_url(
    Shared(state): Shared<Arc<State>>,
    InPath(id): InPath<String>,
    Extension(mut inbound): Extension<Inbound>,
) -> Result<Response, ServiceError> {
    inbound.key = None;
    inbound.key_text = None;
    let endpoint = state.endpoints.get(&inbound.org, &id)?;
    complete(state, inbound, endpoint).await
}

/// The endpoint that a body on the chat route names as its `model`.
pub fn named(state: &State, inbound: &Inbound) -> Option<Endpoint> {
    #[derive(Deserialize)]
    struct Named {
        model: String,
    }
    if !state.settings().endpoint_model || state.endpoints.is_empty() {
        return None;
    }
    let named: Named = serde_json::from_slice(&inbound.body).ok()?;
    state.endpoints.find(&inbound.org, &named.model)
}

/// The answer that the request's key holds of an endpoint that is gone; `None` when it holds none of one.
///
/// Interface, Idempotency-Key: "stored response replayed … nothing runs or bills": nothing has to be there
/// to run.
pub async fn of_gone(
    state: &Arc<State>,
    inbound: &Inbound,
) -> Result<Option<Response>, ServiceError> {
    let Some(key) = inbound.key.clone() else {
        return Ok(None);
    };
    let Some(bound) = state.keys.of_an_endpoint(&key) else {
        return Ok(None);
    };
    let fingerprint = inbound.fingerprint();
    if !bound.is_same_as(&fingerprint) {
        return Ok(None);
    }
    let _slot = state.limits.admit()?;
    let begin = state
        .keys
        .begin(Some(key), fingerprint, WhileRunning::Wait)
        .await?;
    match begin {
        Begin::Replay(stored) => Ok(Some(replay(&stored))),
        // It was not stored, and there is nobody to run it again.
        Begin::Run(_) => Err(ServiceError::NotFound("no such endpoint".to_owned())),
    }
}

/// The order of every completion: limits, form, key, balance, state, work, debit.
pub async fn complete(
    state: Arc<State>,
    inbound: Inbound,
    endpoint: Endpoint,
) -> Result<Response, ServiceError> {
    let began = state.clock.elapsed();
    let slot = state.limits.admit()?;
    let request = parse(&inbound.body, &endpoint.name)?;
    let fingerprint = inbound.fingerprint().of_endpoint(&endpoint.uid);
    let while_running = if request.stream {
        WhileRunning::RunAlongside
    } else {
        WhileRunning::Wait
    };
    let begin = state
        .keys
        .begin(inbound.key.clone(), fingerprint.clone(), while_running)
        .await?;
    let run = match begin {
        Begin::Replay(stored) => return Ok(replay(&stored)),
        Begin::Run(run) => run,
    };
    state.billing.check_balance(&inbound.org, &run)?;
    let call = Call {
        state,
        inbound,
        endpoint,
        request,
        fingerprint,
        run,
        began,
        slot,
    };
    let answer = match call.work().await {
        Ok(answer) => answer,
        Err(error) => {
            let status = error.status();
            // A request that is wrong in itself never reached the endpoint.
            if status.is_server_error() {
                call.observe(call.took_ms(), Outcome::Failed(status.as_u16()));
            }
            return Err(error);
        }
    };
    let took_ms = call.took_ms();
    let served = match answer {
        answer if call.request.stream => return Ok(direct_stream::start(call, answer, took_ms)),
        Answer::Whole(served) => served,
        // Nothing is relayed that was not asked to be.
        Answer::Flowing(_) => return Err(ServiceError::Internal),
    };
    let bill = call.charge(&served, false)?;
    call.settle(&served, &bill, took_ms);
    let body = whole(&call, &served);
    let body = serde_json::to_vec(&body).map_err(|_| ServiceError::Internal)?;
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(
        HeaderName::from_static("x-sandbox-assumed"),
        HeaderValue::from_static("endpoint-inference"),
    );
    let stored = Stored::new(StatusCode::OK, &headers, Bytes::from(body));
    let response = stored.to_response();
    call.run.store(stored);
    Ok(response)
}

/// Interface: `model` is the endpoint's id; the rest is as on the chat route.
fn parse(body: &[u8], name: &str) -> Result<ChatRequest, ServiceError> {
    let mut body: Value = serde_json::from_slice(body).map_err(|error| {
        ServiceError::MalformedJson(format!("line {} column {}", error.line(), error.column()))
    })?;
    match body.get_mut("model") {
        Some(model) if *model == name => *model = json!(spec::MODEL),
        // What is no object, or has no model, is told as on the chat route.
        None | Some(Value::Null) => {}
        // Interface: "any other value returns 404", whatever its type.
        Some(_) => {
            return Err(ServiceError::NotFound(
                "model not found; on an endpoint it is the endpoint's id".to_owned(),
            ));
        }
    }
    ChatRequest::parse(body.to_string().as_bytes(), Lane::Inference)
}

/// A replay of an answer that had no receipt has none either.
fn replay(stored: &Stored) -> Response {
    let mut response = stored.to_replay();
    if let Ok(name) = HeaderName::from_bytes(spec::BILLED.as_bytes())
        && !stored.headers.contains_key(&name)
    {
        response.headers_mut().remove(name);
    }
    response
}

fn whole(call: &Call, served: &Served) -> Value {
    let clock = &call.state.clock;
    let mut body = chat_object::whole(clock, served, &chat_object::completion_id(clock));
    put(&mut body, "model", json!(call.endpoint.name));
    body
}
