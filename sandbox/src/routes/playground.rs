//! `POST /v1/playground/frontier`: one prompt on a named frontier model.
//!
//! Promise: one debit per call, equal to `cost_micro_usd`; an Idempotency-Key is ignored here.

use crate::{
    billing::Charged,
    error::{RouteResult, ServiceError},
    fields::Fields,
    inbound::Inbound,
    models::{
        self,
        roster::{self, FrontierModel},
    },
    purchase::{Goods, JsonAnswer, Order, Rules, WorkResult, purchase},
    spec,
    state::State,
};
use axum::{Extension, extract::State as Shared};
use http::HeaderMap;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

pub async fn frontier(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> RouteResult {
    let began = state.clock.elapsed();
    let form = async {
        let (model, messages) = asked(&inbound.body)?;
        let work = work(Arc::clone(&state), began, model, messages);
        Ok(Order::unkept(&inbound, work))
    };
    purchase(&state, inbound.clone(), Rules::Beside, form).await
}

fn asked(body: &[u8]) -> Result<(&'static FrontierModel, Vec<Value>), ServiceError> {
    let fields = Fields::parse(body)?;
    // Interface: "any other value returns 400", of any type.
    let model = fields
        .required("model")?
        .as_str()
        .and_then(roster::by_id)
        .filter(|model| model.comparison)
        .ok_or_else(|| ServiceError::BadRequest("unknown frontier model".to_owned()))?;
    let messages = models::request::messages(fields.members())?;
    if messages.len() > spec::PLAYGROUND_MESSAGES_MAX {
        return Err(ServiceError::invalid("messages must have 1 to 40 entries"));
    }
    Ok((model, messages))
}

async fn work(
    state: Arc<State>,
    began: Duration,
    model: &'static FrontierModel,
    messages: Vec<Value>,
) -> Result<WorkResult, ServiceError> {
    let answer = state.fleet.frontier(model, &messages).await?;
    let price = answer.cost;
    let answer = Box::new(move |_: &Charged| {
        let took = state.clock.elapsed().saturating_sub(began);
        let body = json!({
            "model": model.id,
            "content": answer.draft.content,
            "cost_micro_usd": answer.cost,
            "latency_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
        JsonAnswer::json(HeaderMap::new(), &["frontier-ids"], &body)
    });
    Ok(WorkResult::Whole(Goods { price, answer }))
}
