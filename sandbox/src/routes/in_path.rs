//! Ids in a path.
//!
//! Interface: "404 for an unknown id", and error bodies are `{detail}`. axum's own extractor answers a path
//! that is no UTF-8 with 400 and plain text.
//! Promise: what cannot be an id is an unknown id.

use crate::error::ServiceError;
use axum::extract::{FromRequestParts, Path};
use http::request::Parts;
use serde::de::DeserializeOwned;

/// The path's parameters, in their order.
pub struct InPath<T>(pub T);

impl<T, S> FromRequestParts<S> for InPath<T>
where
    T: DeserializeOwned + Send,
    S: Send + Sync,
{
    type Rejection = ServiceError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ServiceError> {
        let found = Path::<T>::from_request_parts(parts, state).await;
        found
            .map(|Path(named)| Self(named))
            .map_err(|_| ServiceError::NotFound("unknown id".to_owned()))
    }
}
