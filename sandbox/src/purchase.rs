//! The order of a purchase, once for every route that bills: limits, form, key, balance, work, debit, store.
//!
//! A route adds only its own part: an [`Order`] read from the body, or why it is refused, and the work, which
//! ends in [`Goods`] or in a stream. Form and work are futures, so that neither begins before its turn.
//! Promise: the cheapest refusal comes first; the debit comes after the work and before the head (of a stream,
//! before its end); an error anywhere leaves nothing billed; the place among the requests in flight is held
//! until the work has ended.

use crate::{
    billing::Charged,
    error::{ServiceError, mark_assumed},
    fingerprint::Fingerprint,
    idempotency::{Begin, RunPermit, Stored, WhileRunning},
    inbound::Inbound,
    limits::Slot,
    money::MicroUsd,
    receipt, spec,
    state::State,
};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;
use std::sync::Arc;

/// Which rules hold for a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// The ceilings hold, and a key is honored.
    Inference,
    /// Sound and the comparison: a key is ignored, and no ceiling holds. Assumed (speech-limits).
    Beside,
}

/// Whether a success is kept for a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// Interface: agent turns, embeddings, rerank and streams are not stored; the key stays bound.
    Nothing,
    Answer,
    /// Interface: stored up to 16 MB on image routes.
    Pictures,
}

/// A request whose form is right.
pub struct Order<Work> {
    /// What its key is bound to.
    pub fingerprint: Fingerprint,
    pub while_running: WhileRunning,
    pub keeps: Keeps,
    pub work: Work,
}

/// The result of the work.
pub enum WorkResult {
    Whole(Goods),
    /// A streamed answer: its head, while a task of its own writes the rest and ends the [`Sale`].
    Stream(Box<dyn FnOnce(Sale) -> Response + Send>),
}

/// Finished work and its price.
pub struct Goods {
    pub price: MicroUsd,
    /// The answer, made when it is known what its receipt shows.
    pub answer: Finish,
}

type Finish = Box<dyn FnOnce(&Charged) -> Result<JsonAnswer, ServiceError> + Send>;

/// The head and the body of a whole answer.
pub struct JsonAnswer {
    headers: HeaderMap,
    body: Bytes,
}

/// A purchase whose answer flows: not billed until its end.
pub struct Sale {
    pub state: Arc<State>,
    pub inbound: Inbound,
    fingerprint: Fingerprint,
    run: RunPermit,
    /// Held until the end.
    _slot: Option<Slot>,
}

/// From an inbound request to its answer; `form` is the route's reading of the body.
pub async fn purchase<Work>(
    state: &Arc<State>,
    inbound: Inbound,
    rules: Rules,
    form: impl Future<Output = Result<Order<Work>, ServiceError>>,
) -> Result<Response, ServiceError>
where
    Work: Future<Output = Result<WorkResult, ServiceError>>,
{
    let (inbound, slot) = match rules {
        Rules::Inference => (inbound, Some(state.limits.admit()?)),
        Rules::Beside => (inbound.without_key(), None),
    };
    let order = form.await?;
    let fingerprint = order.fingerprint;
    let begin = state
        .keys
        .begin(
            inbound.key.clone(),
            fingerprint.clone(),
            order.while_running,
        )
        .await?;
    let run = match begin {
        // Interface: a replay succeeds even with zero balance.
        Begin::Replay(stored) => return Ok(stored.to_replay()),
        Begin::Run(run) => run,
    };
    if order.keeps == Keeps::Pictures {
        run.check_room()
            .map_err(|error| error.assumed("stored-images"))?;
    }
    state.billing.check_balance(&inbound.org, &run)?;
    let outcome = order.work.await?;
    inbound.fault.work(&state.clock, &state.holds).await;
    let sale = Sale {
        state: Arc::clone(state),
        inbound,
        fingerprint,
        run,
        _slot: slot,
    };
    match outcome {
        WorkResult::Whole(goods) => sale.close(goods, order.keeps),
        WorkResult::Stream(start) => Ok(start(sale)),
    }
}

// === impl Order ===

impl<Work> Order<Work> {
    /// Of a route whose answers are not kept.
    pub fn unkept(inbound: &Inbound, work: Work) -> Self {
        Self {
            fingerprint: inbound.fingerprint(),
            while_running: WhileRunning::Wait,
            keeps: Keeps::Nothing,
            work,
        }
    }
}

// === impl JsonAnswer ===

impl JsonAnswer {
    /// JSON, with the assumptions that its shape depends on; a replay has the same.
    pub fn json(
        headers: HeaderMap,
        marks: &[&str],
        body: &impl Serialize,
    ) -> Result<Self, ServiceError> {
        let body = serde_json::to_vec(body).map_err(|_| ServiceError::Internal)?;
        Ok(Self::of_bytes(headers, marks, body))
    }

    /// The same, of a body that is JSON already.
    pub fn of_bytes(mut headers: HeaderMap, marks: &[&str], body: Vec<u8>) -> Self {
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
        receipt::set(&mut headers, spec::ASSUMED, &marks.join(","));
        Self {
            headers,
            body: Bytes::from(body),
        }
    }
}

// === impl Sale ===

impl Sale {
    /// The end of a stream: one debit, on disk with the key, before the client receives its amount.
    pub async fn end(self, price: MicroUsd) -> Result<Charged, ServiceError> {
        let charged = self.charge(price, true)?;
        self.run.bind();
        let settled = self.state.checkpoint.settle(&self.inbound.request_id);
        settled.await?;
        Ok(charged)
    }

    /// The end of a stream that is not billed.
    pub fn end_unbilled(self) {
        self.run.bind();
    }

    fn close(self, goods: Goods, keeps: Keeps) -> Result<Response, ServiceError> {
        let charged = self.charge(goods.price, false)?;
        let answer = (goods.answer)(&charged)?;
        let stored = Stored::new(StatusCode::OK, &answer.headers, answer.body);
        let mut response = stored.to_response();
        if charged.free_repeat && response.headers().contains_key(spec::BILLED) {
            mark_assumed(&mut response, "repeat-billed");
        }
        match keeps {
            Keeps::Nothing => self.run.bind(),
            Keeps::Answer => self.run.store(stored, spec::STORED_BYTES_MAX),
            Keeps::Pictures => self.run.store(stored, spec::IMAGE_STORED_BYTES_MAX),
        }
        Ok(response)
    }

    fn charge(&self, price: MicroUsd, stream: bool) -> Result<Charged, ServiceError> {
        let repeat_billed = self.state.settings().repeat_billed;
        self.state.billing.charge(
            &self.inbound,
            &self.run,
            &self.fingerprint,
            price,
            stream,
            repeat_billed,
        )
    }
}
