//! `GET /v1/tasks`, `GET /v1/tasks/{task_id}` and `POST /v1/tasks/match`: the task catalog.
//!
//! Interface, Metering rules: "Task catalog reads (list, retrieve, match) are free." Promise: nothing here
//! checks or debits a balance, and no inference limit applies.

use super::in_path::InPath;
use crate::{
    catalog::{self, matching},
    error::{RouteResult, ServiceError, assumed_json, mark_assumed},
    evals::tasks,
    fields::Fields,
    inbound::Inbound,
    state::State,
};
use axum::{
    Extension,
    extract::{Query, State as Shared},
    response::Response,
};
use http::Uri;
use serde_json::{Value, json};
use std::sync::Arc;

/// Interface: "top_k (integer, default 5)".
const TOP_K_DEFAULT: usize = 5;
// Assumed (match-bounds): at most 50 candidates and 4,000 characters of description.
const TOP_K_MAX: usize = 50;
const QUERY_CHARS_MAX: usize = 4_000;

/// Interface: "Response {tasks: [Task]}."
pub async fn list() -> Response {
    let tasks: Vec<Value> = catalog::tasks()
        .iter()
        .map(|task| task.shown(None))
        .collect();
    assumed_json(json!({ "tasks": tasks }), &["task-catalog"])
}

pub async fn one(id: Result<InPath<String>, ServiceError>, uri: Uri) -> RouteResult {
    let examples_n = examples_n(&uri)?;
    // Interface: "404 for an unknown id."
    let task = id
        .ok()
        // Assumed (eval-task): a set may be graded against one that is in no list.
        .and_then(|InPath(id)| tasks::by_id(&id))
        .ok_or_else(|| ServiceError::NotFound("unknown task".to_owned()))?;
    Ok(assumed_json(task.shown(examples_n), &["task-catalog"]))
}

pub async fn matched(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> RouteResult {
    let wanted = MatchRequest::parse(&inbound.body)?;
    let found = matching::matched(&state.fleet, &wanted.query, wanted.top_k).await;
    inbound.fault.work(&state.clock, &state.holds).await;
    let mark = match found.matcher {
        matching::Matcher::Reason => "match-reason",
        matching::Matcher::Keyword => "match-keyword",
    };
    let mut response = assumed_json(&found, &[mark]);
    if found.capability.is_some() {
        mark_assumed(&mut response, "capabilities");
    }
    Ok(response)
}

struct MatchRequest {
    query: String,
    top_k: usize,
}

// === impl MatchRequest ===

impl MatchRequest {
    fn parse(body: &[u8]) -> Result<Self, ServiceError> {
        let fields = Fields::parse(body)?;
        // Interface: "query (string, required, non-empty and not whitespace-only)".
        let query = match fields.members().get("query") {
            None => return Err(ServiceError::invalid("query is required")),
            Some(Value::String(query)) => query,
            Some(_) => return Err(ServiceError::invalid("query must be a string")),
        };
        if query.trim().is_empty() {
            return Err(ServiceError::invalid("query must not be empty or blank"));
        }
        if query.chars().count() > QUERY_CHARS_MAX {
            return Err(ServiceError::invalid(format!(
                "query must be at most {QUERY_CHARS_MAX} characters"
            ))
            .assumed("match-bounds"));
        }
        let top_k = match fields.get("top_k") {
            None => TOP_K_DEFAULT,
            Some(top_k) => top_k
                .as_u64()
                .and_then(|n| usize::try_from(n).ok())
                .filter(|n| (1..=TOP_K_MAX).contains(n))
                .ok_or_else(|| {
                    ServiceError::invalid(format!("top_k must be an integer from 1 to {TOP_K_MAX}"))
                        .assumed("match-bounds")
                })?,
        };
        Ok(Self {
            query: query.clone(),
            top_k,
        })
    }
}

/// Interface: "examples_n (integer, optional; number of example rows requested when available)".
fn examples_n(uri: &Uri) -> Result<Option<usize>, ServiceError> {
    let wrong = || ServiceError::invalid("examples_n must be an integer of at least 0");
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).map_err(|_| wrong())?;
    let mut named = pairs.iter().filter(|(name, _)| name == "examples_n");
    let Some((_, text)) = named.next() else {
        return Ok(None);
    };
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) || named.next().is_some() {
        return Err(wrong());
    }
    // More than can be counted is more than there is.
    Ok(Some(text.parse().unwrap_or(usize::MAX)))
}
