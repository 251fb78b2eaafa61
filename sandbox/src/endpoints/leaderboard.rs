//! Which open models a task can be deployed with, by their public aliases.
//!
//! Interface, Endpoint, `model`: "public per-task alias of the form `{family}-{rank}`; real model ids are
//! never exposed".
//! Promise: an alias denotes one model of one task's board; no real id can be derived from anything here.

use crate::{
    catalog::Task,
    models::{Category, roster},
    money::{MicroUsd, Price},
};

/// Interface, deploy: the default of `model`.
pub const RECOMMENDED: &str = "recommended";

/// Assumed (endpoint-aliases): three models to a board, the larger before the smaller.
/// Rank, share of the category's list price in percent, context window in tokens.
const BOARD: &[(u8, u64, u64)] = &[(1, 100, 131_072), (2, 60, 32_768), (3, 30, 8_192)];

/// Interface: "the task's curated pick, else the leaderboard's top open model". Assumed (endpoint-aliases):
/// a label is short work, so the tasks of this family have a smaller model for their pick.
const CURATED: &[(&str, u8)] = &[("classify", 2)];

/// One model of a task's board.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenModel {
    pub alias: String,
    pub rank: u8,
    /// Price per million tokens.
    pub price: Price,
    pub context_tokens: u64,
}

/// The board of a task, best first.
pub fn board(task: &Task) -> Vec<OpenModel> {
    let list = roster::specialist_price(category(&task.category));
    BOARD
        .iter()
        .map(|(rank, percent, context_tokens)| OpenModel {
            alias: format!("{}-{rank}", task.family),
            rank: *rank,
            price: Price {
                prompt_per_million: list.prompt_per_million * percent / 100,
                completion_per_million: list.completion_per_million * percent / 100,
            },
            context_tokens: *context_tokens,
        })
        .collect()
}

/// The model that an alias or `recommended` names; `None` if the task's board has no such name.
pub fn resolve(task: &Task, asked: &str) -> Option<OpenModel> {
    let mut board = board(task).into_iter();
    if asked != RECOMMENDED {
        return board.find(|one| one.alias == asked);
    }
    let pick = CURATED
        .iter()
        .find(|(family, _)| *family == task.family)
        .map_or(1, |(_, rank)| *rank);
    board.find(|one| one.rank == pick)
}

/// The router's category of that name; a name it does not know is general work.
pub fn category(name: &str) -> Category {
    Category::by_name(name).unwrap_or(Category::GeneralChat)
}

// === impl OpenModel ===

impl OpenModel {
    /// The price of these tokens on this model; `None` if it is more than an amount can be.
    pub fn cost(&self, prompt_tokens: u64, completion_tokens: u64) -> Option<MicroUsd> {
        self.price.cost(prompt_tokens, completion_tokens)
    }
}

#[cfg(test)]
mod tests;
