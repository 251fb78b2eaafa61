//! Path to handler, and nothing else.
//!
//! Promise: every route of the interface passes [`crate::front`]; what is not served answers 404 with a
//! `detail`; only `/sandbox/…` and `/openapi.json` are reached without a key, and `/storage/…` with a signed URL.

use crate::{
    control,
    error::{method_not_allowed, not_found},
    front::front,
    openapi, routes, spec,
    state::State,
};
use axum::{
    Router,
    middleware::from_fn_with_state,
    routing::{get, post, put},
};
use std::sync::Arc;

/// `/performance`, `/uptime`, `/cost`, `/quality`, `/activity`.
const ENDPOINT_METRIC: &str = "/v1/endpoints/{endpoint_id}/{metric}";
/// Below an endpoint's `url`; no path of the interface's table.
const ENDPOINT_CHAT: &str = "/v1/endpoints/{endpoint_id}/chat/completions";

pub fn router(state: Arc<State>) -> Router {
    let interface = Router::new()
        .route(spec::CHAT, post(routes::chat::create))
        .route(spec::AGENT_CHAT, post(routes::agent::create))
        .route(spec::MODELS, get(routes::models::list))
        .route(spec::AGENT_MODELS, get(routes::models::agent_list))
        .route(spec::AUTO_METRICS, get(routes::auto_metrics::document))
        .route(spec::EMBEDDINGS, post(routes::embeddings::create))
        .route(spec::TRANSCRIPTIONS, post(routes::audio::transcriptions))
        .route(spec::SPEECH, post(routes::audio::speech))
        .route(spec::RERANK, post(routes::rerank::create))
        .route(spec::IMAGE_GENERATIONS, post(routes::images::generations))
        .route(spec::IMAGE_EDITS, post(routes::images::edits))
        .route(
            spec::PLAYGROUND_FRONTIER,
            post(routes::playground::frontier),
        )
        .route(
            spec::EVAL_SETS,
            post(routes::eval_sets::create).get(routes::eval_sets::list),
        )
        .route(
            spec::EVAL_SET,
            get(routes::eval_sets::retrieve).delete(routes::eval_sets::delete),
        )
        .route(spec::ATTACH_BLOB, post(routes::blobs::attach))
        .route(spec::BLOB_UPLOAD_URL, post(routes::blobs::upload_url))
        .route(
            spec::BLOB_UPLOAD_COMPLETE,
            post(routes::blobs::upload_complete),
        )
        .route(spec::EVAL_RUNS, post(routes::eval_runs::create))
        .route(spec::EVAL_RUN, get(routes::eval_runs::retrieve))
        .route(
            spec::ENDPOINTS,
            get(routes::endpoints::list).post(routes::endpoints::create),
        )
        .route(
            spec::ENDPOINT,
            get(routes::endpoints::one).delete(routes::endpoints::delete),
        )
        .route(spec::ENDPOINT_START, post(routes::endpoints::start))
        .route(spec::ENDPOINT_STOP, post(routes::endpoints::stop))
        .route(ENDPOINT_METRIC, get(routes::endpoints::metric))
        .route(ENDPOINT_CHAT, post(routes::direct::on_url))
        .route(spec::TASKS, get(routes::tasks::list))
        .route(spec::TASKS_MATCH, post(routes::tasks::matched))
        .route(spec::TASK, get(routes::tasks::one))
        .route(spec::FRONTIER_MODELS, get(routes::roster::list))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(Arc::clone(&state), front));
    Router::new()
        .nest("/sandbox", control::routes())
        .route("/storage/{upload_id}", put(routes::blobs::store))
        .route("/openapi.json", get(openapi::document))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback_service(interface.with_state(Arc::clone(&state)))
        .with_state(state)
}
