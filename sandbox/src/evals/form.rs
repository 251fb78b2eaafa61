//! `multipart/form-data`, read whole.
//!
//! The front has the body already (it is bounded there), so the parts are slices of memory.
//! Promise: a part stands once; what the interface does not name is ignored.

use crate::error::ServiceError;
use axum::{
    body::Body,
    extract::{DefaultBodyLimit, FromRequest, Multipart, Request},
};
use bytes::Bytes;
use http::{HeaderMap, header};

/// More parts than any route has fields.
const PARTS_MAX: usize = 32;

#[derive(Debug)]
pub struct Form {
    parts: Vec<(String, Bytes)>,
}

// === impl Form ===

impl Form {
    /// 400 when the body is no multipart form or breaks off; 422 for a part that stands twice.
    pub async fn read(headers: &HeaderMap, body: Bytes) -> Result<Self, ServiceError> {
        let malformed = || ServiceError::BadRequest("malformed multipart/form-data".to_owned());
        let mut request = Request::new(Body::from(body));
        if let Some(content_type) = headers.get(header::CONTENT_TYPE) {
            request
                .headers_mut()
                .insert(header::CONTENT_TYPE, content_type.clone());
        }
        // The front holds the limit.
        DefaultBodyLimit::disable().apply(&mut request);
        let mut multipart = Multipart::from_request(request, &()).await.map_err(|_| {
            ServiceError::BadRequest("the body must be multipart/form-data".to_owned())
                .assumed("eval-form")
        })?;
        let mut parts: Vec<(String, Bytes)> = Vec::new();
        while let Some(field) = multipart.next_field().await.map_err(|_| malformed())? {
            let name = field.name().unwrap_or_default().to_owned();
            let bytes = field.bytes().await.map_err(|_| malformed())?;
            if parts.iter().any(|(other, _)| *other == name) {
                let name: String = name.chars().take(64).collect();
                return Err(
                    ServiceError::invalid(format!("{name}: the part stands twice"))
                        .assumed("eval-form"),
                );
            }
            if parts.len() == PARTS_MAX {
                return Err(ServiceError::invalid(format!(
                    "more than {PARTS_MAX} parts"
                )));
            }
            parts.push((name, bytes));
        }
        Ok(Self { parts })
    }

    pub fn file(&self, name: &str) -> Result<Bytes, ServiceError> {
        self.part(name)
            .ok_or_else(|| ServiceError::invalid(format!("{name} is required")))
    }

    /// A part of text, trimmed; an empty one counts as absent.
    pub fn text(&self, name: &str) -> Result<Option<String>, ServiceError> {
        let Some(bytes) = self.part(name) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| ServiceError::invalid(format!("{name} must be UTF-8")))?
            .trim();
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }

    pub fn required_text(&self, name: &str) -> Result<String, ServiceError> {
        self.text(name)?
            .ok_or_else(|| ServiceError::invalid(format!("{name} is required")))
    }

    fn part(&self, name: &str) -> Option<Bytes> {
        let (_, bytes) = self.parts.iter().find(|(other, _)| other == name)?;
        Some(bytes.clone())
    }
}

#[cfg(test)]
mod tests;
