//! One request on its way through the models: read once, planned once, drafted, checked, counted.

use super::{
    judge,
    lane::{Dice, Lane, Pinned},
    plan::{self, MissingInput, Plan},
    request::ChatRequest,
    roster::FrontierModel,
    served::{Served, ServedBy, Usage},
};
use crate::{error::ServiceError, money::MicroUsd, spec};
use bursar_models::{
    draft::{self, AnswerShape, Brief, Draft},
    prompt::{self, Prompt},
    rng::Rng,
    schema,
    skill::{Skills, Tier},
    tools::{ToolChoice, Toolbox},
};
use serde_json::Value;

/// A request as the router sees it: read once, planned once.
#[derive(Debug)]
pub struct Turn<'a> {
    pub request: &'a ChatRequest,
    pub lane: Lane,
    pub plan: Plan,
    prompt: Prompt,
    /// As counted here; a server may report its own.
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
        self.drafted(tier, skills, dice)
    }

    /// What a model of the roster writes, of its own skills.
    pub fn draft_of(&self, model: &FrontierModel, dice: &Dice) -> Draft {
        self.drafted(Tier::Frontier, Skills::of_name(model.id), dice)
    }

    fn drafted(&self, tier: Tier, skills: Skills, dice: &Dice) -> Draft {
        let request = self.request;
        let room = match self.lane {
            Lane::Inference => u64::MAX,
            // Interface, Limits: "131,072 tokens per turn": what the prompt leaves of them.
            Lane::Agent => spec::CONTEXT_WINDOW_TOKENS.saturating_sub(self.prompt_tokens),
        };
        let ask = Brief {
            category: self.plan.category,
            prompt: &self.prompt,
            shape: request.shape(),
            toolbox: request.toolbox(),
            fixed: request.fixed_seed.is_some(),
            stop: &request.stop,
            tokens_max: request.max_tokens.map_or(room, |wanted| wanted.min(room)),
            logprobs: request.logprobs.map(|top| (top, dice.seed)),
        };
        let mut rng = request.rng(tier, self.lane, dice);
        draft::write(&ask, tier, skills, &mut rng)
    }

    /// Whether the answer has the form that was asked for. Holds for every answer that leaves the house.
    pub fn conforms(&self, draft: &Draft) -> bool {
        judge::conforms(draft, self.request)
    }

    /// The built-in judge's word on an answer in words; it depends on the prompt alone.
    pub fn is_confident(&self) -> bool {
        judge::is_confident(&self.prompt)
    }

    /// Whether any text is an answer of the right form.
    pub fn is_free_text(&self) -> bool {
        let request = self.request;
        request.schema.is_none() && !request.json_object && !self.may_call()
    }

    /// Whether the form of the answer is the whole bar for it.
    pub fn is_structured(&self) -> bool {
        self.request.schema.is_some() || self.request.json_object
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

/// Whether a value conforms to a JSON Schema; false when the schema cannot be used.
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
    let ask = Brief {
        category: plan::category(&prompt, false, Lane::Inference),
        prompt: &prompt,
        shape: AnswerShape::Words,
        toolbox: Toolbox {
            tools: &[],
            choice: &ToolChoice::None,
            parallel: false,
        },
        fixed: false,
        stop: &[],
        tokens_max: u64::MAX,
        logprobs: None,
    };
    let skills = Skills::of_name(model.id);
    let draft = draft::write(&ask, Tier::Frontier, skills, &mut rng);
    let usage = Usage {
        prompt_tokens: prompt.tokens,
        completion_tokens: draft.tokens(),
    };
    (draft, usage)
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
