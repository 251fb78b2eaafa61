//! A chat completion, of the router or of a deployed endpoint: what is its own in a purchase.
//!
//! Promise: one answer, of the seller that was asked; one that flows is written by `streaming`.

use super::{
    chat_object::{completion_id, whole},
    seller::Seller,
    streaming::{self, Flowing},
};
use crate::{
    billing::Charged,
    error::{RouteResult, ServiceError},
    fleet,
    idempotency::WhileRunning,
    inbound::Inbound,
    models::{Lane, Served, request::ChatRequest},
    purchase::{Goods, JsonAnswer, Order, Rules, WorkResult, purchase},
    state::State,
};
use std::sync::Arc;

pub async fn complete(state: Arc<State>, inbound: Inbound, seller: Seller) -> RouteResult {
    let (asked, at) = (inbound.clone(), Arc::clone(&state));
    let form = async move {
        let request = seller.parse(&asked.body)?;
        let alongside = request.stream || seller.lane() == Lane::Agent;
        Ok(Order {
            fingerprint: seller.fingerprint(&asked),
            while_running: match alongside {
                true => WhileRunning::RunAlongside,
                false => WhileRunning::Wait,
            },
            keeps: seller.keeps(),
            work: work(at, asked, seller, request),
        })
    };
    purchase(&state, inbound, Rules::Inference, form).await
}

async fn work(
    state: Arc<State>,
    inbound: Inbound,
    seller: Seller,
    request: ChatRequest,
) -> Result<WorkResult, ServiceError> {
    let answer = seller
        .work(&state, &inbound, &request)
        .await
        .inspect_err(|error| seller.count_failed_work(&state, error.status()))?;
    match answer {
        answer if request.stream => Ok(WorkResult::Stream(Box::new(move |sale| {
            let flowing = Flowing {
                seller,
                request,
                answer,
            };
            streaming::start(sale, flowing)
        }))),
        fleet::Completion::Whole(served) => goods(state, inbound.org, seller, request, served),
        // Nothing is relayed that was not asked to be.
        fleet::Completion::Flowing(_) => Err(ServiceError::Internal),
    }
}

fn goods(
    state: Arc<State>,
    org: String,
    seller: Seller,
    request: ChatRequest,
    served: Served,
) -> Result<WorkResult, ServiceError> {
    let price = seller.price(&served)?;
    let answer = move |charged: &Charged| {
        let took_ms = seller.took_ms(&state);
        seller.count(
            &state,
            &org,
            &request,
            &served,
            Some((price, charged)),
            took_ms,
        );
        let id = completion_id(&state.clock);
        let body = whole(&state.clock, &served, &id, seller.model());
        JsonAnswer::json(
            seller.receipt(&served, charged),
            &seller.marks(&served),
            &body,
        )
    };
    Ok(WorkResult::Whole(Goods {
        price,
        answer: Box::new(answer),
    }))
}
