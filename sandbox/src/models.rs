//! The models behind `auto`: plan, answer, judge, escalate, meter.
//!
//! Interface: "Each request is planned and routed to a specialist open-weights model, or to a frontier
//! model when no specialist holds the quality bar. The result is checked against the bar, and the request is
//! escalated to a frontier model when needed." The two built-in models compute their answers from the
//! prompt; see `specialist` and `frontier`.
//! Promise: which model served is told only as the coarse words the interface shows; an answer that does
//! not conform to a requested schema is never served.

mod answering;
mod arithmetic;
mod code;
mod facts;
mod form;
mod forward;
mod frontier;
mod given;
mod judge;
mod label;
mod logprobs;
mod minutes;
mod page;
mod pattern;
mod plan;
mod prompt;
mod reader;
mod relevance;
pub mod request;
mod rng;
pub mod roster;
mod scan;
mod schema;
mod skill;
mod specialist;
mod sql;
mod summary;
mod text;
pub mod tokens;
mod tools;
mod translation;
mod vision;

pub use plan::{Category, MissingInput, Plan, SPECIALIST_PROMPT_TOKENS_MAX};
pub use prompt::Prompt;
use reader::Reader;
use request::{ChatRequest, ToolChoice};
pub use rng::Rng as SeededRng;
use rng::Rng;
use roster::FrontierModel;
use serde_json::Value;
use skill::Skills;

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
    /// A server's filter ended it.
    pub filtered: bool,
    /// When they were asked for: a server's pass through unchanged.
    pub logprobs: Option<Value>,
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
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
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
        } else if self.filtered {
            "content_filter"
        } else if self.tool_calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        }
    }

    /// Neither a word nor a tool call.
    pub fn is_empty(&self) -> bool {
        self.tool_calls.is_empty() && self.content.as_deref().is_none_or(str::is_empty)
    }

    /// As counted here.
    pub fn tokens(&self) -> u64 {
        let calls: u64 = self
            .tool_calls
            .iter()
            .map(|call| tokens::count(&call.name) + tokens::count(&call.arguments))
            .sum();
        calls + self.content.as_deref().map_or(0, tokens::count)
    }
}

/// A request as the router sees it: read once, planned once.
#[derive(Debug)]
pub struct Turn<'a> {
    pub request: &'a ChatRequest,
    pub lane: Lane,
    pub plan: Plan,
    prompt: Prompt,
    /// As counted here; a server may tell its own.
    prompt_tokens: u64,
}

/// What a request turns out to be.
#[derive(Debug)]
pub enum Opening<'a> {
    Turn(Box<Turn<'a>>),
    /// Nothing to run: the answer asks for the input that is missing.
    Clarification(Served),
}

/// Plans one request.
pub fn open(
    request: &ChatRequest,
    lane: Lane,
    pinned: Pinned,
) -> Result<Opening<'_>, ServiceError> {
    let prompt = Prompt::of(&request.messages);
    let prompt_tokens = prompt.tokens + request.tool_tokens();
    // Interface, Limits: "131,072 tokens per turn", agent lane: a turn is its answer, too.
    let answer_tokens = u64::from(lane == Lane::Agent);
    if prompt_tokens.saturating_add(answer_tokens) > spec::CONTEXT_WINDOW_TOKENS {
        // Assumed (context-window): such a transcript is a validation failure.
        return Err(ServiceError::BadRequest(format!(
            "the transcript is over {} tokens",
            spec::CONTEXT_WINDOW_TOKENS - answer_tokens
        ))
        .assumed("context-window"));
    }
    if lane == Lane::Inference
        && let Some(missing) = plan::missing_input(&prompt)
    {
        if request.schema.is_some() {
            let (_, needed) = missing.names();
            return Err(ServiceError::InputModalityUnsupported { needed });
        }
        return Ok(Opening::Clarification(clarification(missing)));
    }
    Ok(Opening::Turn(Box::new(Turn {
        plan: plan::plan(&prompt, request, lane, pinned),
        request,
        lane,
        prompt,
        prompt_tokens,
    })))
}

// === impl Turn ===

impl Turn<'_> {
    /// What the built-in model of this tier writes.
    pub fn draft(&self, tier: Tier, dice: &Dice) -> Draft {
        let skills = match tier {
            Tier::Specialist => Skills::specialist(self.plan.category),
            Tier::Frontier => Skills::frontier(),
        };
        draft(
            tier,
            skills,
            self.plan.category,
            self.request,
            &self.prompt,
            self.lane,
            dice,
        )
    }

    /// What a model of the roster writes, of its own skills.
    pub fn draft_of(&self, model: &FrontierModel, dice: &Dice) -> Draft {
        draft(
            Tier::Frontier,
            Skills::of_roster(model),
            self.plan.category,
            self.request,
            &self.prompt,
            self.lane,
            dice,
        )
    }

    /// Whether the answer has the form that was asked for. Holds for every answer that leaves the house.
    pub fn conforms(&self, draft: &Draft) -> bool {
        judge::conforms(draft, self.request)
    }

    /// The built-in judge's word on an answer of the right form; it depends on the prompt alone.
    pub fn is_confident(&self) -> bool {
        judge::is_confident(&self.prompt)
    }

    /// Whether any text is an answer of the right form.
    pub fn is_free_text(&self) -> bool {
        let request = self.request;
        request.schema.is_none() && !request.json_object && !self.may_call()
    }

    /// Whether a tool is offered.
    pub fn may_call(&self) -> bool {
        !self.request.tools.is_empty() && self.request.tool_choice != ToolChoice::None
    }

    /// Whether words cannot be wrong in their form, though a tool call behind them can.
    pub fn takes_words(&self) -> bool {
        let request = self.request;
        let must_call = self.may_call() && request.tool_choice != ToolChoice::Auto;
        request.schema.is_none() && !request.json_object && !must_call
    }

    /// The usage, as counted here.
    pub fn count(&self, draft: &Draft) -> Usage {
        Usage {
            prompt_tokens: self.prompt_tokens,
            completion_tokens: draft.tokens(),
        }
    }
}

