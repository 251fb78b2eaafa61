//! The models behind `auto`: plan, answer, judge, escalate, meter.
//!
//! Interface: "Each request is planned and routed to a specialist open-weights model, or to a frontier
//! model when no specialist holds the quality bar. The result is checked against the bar, and the request is
//! escalated to a frontier model when needed." The two built-in models compute their answers from the
//! prompt; see `specialist` and `frontier`.
//! Promise: which model served is told only as the coarse words the interface shows; an answer that does
//! not conform to a requested schema is never served.

mod arithmetic;
mod code;
mod frontier;
mod judge;
mod pattern;
mod plan;
mod prompt;
pub mod request;
mod rng;
mod scan;
mod schema;
mod specialist;
mod text;
pub mod tokens;
mod tools;
mod vision;

pub use plan::{Category, MissingInput};
pub use prompt::Prompt;
use request::ChatRequest;
use rng::Rng;
use serde_json::Value;

use crate::{
    error::ServiceError,
    money::{MicroUsd, Price},
    spec,
};

/// Published prices. Assumed (prices): the interface shows none.
pub const FRONTIER_PRICE: Price = Price {
    prompt_per_million: 3_000_000,
    completion_per_million: 15_000_000,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    Inference,
    Agent,
}

/// Which of the two built-in models writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Specialist,
    Frontier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedBy {
    Specialist,
    Frontier,
    /// A clarification: no model was needed.
    None,
}

/// What a model wrote, before and after cutting it to `max_tokens` and `stop`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    pub content: Option<String>,
    pub tool_calls: Vec<ToolCall>,
    pub cut_by_length: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// JSON text, as the OpenAI shape carries it.
    pub arguments: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
}

/// A finished answer and what it costs.
#[derive(Clone, Debug)]
pub struct Served {
    pub draft: Draft,
    pub usage: Usage,
    pub served_by: ServedBy,
    pub specialist: Option<Category>,
    pub escalated: bool,
    pub price: MicroUsd,
    pub would_have_cost: MicroUsd,
    pub missing_input: Option<MissingInput>,
}

/// What an answer depends on beside its request.
#[derive(Clone, Debug)]
pub struct Dice {
    pub seed: u64,
    /// Counts runs, so that sampling one prompt five times gives five answers.
    pub run: u64,
}

/// How a conversation was routed before; see `pins`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pinned {
    pub category: Option<Category>,
    pub frontier: bool,
}

// === impl ServedBy ===

impl ServedBy {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Specialist => "specialist",
            Self::Frontier => "frontier",
            Self::None => "none",
        }
    }
}

// === impl Draft ===

impl Draft {
    pub fn finish_reason(&self) -> &'static str {
        if self.cut_by_length {
            "length"
        } else if self.tool_calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        }
    }

    fn tokens(&self) -> u64 {
        let calls: u64 = self
            .tool_calls
            .iter()
            .map(|call| tokens::count(&call.name) + tokens::count(&call.arguments))
            .sum();
        calls + self.content.as_deref().map_or(0, tokens::count)
    }
}

/// Plans and answers one request. No side effect: the caller debits `price` once.
pub fn serve(
    request: &ChatRequest,
    lane: Lane,
    dice: &Dice,
    pinned: Pinned,
) -> Result<Served, ServiceError> {
    let prompt = Prompt::of(&request.messages);
    let prompt_tokens = prompt.tokens + request.tool_tokens();
    if prompt_tokens > spec::CONTEXT_WINDOW_TOKENS {
        // Assumed (context-window): a transcript beyond the window is a validation failure.
        return Err(ServiceError::BadRequest(format!(
            "the transcript is over {} tokens",
            spec::CONTEXT_WINDOW_TOKENS
        )));
    }
    if lane == Lane::Inference
        && let Some(missing) = plan::missing_input(&prompt)
    {
        if request.schema.is_some() {
            let (_, needed) = missing.names();
            return Err(ServiceError::InputModalityUnsupported { needed });
        }
        return clarification(missing);
    }
    let plan = plan::plan(&prompt, request, lane, pinned);
    let mut specialist = None;
    if plan.specialist {
        specialist = Some(plan.category);
        let draft = draft(
            Tier::Specialist,
            plan.category,
            request,
            &prompt,
            lane,
            dice,
        );
        if judge::passes(&draft, request, &prompt) {
            let price = plan.category.price();
            return finished(
                draft,
                prompt_tokens,
                ServedBy::Specialist,
                specialist,
                false,
                price,
            );
        }
    }
    let draft = draft(Tier::Frontier, plan.category, request, &prompt, lane, dice);
    if !judge::conforms(&draft, request) {
        // Interface, Errors 502: a structured request produced no schema-conformant answer; not billed.
        return Err(ServiceError::NoServingPath(match lane {
            Lane::Inference => "no serving path produced a conformant answer",
            Lane::Agent => "the turn could not be completed",
        }));
    }
    let escalated = specialist.is_some();
    finished(
        draft,
        prompt_tokens,
        ServedBy::Frontier,
        specialist,
        escalated,
        FRONTIER_PRICE,
    )
}

