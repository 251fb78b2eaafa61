//! Which kinds of documents a row may carry.
//!
//! Promise: what is taken here is what a model reads.

use crate::error::ServiceError;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

/// Assumed (eval-documents): pictures, sound, text and PDF, without parameters.
pub fn check_mime(mime: &str) -> Result<(), ServiceError> {
    let kind = mime.split_once('/').filter(|(_, subtype)| {
        !subtype.is_empty()
            && subtype.len() <= 64
            && subtype
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+.-".contains(&b))
    });
    match kind {
        Some(("image" | "audio" | "text", _)) | Some(("application", "pdf")) => Ok(()),
        _ => Err(ServiceError::invalid(
            "mime must be application/pdf or a type of image, audio or text",
        )),
    }
}

/// Whether a row's field holds a document itself: a data URL of a kind that a model reads, with bytes in it.
///
/// Assumed (task-catalog): "a blob in an example row is a data URL".
pub fn is_document(value: &Value) -> bool {
    let url = value.as_str().and_then(|text| text.strip_prefix("data:"));
    let Some((head, encoded)) = url.and_then(|url| url.split_once(";base64,")) else {
        return false;
    };
    let mime = head.split(';').next().unwrap_or("");
    check_mime(mime).is_ok()
        && STANDARD
            .decode(encoded)
            .is_ok_and(|bytes| !bytes.is_empty())
}

#[cfg(test)]
mod tests;
