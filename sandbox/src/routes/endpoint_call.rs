//! An admitted request to a deployed endpoint: its work, its one debit, and its place in the metrics.
//!
//! Promise: one debit per answer and none per error; every request that reached the endpoint is in its metrics
//! once.

use crate::{
    catalog,
    endpoints::{
        leaderboard,
        record::Endpoint,
        traffic::{Observation, Outcome},
    },
    error::ServiceError,
    fingerprint::Fingerprint,
    fleet::Answer,
    idempotency::Run,
    inbound::Inbound,
    limits::Slot,
    models::{Lane, Pinned, Prompt, Served, ServedBy, request::ChatRequest},
    money::MicroUsd,
    spec,
    state::State,
};
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

// === impl Call ===

impl Call {
    /// Interface: "While an endpoint is stopped or cold, inference against it returns 503."
    pub async fn work(&self) -> Result<Answer, ServiceError> {
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
        let charged =
            self.state
                .charge(&self.inbound, &self.run, &self.fingerprint, price, stream)?;
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
