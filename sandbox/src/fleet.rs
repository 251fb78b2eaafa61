//! The one way to the models, for every route that needs one.
//!
//! Chat, the agent lane, the comparison, eval runs and endpoints ask here, so that a model that replaces a
//! built-in one serves all of them: a specialist first, the bar, then the frontier model. Interface, Inference:
//! "The result is checked against the bar, and the request is escalated to a frontier model when needed."
//! Judge, reasoner and transcriber answer no request. Their results are checked before use, a failed one counts
//! as absent, and their work is never billed.
//! Promise: no debit, no limit and no receipt here; the caller owns those. An answer below the bar is escalated
//! or refused, never returned.

mod answer;
mod servers;
mod words;

pub use crate::remote::Transcript;
pub use answer::Completion;

use crate::{
    clock::Clock,
    error::ServiceError,
    fault::FixedAnswer,
    models::{
        self, Dice, Draft, Lane, Opening, Pinned, Served, ServedBy, Tier, Turn, Usage,
        request::ChatRequest, roster::FrontierModel,
    },
    money::MicroUsd,
    remote::{
        Logprobs, RemoteError,
        settings::{ModelServer, ModelServerError},
    },
};
use answer::{Attempt, Flow, Priced, Routed, attempt};
use serde_json::{Map, Value, json};
use servers::{Member, Servers};
use std::sync::atomic::{AtomicU64, Ordering};

/// Assumed (judge): the score that a judge model must give.
const BAR: f64 = 0.5;
/// Assumed (agent-confidence): the mean probability of its tokens below which a turn is of low confidence.
const CONFIDENCE: f64 = 0.5;

