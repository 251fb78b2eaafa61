//! Scorers: how near an answer is to what was expected, and how sure a mean of such scores is.
//!
//! An eval run compares candidates by these numbers, so each is a published measure with its rules
//! written down (docs/sandbox.md, "How answers are scored") and checked against another program's.
//! Promise: a score is a number from 0 to 1, the same on every machine; an answer that cannot be read is
//! an [`score::Unscored`] with its reason and never a number; work is bounded by the bounds in
//! `score`.

mod answer;
mod assignment;
mod exact;
mod field_f1;
mod fields;
mod grade;
mod interval;
mod overlap;
mod ranking;
mod scalar;
mod score;
mod scorer;
mod transcript;
mod tree;
mod words;

#[cfg(test)]
mod tests;

pub use answer::read_answer;
pub use grade::{Graded, grade};
pub use interval::{Interval, interval};
pub use scorer::{Scorer, exact_match_rate};
