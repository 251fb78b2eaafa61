//! The scorers by their ids.
//!
//! Promise: a task names one; the same expected output and answer have the same score on every machine.

use super::{
    exact, field_f1, overlap, ranking,
    score::{Score, number},
    transcript,
};
use serde_json::Value;

/// How a task's answers are graded. A task names its own by [`Scorer::id`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scorer {
    /// F1 over the leaves of the expected object.
    FieldF1,
    /// Normalised discounted cumulative gain of the first ten, linear gain.
    NdcgAt10,
    /// 1 - min(1, word error rate).
    Wer,
    /// 1 when every leaf is right and none is too many, else 0.
    ExactMatch,
    /// F1 over words, as SQuAD's.
    TokenF1,
    /// Open text: a judge model's number where one is configured, else the overlap of words.
    Judge,
}

// === impl Scorer ===

impl Scorer {
    pub const ALL: [Self; 6] = [
        Self::FieldF1,
        Self::NdcgAt10,
        Self::Wer,
        Self::ExactMatch,
        Self::TokenF1,
        Self::Judge,
    ];

    pub fn by_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scorer| scorer.id() == id)
    }

    pub const fn id(self) -> &'static str {
        match self {
            Self::FieldF1 => "field_f1",
            Self::NdcgAt10 => "ndcg_at_10",
            Self::Wer => "wer",
            Self::ExactMatch => "exact_match",
            Self::TokenF1 => "token_f1",
            Self::Judge => "judge",
        }
    }

    /// `expected` is a row's `expected_output`; `answer` is what [`read_answer`] made of a model's text.
    pub fn score(self, expected: &Value, answer: &Value) -> Score {
        match self {
            Self::FieldF1 => field_f1::score(expected, answer),
            Self::NdcgAt10 => ranking::score(expected, answer),
            Self::Wer => transcript::score(expected, answer),
            Self::ExactMatch => exact::score(expected, answer),
            Self::TokenF1 => overlap::token_f1(expected, answer),
            Self::Judge => overlap::judge(expected, answer),
        }
    }
}

/// The `exact_match` rate of a classification run, 0 to 100, of its rows' exact-match scores.
///
/// Interface, Eval result: `exact_match`. `None` when no row was scored.
pub fn exact_match_rate(scores: &[f64]) -> Option<f64> {
    let right = scores.iter().filter(|score| **score >= 1.0).count();
    (!scores.is_empty()).then(|| 100.0 * number(right) / number(scores.len()))
}