const ON_THE_FRONTIER: Pinned = Pinned {
    category: None,
    frontier: true,
};

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
            Completion::Whole(served) => Ok(served),
            // Nothing is relayed that was not asked to be.
            Completion::Flowing(_) => Err(ServiceError::Internal),
        }
    }

    /// Plans and answers one request. With `relay` an answer that needs no check is sent while it is written.
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
            Opening::Clarification(served) => return Ok(Routed::clarification(served)),
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
                    return Err(error.service_error(lane));
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
            Err(error) => Err(error.service_error(lane)),
        }
    }

    /// An answer that a fault rule has fixed: not checked against the bar, and priced as the specialist's whose
    /// the request would have been.
    pub fn fixed(
        &self,
        request: &ChatRequest,
        lane: Lane,
        pinned: Pinned,
        answer: &FixedAnswer,
    ) -> Result<Routed, ServiceError> {
        let turn = match models::open(request, lane, pinned)? {
            Opening::Turn(turn) => turn,
            Opening::Clarification(served) => return Ok(Routed::clarification(served)),
        };
        let category = turn.plan.category;
        let priced = Priced {
            served_by: ServedBy::Specialist,
            specialist: Some(category),
            escalated: false,
            price: self.servers.specialist(category).price,
            list_price: self.servers.auto_frontier().price,
        };
        let draft = answer.draft(self.dice().run);
        let usage = turn.count(&draft);
        priced.whole(category, draft, usage)
    }

    /// The end of a relayed answer, and the part of it that is still to be sent.
    ///
    /// A tool call is checked before it is sent. If it fails the check, the frontier model completes the
    /// turn: its own words and calls follow the words already sent.
    pub async fn finish(
        &self,
        flow: Flow,
        request: &ChatRequest,
        lane: Lane,
    ) -> Result<(Served, Draft), ServiceError> {
        let served = flow.served()?;
        if models::holds_form(&served.draft, request) {
            let rest = Draft {
                content: None,
                ..served.draft.clone()
            };
            return Ok((served, rest));
        }
        if served.served_by == ServedBy::Frontier {
            return Err(RemoteError::Failed.service_error(lane));
        }
        let pinned = Pinned {
            category: served.specialist,
            frontier: true,
        };
        let again = self.serve(request, lane, pinned).await?;
        let rest = again.draft.clone();
        let served = Served {
            escalated: true,
            specialist: served.specialist,
            ..again
        };
        Ok((served, rest))
    }

    /// Whether a specialist's words need no check once they are there, because any text is acceptable and the
    /// confidence depends on the prompt alone. Only then is a stream relayed while it is written. Otherwise the
    /// check costs time: the first byte is sent when the whole draft is there and judged, not at its first
    /// token. A tool call is sent whole, after its check.
    fn is_sure_beforehand(&self, turn: &Turn<'_>) -> bool {
        let by_logprobs = turn.lane == Lane::Agent
            && turn.request.forwarded.get("logprobs") == Some(&Value::Bool(true));
        let by_judge = self.servers.judge().is_some() && turn.is_free_text();
        turn.takes_words() && turn.is_confident() && !by_judge && !by_logprobs
    }

    /// The bar for a specialist's answer: its form; on the agent lane its tokens' probabilities, if the server
    /// was asked for them; the judge model's score, or the built-in judge's rule.
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
        // A schema or a tool's parameters are the whole bar of what has them; words are for a judge.
        if turn.is_structured() || !draft.tool_calls.is_empty() {
            return true;
        }
        let score = match &draft.content {
            Some(content) if turn.is_free_text() => {
                self.judge_turn(&turn.request.messages, content).await
            }
            _ => None,
        };
        score.map_or_else(|| turn.is_confident(), |score| score >= BAR)
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
        priced(&member, draft, usage)
    }

    /// A whole request on a named frontier model, called directly: the baseline of an eval run. 502 if its
    /// server fails.
    ///
    /// Interface, Evals: "scores `auto` and optional frontier baselines on the same rows". The request is the
    /// one that `auto` gets; there is no bar and no escalation, because this model's own answer is measured.
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
                    .map_err(|error| error.service_error(Lane::Inference))?;
                if reply.draft.is_empty() {
                    return Err(ServiceError::NoServingPath("the vendor's call failed"));
                }
                let usage = reply.usage.unwrap_or_else(|| turn.count(&reply.draft));
                (reply.draft, usage)
            }
        };
        priced(&member, draft, usage)
    }

    /// How well `answer` answers `prompt`, from 0 to 1, by the configured judge model; `expected` is the
    /// answer known to be right, if there is one. `None` if no judge is configured or it gave no usable
    /// number.
    pub async fn judge(&self, prompt: &str, expected: Option<&str>, answer: &str) -> Option<f64> {
        let question = format!("<question>{}</question>", words::shown(prompt));
        self.graded(question, expected, answer).await
    }

    /// The same for the next words of a conversation.
    pub async fn judge_turn(&self, messages: &[Value], answer: &str) -> Option<f64> {
        self.servers.judge()?;
        let question = words::asked(&models::conversation(messages));
        self.graded(question, None, answer).await
    }

    async fn graded(&self, question: String, expected: Option<&str>, answer: &str) -> Option<f64> {
        let remote = self.servers.judge()?;
        let mut asked = format!("{question}\n<answer>{}</answer>", words::shown(answer));
        if let Some(expected) = expected {
            asked.push_str(&format!(
                "\n<right-answer>{}</right-answer>",
                words::shown(expected)
            ));
        }
        let reply = remote
            .complete(&words::request(words::JUDGE_SYSTEM, &asked))
            .await
            .ok()?;
        let score = words::score(reply.draft.content.as_deref()?);
        if score.is_none() {
            tracing::warn!("the judge model gave no number from 0 to 1");
        }
        score
    }

    /// A value of `schema` (JSON Schema), made by the configured reasoner. `None` if none is configured,
    /// it is unavailable, or its text does not conform.
    pub async fn reason(&self, system: &str, user: &str, schema: &Value) -> Option<Value> {
        let remote = self.servers.reasoner()?;
        let mut body = words::request(system, user);
        let format = json!({
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": schema, "strict": true},
        });
        body.insert("response_format".to_owned(), format);
        let reply = remote.complete(&body).await.ok()?;
        let value: Value =
            serde_json::from_str(words::bare(reply.draft.content.as_deref()?)).ok()?;
        models::schema_holds(schema, &value).then_some(value)
    }

    /// The words of a recording, from the configured transcription server: `None` if none is configured.
    /// The ending of `file_name` announces the container to the server; `language` is ISO 639-1.
    pub async fn transcribe(
        &self,
        bytes: &[u8],
        file_name: &str,
        language: Option<&str>,
    ) -> Option<Result<Transcript, ServiceError>> {
        let remote = self.servers.transcription()?;
        let heard = remote.transcribe(bytes, file_name, language).await;
        Some(heard.map_err(|error| match error {
            RemoteError::Refused => {
                ServiceError::BadRequest("the recording was refused as invalid".to_owned())
            }
            other => other.service_error(Lane::Inference),
        }))
    }

    /// The run's number makes samples differ.
    fn dice(&self) -> Dice {
        Dice {
            seed: self.seed,
            run: self.runs.fetch_add(1, Ordering::Relaxed),
        }
    }
}

fn priced(member: &Member<'_>, draft: Draft, usage: Usage) -> Result<FrontierAnswer, ServiceError> {
    let price = member.price;
    let cost = price.cost(usage.prompt_tokens, usage.completion_tokens);
    let cost = cost.ok_or(ServiceError::Internal)?;
    Ok(FrontierAnswer { draft, cost })
}

fn own_seed(model: &FrontierModel, request: &ChatRequest) -> i64 {
    let of_the_name = model
        .id
        .bytes()
        .fold(0_i64, |seed, byte| seed * 31 % 1_000_003 + i64::from(byte));
    request.fixed_seed.unwrap_or(0).wrapping_add(of_the_name)
}

#[cfg(test)]
mod tests;
