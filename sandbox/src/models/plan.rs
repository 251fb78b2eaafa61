//! Where a request goes: its category by shape, and whether a specialist is tried.
//!
//! Promise: the plan depends on the request (and a conversation's pin) alone, so it can be derived from the
//! rules here, written as tables.

use super::{
    lane::{Lane, Pinned},
    request::ChatRequest,
};
use bursar_models::{category::Category, given, prompt::Prompt, text};

/// The input that a request mentions and lacks; what `X-Service-Input-Required` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingInput {
    Document,
    Image,
}

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub category: Category,
    /// The conversation is pinned to the frontier route: no specialist is tried.
    pub frontier: bool,
    /// What the specialist's limit is compared with: the messages without the tools.
    pub prompt_tokens: u64,
}

/// Beyond this the built-in specialist does not hold the bar, and the frontier model serves at once.
/// Assumed (plan).
pub const SPECIALIST_PROMPT_TOKENS_MAX: u64 = 4_000;

/// A row of [`RULES`]: where a request goes by its shape.
#[derive(Clone, Copy)]
struct RoutingRule {
    category: Category,
    lanes: &'static [Lane],
    shape: PromptShape,
}

/// What the last user message, or the request, must have.
#[derive(Clone, Copy)]
enum PromptShape {
    /// A picture anywhere in the transcript: what serves must be able to see it.
    Picture,
    /// `response_format` of type `json_schema`.
    Structured,
    /// One of these words, with a space between them, in the lines that say what to do.
    Words(&'static str),
    /// A block of code.
    Fence,
    Any,
}

const BOTH: &[Lane] = &[Lane::Inference, Lane::Agent];
const INFERENCE: &[Lane] = &[Lane::Inference];

const CODING_WORDS: &str = "function code python rust javascript typescript bug compile refactor implement script sql \
    regex unittest";
const EXTRACTION_WORDS: &str = "extract parse fields";
const SUMMARIZATION_WORDS: &str = "summarise summarize summary tldr shorten condense";

const fn rule(category: Category, lanes: &'static [Lane], shape: PromptShape) -> RoutingRule {
    RoutingRule {
        category,
        lanes,
        shape,
    }
}

/// The first that fits. Interface, agent lane: "routed by shape (general reasoning, coding or vision)".
/// Assumed (plan): the shapes.
#[rustfmt::skip]
const RULES: &[RoutingRule] = &[
    rule(Category::Vision,        BOTH,      PromptShape::Picture),
    rule(Category::Extraction,    INFERENCE, PromptShape::Structured),
    rule(Category::Extraction,    INFERENCE, PromptShape::Words(EXTRACTION_WORDS)),
    rule(Category::Coding,        BOTH,      PromptShape::Fence),
    rule(Category::Coding,        BOTH,      PromptShape::Words(CODING_WORDS)),
    rule(Category::Summarization, INFERENCE, PromptShape::Words(SUMMARIZATION_WORDS)),
    rule(Category::GeneralChat,   BOTH,      PromptShape::Any),
];

/// The lines of a message that say what to do: the first, and the last when it begins with what to do. What
/// stands between is material: an article about fields is no request for fields.
fn asks(user: &str) -> impl Iterator<Item = &str> {
    let mut lines = user.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next();
    let last = lines.next_back().filter(|line| given::is_instruction(line));
    first.into_iter().chain(last)
}

// === impl PromptShape ===

impl PromptShape {
    fn fits(self, prompt: &Prompt, structured: bool) -> bool {
        match self {
            Self::Picture => !prompt.pictures.is_empty(),
            Self::Structured => structured,
            Self::Words(list) => asks(&prompt.user).any(|line| text::has_word(line, list)),
            Self::Fence => prompt.user.contains("```"),
            Self::Any => true,
        }
    }
}

// === impl MissingInput ===

impl MissingInput {
    /// The bare name, and the name with its article.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Document => ("document", "a document"),
            Self::Image => ("image", "an image"),
        }
    }
}

pub fn plan(prompt: &Prompt, request: &ChatRequest, lane: Lane, pinned: Pinned) -> Plan {
    let shape = category(prompt, request.schema.is_some(), lane);
    // Interface, X-Service-Session: a modality change re-routes; else the pin holds, an escalation included.
    let pinned = match pinned.category {
        Some(before) if !before.same_modality(shape) => Pinned::default(),
        _ => pinned,
    };
    Plan {
        category: pinned.category.unwrap_or(shape),
        frontier: pinned.frontier,
        prompt_tokens: prompt.tokens,
    }
}

/// The category by shape.
pub fn category(prompt: &Prompt, structured: bool, lane: Lane) -> Category {
    RULES
        .iter()
        .find(|rule| rule.lanes.contains(&lane) && rule.shape.fits(prompt, structured))
        .map_or(Category::GeneralChat, |rule| rule.category)
}

/// The input the last user message refers to and no message carries.
///
/// Assumed (clarification-rule): the message says that something is attached, enclosed or uploaded, or
/// points at "this", and names its kind: picture words ask for an image, paper words for a document.
pub fn missing_input(prompt: &Prompt) -> Option<MissingInput> {
    const IMAGE: &str = "image picture photo screenshot diagram images pictures photos";
    const DOCUMENT: &str =
        "document pdf file scan invoice contract attachment documents pdfs files receipt";
    const SENT: &str = "attached enclosed uploaded attachment";
    // "this invoice" may be text that follows; "this pdf" cannot.
    const POINTED_AT: &str = "image picture photo screenshot pdf scan attachment";

    let words = text::words(&prompt.user);
    let has = |list: &str| text::has_any(&words, list);
    let points = words.windows(2).any(
        |pair| matches!(pair, [this, kind] if this == "this" && text::listed(kind, POINTED_AT)),
    );
    if !points && !has(SENT) {
        return None;
    }
    if has(IMAGE) {
        return prompt.pictures.is_empty().then_some(MissingInput::Image);
    }
    let carries_one = prompt.files > 0 || !prompt.pictures.is_empty();
    (has(DOCUMENT) && !carries_one).then_some(MissingInput::Document)
}

#[cfg(test)]
mod tests;
