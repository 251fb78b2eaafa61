//! What a request's head says of its body.

use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// "request body size | 30 MB (413) | all routes".
/// Assumed: binary megabytes, the larger reading, so that bursar never refuses what the service
/// may accept.
pub const BODY_BYTES_MAX: u64 = 30 * 1024 * 1024;

/// The Content-Type of a form. `None`: the body is none.
pub fn form_type(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let media_type = given.split(';').next()?.trim();
    media_type
        .eq_ignore_ascii_case("multipart/form-data")
        .then_some(given)
}
