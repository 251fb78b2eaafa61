//! `POST /v1/chat/completions`: inference.

use super::{completion, direct, seller::Seller};
use crate::{error::RouteResult, inbound::Inbound, models::Lane, state::State};
use axum::{Extension, extract::State as Shared};
use std::sync::Arc;

pub async fn create(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> RouteResult {
    if let Some(endpoint) = direct::named(&state, &inbound) {
        return direct::complete(state, inbound, endpoint).await;
    }
    if let Some(answer) = direct::of_gone(&state, &inbound).await {
        return answer;
    }
    completion::complete(state, inbound, Seller::Auto(Lane::Inference)).await
}
