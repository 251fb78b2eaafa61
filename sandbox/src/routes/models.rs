//! The two model lists. Each has exactly one entry, `auto`.

use crate::{
    error::{RouteResult, ServiceError, assumed_json},
    spec,
    state::State,
};
use axum::{extract::State as Shared, response::Response};
use serde_json::{Value, json};
use std::sync::Arc;

/// When `auto` was created. Assumed (model-created): any fixed time.
const CREATED_UNIX_S: i64 = 1_767_225_600;

/// `GET /v1/models`: `{data: [{id, owned_by, created}]}`.
pub async fn list() -> Response {
    // Assumed (object-members): `object` is added, as OpenAI clients expect it.
    let list = json!({"object": "list", "data": [auto()]});
    assumed_json(list, &["object-members", "model-created"])
}

/// `GET /agent/v1/models`.
pub async fn agent_list(Shared(state): Shared<Arc<State>>) -> RouteResult {
    if !state.settings().agent_enabled {
        // Interface, Errors 404: agent surface not enabled.
        return Err(ServiceError::agent_disabled());
    }
    let mut auto = auto();
    if let Some(members) = auto.as_object_mut() {
        for name in ["max_model_len", "context_window"] {
            members.insert(name.to_owned(), json!(spec::CONTEXT_WINDOW_TOKENS));
        }
    }
    let list = json!({"object": "list", "data": [auto]});
    Ok(assumed_json(list, &["model-created"]))
}

fn auto() -> Value {
    json!({
        "id": spec::MODEL,
        "object": "model",
        "owned_by": spec::OWNER,
        "created": CREATED_UNIX_S,
    })
}
