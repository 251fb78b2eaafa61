//! `/v1/endpoints…`: deploy, read, start, stop, delete and measure.
//!
//! None of it is inference: no ceiling, no debit, and it works with an empty balance.
//! Promise: every answer shows the endpoint as it is at that instant, to its own organization alone.

use super::in_path::InPath;
use crate::{
    deploy::{self, DeployParts},
    endpoints::{
        metrics::{Metric, Window},
        record::Endpoint,
    },
    error::{RouteResult, ServiceError, assumed_json, mark_assumed},
    inbound::Inbound,
    sse,
    state::State,
};
use axum::{
    Extension,
    extract::{RawQuery, State as Shared},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, StatusCode, header};
use serde_json::Value;
use std::sync::Arc;

/// The assumed address of the service for a request without a `Host` header.
const BASE_DEFAULT: &str = "http://127.0.0.1:8329";

pub async fn create(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
    headers: HeaderMap,
) -> RouteResult {
    let parts = DeployParts {
        clock: state.clock.clone(),
        endpoints: Arc::clone(&state.endpoints),
        fleet: Arc::clone(&state.fleet),
        closing: state.closing.clone(),
        settings: state.settings.clone(),
    };
    let deploy = deploy::begin(parts, &inbound, base(&headers))?;
    inbound.fault.work(&state.clock, &state.holds).await;
    let (frames, body) = sse::body(inbound.connection_end.clone());
    let writer = state.event_writer(inbound.fault.clone(), frames);
    // Assumed (deploy-abandoned): a task of its own, so a client that leaves does not end the deploy.
    state.tasks.spawn(deploy.run(inbound.fault, writer));
    let mut response = sse::response(body);
    mark_assumed(&mut response, "deploy-stages");
    Ok(response)
}

/// Interface: "array of Endpoint, every endpoint the organization can access in any status".
pub async fn list(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
    headers: HeaderMap,
) -> Response {
    let (now, base) = (state.clock.now(), base(&headers));
    let own = state.endpoints.list(&inbound.org);
    let views: Vec<Value> = own.iter().map(|one| one.view(now, &base)).collect();
    assumed_json(views, &["endpoint-record"])
}

pub async fn one(
    Shared(state): Shared<Arc<State>>,
    InPath(id): InPath<String>,
    Extension(inbound): Extension<Inbound>,
    headers: HeaderMap,
) -> RouteResult {
    let endpoint = state.endpoints.get(&inbound.org, &id)?;
    Ok(shown(&state, &endpoint, &headers))
}

pub async fn start(
    Shared(state): Shared<Arc<State>>,
    InPath(id): InPath<String>,
    Extension(inbound): Extension<Inbound>,
    headers: HeaderMap,
) -> RouteResult {
    inbound.fault.work(&state.clock, &state.holds).await;
    let warm_up_ms = state.settings().endpoint_warm_up_ms;
    let now = state.clock.now();
    let endpoint = state.endpoints.start(&inbound.org, &id, now, warm_up_ms)?;
    Ok(turned(&state, &endpoint, &headers))
}

pub async fn stop(
    Shared(state): Shared<Arc<State>>,
    InPath(id): InPath<String>,
    Extension(inbound): Extension<Inbound>,
    headers: HeaderMap,
) -> RouteResult {
    inbound.fault.work(&state.clock, &state.holds).await;
    let endpoint = state.endpoints.stop(&inbound.org, &id, state.clock.now())?;
    Ok(turned(&state, &endpoint, &headers))
}

pub async fn delete(
    Shared(state): Shared<Arc<State>>,
    InPath(id): InPath<String>,
    Extension(inbound): Extension<Inbound>,
) -> RouteResult {
    inbound.fault.work(&state.clock, &state.holds).await;
    state.endpoints.remove(&inbound.org, &id)?;
    // Assumed (endpoint-answers): nothing is left to show.
    let mut response = StatusCode::NO_CONTENT.into_response();
    mark_assumed(&mut response, "endpoint-answers");
    Ok(response)
}

pub async fn metric(
    Shared(state): Shared<Arc<State>>,
    InPath((id, name)): InPath<(String, String)>,
    RawQuery(query): RawQuery,
    Extension(inbound): Extension<Inbound>,
) -> RouteResult {
    let metric = Metric::named(&name)
        .ok_or_else(|| ServiceError::NotFound("no such metric of an endpoint".to_owned()))?;
    let now = state.clock.now();
    state.endpoints.get(&inbound.org, &id)?;
    let window = Window::read(query.as_deref().unwrap_or(""), now)?;
    let document = state
        .endpoints
        .look(&inbound.org, &id, |endpoint, traffic| {
            metric.document(endpoint, traffic, window, now)
        })?;
    Ok(assumed_json(document, &["endpoint-metrics"]))
}

fn shown(state: &State, endpoint: &Endpoint, headers: &HeaderMap) -> Response {
    let view = endpoint.view(state.clock.now(), &base(headers));
    assumed_json(view, &["endpoint-record", "endpoint-url"])
}

/// Assumed (endpoint-answers): start and stop answer with the endpoint.
fn turned(state: &State, endpoint: &Endpoint, headers: &HeaderMap) -> Response {
    let mut response = shown(state, endpoint, headers);
    mark_assumed(&mut response, "endpoint-answers");
    mark_assumed(&mut response, "endpoint-transitions");
    response
}

/// The address the client reached the service at.
fn base(headers: &HeaderMap) -> String {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .filter(|host| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
            !host.is_empty() && host.len() <= 255 && host.chars().all(plain)
        });
    host.map_or_else(|| BASE_DEFAULT.to_owned(), |host| format!("http://{host}"))
}
