//! Path to handler; one file per family of routes, in which each handler reads as its clause of the interface.
//!
//! A new route has its path in `spec`, its row in [`router`] and its handler in a file here.
//! Promise: every route of the interface passes [`crate::front`]; what is not served answers 404 with a
//! `detail`; only `/sandbox/…` and `/openapi.json` are reached without a key, and `/storage/…` with a signed URL.

mod agent;
mod audio;
mod auto_metrics;
mod blobs;
mod chat;
mod chat_object;
mod chunks;
mod completion;
mod direct;
mod embeddings;
mod endpoints;
mod eval_runs;
mod eval_sets;
mod images;
mod in_path;
mod keyed;
mod models;
mod playground;
mod rerank;
mod roster;
mod seller;
mod streaming;
mod tasks;

use crate::{
    control,
    error::{method_not_allowed, not_found},
    front::front,
    openapi, spec,
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
        .route(spec::CHAT, post(chat::create))
        .route(spec::AGENT_CHAT, post(agent::create))
        .route(spec::MODELS, get(models::list))
        .route(spec::AGENT_MODELS, get(models::agent_list))
        .route(spec::AUTO_METRICS, get(auto_metrics::document))
        .route(spec::EMBEDDINGS, post(embeddings::create))
        .route(spec::TRANSCRIPTIONS, post(audio::transcriptions))
        .route(spec::SPEECH, post(audio::speech))
        .route(spec::RERANK, post(rerank::create))
        .route(spec::IMAGE_GENERATIONS, post(images::generations))
        .route(spec::IMAGE_EDITS, post(images::edits))
        .route(spec::PLAYGROUND_FRONTIER, post(playground::frontier))
        .route(
            spec::EVAL_SETS,
            post(eval_sets::create).get(eval_sets::list),
        )
        .route(
            spec::EVAL_SET,
            get(eval_sets::retrieve).delete(eval_sets::delete),
        )
        .route(spec::ATTACH_BLOB, post(blobs::attach))
        .route(spec::BLOB_UPLOAD_URL, post(blobs::upload_url))
        .route(spec::BLOB_UPLOAD_COMPLETE, post(blobs::upload_complete))
        .route(spec::EVAL_RUNS, post(eval_runs::create))
        .route(spec::EVAL_RUN, get(eval_runs::retrieve))
        .route(
            spec::ENDPOINTS,
            get(endpoints::list).post(endpoints::create),
        )
        .route(
            spec::ENDPOINT,
            get(endpoints::one).delete(endpoints::delete),
        )
        .route(spec::ENDPOINT_START, post(endpoints::start))
        .route(spec::ENDPOINT_STOP, post(endpoints::stop))
        .route(ENDPOINT_METRIC, get(endpoints::metric))
        .route(ENDPOINT_CHAT, post(direct::on_url))
        .route(spec::TASKS, get(tasks::list))
        .route(spec::TASKS_MATCH, post(tasks::matched))
        .route(spec::TASK, get(tasks::one))
        .route(spec::FRONTIER_MODELS, get(roster::list))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(Arc::clone(&state), front));
    Router::new()
        .nest("/sandbox", control::routes())
        .route("/storage/{upload_id}", put(blobs::store))
        .route("/openapi.json", get(openapi::document))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback_service(interface.with_state(Arc::clone(&state)))
        .with_state(state)
}