/// Whether an answer has the form that its request asks for.
pub fn holds_form(draft: &Draft, request: &ChatRequest) -> bool {
    judge::conforms(draft, request)
}

/// What was said so far, by role: what a judge model is shown. Tool calls as JSON.
pub fn conversation(messages: &[Value]) -> Vec<(String, String)> {
    messages.iter().map(prompt::said).collect()
}

/// Whether a value conforms to a JSON Schema; false when the schema is none.
pub fn schema_holds(schema: &Value, value: &Value) -> bool {
    schema::conforms(schema, value).unwrap_or(false)
}

/// The usage of an answer outside the router, as counted here.
pub fn count(messages: &[Value], draft: &Draft) -> Usage {
    Usage {
        prompt_tokens: Prompt::of(messages).tokens,
        completion_tokens: draft.tokens(),
    }
}

/// One prompt on a frontier model, outside the router.
pub fn frontier_only(messages: &[Value], dice: &Dice, model: &FrontierModel) -> (Draft, Usage) {
    let prompt = Prompt::of(messages);
    let mut rng = Rng::from_parts(&[
        &dice.seed.to_le_bytes(),
        &dice.run.to_le_bytes(),
        model.id.as_bytes(),
        prompt.all.as_bytes(),
    ]);
    let category = plan::category(&prompt, false, Lane::Inference);
    let reader = Reader::new(&prompt, Skills::of_roster(model));
    let draft = Draft {
        content: Some(frontier::write(category, &prompt, &reader, false, &mut rng)),
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
    skills: Skills,
    category: Category,
    request: &ChatRequest,
    prompt: &Prompt,
    lane: Lane,
    dice: &Dice,
) -> Draft {
    let mut rng = request.rng(tier, lane, dice);
    let tool_calls = tools::calls(request, prompt, skills, &mut rng);
    if !tool_calls.is_empty() {
        return Draft {
            tool_calls,
            ..Draft::default()
        };
    }
    let reader = Reader::new(prompt, skills);
    // What samples shows it; what is fixed and has one answer is that answer alone.
    let fixed = request.fixed_seed.is_some();
    let written = if let Some(schema) = &request.schema {
        schema::fill(schema, &reader, &mut rng).to_string()
    } else if request.json_object {
        schema::fill(&specialist::free_object(prompt), &reader, &mut rng).to_string()
    } else if !prompt.tool_results.is_empty() {
        tools::answer_from_results(prompt, &mut rng)
    } else {
        match tier {
            Tier::Specialist => specialist::write(category, prompt, &reader, fixed, &mut rng),
            Tier::Frontier => frontier::write(category, prompt, &reader, fixed, &mut rng),
        }
    };
    let room = match lane {
        Lane::Inference => u64::MAX,
        // Interface, Limits: "131,072 tokens per turn": what the prompt leaves of them.
        Lane::Agent => {
            let prompt_tokens = prompt.tokens.saturating_add(request.tool_tokens());
            spec::CONTEXT_WINDOW_TOKENS.saturating_sub(prompt_tokens)
        }
    };
    let mut draft = cut(written, request, room);
    if let (Some(top), Some(content)) = (request.logprobs, &draft.content) {
        draft.logprobs = Some(logprobs::of(content, top, dice.seed));
    }
    draft
}

/// Applies `stop`, then `max_tokens` and the `room` for an answer.
fn cut(mut written: String, request: &ChatRequest, room: u64) -> Draft {
    let stop_at = request
        .stop
        .iter()
        .filter_map(|stop| written.find(stop.as_str()))
        .min();
    if let Some(at) = stop_at {
        written.truncate(at);
    }
    let pieces = tokens::pieces(&written);
    let most = request.max_tokens.map_or(room, |wanted| wanted.min(room));
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let cut_by_length = pieces.len() > most;
    if cut_by_length {
        written = pieces.into_iter().take(most).collect();
    }
    Draft {
        content: Some(written),
        cut_by_length,
        ..Draft::default()
    }
}

/// Interface: a request that needs an input and is not structured gets HTTP 200, billed 0.
fn clarification(missing: MissingInput) -> Served {
    let (name, _) = missing.names();
    Served {
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
    }
}
