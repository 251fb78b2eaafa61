//! `/v1/eval-sets`: create, list, retrieve, delete.
//!
//! Promise: nothing here bills, and all of it works with an empty balance; an Idempotency-Key is
//! ignored.

use super::in_path::InPath;
use crate::{
    error::{RouteResult, assumed_json, mark_assumed},
    evals::{NewSet, sets},
    form::Form,
    inbound::Inbound,
    state::State,
};
use axum::{Extension, Json, extract::State as Shared, response::IntoResponse};
use http::{HeaderMap, StatusCode};
use serde_json::json;
use std::sync::Arc;

/// Interface, `POST /v1/eval-sets`: parts `items`, `prompt`, `task_id`, `name`; answer `{eval_set}`.
pub async fn create(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
    headers: HeaderMap,
) -> RouteResult {
    let form = Form::read(&headers, inbound.body.clone(), "eval-form").await?;
    let new = NewSet {
        items: form.file("items")?,
        prompt: form.required_text("prompt")?,
        task_id: form.trimmed("task_id")?,
        name: form.trimmed("name")?,
    };
    inbound.fault.work(&state.clock, &state.holds).await;
    let set = sets::create(&state.evals, &inbound.org, &new).await?;
    Ok(assumed_json(json!({"eval_set": set}), &["eval-task"]))
}

pub async fn list(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> RouteResult {
    let sets = sets::list(&state.evals, &inbound.org)?;
    Ok(Json(json!({"eval_sets": sets})).into_response())
}

pub async fn retrieve(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
    InPath(id): InPath<String>,
) -> RouteResult {
    let set = state.evals.set(&inbound.org, &id)?;
    Ok(Json(json!({"eval_set": set})).into_response())
}

/// Interface, `DELETE /v1/eval-sets/{eval_set_id}`: "no response content is used".
pub async fn delete(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
    InPath(id): InPath<String>,
) -> RouteResult {
    inbound.fault.work(&state.clock, &state.holds).await;
    sets::delete(&state.evals, &inbound.org, &id)?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    mark_assumed(&mut response, "eval-set-delete");
    Ok(response)
}
