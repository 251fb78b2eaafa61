//! The body of a change, and why nothing was changed.
//!
//! Promise: a body is bounded, JSON, and said to be JSON.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::apps::AppsError;
use crate::caps::OrderError;
use crate::notices::TryError;

/// Largest body of a change, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Longest time for a body to arrive.
const BODY_DEADLINE: Duration = Duration::from_secs(5);

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error("send the change as Content-Type: application/json")]
    NotJson,
    #[error("the change did not arrive whole: {0}")]
    Body(String),
    #[error("this is no such change: {0}")]
    Form(serde_json::Error),
    #[error(transparent)]
    Apps(#[from] AppsError),
    #[error("the proxy listens on Unix sockets alone; a run takes an address with a port")]
    NoPort,
    #[error(transparent)]
    Order(#[from] OrderError),
    #[error("that is no name of an app")]
    NoApp,
    #[error(transparent)]
    Notice(#[from] TryError),
    #[error("the state cannot be written as JSON: {0}")]
    Unwritable(serde_json::Error),
    #[error("the change failed; the log has the place")]
    Panicked,
}

// === impl ChangeError ===

impl ChangeError {
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Body(_)
            | Self::Form(_)
            | Self::NoApp
            | Self::Order(OrderError::NoCap { .. } | OrderError::NotRaised { .. }) => {
                StatusCode::BAD_REQUEST
            }
            Self::Order(OrderError::Ledger(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unwritable(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Apps(AppsError::Unknown { .. }) => StatusCode::NOT_FOUND,
            Self::Apps(AppsError::Ledger(_) | AppsError::Random(_) | AppsError::Damaged { .. })
            | Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Notice(TryError::Unsent { .. }) => StatusCode::BAD_GATEWAY,
            Self::Notice(TryError::NoWay) | Self::Apps(_) | Self::NoPort => StatusCode::CONFLICT,
        }
    }
}

pub(super) async fn read(request: Request<Incoming>) -> Result<Bytes, ChangeError> {
    let media_type = request.headers().get(CONTENT_TYPE);
    if media_type.is_none_or(|given| given.as_bytes() != b"application/json") {
        return Err(ChangeError::NotJson);
    }
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX);
    match timeout(BODY_DEADLINE, body.collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) => Err(ChangeError::Body(error.to_string())),
        Err(_) => Err(ChangeError::Body("it took too long".to_owned())),
    }
}

pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ChangeError> {
    serde_json::from_slice(body).map_err(ChangeError::Form)
}
