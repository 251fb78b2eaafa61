//! Every answer that is not a success, the one place that turns it into bytes, and the mark of an assumption on
//! any answer.
//!
//! Promise: the body is `{"detail": <text>}`, the text names neither a key nor a prompt nor another
//! request, and none of these answers is billed.

use crate::{spec, store::StoreError};
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::json;
use thiserror::Error;

/// What a handler returns.
pub type RouteResult = Result<Response, ServiceError>;

#[derive(Debug, Error)]
pub enum ServiceError {
    // Interface, Errors 400: malformed JSON.
    #[error("malformed JSON: {0}")]
    MalformedJson(String),
    // Interface, Errors 400: request validation failed.
    #[error("{0}")]
    BadRequest(String),
    // Interface, Errors 400: a structured request lacks the needed input.
    #[error("{code}: the request needs {needed} and has none", code = spec::INPUT_MODALITY_UNSUPPORTED)]
    InputModalityUnsupported { needed: &'static str },
    #[error("missing or invalid API key")]
    Unauthorized,
    #[error("this API key is not allowed to do this")]
    Forbidden,
    #[error("the organization's balance is empty; top up in the dashboard")]
    BalanceEmpty,
    #[error("{0}")]
    NotFound(String),
    #[error("method not allowed on this route")]
    MethodNotAllowed,
    // Interface, Limits: same key still running after 9 minutes.
    #[error("a request with this Idempotency-Key is still running")]
    StillRunning { retry_after_s: u32 },
    #[error("request body over 30 MB")]
    BodyTooLarge,
    #[error("{0}")]
    Invalid(String),
    // Interface, Idempotency-Key: the error does not reveal the other request.
    #[error("this Idempotency-Key was used with a different request")]
    KeyReused,
    #[error("too many requests in flight")]
    TooManyInFlight,
    #[error("too many requests per minute")]
    TooManyPerMinute,
    #[error("the Idempotency-Key check is briefly unavailable")]
    KeyCheckUnavailable,
    // Interface, Errors 503: a serving backend behind auto is warming or briefly unavailable.
    #[error("a serving backend is warming or briefly unavailable")]
    BackendUnavailable { retry_after_s: u32 },
    #[error("{0}")]
    NoServingPath(&'static str),
    #[error("{0}")]
    BlobTooLarge(String),
    #[error("an eval run of this set is not terminal; try again when it is")]
    SetInUse,
    #[error("{0}")]
    UploadState(&'static str),
    #[error("the URL's signature does not hold for this request")]
    BadSignature,
    #[error("the URL has expired; ask for a new one")]
    SignatureExpired,
    // Interface, Errors 409: "seed or legacy endpoint conflict on deploy".
    #[error("{0}")]
    EndpointConflict(String),
    // Interface, Errors 503: "endpoint stopped, cold-starting or provider down".
    #[error("the endpoint is {what}")]
    EndpointCold {
        what: &'static str,
        /// `None` where waiting alone changes nothing.
        retry_after_s: Option<u32>,
    },
    // Assumed (eval-limits): 429 at the bounds of what an organization may have open.
    #[error("{0}")]
    TooManyOpen(String),
    /// An answer that depends on an assumption, by its id.
    #[error("{inner}")]
    Assumed {
        id: &'static str,
        inner: Box<ServiceError>,
    },
    /// A control route, asked in a way that a web page could.
    #[error("{0}")]
    ControlRefused(&'static str),
    #[error("internal error")]
    Internal,
}

impl From<StoreError> for ServiceError {
    /// What is wrong with the state is for the log, not for the client.
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "the state failed");
        Self::Internal
    }
}

// === impl ServiceError ===

impl ServiceError {
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::Invalid(text.into())
    }

    /// The same, marked with the assumption that it depends on.
    pub fn assumed(self, id: &'static str) -> Self {
        Self::Assumed {
            id,
            inner: Box::new(self),
        }
    }

    pub fn agent_disabled() -> Self {
        Self::NotFound("the agent surface is not enabled".to_owned())
    }

    pub fn status(&self) -> StatusCode {
        match self {
            Self::MalformedJson(_)
            | Self::BadRequest(_)
            | Self::InputModalityUnsupported { .. } => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::BalanceEmpty => StatusCode::PAYMENT_REQUIRED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::ControlRefused(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::StillRunning { .. } => StatusCode::CONFLICT,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Invalid(_) | Self::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooManyInFlight | Self::TooManyPerMinute => StatusCode::TOO_MANY_REQUESTS,
            Self::NoServingPath(_) => StatusCode::BAD_GATEWAY,
            Self::KeyCheckUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::BlobTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::SetInUse | Self::UploadState(_) => StatusCode::CONFLICT,
            Self::BadSignature | Self::SignatureExpired => StatusCode::FORBIDDEN,
            Self::EndpointConflict(_) => StatusCode::CONFLICT,
            Self::EndpointCold { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::BackendUnavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooManyOpen(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Assumed { inner, .. } => inner.status(),
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn retry_after_s(&self) -> Option<u32> {
        match self {
            Self::StillRunning { retry_after_s } => Some(*retry_after_s),
            Self::EndpointCold { retry_after_s, .. } => *retry_after_s,
            Self::BackendUnavailable { retry_after_s } => Some(*retry_after_s),
            Self::TooManyInFlight | Self::TooManyOpen(_) => Some(spec::IN_FLIGHT_RETRY_AFTER_S),
            Self::TooManyPerMinute => Some(spec::PER_MINUTE_RETRY_AFTER_S),
            Self::Assumed { inner, .. } => inner.retry_after_s(),
            _ => None,
        }
    }

    /// The assumptions that this answer depends on; one place for all routes.
    fn assumptions(&self) -> Vec<&'static str> {
        match self {
            Self::Assumed { id, inner } => [inner.assumptions(), vec![*id]].concat(),
            Self::BackendUnavailable { .. } => vec!["remote-failure"],
            Self::EndpointCold { .. } => vec!["endpoint-cold"],
            Self::TooManyOpen(_) => vec!["eval-limits"],
            Self::StillRunning { .. } => vec!["retry-after-409"],
            Self::Forbidden => vec!["forbidden"],
            Self::Invalid(_) => vec!["status-400-or-422"],
            Self::BodyTooLarge => vec!["body-size-unit"],
            Self::TooManyPerMinute => vec!["rate-window"],
            Self::SetInUse => vec!["eval-set-delete"],
            Self::BlobTooLarge(_)
            | Self::UploadState(_)
            | Self::BadSignature
            | Self::SignatureExpired => vec!["eval-documents"],
            _ => Vec::new(),
        }
    }
}

impl IntoResponse for ServiceError {
    fn into_response(self) -> Response {
        let mut response =
            (self.status(), Json(json!({ "detail": self.to_string() }))).into_response();
        for id in self.assumptions() {
            mark_assumed(&mut response, id);
        }
        if let Some(seconds) = self.retry_after_s() {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// JSON, marked with the assumptions that its shape depends on.
pub fn assumed_json(body: impl Serialize, ids: &[&'static str]) -> Response {
    let mut response = Json(body).into_response();
    for id in ids {
        mark_assumed(&mut response, id);
    }
    response
}

/// Adds an assumption id to an answer; several are separated by commas.
pub fn mark_assumed(response: &mut Response, id: &'static str) {
    let name = HeaderName::from_static("x-sandbox-assumed");
    let value = match response.headers().get(&name).and_then(|v| v.to_str().ok()) {
        Some(earlier) if earlier.split(',').any(|one| one == id) => return,
        Some(earlier) => HeaderValue::from_str(&format!("{earlier},{id}")),
        None => Ok(HeaderValue::from_static(id)),
    };
    if let Ok(value) = value {
        response.headers_mut().insert(name, value);
    }
}

// Assumed (unknown-route): 404 and 405, in the form of every other error.
pub async fn not_found() -> Response {
    unknown(ServiceError::NotFound("no such route".to_owned()))
}

pub async fn method_not_allowed() -> Response {
    unknown(ServiceError::MethodNotAllowed)
}

fn unknown(error: ServiceError) -> Response {
    let mut response = error.into_response();
    mark_assumed(&mut response, "unknown-route");
    response
}
