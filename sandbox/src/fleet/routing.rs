//! The router: a specialist first, the bar, then the frontier model.
//!
//! Interface, Inference: "The result is checked against the bar, and the request is escalated to a frontier
//! model when needed."
//! Promise: an answer is given only after every check it can fail; one answer, one price.

use super::{Fleet, servers::Member};
use crate::{
    error::ServiceError,
    models::{
        self, Category, Dice, Draft, Lane, Opening, Pinned, Served, ServedBy, Tier, Turn, Usage,
        request::ChatRequest,
    },
    money::Price,
    remote::{Broken, Deltas, Logprobs, Piece, RemoteError},
};
use serde_json::Value;

/// Assumed (judge): the score a judge model must give.
const BAR: f64 = 0.5;
/// Assumed (agent-confidence): the mean probability of its tokens below which a turn is of low confidence.
const CONFIDENCE: f64 = 0.5;

/// A planned request and its answer.
pub struct Routed {
    /// Where it was planned to go; `None` for a clarification.
    pub category: Option<Category>,
    pub escalated: bool,
    pub answer: Answer,
}

pub enum Answer {
    Whole(Served),
    /// Being written; nothing about it can be wrong any more but its end.
    Flowing(Flow),
}

/// An answer that is relayed while a server writes it.
pub struct Flow {
    deltas: Box<Deltas>,
    priced: Priced,
    counted: Usage,
}

/// Who answered and for how much; the answer itself is still to come.
#[derive(Clone, Copy, Debug)]
struct Priced {
    served_by: ServedBy,
    specialist: Option<Category>,
    escalated: bool,
    price: Price,
    list_price: Price,
}

enum Attempt {
    Whole(Draft, Usage),
    Flowing(Box<Deltas>, Usage),
    /// The server ended without a word.
    Nothing,
}

// === impl Fleet ===

impl Fleet {
    /// Plans and answers one request. With `relay` an answer that needs no check is given while it is written.
    pub async fn route(
        &self,
        request: &ChatRequest,
        lane: Lane,
        pinned: Pinned,
        relay: bool,
    ) -> Result<Routed, ServiceError> {
        let dice = self.dice();
        let turn = match models::open(request, lane, pinned)? {
            Opening::Turn(turn) => turn,
            Opening::Clarification(served) => {
                return Ok(Routed {
                    category: None,
                    escalated: false,
                    answer: Answer::Whole(served),
                });
            }
        };
        let category = turn.plan.category;
        let frontier = self.servers.auto_frontier();
        let member = self.servers.specialist(category);
        let tried = !turn.plan.frontier && turn.plan.prompt_tokens <= member.prompt_tokens_max;
        if tried {
            let relayed = relay && self.is_sure_beforehand(&turn);
            let priced = Priced {
                served_by: ServedBy::Specialist,
                specialist: Some(category),
                escalated: false,
                price: member.price,
                list_price: frontier.price,
            };
            match attempt(member, Tier::Specialist, &turn, relayed, &dice).await {
                Ok(Attempt::Whole(draft, usage)) => {
                    if self.holds(&turn, &draft).await {
                        return priced.whole(category, draft, usage);
                    }
                }
                Ok(Attempt::Flowing(deltas, counted)) => {
                    return Ok(priced.flowing(category, deltas, counted));
                }
                // Interface, X-Service-Escalated: "verification not met or specialist deadline expired". Of one
                // that is not there, or not of its senses, no answer can be verified.
                Ok(Attempt::Nothing)
                | Err(RemoteError::Late | RemoteError::TooLong | RemoteError::Failed) => {}
                // Interface, Errors 503: "a serving backend behind auto is warming or briefly unavailable".
                Err(error @ (RemoteError::Busy { .. } | RemoteError::Refused)) => {
                    return Err(error.told(lane));
                }
            }
        }
        let priced = Priced {
            served_by: ServedBy::Frontier,
            specialist: tried.then_some(category),
            escalated: tried,
            price: frontier.price,
            list_price: frontier.price,
        };
        let relayed = relay && turn.takes_words();
        match attempt(frontier, Tier::Frontier, &turn, relayed, &dice).await {
            Ok(Attempt::Whole(draft, usage)) if turn.conforms(&draft) => {
                priced.whole(category, draft, usage)
            }
            Ok(Attempt::Flowing(deltas, counted)) => Ok(priced.flowing(category, deltas, counted)),
            // Interface, Errors 502: a structured request produced no schema-conformant answer; not billed.
            Ok(Attempt::Whole(..) | Attempt::Nothing) => {
                Err(ServiceError::NoServingPath(match lane {
                    Lane::Inference => "no serving path produced a conformant answer",
                    Lane::Agent => "the turn could not be completed",
                }))
            }
            Err(error) => Err(error.told(lane)),
        }
    }

