//! `GET /v1/auto/metrics`: the organization's rollup, computed from the books.
//!
//! Promise: the billed spend is the sum of the debits of its 30 days, on any route.

use crate::{error::assumed_json, inbound::Inbound, state::State};
use axum::{Extension, extract::State as Shared, response::Response};
use std::sync::Arc;

pub async fn document(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> Response {
    let document = state.books.rollup(&inbound.org, state.clock.now());
    assumed_json(document, &["auto-metrics"])
}
