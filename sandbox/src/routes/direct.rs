//! Inference on a deployed endpoint: through its `url`, or by its id as `model` on `/v1/chat/completions`.
//!
//! The interface leaves open which of the two holds ("Deploy-endpoint model-id question"). Assumed
//! (endpoint-model): both; the setting `endpoint_model = false` makes the id a 404 on the chat route.
//! Promise: one debit per answer and none per error; no receipt header or comment ("direct model calls carry
//! none of them"); every request that reached the endpoint is in its metrics once.

use super::{direct_stream, in_path::InPath};
use crate::{
    billing, catalog,
    endpoints::{
        leaderboard,
        metrics::put,
        record::Endpoint,
        traffic::{Observation, Outcome},
    },
    error::ServiceError,
    fleet::Answer,
    front::Inbound,
    idempotency::{Begin, Fingerprint, Run, Stored, WhileRunning},
    limits::Slot,
    models::{Lane, Pinned, Prompt, Served, ServedBy, request::ChatRequest},
    money::MicroUsd,
    routes::completion,
    spec,
    state::State,
};
use axum::{Extension, extract::State as Shared, response::Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// An admitted request to an endpoint, from its checks to its end.
pub struct Call {
    pub state: Arc<State>,
    pub inbound: Inbound,
    pub endpoint: Endpoint,
    pub request: ChatRequest,
    pub fingerprint: Fingerprint,
    pub run: Run,
    pub began: Duration,
    pub slot: Slot,
}

/// What an answer was billed, and what the frontier baseline would have been.
pub struct Bill {
    /// `None` for a repeat that its key's first run paid for, and for what is not charged.
    billed: Option<MicroUsd>,
    baseline: MicroUsd,
}

/// `POST {url}/chat/completions`. Assumed (endpoint-url): an Idempotency-Key is not honored here, as the
/// route is none of those the interface names.
pub async fn on_url(
    Shared(state): Shared<Arc<State>>,
    InPath(id): InPath<String>,
    Extension(mut inbound): Extension<Inbound>,
) -> Result<Response, ServiceError> {
    inbound.key = None;
    inbound.key_text = None;
    let endpoint = state.endpoints.get(&inbound.org, &id)?;
    complete(state, inbound, endpoint).await
}

/// The endpoint that a body on the chat route names as its `model`.
pub fn named(state: &State, inbound: &Inbound) -> Option<Endpoint> {
    #[derive(Deserialize)]
    struct Named {
        model: String,
    }
    if !state.settings().endpoint_model || state.endpoints.is_empty() {
        return None;
    }
    let named: Named = serde_json::from_slice(&inbound.body).ok()?;
    state.endpoints.find(&inbound.org, &named.model)
}

/// The answer that the request's key holds of an endpoint that is gone; `None` when it holds none of one.
///
/// Interface, Idempotency-Key: "stored response replayed … nothing runs or bills": nothing has to be there
/// to run.
pub async fn of_gone(
    state: &Arc<State>,
    inbound: &Inbound,
) -> Result<Option<Response>, ServiceError> {
    let Some(key) = inbound.key.clone() else {
        return Ok(None);
    };
    let Some(bound) = state.keys.of_an_endpoint(&key) else {
        return Ok(None);
    };
    let fingerprint = inbound.fingerprint();
    if !bound.is_same_as(&fingerprint) {
        return Ok(None);
    }
    let _slot = state.limits.admit()?;
    let begin = state
        .keys
        .begin(Some(key), fingerprint, WhileRunning::Wait)
        .await?;
    match begin {
        Begin::Replay(stored) => Ok(Some(replay(&stored))),
        // It was not stored, and there is nobody to run it again.
        Begin::Run(_) => Err(ServiceError::NotFound("no such endpoint".to_owned())),
    }
}

/// The order of every completion: limits, form, key, balance, state, work, debit.
pub async fn complete(
    state: Arc<State>,
    inbound: Inbound,
    endpoint: Endpoint,
) -> Result<Response, ServiceError> {
    let began = state.clock.elapsed();
    let slot = state.limits.admit()?;
    let request = parse(&inbound.body, &endpoint.name)?;
    let fingerprint = inbound.fingerprint().of_endpoint(&endpoint.uid);
    let while_running = if request.stream {
        WhileRunning::RunAlongside
    } else {
        WhileRunning::Wait
    };
    let begin = state
        .keys
        .begin(inbound.key.clone(), fingerprint.clone(), while_running)
        .await?;
    let run = match begin {
        Begin::Replay(stored) => return Ok(replay(&stored)),
        Begin::Run(run) => run,
    };
    billing::check_balance(&state, &inbound, &run)?;
    let call = Call {
        state,
        inbound,
        endpoint,
        request,
        fingerprint,
        run,
        began,
        slot,
    };
    let answer = match call.work().await {
        Ok(answer) => answer,
        Err(error) => {
            let status = error.status();
            // A request that is wrong in itself never reached the endpoint.
            if status.is_server_error() {
                call.observe(call.took_ms(), Outcome::Failed(status.as_u16()));
            }
            return Err(error);
        }
    };
    let took_ms = call.took_ms();
    let served = match answer {
        answer if call.request.stream => return Ok(direct_stream::start(call, answer, took_ms)),
        Answer::Whole(served) => served,
        // Nothing is relayed that was not asked to be.
        Answer::Flowing(_) => return Err(ServiceError::Internal),
    };
    let bill = call.charge(&served, false)?;
    call.settle(&served, &bill, took_ms);
    let body = whole(&call, &served);
    let body = serde_json::to_vec(&body).map_err(|_| ServiceError::Internal)?;
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(
        HeaderName::from_static("x-sandbox-assumed"),
        HeaderValue::from_static("endpoint-inference"),
    );
    let stored = Stored::new(StatusCode::OK, &headers, Bytes::from(body));
    let response = stored.to_response();
    call.run.store(stored);
    Ok(response)
}

/// Interface: `model` is the endpoint's id; the rest is as on the chat route.
fn parse(body: &[u8], name: &str) -> Result<ChatRequest, ServiceError> {
    let mut body: Value = serde_json::from_slice(body).map_err(|error| {
        ServiceError::MalformedJson(format!("line {} column {}", error.line(), error.column()))
    })?;
    match body.get_mut("model") {
        Some(model) if *model == name => *model = json!(spec::MODEL),
        // What is no object, or has no model, is told as on the chat route.
        None | Some(Value::Null) => {}
        // Interface: "any other value returns 404", whatever its type.
        Some(_) => {
            return Err(ServiceError::NotFound(
                "model not found; on an endpoint it is the endpoint's id".to_owned(),
            ));
        }
    }
    ChatRequest::parse(body.to_string().as_bytes(), Lane::Inference)
}

/// A replay of an answer that had no receipt has none either.
fn replay(stored: &Stored) -> Response {
    let mut response = stored.to_replay();
    if let Ok(name) = HeaderName::from_bytes(spec::BILLED.as_bytes())
        && !stored.headers.contains_key(&name)
    {
        response.headers_mut().remove(name);
    }
    response
}

fn whole(call: &Call, served: &Served) -> Value {
    let mut body = completion::whole(&call.state, served, &completion::completion_id(&call.state));
    put(&mut body, "model", json!(call.endpoint.name));
    body
}

// === impl Call ===

impl Call {
    /// Interface: "While an endpoint is stopped or cold, inference against it returns 503."
    async fn work(&self) -> Result<Answer, ServiceError> {
        let state = &self.state;
        state
            .endpoints
            .check_live(&self.endpoint, state.clock.now())?;
        let prompt_tokens = Prompt::of(&self.request.messages).tokens + self.request.tool_tokens();
        let task = catalog::task(&self.endpoint.task);
        let candidate = task.and_then(|task| leaderboard::resolve(task, &self.endpoint.model));
        let context_tokens =
            candidate.map_or(spec::CONTEXT_WINDOW_TOKENS, |one| one.context_tokens);
        if prompt_tokens > context_tokens {
            // Assumed (endpoint-aliases): the smaller models have smaller windows.
            return Err(ServiceError::BadRequest(format!(
                "the transcript is over the {context_tokens} tokens of this endpoint's model"
            ))
            .assumed("endpoint-aliases"));
        }
        let pinned = Pinned {
            category: task.map(|task| leaderboard::category(&task.category)),
            frontier: false,
        };
        let relay = self.request.stream;
        let routed = state
            .fleet
            .route(&self.request, Lane::Inference, pinned, relay)
            .await?;
        self.inbound.fault.work(&state.clock, &state.holds).await;
        Ok(routed.answer)
    }

    pub fn took_ms(&self) -> u64 {
        let took = self.state.clock.elapsed().saturating_sub(self.began);
        u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
    }

    /// Interface: `cost_per_request_micro_usd`, else the published rate of the alias, whoever wrote the
    /// answer. Assumed (endpoint-billing).
    fn price(&self, served: &Served) -> Result<MicroUsd, ServiceError> {
        if served.served_by == ServedBy::None {
            return Ok(MicroUsd::ZERO);
        }
        if let Some(price) = self.endpoint.cost_per_request() {
            return Ok(price);
        }
        catalog::task(&self.endpoint.task)
            .and_then(|task| leaderboard::resolve(task, &self.endpoint.model))
            .and_then(|one| one.cost(served.usage.prompt_tokens, served.usage.completion_tokens))
            .ok_or(ServiceError::Internal)
    }

    /// What the frontier baseline would have cost for the same answer.
    fn baseline(&self, served: &Served) -> MicroUsd {
        match self.endpoint.frontier_cost_per_request() {
            Some(price) if served.served_by != ServedBy::None => price,
            _ => served.would_have_cost,
        }
    }

    /// The one debit of this call.
    pub fn charge(&self, served: &Served, stream: bool) -> Result<Bill, ServiceError> {
        let price = self.price(served)?;
        let charged = billing::charge(
            &self.state,
            &self.inbound,
            &self.run,
            &self.fingerprint,
            price,
            stream,
        )?;
        Ok(Bill {
            billed: (!charged.free_repeat).then_some(price),
            baseline: self.baseline(served),
        })
    }

    /// The bill of an answer that is not charged.
    pub fn free(&self, served: &Served) -> Bill {
        Bill {
            billed: None,
            baseline: self.baseline(served),
        }
    }

    /// Counts an answer in the endpoint's metrics and in the organization's.
    pub fn settle(&self, served: &Served, bill: &Bill, took_ms: u64) {
        // What was not charged, as a repeat that its key's first run paid for, was served and spent nothing.
        let spent = match bill.billed {
            Some(billed) => billed,
            None => MicroUsd::ZERO,
        };
        self.observe(
            took_ms,
            Outcome::Served {
                prompt_tokens: served.usage.prompt_tokens,
                completion_tokens: served.usage.completion_tokens,
                billed: spent,
                baseline: bill.baseline,
            },
        );
        if let Some(billed) = bill.billed
            && let Some(saved) = bill.baseline.checked_sub(billed)
        {
            let (books, now) = (&self.state.books, self.state.clock.now());
            books.count_saving(&self.inbound.org, now, saved.get());
        }
        self.judge(served);
    }

    /// Assumed (endpoint-quality): an answer that the open model did not hold the bar with scores 0; any
    /// other what a configured judge model gives it, or 1 by the router's own bar.
    fn judge(&self, served: &Served) {
        let state = Arc::clone(&self.state);
        let (endpoint, now) = (self.endpoint.clone(), state.clock.now());
        match served.served_by {
            ServedBy::None => return,
            ServedBy::Frontier => return state.endpoints.judge(&endpoint, now, 0.0),
            ServedBy::Specialist => {}
        }
        let Some(answer) = served.draft.content.clone() else {
            return state.endpoints.judge(&endpoint, now, 1.0);
        };
        let messages = self.request.messages.clone();
        let tasks = state.tasks.clone();
        // After the answer, unbilled: a judge must not make the endpoint slower.
        tasks.spawn(async move {
            let score = state.fleet.judge_turn(&messages, &answer).await;
            state.endpoints.judge(&endpoint, now, score.unwrap_or(1.0));
        });
    }

    pub fn observe(&self, took_ms: u64, outcome: Outcome) {
        let at = self.state.clock.now();
        let seen = Observation {
            at,
            took_ms,
            outcome,
        };
        self.state.endpoints.observe(&self.endpoint, &seen);
    }
}
