//! A draft: what one of the built-in models writes for what it is asked.
//!
//! Promise: an answer is cut at the first `stop` and at its most tokens, never in the middle of a token.

use super::{
    category::Category,
    frontier, logprobs,
    prompt::Prompt,
    reader::Reader,
    rng::Rng,
    schema,
    skill::Skills,
    specialist, tokens,
    tools::{self, ToolCall, Toolbox},
};
use serde_json::Value;

/// Which of the two built-in models writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Specialist,
    Frontier,
}

/// The form that an answer must have.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    Words,
    /// Any JSON object.
    Object,
    /// A value of this JSON Schema.
    Schema(&'a Value),
}

/// What is asked of a model.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub category: Category,
    pub prompt: &'a Prompt,
    pub shape: Shape<'a>,
    pub toolbox: Toolbox<'a>,
    /// The same answer is wanted each time.
    pub fixed: bool,
    pub stop: &'a [String],
    pub tokens_max: u64,
    /// How many of the likeliest tokens are told with each, and the seed of their numbers.
    pub logprobs: Option<(u64, u64)>,
}

/// What a model wrote, cut to its most tokens and at `stop`.
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

/// What a model of this tier and of these skills writes.
pub fn write(ask: &Ask<'_>, tier: Tier, skills: Skills, rng: &mut Rng) -> Draft {
    let prompt = ask.prompt;
    let tool_calls = tools::calls(ask.toolbox, prompt, skills, rng);
    if !tool_calls.is_empty() {
        return Draft {
            tool_calls,
            ..Draft::default()
        };
    }
    let reader = Reader::new(prompt, skills);
    let written = match ask.shape {
        Shape::Schema(schema) => schema::fill(schema, &reader, rng).to_string(),
        Shape::Object => schema::fill(&specialist::free_object(prompt), &reader, rng).to_string(),
        Shape::Words if !prompt.tool_results.is_empty() => tools::answer_from_results(prompt, rng),
        // What samples shows it; what is fixed and has one answer is that answer alone.
        Shape::Words => match tier {
            Tier::Specialist => specialist::write(ask.category, prompt, &reader, ask.fixed, rng),
            Tier::Frontier => frontier::write(ask.category, prompt, &reader, ask.fixed, rng),
        },
    };
    let mut draft = cut(written, ask.stop, ask.tokens_max);
    if let (Some((top, seed)), Some(content)) = (ask.logprobs, &draft.content) {
        draft.logprobs = Some(logprobs::of(content, top, seed));
    }
    draft
}

/// Applies `stop`, then the most tokens.
fn cut(mut written: String, stop: &[String], tokens_max: u64) -> Draft {
    let stop_at = stop
        .iter()
        .filter_map(|stop| written.find(stop.as_str()))
        .min();
    if let Some(at) = stop_at {
        written.truncate(at);
    }
    let pieces = tokens::pieces(&written);
    let most = usize::try_from(tokens_max).unwrap_or(usize::MAX);
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