    /// The end of a relayed answer, and what of it is still to be given.
    ///
    /// A tool call is checked before it is given. One that does not hold is not, and the frontier model makes
    /// the turn's end: behind the words that were given come its own and its calls.
    pub async fn finish(
        &self,
        flow: Flow,
        request: &ChatRequest,
        lane: Lane,
    ) -> Result<(Served, Draft), ServiceError> {
        let priced = flow.priced;
        let served = flow.served()?;
        if models::holds_form(&served.draft, request) {
            let rest = Draft {
                content: None,
                ..served.draft.clone()
            };
            return Ok((served, rest));
        }
        if priced.served_by == ServedBy::Frontier {
            return Err(RemoteError::Failed.told(lane));
        }
        let pinned = Pinned {
            category: priced.specialist,
            frontier: true,
        };
        let again = self.serve(request, lane, pinned).await?;
        let rest = again.draft.clone();
        let served = Served {
            escalated: true,
            specialist: priced.specialist,
            ..again
        };
        Ok((served, rest))
    }

    /// Whether a specialist's words need no check once they are there: any text will do, and confidence is told
    /// by the prompt alone. Only then a stream is relayed while it is written. What the check costs otherwise: the
    /// first byte comes when the whole draft is there and judged, not when its first token is. A tool call is
    /// given whole, after its check.
    fn is_sure_beforehand(&self, turn: &Turn<'_>) -> bool {
        let by_logprobs = turn.lane == Lane::Agent
            && turn.request.forwarded.get("logprobs") == Some(&Value::Bool(true));
        let by_judge = self.servers.judge().is_some() && turn.is_free_text();
        turn.takes_words() && turn.is_confident() && !by_judge && !by_logprobs
    }

    /// The bar for a specialist's answer: its form; on the agent lane its tokens' probabilities, when the server
    /// was asked for them; the judge model's score, else the built-in judge's rule.
    async fn holds(&self, turn: &Turn<'_>, draft: &Draft) -> bool {
        if !turn.conforms(draft) {
            return false;
        }
        if turn.lane == Lane::Agent
            && let Some(logprobs) = &draft.logprobs
            && let Some(mean) = Logprobs(logprobs).mean_probability()
            && mean < CONFIDENCE
        {
            return false;
        }
        // A schema or a tool's parameters are the bar of what has them; words are for a judge.
        let score = match &draft.content {
            Some(content) if turn.is_free_text() => {
                self.judge_turn(&turn.request.messages, content).await
            }
            _ => None,
        };
        score.map_or_else(|| turn.is_confident(), |score| score >= BAR)
    }
}

/// One member's answer: of the built-in model, or of the server in its place.
async fn attempt(
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
            // Nothing was given yet: a call is checked as in a whole answer.
            let (draft, told) = remote.whole(deltas).await?;
            let usage = told.unwrap_or_else(|| turn.count(&draft));
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

// === impl Priced ===

impl Priced {
    fn whole(self, category: Category, draft: Draft, usage: Usage) -> Result<Routed, ServiceError> {
        Ok(Routed {
            category: Some(category),
            escalated: self.escalated,
            answer: Answer::Whole(self.served(draft, usage)?),
        })
    }

    fn flowing(self, category: Category, deltas: Box<Deltas>, counted: Usage) -> Routed {
        Routed {
            category: Some(category),
            escalated: self.escalated,
            answer: Answer::Flowing(Flow {
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
    fn served(self) -> Result<Served, ServiceError> {
        let (draft, told) = self.deltas.finish().map_err(|broken| broke(&broken))?;
        let usage = told.unwrap_or_else(|| Usage {
            prompt_tokens: self.counted.prompt_tokens,
            completion_tokens: draft.tokens(),
        });
        self.priced.served(draft, usage)
    }
}

fn broke(broken: &Broken) -> ServiceError {
    tracing::warn!(why = broken.0, "a relayed stream broke");
    RemoteError::Failed.told(Lane::Inference)
}
