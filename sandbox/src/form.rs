//! A `multipart/form-data` body, by the names of its parts.
//!
//! The front has read the body and bounded its length, so the parts are slices of memory.
//! Promise: an incomplete form is 400; a part that is missing, mistyped or sent twice is 422 and named; unknown
//! parts are ignored.

use crate::{
    error::ServiceError,
    fields::{mistyped, outside},
    fingerprint::FormPart,
};
use axum::{
    body::Body,
    extract::{DefaultBodyLimit, FromRequest, Multipart, Request},
};
use bytes::Bytes;
use http::{HeaderMap, header};
use std::ops::RangeInclusive;

/// More parts than any route has fields.
const PARTS_MAX: usize = 64;

#[derive(Debug)]
pub struct Form {
    parts: Vec<FormPart>,
    /// The assumption that a refusal of the form depends on.
    assumed: &'static str,
}

// === impl Form ===

impl Form {
    pub async fn read(
        headers: &HeaderMap,
        body: Bytes,
        assumed: &'static str,
    ) -> Result<Self, ServiceError> {
        let mut request = Request::new(Body::from(body));
        if let Some(kind) = headers.get(header::CONTENT_TYPE) {
            let head = request.headers_mut();
            head.insert(header::CONTENT_TYPE, kind.clone());
        }
        // The front holds the limit; axum's own of 2 MB would apply before it.
        DefaultBodyLimit::disable().apply(&mut request);
        let mut form = Multipart::from_request(request, &()).await.map_err(|_| {
            malformed("the body must be multipart/form-data with a boundary").assumed(assumed)
        })?;
        let broken = |_| malformed("the multipart body broke off or is malformed");
        let mut parts = Vec::new();
        while let Some(field) = form.next_field().await.map_err(broken)? {
            if parts.len() == PARTS_MAX {
                return Err(malformed("the body has too many parts"));
            }
            let name = field
                .name()
                .ok_or_else(|| malformed("a part has no name"))?;
            parts.push(FormPart {
                name: name.to_owned(),
                file_name: field.file_name().map(str::to_owned),
                content_type: field.content_type().map(str::to_owned),
                bytes: field.bytes().await.map_err(broken)?,
            });
        }
        Ok(Self { parts, assumed })
    }

    /// All parts in their order, known and unknown ones.
    pub fn parts(&self) -> &[FormPart] {
        &self.parts
    }

    pub fn file(&self, name: &str) -> Result<Bytes, ServiceError> {
        self.optional_file(&[name])?
            .cloned()
            .ok_or_else(|| required(name))
    }

    /// The one part with one of these names.
    pub fn optional_file(&self, names: &[&str]) -> Result<Option<&Bytes>, ServiceError> {
        let is_named = |part: &&FormPart| names.contains(&part.name.as_str());
        let mut found = self.parts.iter().filter(is_named);
        let first = found.next();
        match (found.next(), names.first()) {
            (Some(_), Some(name)) => {
                Err(ServiceError::invalid(format!("{name} came more than once"))
                    .assumed(self.assumed))
            }
            _ => Ok(first.map(|part| &part.bytes)),
        }
    }

    /// A text as it was sent.
    pub fn text(&self, name: &str) -> Result<Option<&str>, ServiceError> {
        self.optional_file(&[name])?
            .map(|bytes| std::str::from_utf8(bytes).map_err(|_| mistyped(name, "UTF-8 text")))
            .transpose()
    }

    /// A text without the white space around it. Assumed (eval-form): an empty one counts as absent.
    pub fn trimmed(&self, name: &str) -> Result<Option<String>, ServiceError> {
        let text = self.text(name)?.map(str::trim);
        Ok(text.filter(|text| !text.is_empty()).map(str::to_owned))
    }

    pub fn required_text(&self, name: &str) -> Result<String, ServiceError> {
        self.trimmed(name)?.ok_or_else(|| required(name))
    }

    pub fn whole(
        &self,
        name: &str,
        range: RangeInclusive<usize>,
    ) -> Result<Option<usize>, ServiceError> {
        let number = |text: &str| text.parse().ok().filter(|number| range.contains(number));
        self.text(name)?
            .map(|text| number(text).ok_or_else(|| outside(name, &range)))
            .transpose()
    }
}

fn required(name: &str) -> ServiceError {
    ServiceError::invalid(format!("{name} is required"))
}

fn malformed(text: &str) -> ServiceError {
    ServiceError::BadRequest(text.to_owned())
}

#[cfg(test)]
mod tests;
