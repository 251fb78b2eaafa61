//! The control route, `/sandbox/…`: read the books, set faults, limits, balance and time.
//!
//! Not part of the interface: no key, no limits, not in the request log. It takes and returns JSON; a wrong body
//! gets 422 and `{"detail": …}`. Unknown members are refused, and web pages get 403.
//!
//! docs/sandbox.md lists the routes with their bodies, and the members of a fault are documented on
//! [`crate::fault::Fault`].
//! Promise: what a route changed is on disk before it is answered, as far as it is kept.

mod door;
mod score;

use crate::{
    assumptions::assumptions,
    clock::ADVANCE_MAX,
    error::{self, RouteResult, ServiceError},
    fault::FaultRule,
    keep,
    money::MicroUsd,
    options::FIRST_ORG,
    settings::{LimitsPart, SettingsPart},
    state::State,
    steps::Step,
    verdict,
};
use axum::{
    Json, Router,
    extract::State as Shared,
    middleware::from_fn,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bytes::Bytes;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

pub fn routes() -> Router<Arc<State>> {
    Router::new()
        .route("/books", get(books))
        .route("/requests", get(requests).delete(forget_requests))
        .route(
            "/faults",
            get(faults).post(push_faults).delete(clear_faults),
        )
        .route("/release", post(release))
        .route("/clock", get(clock).post(advance))
        .route("/balance", post(balance))
        .route("/limits", get(limits).post(set_limits))
        .route("/settings", get(settings).post(change_settings))
        .route("/reset", post(reset))
        .route("/steps", get(list_steps).post(add_steps))
        .route("/verdict", get(judge))
        .route("/organizations", get(organizations).post(add_organization))
        .route("/assumptions", get(list_assumptions))
        .route("/score", post(score::score))
        // Below the door, like every route here.
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(from_fn(door::door))
}

fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, ServiceError> {
    serde_json::from_slice(body).map_err(|error| ServiceError::invalid(error.to_string()))
}

fn nothing() -> Response {
    Json(json!({})).into_response()
}

async fn books(Shared(state): Shared<Arc<State>>) -> Response {
    Json(state.books.view(FIRST_ORG)).into_response()
}

async fn requests(Shared(state): Shared<Arc<State>>) -> Response {
    Json(state.books.requests()).into_response()
}

async fn forget_requests(Shared(state): Shared<Arc<State>>) -> Response {
    state.books.forget_requests();
    nothing()
}

async fn faults(Shared(state): Shared<Arc<State>>) -> Response {
    Json(json!({"rules": state.faults.list()})).into_response()
}

async fn push_faults(Shared(state): Shared<Arc<State>>, body: Bytes) -> RouteResult {
    let rules: Vec<FaultRule> = match read::<Value>(&body)? {
        Value::Array(rules) => rules
            .into_iter()
            .map(|rule| {
                serde_json::from_value(rule)
                    .map_err(|error| ServiceError::invalid(error.to_string()))
            })
            .collect::<Result<_, _>>()?,
        _ => vec![read(&body)?],
    };
    for rule in &rules {
        rule.check().map_err(ServiceError::invalid)?;
    }
    for rule in rules {
        if !state.faults.push(rule) {
            return Err(ServiceError::invalid("too many fault rules"));
        }
    }
    Ok(Json(json!({"rules": state.faults.list().len()})).into_response())
}

async fn clear_faults(Shared(state): Shared<Arc<State>>) -> Response {
    state.faults.clear();
    nothing()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    hold: String,
}

async fn release(Shared(state): Shared<Arc<State>>, body: Bytes) -> RouteResult {
    let Release { hold } = read(&body)?;
    state.holds.release(hold);
    Ok(nothing())
}

async fn clock(Shared(state): Shared<Arc<State>>) -> Response {
    Json(json!({
        "now": state.clock.now().to_string(),
        "unix_s": state.clock.unix_s(),
        "elapsed_ms": state.clock.elapsed_ms(),
    }))
    .into_response()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    #[serde(default)]
    advance_s: u64,
    #[serde(default)]
    advance_ms: u64,
}

async fn advance(Shared(state): Shared<Arc<State>>, body: Bytes) -> RouteResult {
    let Advance {
        advance_s,
        advance_ms,
    } = read(&body)?;
    let by = Duration::from_secs(advance_s).saturating_add(Duration::from_millis(advance_ms));
    if !state.clock.try_advance(by, ADVANCE_MAX) {
        return Err(ServiceError::invalid(
            "the clock is at most 10 years ahead of the real time",
        ));
    }
    state.commit_all().await?;
    Ok(clock(Shared(state)).await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Balance {
    micro_usd: u64,
    org: Option<String>,
}

async fn balance(Shared(state): Shared<Arc<State>>, body: Bytes) -> RouteResult {
    let Balance { micro_usd, org } = read(&body)?;
    let amount =
        MicroUsd::new(micro_usd).ok_or_else(|| ServiceError::invalid("micro_usd: too large"))?;
    if !state.books.set_balance(org.as_deref(), amount) {
        return Err(ServiceError::invalid("org: no such organization"));
    }
    state.checkpoint.commit().await?;
    Ok(nothing())
}

async fn limits(Shared(state): Shared<Arc<State>>) -> Response {
    Json(state.limits.view()).into_response()
}

async fn set_limits(Shared(state): Shared<Arc<State>>, body: Bytes) -> RouteResult {
    let wanted: LimitsPart = read(&body)?;
    state.limits.set(wanted);
    state.commit_all().await?;
    Ok(limits(Shared(state)).await)
}

async fn settings(Shared(state): Shared<Arc<State>>) -> Response {
    Json(state.settings()).into_response()
}

async fn change_settings(Shared(state): Shared<Arc<State>>, body: Bytes) -> RouteResult {
    let wanted: SettingsPart = read(&body)?;
    let settings = state.settings.change(wanted);
    state.commit_all().await?;
    Ok(Json(settings).into_response())
}

async fn reset(Shared(state): Shared<Arc<State>>) -> RouteResult {
    // Before the books, which clear the disk: an endpoint that is left would queue its traffic behind that.
    state.endpoints.forget_all()?;
    state.books.reset(|| state.keys.forget_all());
    state.pins.forget_all();
    state.steps.restart();
    state.faults.clear();
    state.evals.reset();
    if state.keep.is_on() {
        state.keep.push(state.auth.kept());
        state.commit_all().await?;
    }
    Ok(nothing())
}

/// One more organization, or another key of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewOrganization {
    name: String,
    api_key: String,
    balance_micro_usd: Option<u64>,
}

async fn organizations(Shared(state): Shared<Arc<State>>) -> Response {
    let balances = state.books.view(FIRST_ORG).balances_micro_usd;
    Json(json!({"organizations": balances.keys().collect::<Vec<_>>()})).into_response()
}

async fn add_organization(Shared(state): Shared<Arc<State>>, body: Bytes) -> RouteResult {
    let wanted: NewOrganization = read(&body)?;
    if wanted.name.is_empty() || wanted.name.chars().count() > 100 {
        return Err(ServiceError::invalid("name: 1 to 100 characters"));
    }
    if wanted.api_key.is_empty() || wanted.api_key.contains(char::is_whitespace) {
        return Err(ServiceError::invalid("api_key: empty or with a space"));
    }
    let balance = match wanted.balance_micro_usd {
        Some(balance) => MicroUsd::new(balance)
            .ok_or_else(|| ServiceError::invalid("balance_micro_usd: too large"))?,
        None => state.opening_balance,
    };
    if state.books.has_organization(&wanted.name) {
        return Err(ServiceError::invalid(
            "name: there is an organization of this name",
        ));
    }
    let kept = state
        .auth
        .add(&wanted.name, &wanted.api_key)
        .map_err(ServiceError::invalid)?;
    state.books.add_organization(&wanted.name, balance);
    state.keep.push(keep::Mutation::put(
        keep::ORGANIZATIONS,
        wanted.name.clone(),
        &kept,
    ));
    state.commit_all().await?;
    Ok(Json(json!({"name": wanted.name})).into_response())
}

async fn list_steps(Shared(state): Shared<Arc<State>>) -> Response {
    Json(state.steps.view()).into_response()
}

async fn add_steps(Shared(state): Shared<Arc<State>>, body: Bytes) -> RouteResult {
    let steps: Vec<Step> = match read::<Value>(&body)? {
        Value::Array(_) => read(&body)?,
        _ => vec![read(&body)?],
    };
    for step in &steps {
        step.check().map_err(ServiceError::invalid)?;
    }
    if !state.steps.push(steps) {
        return Err(ServiceError::invalid("too many steps"));
    }
    Ok(Json(state.steps.view()).into_response())
}

async fn judge(Shared(state): Shared<Arc<State>>) -> Response {
    Json(verdict::judge(&state.books.requests().requests)).into_response()
}

async fn list_assumptions() -> Response {
    Json(json!({"assumptions": assumptions()})).into_response()
}
