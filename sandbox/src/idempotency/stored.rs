//! A stored answer and its replay.
//!
//! Interface: "same status, body and X-Service-* headers, except `X-Service-Billed: 0`, plus
//! `Idempotent-Replayed: true`". Assumed (replay-request-id): the replay has its own `x-request-id`.
//! Promise: nothing else of the first answer comes back.

use crate::spec;
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};

#[derive(Clone, Debug)]
pub struct Stored {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

// === impl Stored ===

impl Stored {
    /// Keeps the content type, what the interface names, and the sandbox's own mark.
    pub fn new(status: StatusCode, all_headers: &HeaderMap, body: Bytes) -> Self {
        let headers = all_headers
            .iter()
            .filter(|(name, _)| {
                let name = name.as_str();
                name.starts_with("x-service-")
                    || name.starts_with("x-sandbox-")
                    || name == header::CONTENT_TYPE
            })
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        Self {
            status,
            headers,
            body,
        }
    }

    /// The answer as it goes out the first time.
    pub fn to_response(&self) -> Response {
        let mut response = (self.status, Body::from(self.body.clone())).into_response();
        response.headers_mut().clone_from(&self.headers);
        response
    }

    pub fn to_replay(&self) -> Response {
        let mut response = self.to_response();
        let headers = response.headers_mut();
        // An answer without a receipt is replayed without one.
        if let Some(billed) = headers.get_mut(spec::BILLED) {
            *billed = HeaderValue::from_static("0");
        }
        if let Ok(name) = http::HeaderName::from_bytes(spec::REPLAYED.as_bytes()) {
            headers.insert(name, HeaderValue::from_static("true"));
        }
        response
    }
}
