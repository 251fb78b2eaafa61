//! `GET /v1/auto/metrics`: the organization's rollup, computed from the books.
//!
//! Promise: the billed spend is the sum of the debits of its 30 days, on any route.

use crate::{error::mark_assumed, inbound::Inbound, state::State};
use axum::{
    Extension, Json,
    extract::State as Shared,
    response::{IntoResponse, Response},
};
use std::sync::Arc;

pub async fn document(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> Response {
    let document = state.books.rollup(&inbound.org, state.clock.now());
    let mut response = Json(document).into_response();
    mark_assumed(&mut response, "auto-metrics");
    response
}
