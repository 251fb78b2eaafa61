//! `POST /agent/v1/chat/completions`: one conversation turn of a tool loop.

use super::{completion, seller::Seller};
use crate::{
    error::{RouteResult, ServiceError},
    inbound::Inbound,
    models::Lane,
    state::State,
};
use axum::{Extension, extract::State as Shared};
use std::sync::Arc;

pub async fn create(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> RouteResult {
    if !state.settings().agent_enabled {
        // Interface, Errors 404: agent surface not enabled.
        return Err(ServiceError::agent_disabled());
    }
    completion::complete(state, inbound, Seller::Auto(Lane::Agent)).await
}
