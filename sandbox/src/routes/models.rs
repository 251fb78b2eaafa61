//! The two model lists. Each has exactly one entry, `auto`.

use crate::{
    error::{ServiceError, mark_assumed},
    spec,
    state::State,
};
use axum::{
    Json,
    extract::State as Shared,
    response::{IntoResponse, Response},
};
use serde_json::json;
use std::sync::Arc;

/// When `auto` was created. Assumed (model-created): any fixed time.
const CREATED_UNIX_S: i64 = 1_767_225_600;

/// `GET /v1/models`: `{data: [{id, owned_by, created}]}`.
pub async fn list() -> Response {
    // Assumed (object-members): `object` is added, as OpenAI clients expect it.
    let mut response = Json(json!({
        "object": "list",
        "data": [{
            "id": spec::MODEL,
            "object": "model",
            "owned_by": spec::OWNER,
            "created": CREATED_UNIX_S,
        }],
    }))
    .into_response();
    mark_assumed(&mut response, "object-members");
    mark_assumed(&mut response, "model-created");
    response
}

/// `GET /agent/v1/models`.
pub async fn agent_list(Shared(state): Shared<Arc<State>>) -> Result<Response, ServiceError> {
    if !state.settings().agent_enabled {
        // Interface, Errors 404: agent surface not enabled.
        return Err(ServiceError::agent_disabled());
    }
    let mut response = Json(json!({
        "object": "list",
        "data": [{
            "id": spec::MODEL,
            "object": "model",
            "owned_by": spec::OWNER,
            "created": CREATED_UNIX_S,
            "max_model_len": spec::CONTEXT_WINDOW_TOKENS,
            "context_window": spec::CONTEXT_WINDOW_TOKENS,
        }],
    }))
    .into_response();
    mark_assumed(&mut response, "model-created");
    Ok(response)
}
