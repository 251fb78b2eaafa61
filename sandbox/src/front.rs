//! The front of every route of the interface: the work before and after a handler.
//!
//! Order: request id; body (413 over 30 MB); fault; key (401, 403); the handler, in a task of its own; receipt
//! faults; the log line. Promise: once the body is whole, a client that leaves changes nothing: the work runs
//! to its end, is debited and stored.

use crate::{
    connection::{ConnectionEnd, HangUp},
    error::{ServiceError, mark_assumed},
    fault::{self, Fault, RequestFacts},
    fingerprint::{hex, sha256},
    inbound::Inbound,
    key_id::KeyId,
    receipt,
    received::Received,
    rollup, spec, sse,
    state::State,
};
use axum::{
    Json,
    body::Body,
    extract::{Request, State as Shared},
    middleware::Next,
    response::{IntoResponse, Response},
};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// After a 413 this much more is read, so that the client gets to read the answer.
const DISCARD_BYTES_MAX: usize = 128 * 1024 * 1024;

pub async fn front(Shared(state): Shared<Arc<State>>, request: Request, next: Next) -> Response {
    let request_id = format!("req_{}", state.clock.new_id());
    if state.do_due_steps()
        && let Err(error) = state.commit_all().await
    {
        return ServiceError::from(error).into_response();
    }
    let (parts, body) = request.into_parts();
    let agent_lane = parts.uri.path().starts_with(spec::AGENT_PREFIX);
    let n = state.books.receive(received(&state, &parts, &request_id));
    let end = parts
        .extensions
        .get::<ConnectionEnd>()
        .cloned()
        .unwrap_or_default();

    let mut response = match read_body(&parts.headers, body).await {
        Ok(body) => answer(&state, n, parts, body, end, &request_id, next).await,
        Err(error) => error.into_response(),
    };

    receipt::set(response.headers_mut(), spec::REQUEST_ID, &request_id);
    let status = response.status();
    let hung_up = response.extensions().get::<HangUp>().is_some();
    if !status.is_success() && !hung_up {
        state.books.count_refusal(status.as_u16());
        if agent_lane {
            mark_assumed(&mut response, "agent-error-body");
        }
    }
    let replayed = response.headers().contains_key(spec::REPLAYED);
    let retry_after_s = response
        .headers()
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.parse().ok());
    let ended_ms = state.clock.elapsed_ms();
    state.books.amend(n, |line| {
        line.ended_ms = Some(ended_ms);
        line.retry_after_s = retry_after_s;
        line.status = (!hung_up).then_some(status.as_u16());
        line.replayed = replayed;
    });
    tracing::debug!(%request_id, status = status.as_u16(), "answered");
    response
}

