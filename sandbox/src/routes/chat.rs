//! `POST /v1/chat/completions`: inference.

use super::completion;
use crate::{error::ServiceError, front::Inbound, models::Lane, state::State};
use axum::{Extension, extract::State as Shared, response::Response};
use std::sync::Arc;

pub async fn create(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> Result<Response, ServiceError> {
    completion::complete(state, inbound, Lane::Inference).await
}
