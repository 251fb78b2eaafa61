//! What answers a chat request: the router, by its one model `auto`, or a deployed endpoint.
//!
//! Promise: the differences between the two in form, work, price, receipt and counting are here; the order of
//! the purchase is the same for both.

use crate::{
    billing::Charged,
    catalog,
    endpoints::{
        leaderboard,
        record::Endpoint,
        traffic::{Observation, RequestOutcome},
    },
    error::ServiceError,
    fields,
    fingerprint::Fingerprint,
    fleet::Completion,
    inbound::Inbound,
    models::{Lane, Pinned, Prompt, Served, ServedBy, request::ChatRequest},
    money::MicroUsd,
    pins::PinKey,
    purchase::Keeps,
    receipt::Receipt,
    spec,
    state::State,
};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

pub enum Seller {
    Auto(Lane),
    Endpoint(Box<Deployed>),
}

/// An endpoint that was asked, and when.
pub struct Deployed {
    pub endpoint: Endpoint,
    pub began: Duration,
}

// === impl Seller ===

impl Seller {
    pub fn lane(&self) -> Lane {
        match self {
            Self::Auto(lane) => *lane,
            Self::Endpoint(_) => Lane::Inference,
        }
    }

    /// `model` of its answers.
    pub fn model(&self) -> &str {
        match self {
            Self::Auto(_) => spec::MODEL,
            Self::Endpoint(deployed) => &deployed.endpoint.name,
        }
    }

    pub fn parse(&self, body: &[u8]) -> Result<ChatRequest, ServiceError> {
        match self {
            Self::Auto(lane) => ChatRequest::parse(body, *lane),
            Self::Endpoint(deployed) => deployed.parse(body),
        }
    }

    /// What its key is bound to.
    pub fn fingerprint(&self, inbound: &Inbound) -> Fingerprint {
        let request = inbound.fingerprint();
        match self {
            Self::Auto(_) => request,
            Self::Endpoint(deployed) => request.of_endpoint(&deployed.endpoint.uid),
        }
    }

    pub fn keeps(&self) -> Keeps {
        match self.lane() {
            Lane::Inference => Keeps::Answer,
            // Interface: agent turns are never stored.
            Lane::Agent => Keeps::Nothing,
        }
    }

    pub async fn work(
        &self,
        state: &State,
        inbound: &Inbound,
        request: &ChatRequest,
    ) -> Result<Completion, ServiceError> {
        let relay = request.stream;
        let pinned = match self {
            Self::Auto(Lane::Inference) => Pinned::default(),
            Self::Auto(Lane::Agent) => return turn(state, inbound, request).await,
            Self::Endpoint(deployed) => deployed.admit(state, request)?,
        };
        let routed = match &inbound.fault.answer {
            Some(fixed) => state.fleet.fixed(request, Lane::Inference, pinned, fixed),
            None => {
                let route = state.fleet.route(request, Lane::Inference, pinned, relay);
                route.await
            }
        };
        Ok(routed?.answer)
    }

    /// Of an endpoint: `cost_per_request_micro_usd`, else the published rate of the alias, whichever model wrote
    /// the answer. Assumed (endpoint-billing).
    pub fn price(&self, served: &Served) -> Result<MicroUsd, ServiceError> {
        match self {
            Self::Auto(_) => Ok(served.price),
            Self::Endpoint(_) if served.served_by == ServedBy::None => Ok(MicroUsd::ZERO),
            Self::Endpoint(deployed) => deployed.price(served).ok_or(ServiceError::Internal),
        }
    }

    /// The headers of the receipt. Direct model calls carry none of them.
    pub fn receipt(&self, served: &Served, charged: &Charged) -> HeaderMap {
        let receipt = Receipt::new(served, charged.shown);
        match self {
            Self::Auto(Lane::Inference) => receipt.headers(),
            Self::Auto(Lane::Agent) => receipt.agent_headers(),
            Self::Endpoint(_) => HeaderMap::new(),
        }
    }

    /// The assumptions that a whole answer depends on; a replay has the same.
    pub fn marks(&self, served: &Served) -> Vec<&'static str> {
        match self {
            Self::Auto(Lane::Agent) => return vec!["object-members", "agent-receipt-headers"],
            Self::Endpoint(_) => return vec!["endpoint-inference"],
            Self::Auto(Lane::Inference) => {}
        }
        let mut marks = vec!["object-members"];
        if !served.escalated {
            marks.push("escalated-false");
        }
        if !served.draft.tool_calls.is_empty() {
            marks.push("tool-calls-on-v1");
        }
        if served.missing_input.is_some() {
            marks.extend(["clarification-form", "clarification-rule"]);
        }
        marks
    }

    /// Since an endpoint was asked; nothing is measured of `auto` here.
    pub fn took_ms(&self, state: &State) -> u64 {
        match self {
            Self::Auto(_) => 0,
            Self::Endpoint(deployed) => {
                let took = state.clock.elapsed().saturating_sub(deployed.began);
                u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
            }
        }
    }

    /// Counts an answer in the organization's metrics and in the endpoint's; `sold` is its price and the amount
    /// charged, `None` for an answer that is not billed.
    pub fn count(
        &self,
        state: &Arc<State>,
        org: &str,
        request: &ChatRequest,
        served: &Served,
        sold: Option<(MicroUsd, &Charged)>,
        took_ms: u64,
    ) {
        // A repeat that its key's first run paid for was served and spent nothing.
        let billed = sold
            .filter(|(_, charged)| !charged.free_repeat)
            .map(|(price, _)| price);
        let baseline = match self {
            Self::Auto(_) => served.would_have_cost,
            Self::Endpoint(deployed) => {
                let baseline = deployed.baseline(served);
                let outcome = RequestOutcome::Served {
                    prompt_tokens: served.usage.prompt_tokens,
                    completion_tokens: served.usage.completion_tokens,
                    billed: billed.unwrap_or(MicroUsd::ZERO),
                    baseline,
                };
                deployed.observe(state, took_ms, outcome);
                deployed.judge(state, request, served);
                baseline
            }
        };
        if let Some(billed) = billed {
            state.billing.count_saving(org, baseline, billed);
        }
    }

    /// Counts work that failed. A request that is wrong in itself never reached the endpoint.
    pub fn count_failed_work(&self, state: &State, status: StatusCode) {
        if status.is_server_error() {
            self.count_failed(state, status, self.took_ms(state));
        }
    }

    pub fn count_failed(&self, state: &State, status: StatusCode, took_ms: u64) {
        if let Self::Endpoint(deployed) = self {
            deployed.observe(state, took_ms, RequestOutcome::Failed(status.as_u16()));
        }
    }
}

