//! `GET /openapi.json`: the interface as an OpenAPI 3.1 document, written by hand from its text.
//!
//! Clients, editors and fuzzers read it; it needs no key, as a document does not.
//! Promise: it names every route this service has and no other (tests/it/openapi.rs).

use axum::response::{IntoResponse, Response};
use http::header;

/// The document, as it is served.
pub const DOCUMENT: &str = include_str!("../openapi.json");

pub async fn document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT).into_response()
}