async fn answer(
    state: &Arc<State>,
    n: u64,
    parts: Parts,
    body: Bytes,
    end: ConnectionEnd,
    request_id: &str,
    next: Next,
) -> Response {
    let key_text = text(&parts.headers, spec::IDEMPOTENCY_KEY);
    let path = parts.uri.path().to_owned();
    let fault = state.faults.take(&RequestFacts {
        method: parts.method.as_str(),
        path: &path,
        body: &body,
        idempotency_key: key_text.as_deref(),
    });
    end.arm(fault.cut);
    let body_sha256 = hex(&sha256(&body));
    let stream = fault::asks_for_stream(&body);
    let summary = (fault != Fault::default()).then(|| fault.summary());
    state.books.amend(n, |received| {
        received.body_bytes = Some(body.len());
        received.body_sha256 = Some(body_sha256);
        received.stream = stream;
        received.fault = summary;
    });
    let org = match state.auth.org(&parts.headers) {
        Ok(org) => org,
        Err(error) => return error.into_response(),
    };
    let meter = Meter::begin(state, &org, &path);
    if let Some(refused) = instead_of_work(state, &fault, &path).await {
        meter.end(refused.status());
        return refused;
    }
    let key = match KeyId::of(&org, &parts.headers) {
        Ok(key) => key,
        Err(error) => {
            let refused = error.assumed("key-form").into_response();
            meter.end(refused.status());
            return refused;
        }
    };
    let inbound = Inbound {
        request_id: request_id.to_owned(),
        org,
        path,
        key,
        key_text,
        session: parts.headers.get(spec::SESSION).cloned(),
        rte_query: parts.headers.get(spec::RTE_QUERY).cloned(),
        body,
        fault: fault.clone(),
        connection_end: end.clone(),
    };
    let lookup = parts.method == Method::GET;
    let agent_lane = parts.uri.path().starts_with(spec::AGENT_PREFIX);
    let mut request = Request::from_parts(parts, Body::empty());
    request.extensions_mut().insert(inbound);
    // A task of its own: when the client leaves, hyper drops our future, not the work.
    let keeping = Arc::clone(state);
    let id = request_id.to_owned();
    let work = state.tasks.spawn(async move {
        let response = next.run(request).await;
        if streams(&response) {
            // Its debit is still to come: the task that writes the stream commits it, and everything
            // it depends on.
            return response;
        }
        match keeping.checkpoint.settle(&id).await {
            Ok(()) => response,
            Err(error) => ServiceError::from(error).into_response(),
        }
    });
    let mut response = match work.await {
        Ok(response) => response,
        Err(error) => {
            tracing::error!(%error, %request_id, "a handler broke");
            ServiceError::Internal.into_response()
        }
    };
    if agent_lane {
        ask_for_patience(&mut response);
    }
    meter.end(response.status());
    if lookup {
        // A read has no work that would have to continue.
        fault.work(&state.clock, &state.holds).await;
    }
    spoiled(response, &fault, end).await
}

/// One inference request on its way into the rollup; other routes are not counted there.
struct Meter<'a> {
    state: &'a State,
    org: String,
    began: Duration,
    counts: bool,
}

// === impl Meter ===

impl<'a> Meter<'a> {
    fn begin(state: &'a State, org: &str, path: &str) -> Self {
        Self {
            state,
            org: org.to_owned(),
            began: state.clock.elapsed(),
            counts: rollup::counts(path),
        }
    }

    fn end(self, status: StatusCode) {
        if self.counts {
            let took = self.state.clock.elapsed().saturating_sub(self.began);
            let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            let at = self.state.clock.now();
            let books = &self.state.books;
            books.count_request(&self.org, at, took_ms, status.is_success());
        }
    }
}

