//! Scorers: how near an answer is to what was expected, and how sure a mean of such scores is.
//!
//! An eval run compares candidates by these numbers, so each is a published measure with its rules
//! written down (docs/sandbox.md, "How answers are scored") and checked against another program's.
//! Promise: a score is a number from 0 to 1, the same on every machine; an answer that cannot be read is
//! an [`Unscored`] with its reason and never a number; work is bounded by [`LEAVES_MAX`], [`LIST_MAX`],
//! [`WORDS_MAX`] and [`TEXT_BYTES_MAX`].

mod answer;
mod assignment;
pub mod control;
mod exact;
mod field_f1;
mod fields;
mod grade;
mod interval;
mod overlap;
mod punctuation;
mod ranking;
mod scalar;
mod transcript;
mod tree;
mod words;

#[cfg(test)]
mod tests;

pub use answer::read_answer;
pub use grade::{Graded, grade};
pub use interval::{Interval, interval};

use serde_json::Value;

/// Leaves of one expected output or one answer, in field F1 and exact match; entries of one ranking.
pub const LEAVES_MAX: usize = 2_048;
/// Entries of one array that field F1 aligns.
pub const LIST_MAX: usize = 256;
/// Words of one text.
pub const WORDS_MAX: usize = 16_384;
/// Bytes of an answer's text.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// From 0 (nothing right) to 1 (all right).
pub type Score = Result<f64, Unscored>;

/// Why an answer has no score.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unscored(String);

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

// === impl Unscored ===

impl Unscored {
    pub fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
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

/// A count as a number to divide. Exact: no count here comes near 2^53.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts are bounded far below 2^53"
)]
fn number(count: usize) -> f64 {
    count as f64
}

/// 2 tp / (a + b), for `matched` of `expected` and `answered` things; 1 when there are none on both sides.
fn f1(matched: usize, expected: usize, answered: usize) -> f64 {
    if expected + answered == 0 {
        return 1.0;
    }
    2.0 * number(matched) / number(expected + answered)
}

/// The `exact_match` rate of a classification run, 0 to 100, of its rows' exact-match scores.
///
/// Interface, Eval result: `exact_match`. `None` when no row was scored.
pub fn exact_match_rate(scores: &[f64]) -> Option<f64> {
    let right = scores.iter().filter(|score| **score >= 1.0).count();
    (!scores.is_empty()).then(|| 100.0 * number(right) / number(scores.len()))
}
