//! `POST /v1/playground/frontier`: one prompt on a named frontier model.
//!
//! Promise: one debit per call, equal to `cost_micro_usd`; an Idempotency-Key is ignored here.

use crate::{
    error::{ServiceError, mark_assumed},
    inbound::Inbound,
    models::{self, roster},
    spec,
    state::State,
};
use axum::{
    Extension, Json,
    extract::State as Shared,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use std::sync::Arc;

pub async fn frontier(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> Result<Response, ServiceError> {
    let started = state.clock.elapsed();
    let body: Value = serde_json::from_slice(&inbound.body).map_err(|error| {
        ServiceError::MalformedJson(format!("line {} column {}", error.line(), error.column()))
    })?;
    let fields = body
        .as_object()
        .ok_or_else(|| ServiceError::invalid("the body must be a JSON object"))?;
    let name = fields
        .get("model")
        .filter(|name| !name.is_null())
        .ok_or_else(|| ServiceError::invalid("model is required"))?;
    // Interface: "any other value returns 400", whatever its type.
    let model = name
        .as_str()
        .and_then(roster::by_id)
        .filter(|model| model.comparison)
        .ok_or_else(|| ServiceError::BadRequest("unknown frontier model".to_owned()))?;
    let messages = models::request::messages(fields)?;
    if messages.len() > spec::PLAYGROUND_MESSAGES_MAX {
        return Err(ServiceError::invalid("messages must have 1 to 40 entries"));
    }
    state.books.check_balance(&inbound.org)?;
    let answer = state.fleet.frontier(model, &messages).await?;
    inbound.fault.work(&state.clock, &state.holds).await;
    state.billing.charge_unkeyed(&inbound, answer.cost)?;
    let latency_ms = u64::try_from(state.clock.elapsed().saturating_sub(started).as_millis())
        .unwrap_or(u64::MAX);
    let mut response = Json(json!({
        "model": model.id,
        "content": answer.draft.content,
        "cost_micro_usd": answer.cost,
        "latency_ms": latency_ms,
    }))
    .into_response();
    mark_assumed(&mut response, "frontier-ids");
    Ok(response)
}
