//! The two model lists. Each has exactly one entry, `auto`.

use crate::{error::ServiceError, spec, state::State};
use axum::{Json, extract::State as Shared};
use serde_json::{Value, json};
use std::sync::Arc;

/// When `auto` came into the world. Assumed (model-created): any fixed time.
const CREATED_UNIX_S: i64 = 1_767_225_600;

/// `GET /v1/models`: `{data: [{id, owned_by, created}]}`.
pub async fn list() -> Json<Value> {
    // Assumed (object-members): `object` is added, as OpenAI clients expect it.
    Json(json!({
        "object": "list",
        "data": [{
            "id": spec::MODEL,
            "object": "model",
            "owned_by": spec::OWNER,
            "created": CREATED_UNIX_S,
        }],
    }))
}

/// `GET /agent/v1/models`.
pub async fn agent_list(Shared(state): Shared<Arc<State>>) -> Result<Json<Value>, ServiceError> {
    if !state.settings().agent_enabled {
        // Interface, Errors 404: agent surface not enabled.
        return Err(ServiceError::agent_disabled());
    }
    Ok(Json(json!({
        "object": "list",
        "data": [{
            "id": spec::MODEL,
            "object": "model",
            "owned_by": spec::OWNER,
            "created": CREATED_UNIX_S,
            "max_model_len": spec::CONTEXT_WINDOW_TOKENS,
            "context_window": spec::CONTEXT_WINDOW_TOKENS,
        }],
    })))
}
