//! A finished answer and what it costs.

use super::plan::MissingInput;
use crate::money::MicroUsd;
use bursar_models::{category::Category, draft::Draft};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedBy {
    Specialist,
    Frontier,
    /// A clarification: no model was needed.
    None,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
}

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
