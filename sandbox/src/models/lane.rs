//! What routing depends on beside the request: its lane, its conversation's pin, the seed.

use bursar_models::category::Category;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    Inference,
    Agent,
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
