//! The models behind `auto`: plan, answer, judge, escalate, meter.
//!
//! Interface: "Each request is planned and routed to a specialist open-weights model, or to a frontier
//! model when no specialist holds the quality bar. The result is checked against the bar, and the request is
//! escalated to a frontier model when needed." The package `bursar-models` writes the answers of the two
//! built-in models; this module is what the service knows of them.
//! Promise: which model served is shown only in the coarse words of the interface; an answer that does
//! not conform to a requested schema is never served.
//!
//! Lowest first: `lane`, `roster` < `forward` < `request` < `plan`, `judge` < `served` < `turn`.

mod forward;
mod judge;
mod lane;
mod plan;
pub mod request;
pub mod roster;
mod served;
mod turn;

pub use bursar_models::{
    category::Category, draft::Draft, prompt::Prompt, rng::Rng as SeededRng, skill::Tier, tokens,
    tools::ToolCall,
};
pub use lane::{Dice, Lane, Pinned};
pub use plan::{MissingInput, SPECIALIST_PROMPT_TOKENS_MAX};
pub use roster::FRONTIER_PRICE;
pub use served::{Served, ServedBy, Usage};
pub use turn::{Opening, Turn, conversation, count, frontier_only, holds_form, open, schema_holds};
