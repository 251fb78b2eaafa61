//! Path to handler, and nothing else.
//!
//! Promise: every route of the interface passes [`crate::front`]; what is not served answers 404 with a
//! `detail`; only `/sandbox/…` is reached without a key.

use crate::{
    control,
    error::{ServiceError, mark_assumed},
    front::front,
    routes, spec,
    state::State,
};
use axum::{
    Router,
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use std::sync::Arc;

pub fn router(state: Arc<State>) -> Router {
    let interface = Router::new()
        .route(spec::CHAT, post(routes::chat::create))
        .route(spec::AGENT_CHAT, post(routes::agent::create))
        .route(spec::MODELS, get(routes::models::list))
        .route(spec::AGENT_MODELS, get(routes::models::agent_list))
        .route(spec::AUTO_METRICS, get(routes::auto_metrics::document))
        .route(spec::EMBEDDINGS, post(routes::embeddings::create))
        .route(
            spec::PLAYGROUND_FRONTIER,
            post(routes::playground::frontier),
        )
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(Arc::clone(&state), front));
    Router::new()
        .nest("/sandbox", control::routes())
        .fallback_service(interface.with_state(Arc::clone(&state)))
        .with_state(state)
}

// Assumed (unknown-route): 404 and 405, in the form of every other error.
async fn not_found() -> Response {
    unknown(ServiceError::NotFound("no such route".to_owned()))
}

async fn method_not_allowed() -> Response {
    unknown(ServiceError::MethodNotAllowed)
}

fn unknown(error: ServiceError) -> Response {
    let mut response = error.into_response();
    mark_assumed(&mut response, "unknown-route");
    response
}
