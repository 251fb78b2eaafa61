//! A draft: what one of the built-in models writes for what it is asked.
//!
//! Promise: an answer is cut at the first `stop` and at its most tokens, never in the middle of a token.

use super::{
    category::Category,
    logprobs,
    prompt::Prompt,
    prose,
    reader::PromptReader,
    rng::Rng,
    schema,
    skill::{Skills, Tier},
    tokens,
    tools::{self, ToolCall, Toolbox},
};
use serde_json::Value;

/// The form that an answer must have.
#[derive(Clone, Copy, Debug)]
pub enum AnswerShape<'a> {
    Words,
    /// Any JSON object.
    Object,
    /// A value of this JSON Schema.
    Schema(&'a Value),
}

/// What is asked of a model.
#[derive(Clone, Copy, Debug)]
pub struct Brief<'a> {
    pub category: Category,
    pub prompt: &'a Prompt,
    pub shape: AnswerShape<'a>,
    pub toolbox: Toolbox<'a>,
    /// The same answer is wanted each time.
    pub fixed: bool,
    pub stop: &'a [String],
    pub tokens_max: u64,
    /// How many of the likeliest tokens come with each, and the seed of their numbers.
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
        let calls = self
            .tool_calls
            .iter()
            .flat_map(|call| [&call.name, &call.arguments]);
        calls
            .chain(&self.content)
            .map(|text| tokens::count(text))
            .sum()
    }
}

/// What a model of this tier and of these skills writes.
pub fn write(ask: &Brief<'_>, tier: Tier, skills: Skills, rng: &mut Rng) -> Draft {
    let prompt = ask.prompt;
    let tool_calls = tools::calls(ask.toolbox, prompt, skills, rng);
    if !tool_calls.is_empty() {
        return Draft {
            tool_calls,
            ..Draft::default()
        };
    }
    let reader = PromptReader::new(prompt, skills);
    let written = match ask.shape {
        AnswerShape::Schema(schema) => schema::fill(schema, &reader, rng).to_string(),
        AnswerShape::Object => schema::fill(&prose::free_object(prompt), &reader, rng).to_string(),
        AnswerShape::Words if !prompt.tool_results.is_empty() => {
            tools::answer_from_results(prompt, rng)
        }
        AnswerShape::Words => prose::write(ask.category, tier, prompt, &reader, ask.fixed, rng),
    };
    let mut draft = cut(written, ask.stop, ask.tokens_max);
    if let (Some((top, seed)), Some(content)) = (ask.logprobs, &draft.content) {
        draft.logprobs = Some(logprobs::of(content, top, seed));
    }
    draft
}

/// Applies `stop`, then the most tokens.
fn cut(mut written: String, stop: &[String], tokens_max: u64) -> Draft {
    let stops = stop.iter().filter_map(|stop| written.find(stop.as_str()));
    if let Some(at) = stops.min() {
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
