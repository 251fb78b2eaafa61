//! A frontier model asked for itself: the baseline of an eval run.
//!
//! Interface, Evals: "scores `auto` and optional frontier baselines on the same rows".
//! Promise: the request is the one `auto` gets; no bar and no escalation, for what is measured is this
//! model's own answer; its price is its own list price.

use super::{Fleet, FrontierAnswer};
use crate::{
    error::ServiceError,
    models::{self, Lane, Opening, Pinned, request::ChatRequest, roster::FrontierModel},
};

const ON_THE_FRONTIER: Pinned = Pinned {
    category: None,
    frontier: true,
};

// === impl Fleet ===

impl Fleet {
    /// A whole request on a named frontier model. 502 when its server fails.
    pub async fn baseline(
        &self,
        model: &FrontierModel,
        request: &ChatRequest,
    ) -> Result<FrontierAnswer, ServiceError> {
        let member = self.servers.frontier(model);
        // The built-in models share one writer; what sets them apart is their skills, and where their randomness begins.
        let own = member.remote.is_none().then(|| ChatRequest {
            fixed_seed: Some(own_seed(model, request)),
            ..request.clone()
        });
        let asked = own.as_ref().unwrap_or(request);
        let Opening::Turn(turn) = models::open(asked, Lane::Inference, ON_THE_FRONTIER)? else {
            return Err(ServiceError::invalid("the request lacks an input"));
        };
        let (draft, usage) = match member.remote {
            None => {
                let draft = turn.draft_of(model, &self.dice());
                let usage = turn.count(&draft);
                (draft, usage)
            }
            Some(remote) => {
                let reply = remote
                    .complete(&request.for_server())
                    .await
                    .map_err(|error| error.told(Lane::Inference))?;
                if reply.draft.is_empty() {
                    return Err(ServiceError::NoServingPath("the vendor's call failed"));
                }
                let usage = reply.usage.unwrap_or_else(|| turn.count(&reply.draft));
                (reply.draft, usage)
            }
        };
        let cost = member
            .price
            .cost(usage.prompt_tokens, usage.completion_tokens)
            .ok_or(ServiceError::Internal)?;
        Ok(FrontierAnswer { draft, cost })
    }
}

fn own_seed(model: &FrontierModel, request: &ChatRequest) -> i64 {
    let of_the_name = model
        .id
        .bytes()
        .fold(0_i64, |seed, byte| seed * 31 % 1_000_003 + i64::from(byte));
    request.fixed_seed.unwrap_or(0).wrapping_add(of_the_name)
}
