//! `POST /v1/chat/completions`: inference.

use super::{completion, direct, seller::Seller};
use crate::{error::ServiceError, inbound::Inbound, models::Lane, state::State};
use axum::{Extension, extract::State as Shared, response::Response};
use std::sync::Arc;

pub async fn create(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> Result<Response, ServiceError> {
    if let Some(endpoint) = direct::named(&state, &inbound) {
        return direct::complete(state, inbound, endpoint).await;
    }
    if let Some(replayed) = direct::of_gone(&state, &inbound).await? {
        return Ok(replayed);
    }
    completion::complete(state, inbound, Seller::Auto(Lane::Inference)).await
}
