//! Who answers: the one door to the models, for every route that needs one.
//!
//! Chat, the agent lane, the comparison, eval runs and endpoints ask here, so that a model that is set in
//! the place of a built-in one serves all of them.
//! Promise: no debit, no limit and no receipt here; the caller owns those. An answer that does not hold the
//! bar is escalated or refused, never returned.

mod asks;
mod baseline;
mod routing;
mod servers;

pub use crate::remote::Transcript;
pub use routing::Answer;

use crate::{
    clock::Clock,
    error::ServiceError,
    models::{
        self, Dice, Draft, Lane, Pinned, Served, request::ChatRequest, roster::FrontierModel,
    },
    money::MicroUsd,
    remote::settings::{ModelServer, ModelServerError},
};
use serde_json::{Map, Value};
use servers::Servers;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub struct Fleet {
    seed: u64,
    runs: AtomicU64,
    servers: Servers,
}

/// What a named frontier model wrote, and its price for these tokens.
#[derive(Clone, Debug)]
pub struct FrontierAnswer {
    pub draft: Draft,
    pub cost: MicroUsd,
}

// === impl Fleet ===

impl Fleet {
    /// Fails when a `[[model]]` cannot work as it is written.
    pub fn new(
        seed: u64,
        written: &[ModelServer],
        clock: &Clock,
    ) -> Result<Self, ModelServerError> {
        Ok(Self {
            seed,
            runs: AtomicU64::new(0),
            servers: Servers::new(written, clock)?,
        })
    }

    /// Plans and answers one request, checks it against the bar, escalates when it does not hold.
    pub async fn serve(
        &self,
        request: &ChatRequest,
        lane: Lane,
        pinned: Pinned,
    ) -> Result<Served, ServiceError> {
        match self.route(request, lane, pinned, false).await?.answer {
            Answer::Whole(served) => Ok(served),
            // Nothing is relayed that was not asked to be.
            Answer::Flowing(_) => Err(ServiceError::Internal),
        }
    }

    /// One prompt on a named frontier model, outside the router. Interface, Errors 502: vendor failure.
    pub async fn frontier(
        &self,
        model: &FrontierModel,
        messages: &[Value],
    ) -> Result<FrontierAnswer, ServiceError> {
        let dice = self.dice();
        let member = self.servers.frontier(model);
        let (draft, usage) = match member.remote {
            None => models::frontier_only(messages, &dice, model),
            Some(remote) => {
                let messages_field = Value::Array(messages.to_vec());
                let body = Map::from_iter([("messages".to_owned(), messages_field)]);
                let failed = ServiceError::NoServingPath("the vendor's call failed");
                match remote.complete(&body).await {
                    Ok(reply) if !reply.draft.is_empty() => {
                        let usage = reply
                            .usage
                            .unwrap_or_else(|| models::count(messages, &reply.draft));
                        (reply.draft, usage)
                    }
                    _ => return Err(failed),
                }
            }
        };
        let cost = member
            .price
            .cost(usage.prompt_tokens, usage.completion_tokens)
            .ok_or(ServiceError::Internal)?;
        Ok(FrontierAnswer { draft, cost })
    }

    /// The run's number makes samples differ.
    fn dice(&self) -> Dice {
        Dice {
            seed: self.seed,
            run: self.runs.fetch_add(1, Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests;