/// One turn of a conversation, on the route it is pinned to.
async fn turn(
    state: &State,
    inbound: &Inbound,
    request: &ChatRequest,
) -> Result<Completion, ServiceError> {
    let pin = match &inbound.session {
        Some(session) => PinKey::session(&inbound.org, session.as_bytes()),
        None => PinKey::derived(&inbound.org, &request.pin_basis()),
    };
    let pinned = state.pins.route(&pin);
    let relay = request.stream;
    let routed = match &inbound.fault.answer {
        Some(fixed) => state.fleet.fixed(request, Lane::Agent, pinned, fixed)?,
        None => {
            let route = state.fleet.route(request, Lane::Agent, pinned, relay);
            route.await?
        }
    };
    if let Some(category) = routed.category {
        state.pins.remember(pin, category, routed.escalated);
    }
    Ok(routed.answer)
}

// === impl Deployed ===

impl Deployed {
    /// Interface: `model` is the endpoint's id; the rest is as on the chat route.
    fn parse(&self, body: &[u8]) -> Result<ChatRequest, ServiceError> {
        let mut body = fields::json(body)?;
        match body.get_mut("model") {
            Some(model) if *model == self.endpoint.name => *model = json!(spec::MODEL),
            // A value that is not an object, or has no model, gets the error of the chat route.
            None | Some(Value::Null) => {}
            // Interface: "any other value returns 404", of any type.
            Some(_) => {
                return Err(ServiceError::NotFound(
                    "model not found; on an endpoint it is the endpoint's id".to_owned(),
                ));
            }
        }
        ChatRequest::parse(body.to_string().as_bytes(), Lane::Inference)
    }

    /// Interface: "While an endpoint is stopped or cold, inference against it returns 503."
    fn admit(&self, state: &State, request: &ChatRequest) -> Result<Pinned, ServiceError> {
        let now = state.clock.now();
        state.endpoints.check_live(&self.endpoint, now)?;
        let prompt_tokens = Prompt::of(&request.messages).tokens + request.tool_tokens();
        let context_tokens = self
            .model()
            .map_or(spec::CONTEXT_WINDOW_TOKENS, |one| one.context_tokens);
        if prompt_tokens > context_tokens {
            // Assumed (endpoint-aliases): the smaller models have smaller windows.
            return Err(ServiceError::BadRequest(format!(
                "the transcript is over the {context_tokens} tokens of this endpoint's model"
            ))
            .assumed("endpoint-aliases"));
        }
        let task = catalog::task(&self.endpoint.task);
        Ok(Pinned {
            category: task.map(|task| leaderboard::category(&task.category)),
            frontier: false,
        })
    }

    /// The model behind its alias.
    fn model(&self) -> Option<leaderboard::OpenModel> {
        let task = catalog::task(&self.endpoint.task)?;
        leaderboard::resolve(task, &self.endpoint.model)
    }

    fn price(&self, served: &Served) -> Option<MicroUsd> {
        let usage = served.usage;
        self.endpoint.cost_per_request().or_else(|| {
            self.model()?
                .cost(usage.prompt_tokens, usage.completion_tokens)
        })
    }

    /// What the frontier baseline would have cost for the same answer.
    fn baseline(&self, served: &Served) -> MicroUsd {
        match self.endpoint.frontier_cost_per_request() {
            Some(price) if served.served_by != ServedBy::None => price,
            _ => served.would_have_cost,
        }
    }

    fn observe(&self, state: &State, took_ms: u64, outcome: RequestOutcome) {
        let at = state.clock.now();
        let seen = Observation {
            at,
            took_ms,
            outcome,
        };
        state.endpoints.observe(&self.endpoint, &seen);
    }

    /// Assumed (endpoint-quality): an answer of the open model below the bar scores 0; any other has the
    /// score of a configured judge model, or 1 by the router's own bar.
    fn judge(&self, state: &Arc<State>, request: &ChatRequest, served: &Served) {
        let (endpoint, now) = (self.endpoint.clone(), state.clock.now());
        match served.served_by {
            ServedBy::None => return,
            ServedBy::Frontier => return state.endpoints.judge(&endpoint, now, 0.0),
            ServedBy::Specialist => {}
        }
        let Some(answer) = served.draft.content.clone() else {
            return state.endpoints.judge(&endpoint, now, 1.0);
        };
        let (messages, judging) = (request.messages.clone(), Arc::clone(state));
        // After the answer, unbilled: a judge must not make the endpoint slower.
        state.tasks.spawn(async move {
            let score = judging.fleet.judge_turn(&messages, &answer).await;
            let score = score.unwrap_or(1.0);
            judging.endpoints.judge(&endpoint, now, score);
        });
    }
}