/// Answers that a fault puts in the place of the work.
async fn instead_of_work(state: &State, fault: &Fault, path: &str) -> Option<Response> {
    if fault.cut_before_work {
        return Some(hang_up());
    }
    if !fault.warm_up && !fault.empty_balance && fault.status.is_none() {
        return None;
    }
    fault.work(&state.clock, &state.holds).await;
    if fault.empty_balance {
        return Some(ServiceError::BalanceEmpty.into_response());
    }
    let status = fault.status.unwrap_or(503);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match &fault.body {
        Some(Value::String(plain)) => plain.clone().into_response(),
        Some(other) => Json(other).into_response(),
        None => Json(json!({"detail": format!("fault: {status}")})).into_response(),
    };
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let warm_up = fault.warm_up.then(|| {
        // Interface, Errors 503: on the agent lane Retry-After is 30 seconds.
        let seconds = if path.starts_with(spec::AGENT_PREFIX) {
            spec::AGENT_WARM_UP_RETRY_AFTER_S
        } else {
            5
        };
        seconds.to_string()
    });
    for (name, value) in [
        ("content-type", &fault.content_type),
        ("retry-after", &fault.retry_after.clone().or(warm_up)),
        ("retry-after-ms", &fault.retry_after_ms),
        ("x-should-retry", &fault.x_should_retry),
    ] {
        if let Some(value) = value
            .as_deref()
            .and_then(|value| HeaderValue::from_str(value).ok())
        {
            headers.insert(name, value);
        }
    }
    if fault.close_after {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    Some(response)
}

/// Applies a fault to a finished answer. Its work is done, debited and stored.
async fn spoiled(mut response: Response, fault: &Fault, end: ConnectionEnd) -> Response {
    if fault.cut_before_head {
        return hang_up();
    }
    receipt::spoil(response.headers_mut(), fault);
    if fault.close_after {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let streams = streams(&response);
    let Some(keep) = fault.cut_after_bytes.filter(|_| !streams) else {
        return response;
    };
    let (mut parts, body) = response.into_parts();
    let Ok(whole) = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
    else {
        return ServiceError::Internal.into_response();
    };
    let keep = usize::try_from(keep).unwrap_or(usize::MAX).min(whole.len());
    // The head announces the whole body, as a real one that broke would have.
    parts
        .headers
        .insert(header::CONTENT_LENGTH, HeaderValue::from(whole.len()));
    Response::from_parts(parts, sse::broken_after(whole.slice(..keep), end))
}

fn streams(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"))
}

/// Interface, Errors 503: "on the agent lane `Retry-After` is 30 seconds", whatever the cause.
fn ask_for_patience(response: &mut Response) {
    let unavailable = response.status() == StatusCode::SERVICE_UNAVAILABLE;
    if unavailable && !response.headers().contains_key(header::RETRY_AFTER) {
        let seconds = HeaderValue::from(spec::AGENT_WARM_UP_RETRY_AFTER_S);
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
}

fn hang_up() -> Response {
    let mut response = StatusCode::BAD_GATEWAY.into_response();
    response.extensions_mut().insert(HangUp);
    response
}

/// The value of `Content-Length`.
fn announced(headers: &HeaderMap) -> Option<u64> {
    let value = headers.get(header::CONTENT_LENGTH)?;
    value.to_str().ok()?.parse().ok()
}

/// The whole body, or 413.
async fn read_body(headers: &HeaderMap, mut body: Body) -> Result<Bytes, ServiceError> {
    let too_large = announced(headers).is_some_and(|length| length > spec::BODY_BYTES_MAX as u64);
    if too_large && headers.contains_key(header::EXPECT) {
        return Err(ServiceError::BodyTooLarge);
    }
    let mut whole = BytesMut::new();
    let mut length = 0_usize;
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|_| ServiceError::BadRequest("the request body broke off".to_owned()))?;
        let Ok(bytes) = frame.into_data() else {
            continue;
        };
        length = length.saturating_add(bytes.len());
        if length <= spec::BODY_BYTES_MAX && !too_large {
            whole.extend_from_slice(&bytes);
        } else if length > DISCARD_BYTES_MAX {
            break;
        }
    }
    if too_large || length > spec::BODY_BYTES_MAX {
        return Err(ServiceError::BodyTooLarge);
    }
    Ok(whole.freeze())
}

fn received(state: &State, parts: &Parts, request_id: &str) -> Received {
    Received {
        n: 0,
        at: state.clock.now().to_string(),
        at_ms: state.clock.elapsed_ms(),
        ended_ms: None,
        org: state.auth.org(&parts.headers).ok(),
        method: parts.method.to_string(),
        path: parts.uri.path().chars().take(200).collect(),
        request_id: request_id.to_owned(),
        idempotency_key: text(&parts.headers, spec::IDEMPOTENCY_KEY),
        authorization: state.auth.word(&parts.headers),
        header_names: parts.headers.keys().map(ToString::to_string).collect(),
        session: text(&parts.headers, spec::SESSION),
        body_bytes: announced(&parts.headers).and_then(|length| usize::try_from(length).ok()),
        body_sha256: None,
        stream: false,
        status: None,
        replayed: false,
        retry_after_s: None,
        fault: None,
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers
        .get(name)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests;
