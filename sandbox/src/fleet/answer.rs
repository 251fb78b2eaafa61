//! One answer of a member, whole or still being written, and its price.
//!
//! Promise: one answer, one price; a stream that breaks is an error, never an end.

use super::servers::Member;
use crate::{
    error::ServiceError,
    models::{Category, Dice, Draft, Lane, Served, ServedBy, Tier, Turn, Usage},
    money::Price,
    remote::{Broken, Deltas, Piece, RemoteError},
};

/// A planned request and its answer.
pub struct Routed {
    /// Where it was planned to go; `None` for a clarification.
    pub category: Option<Category>,
    pub escalated: bool,
    pub answer: Completion,
}

pub enum Completion {
    Whole(Served),
    /// Being written; only its end can still go wrong.
    Flowing(Flow),
}

/// An answer that is relayed while a server writes it.
pub struct Flow {
    deltas: Box<Deltas>,
    priced: Priced,
    counted: Usage,
}

/// The answering model and its price; the answer itself is still to come.
#[derive(Clone, Copy, Debug)]
pub struct Priced {
    pub served_by: ServedBy,
    pub specialist: Option<Category>,
    pub escalated: bool,
    pub price: Price,
    pub list_price: Price,
}

pub enum Attempt {
    Whole(Draft, Usage),
    Flowing(Box<Deltas>, Usage),
    /// The server ended without a word.
    Nothing,
}

/// One member's answer: of the built-in model, or of the server in its place.
pub async fn attempt(
    member: Member<'_>,
    tier: Tier,
    turn: &Turn<'_>,
    relayed: bool,
    dice: &Dice,
) -> Result<Attempt, RemoteError> {
    let Some(remote) = member.remote else {
        let draft = turn.draft(tier, dice);
        let usage = turn.count(&draft);
        return Ok(Attempt::Whole(draft, usage));
    };
    let body = turn.request.for_server();
    if relayed {
        let deltas = remote.stream(&body, turn.may_call()).await?;
        if deltas.is_empty() {
            return Ok(Attempt::Nothing);
        }
        if deltas.is_calling() {
            // Nothing was sent yet: a call is checked as in a whole answer.
            let (draft, reported) = remote.whole(deltas).await?;
            let usage = reported.unwrap_or_else(|| turn.count(&draft));
            return Ok(Attempt::Whole(draft, usage));
        }
        return Ok(Attempt::Flowing(
            Box::new(deltas),
            turn.count(&Draft::default()),
        ));
    }
    let reply = remote.complete(&body).await?;
    if reply.draft.is_empty() {
        return Ok(Attempt::Nothing);
    }
    let usage = reply.usage.unwrap_or_else(|| turn.count(&reply.draft));
    Ok(Attempt::Whole(reply.draft, usage))
}

// === impl Routed ===

impl Routed {
    /// Nothing ran.
    pub fn clarification(served: Served) -> Self {
        Self {
            category: None,
            escalated: false,
            answer: Completion::Whole(served),
        }
    }
}

// === impl Priced ===

impl Priced {
    pub fn whole(
        self,
        category: Category,
        draft: Draft,
        usage: Usage,
    ) -> Result<Routed, ServiceError> {
        Ok(Routed {
            category: Some(category),
            escalated: self.escalated,
            answer: Completion::Whole(self.served(draft, usage)?),
        })
    }

    pub fn flowing(self, category: Category, deltas: Box<Deltas>, counted: Usage) -> Routed {
        Routed {
            category: Some(category),
            escalated: self.escalated,
            answer: Completion::Flowing(Flow {
                deltas,
                priced: self,
                counted,
            }),
        }
    }

    fn served(self, draft: Draft, usage: Usage) -> Result<Served, ServiceError> {
        let cost = |price: Price| {
            price
                .cost(usage.prompt_tokens, usage.completion_tokens)
                .ok_or(ServiceError::Internal)
        };
        Ok(Served {
            usage,
            served_by: self.served_by,
            specialist: self.specialist,
            escalated: self.escalated,
            price: cost(self.price)?,
            // Interface: usage tokens at frontier list price; the frontier model is not run.
            would_have_cost: cost(self.list_price)?,
            missing_input: None,
            draft,
        })
    }
}

// === impl Flow ===

impl Flow {
    /// The next piece; `None` at the end, the error when the server's stream broke.
    pub async fn next(&mut self) -> Result<Option<Piece>, ServiceError> {
        self.deltas.next().await.map_err(|broken| broke(&broken))
    }

    /// The whole answer and its price, after the last piece.
    pub fn served(self) -> Result<Served, ServiceError> {
        let (draft, reported) = self.deltas.finish().map_err(|broken| broke(&broken))?;
        let usage = reported.unwrap_or_else(|| Usage {
            prompt_tokens: self.counted.prompt_tokens,
            completion_tokens: draft.tokens(),
        });
        self.priced.served(draft, usage)
    }
}

fn broke(broken: &Broken) -> ServiceError {
    tracing::warn!(why = broken.0, "a relayed stream broke");
    RemoteError::Failed.service_error(Lane::Inference)
}
