//! A score, why there is none, and the bounds of what is compared.
//!
//! Promise: a score is a number from 0 to 1; sums are exact.

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

// === impl Unscored ===

impl Unscored {
    pub fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// A count as a number to divide. Exact: no count here comes near 2^53.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts are bounded far below 2^53"
)]
pub fn number(count: usize) -> f64 {
    count as f64
}

/// 2 tp / (a + b), for `matched` of `expected` and `answered` things; 1 when there are none on both sides.
pub fn f1(matched: usize, expected: usize, answered: usize) -> f64 {
    if expected + answered == 0 {
        return 1.0;
    }
    2.0 * number(matched) / number(expected + answered)
}
