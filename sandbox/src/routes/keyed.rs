//! The steps that embeddings, rerank and both image routes share, once their form was checked.
//!
//! Order: Idempotency-Key (422, wait, 409, replay), balance, work, one debit, the answer.
//! Promise: work that uses the processor runs beside the socket's threads; an error anywhere leaves nothing
//! billed; the place among the requests in flight is held until the end.

use crate::{
    error::{ServiceError, mark_assumed},
    fingerprint::Fingerprint,
    idempotency::{Begin, Stored, WhileRunning},
    inbound::Inbound,
    limits::Slot,
    money::MicroUsd,
    receipt, spec,
    state::State,
};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::Value;
use std::sync::Arc;

/// Whether a success is kept for a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Interface: `/v1/embeddings` and `/v1/rerank` responses are not stored.
    Nothing,
    /// Interface: stored up to 16 MB on image routes.
    Image,
}

/// A request whose form is right: what it costs, and how to do it.
pub struct Job<Work> {
    pub slot: Slot,
    pub price: MicroUsd,
    pub keep: Keep,
    /// The assumption that the shape of the answer rests on.
    pub assumed: &'static str,
    pub work: Work,
}

pub async fn answer<Work>(
    state: &Arc<State>,
    inbound: &Inbound,
    job: Job<Work>,
) -> Result<Response, ServiceError>
where
    Work: FnOnce() -> Result<Value, ServiceError> + Send + 'static,
{
    answer_as(state, inbound, inbound.fingerprint(), job).await
}

/// The same, for a request whose body is not told by its bytes.
pub async fn answer_as<Work>(
    state: &Arc<State>,
    inbound: &Inbound,
    fingerprint: Fingerprint,
    job: Job<Work>,
) -> Result<Response, ServiceError>
where
    Work: FnOnce() -> Result<Value, ServiceError> + Send + 'static,
{
    let begin = state
        .keys
        .begin(inbound.key.clone(), fingerprint.clone(), WhileRunning::Wait)
        .await?;
    let run = match begin {
        // Interface: a replay succeeds even with zero balance.
        Begin::Replay(stored) => return Ok(stored.to_replay()),
        Begin::Run(run) => run,
    };
    if job.keep == Keep::Image {
        run.check_room()
            .map_err(|error| error.assumed("stored-images"))?;
    }
    state.billing.check_balance(&inbound.org, &run)?;
    let work = job.work;
    let body = tokio::task::spawn_blocking(move || {
        serde_json::to_vec(&work()?).map_err(|_| ServiceError::Internal)
    })
    .await
    .map_err(|error| {
        tracing::error!(%error, "the work broke");
        ServiceError::Internal
    })??;
    inbound.fault.work(&state.clock, &state.holds).await;
    let charged = state.charge(inbound, &run, &fingerprint, job.price, false)?;
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    receipt::set(&mut headers, spec::BILLED, &charged.shown.to_string());
    if let Ok(name) = HeaderName::from_bytes(spec::ASSUMED.as_bytes()) {
        headers.insert(name, HeaderValue::from_static(job.assumed));
    }
    let stored = Stored::new(StatusCode::OK, &headers, Bytes::from(body));
    let mut response = stored.to_response();
    if charged.free_repeat {
        mark_assumed(&mut response, "repeat-billed");
    }
    match job.keep {
        Keep::Nothing => run.bind(),
        Keep::Image => run.store_image(stored),
    }
    drop(job.slot);
    Ok(response)
}
