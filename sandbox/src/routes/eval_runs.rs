//! `/v1/eval-runs`: start a run, read its progress.
//!
//! Promise: a run that was answered continues without its client; an Idempotency-Key is ignored, so
//! each POST is a run of its own.

use super::in_path::InPath;
use crate::{
    error::{RouteResult, assumed_json},
    evals::{NewRun, runs, work},
    fields::Fields,
    inbound::Inbound,
    state::State,
};
use axum::{Extension, Json, extract::State as Shared, response::IntoResponse};
use serde_json::json;
use std::sync::Arc;

/// Interface, `POST /v1/eval-runs`: answer `{run_id, status}`.
///
/// Assumed (eval-run-pace): a fault's `chunk_delay_ms`, and `hold_chunks_name` with `hold_after_chunks`,
/// slow down the run this request starts, its answers in the place of chunks.
pub async fn create(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> RouteResult {
    let fields = Fields::parse(&inbound.body)?;
    let wanted = NewRun {
        eval_set_id: fields.name("eval_set_id")?,
        candidate_models: fields.texts("candidate_model_ids")?,
        body_fingerprint: inbound.fingerprint().to_hex(),
    };
    inbound.fault.work(&state.clock, &state.holds).await;
    let run = runs::create(&state.evals, &inbound.org, wanted)?;
    work::begin(&state.evals, &run.id, inbound.fault.clone());
    Ok(Json(json!({"run_id": run.id, "status": run.status})).into_response())
}

/// Interface, `GET /v1/eval-runs/{run_id}`: answer `{run, results}`.
pub async fn retrieve(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
    InPath(id): InPath<String>,
) -> RouteResult {
    let run = state.evals.run(&inbound.org, &id)?;
    let mark = match run.status.is_terminal() {
        true => "eval-result",
        false => "eval-run-progress",
    };
    Ok(assumed_json(run.envelope(), &[mark]))
}
