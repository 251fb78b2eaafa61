//! Inference on a deployed endpoint: through its `url`, or by its id as `model` on `/v1/chat/completions`.
//!
//! The interface leaves open which of the two holds ("Deploy-endpoint model-id question"). Assumed
//! (endpoint-model): both; the setting `endpoint_model = false` makes the id a 404 on the chat route.
//! Promise: one debit per answer and none per error; no receipt header or comment ("direct model calls carry
//! none of them"); every request that reached the endpoint is in its metrics once.

use super::{
    completion,
    in_path::InPath,
    seller::{Deployed, Seller},
};
use crate::{
    endpoints::record::Endpoint,
    error::{RouteResult, ServiceError},
    idempotency::WhileRunning,
    inbound::Inbound,
    purchase::{Keeps, Order, Rules, purchase},
    state::State,
};
use axum::{Extension, extract::State as Shared};
use serde::Deserialize;
use std::sync::Arc;

/// `POST {url}/chat/completions`. Assumed (endpoint-url): an Idempotency-Key is not honored here,
/// because the interface does not name this route among those that honor one.
pub async fn on_url(
    Shared(state): Shared<Arc<State>>,
    InPath(id): InPath<String>,
    Extension(inbound): Extension<Inbound>,
) -> RouteResult {
    let endpoint = state.endpoints.get(&inbound.org, &id)?;
    complete(state, inbound.without_key(), endpoint).await
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

/// A repeat of a request to an endpoint that was deleted since; `None` for any other request.
///
/// Interface, Idempotency-Key: "stored response replayed … nothing runs or bills": so the endpoint need
/// not exist. What was not stored cannot run again.
pub async fn of_gone(state: &Arc<State>, inbound: &Inbound) -> Option<RouteResult> {
    let fingerprint = inbound.fingerprint();
    let bound = state.keys.of_an_endpoint(inbound.key.as_ref()?)?;
    if !bound.is_same_as(&fingerprint) {
        return None;
    }
    let form = async {
        Ok(Order {
            fingerprint,
            while_running: WhileRunning::Wait,
            keeps: Keeps::Answer,
            work: async { Err(gone()) },
        })
    };
    let answer = purchase(state, inbound.clone(), Rules::Inference, form).await;
    // As without a key: no balance would bring the endpoint back.
    Some(answer.map_err(|error| match error {
        ServiceError::BalanceEmpty => gone(),
        error => error,
    }))
}

fn gone() -> ServiceError {
    ServiceError::NotFound("no such endpoint".to_owned())
}

pub async fn complete(state: Arc<State>, inbound: Inbound, endpoint: Endpoint) -> RouteResult {
    let began = state.clock.elapsed();
    let deployed = Deployed { endpoint, began };
    completion::complete(state, inbound, Seller::Endpoint(Box::new(deployed))).await
}
