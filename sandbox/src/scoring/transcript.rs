//! Word error rate: how many words of a transcript must be changed, taken out or put in.
//!
//! Interface, Task: "WER for transcripts".
//! Promise: the rate is (substitutions + deletions + insertions) / reference words, by the least number of
//! changes; the score is 1 - min(1, rate).

use super::{
    fields::{mean_over_fields, text_of},
    score::{Score, number},
    words::words,
};
use serde_json::Value;
use strsim::generic_levenshtein;

pub fn score(expected: &Value, answer: &Value) -> Score {
    mean_over_fields(expected, answer, |expected, answer| {
        let reference = words(&text_of(expected))?;
        let heard = words(&text_of(answer))?;
        // Nothing expected and nothing heard is right; something heard where nothing was said is wrong.
        let changes = number(generic_levenshtein(&reference, &heard));
        Ok(1.0 - (changes / number(reference.len().max(1))).min(1.0))
    })
}
