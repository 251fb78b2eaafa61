//! Scores from words that two texts share: token F1, and the judge of open text where no model judges.
//!
//! Assumed (judge-overlap): "a judge panel for open-ended text" is a judge model when one is configured, else
//! the mean of ROUGE-L's F measure (order counts) and token F1 (choice of words counts), over runs of letters
//! and digits.
//! Promise: equal texts have 1, texts without a common word 0.

use super::{
    fields::{mean_over_fields, text_of},
    score::{Score, Unscored, f1},
    words::{common, runs, words_without_articles},
};
use serde_json::Value;

/// SQuAD's F1. For an answer of one text, an expected array holds acceptable answers: the best counts.
pub fn token_f1(expected: &Value, answer: &Value) -> Score {
    mean_over_fields(expected, answer, |expected, answer| {
        let words = words_without_articles(&text_of(answer))?;
        let one = |expected: &Value| -> Result<f64, Unscored> {
            let expected = words_without_articles(&text_of(expected))?;
            Ok(of_words(&expected, &words))
        };
        match expected {
            Value::Array(acceptable) if !answer.is_array() => {
                acceptable.iter().try_fold(0.0, |best: f64, expected| {
                    one(expected).map(|score| best.max(score))
                })
            }
            expected => one(expected),
        }
    })
}

/// The mean of ROUGE-L's F measure and token F1.
pub fn judge(expected: &Value, answer: &Value) -> Score {
    mean_over_fields(expected, answer, |expected, answer| {
        let (expected, answer) = (runs(&text_of(expected))?, runs(&text_of(answer))?);
        let in_order = f1(
            longest_common(&expected, &answer),
            expected.len(),
            answer.len(),
        );
        Ok(f64::midpoint(in_order, of_words(&expected, &answer)))
    })
}

fn of_words(expected: &[String], answer: &[String]) -> f64 {
    f1(common(expected, answer), expected.len(), answer.len())
}

/// The length of the longest common subsequence, one row at a time.
fn longest_common(one: &[String], two: &[String]) -> usize {
    let mut row = vec![0_usize; two.len()];
    for word in one {
        let mut diagonal = 0;
        let mut left = 0;
        for (cell, other) in row.iter_mut().zip(two) {
            let above = *cell;
            *cell = if word == other {
                diagonal + 1
            } else {
                above.max(left)
            };
            diagonal = above;
            left = *cell;
        }
    }
    row.last().copied().unwrap_or(0)
}