/// One prompt on a frontier model, outside the router.
pub fn frontier_only(messages: &[Value], dice: &Dice, name: &str) -> (Draft, Usage) {
    let prompt = Prompt::of(messages);
    let mut rng = Rng::from_parts(&[
        &dice.seed.to_le_bytes(),
        &dice.run.to_le_bytes(),
        name.as_bytes(),
        prompt.all.as_bytes(),
    ]);
    let category = plan::category(&prompt, false, Lane::Inference);
    let draft = Draft {
        content: Some(frontier::write(category, &prompt, &mut rng)),
        ..Draft::default()
    };
    let usage = Usage {
        prompt_tokens: prompt.tokens,
        completion_tokens: draft.tokens(),
    };
    (draft, usage)
}

fn draft(
    tier: Tier,
    category: Category,
    request: &ChatRequest,
    prompt: &Prompt,
    lane: Lane,
    dice: &Dice,
) -> Draft {
    let mut rng = request.rng(tier, lane, dice);
    let tool_calls = tools::calls(request, prompt, tier, &mut rng);
    if !tool_calls.is_empty() {
        return Draft {
            tool_calls,
            ..Draft::default()
        };
    }
    let written = if let Some(schema) = &request.schema {
        schema::fill(schema, &prompt.all, tier, &mut rng).to_string()
    } else if request.json_object {
        schema::fill(
            &specialist::free_object(prompt),
            &prompt.all,
            tier,
            &mut rng,
        )
        .to_string()
    } else if !prompt.tool_results.is_empty() {
        tools::answer_from_results(prompt, &mut rng)
    } else {
        match tier {
            Tier::Specialist => specialist::write(category, prompt, &mut rng),
            Tier::Frontier => frontier::write(category, prompt, &mut rng),
        }
    };
    cut(written, request)
}

/// Applies `stop`, then `max_tokens`.
fn cut(mut written: String, request: &ChatRequest) -> Draft {
    let stop_at = request
        .stop
        .iter()
        .filter_map(|stop| written.find(stop.as_str()))
        .min();
    if let Some(at) = stop_at {
        written.truncate(at);
    }
    let pieces = tokens::pieces(&written);
    let most = request
        .max_tokens
        .map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let cut_by_length = pieces.len() > most;
    if cut_by_length {
        written = pieces.into_iter().take(most).collect();
    }
    Draft {
        content: Some(written),
        tool_calls: Vec::new(),
        cut_by_length,
    }
}

fn finished(
    draft: Draft,
    prompt_tokens: u64,
    served_by: ServedBy,
    specialist: Option<Category>,
    escalated: bool,
    price: Price,
) -> Result<Served, ServiceError> {
    let usage = Usage {
        prompt_tokens,
        completion_tokens: draft.tokens(),
    };
    let cost = |price: Price| {
        price
            .cost(usage.prompt_tokens, usage.completion_tokens)
            .ok_or(ServiceError::Internal)
    };
    Ok(Served {
        usage,
        served_by,
        specialist,
        escalated,
        price: cost(price)?,
        // Interface: usage tokens at frontier list price; the frontier model is not run.
        would_have_cost: cost(FRONTIER_PRICE)?,
        missing_input: None,
        draft,
    })
}

/// Interface: a request that needs an input and is not structured gets HTTP 200, billed 0.
fn clarification(missing: MissingInput) -> Result<Served, ServiceError> {
    let (name, _) = missing.names();
    Ok(Served {
        draft: Draft {
            content: Some(format!(
                "Your message refers to {name} input, but none came with it. Please attach the {name} and ask again."
            )),
            ..Draft::default()
        },
        // Assumed (clarification-form): nothing ran, so usage is zero, as is what it would have cost.
        usage: Usage::default(),
        served_by: ServedBy::None,
        specialist: None,
        escalated: false,
        price: MicroUsd::ZERO,
        would_have_cost: MicroUsd::ZERO,
        missing_input: Some(missing),
    })
}
