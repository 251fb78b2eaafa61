//! The parts of a multipart body, by name.
//!
//! Promise: an incomplete multipart form is 400; a part that is missing, mistyped or there twice is 422
//! and named; unknown parts are ignored.

use crate::{
    error::ServiceError,
    fields::{mistyped, outside},
    fingerprint::FormPart,
    spec,
};
use axum::{
    body::Body,
    extract::{DefaultBodyLimit, FromRequest, Multipart, Request},
};
use bytes::Bytes;
use http::{HeaderMap, header};
use std::ops::RangeInclusive;

const PARTS_MAX: usize = 64;

pub struct Form {
    parts: Vec<Part>,
}

struct Part {
    name: String,
    file_name: Option<String>,
    content_type: Option<String>,
    bytes: Bytes,
}

// === impl Form ===

impl Form {
    pub async fn read(headers: &HeaderMap, body: Bytes) -> Result<Self, ServiceError> {
        let mut request = Request::new(Body::from(body));
        if let Some(kind) = headers.get(header::CONTENT_TYPE) {
            request
                .headers_mut()
                .insert(header::CONTENT_TYPE, kind.clone());
        }
        // The front has limited the body to 30 MB; axum's own limit of 2 MB would apply before
        // that.
        DefaultBodyLimit::max(spec::BODY_BYTES_MAX).apply(&mut request);
        let mut form = Multipart::from_request(request, &())
            .await
            .map_err(|_| bad("the body must be multipart/form-data with a boundary"))?;
        let mut parts: Vec<Part> = Vec::new();
        while let Some(field) = form.next_field().await.map_err(|_| broken())? {
            if parts.len() == PARTS_MAX {
                return Err(bad("the body has too many parts"));
            }
            let name = field
                .name()
                .ok_or_else(|| bad("a part has no name"))?
                .to_owned();
            let file_name = field.file_name().map(str::to_owned);
            let content_type = field.content_type().map(str::to_owned);
            let bytes = field.bytes().await.map_err(|_| broken())?;
            parts.push(Part {
                name,
                file_name,
                content_type,
                bytes,
            });
        }
        Ok(Self { parts })
    }

    /// The parts of the form that distinguish two requests.
    pub fn told(&self) -> impl Iterator<Item = FormPart<'_>> {
        self.parts.iter().map(|part| FormPart {
            name: &part.name,
            file_name: part.file_name.as_deref(),
            content_type: part.content_type.as_deref(),
            bytes: &part.bytes,
        })
    }

    /// The one part with one of these names.
    pub fn one_file(&self, names: &[&str]) -> Result<&Bytes, ServiceError> {
        let shown = names.first().copied().unwrap_or_default();
        self.find(names)?
            .ok_or_else(|| ServiceError::invalid(format!("{shown} is required")))
    }

    pub fn optional_file(&self, name: &str) -> Result<Option<&Bytes>, ServiceError> {
        self.find(&[name])
    }

    pub fn text(&self, name: &str) -> Result<Option<&str>, ServiceError> {
        self.find(&[name])?
            .map(|bytes| std::str::from_utf8(bytes).map_err(|_| mistyped(name, "UTF-8 text")))
            .transpose()
    }

    pub fn whole(
        &self,
        name: &str,
        range: RangeInclusive<usize>,
    ) -> Result<Option<usize>, ServiceError> {
        self.text(name)?
            .map(|text| {
                text.parse()
                    .ok()
                    .filter(|number| range.contains(number))
                    .ok_or_else(|| outside(name, &range))
            })
            .transpose()
    }

    fn find(&self, names: &[&str]) -> Result<Option<&Bytes>, ServiceError> {
        let mut found = self
            .parts
            .iter()
            .filter(|part| names.contains(&part.name.as_str()));
        let first = found.next();
        if found.next().is_some() {
            let shown = names.first().copied().unwrap_or_default();
            return Err(ServiceError::invalid(format!(
                "{shown} came more than once"
            )));
        }
        Ok(first.map(|part| &part.bytes))
    }
}

fn bad(text: &str) -> ServiceError {
    ServiceError::BadRequest(text.to_owned())
}

fn broken() -> ServiceError {
    bad("the multipart body broke off or is malformed")
}
