//! `POST /v1/playground/frontier`: one prompt on a named frontier model.
//!
//! Promise: one debit per call, equal to `cost_micro_usd`; an Idempotency-Key is ignored here.

use crate::{
    books::Debit,
    error::{ServiceError, mark_assumed},
    front::Inbound,
    models::{self, Dice},
    money::Price,
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

/// Assumed (frontier-ids): the four ids are not shown; these name no vendor. Prices are assumed too.
const MODELS: [(&str, Price); 4] = [
    (
        "frontier-a",
        Price {
            prompt_per_million: 3_000_000,
            completion_per_million: 15_000_000,
        },
    ),
    (
        "frontier-b",
        Price {
            prompt_per_million: 2_500_000,
            completion_per_million: 10_000_000,
        },
    ),
    (
        "frontier-c",
        Price {
            prompt_per_million: 1_250_000,
            completion_per_million: 10_000_000,
        },
    ),
    (
        "frontier-d",
        Price {
            prompt_per_million: 5_000_000,
            completion_per_million: 25_000_000,
        },
    ),
];

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
        .and_then(Value::as_str)
        .ok_or_else(|| ServiceError::invalid("model is required"))?;
    // Interface: any other value returns 400.
    let (name, price) = MODELS
        .into_iter()
        .find(|(id, _)| *id == name)
        .ok_or_else(|| ServiceError::BadRequest("unknown frontier model".to_owned()))?;
    let messages = models::request::messages(fields)?;
    if messages.len() > spec::PLAYGROUND_MESSAGES_MAX {
        return Err(ServiceError::invalid("messages must have 1 to 40 entries"));
    }
    state.books.check_balance(&inbound.org)?;
    let dice = Dice {
        seed: state.seed,
        run: state.next_run(),
    };
    let (draft, usage) = models::frontier_only(&messages, &dice, name);
    inbound.fault.work(&state.clock, &state.holds).await;
    let cost = price
        .cost(usage.prompt_tokens, usage.completion_tokens)
        .ok_or(ServiceError::Internal)?;
    state.books.debit(Debit {
        n: 0,
        org: inbound.org.clone(),
        key: None,
        route: inbound.path.clone(),
        amount_micro_usd: cost,
        request_id: inbound.request_id.clone(),
        at: state.clock.now().to_string(),
        stream: false,
        body_fingerprint: inbound.fingerprint().to_hex(),
    })?;
    let latency_ms = u64::try_from(state.clock.elapsed().saturating_sub(started).as_millis())
        .unwrap_or(u64::MAX);
    let mut response = Json(json!({
        "model": name,
        "content": draft.content,
        "cost_micro_usd": cost,
        "latency_ms": latency_ms,
    }))
    .into_response();
    mark_assumed(&mut response, "frontier-ids");
    Ok(response)
}
