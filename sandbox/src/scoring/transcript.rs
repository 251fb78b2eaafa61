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

pub fn score(expected: &Value, answer: &Value) -> Score {
    mean_over_fields(expected, answer, |expected, answer| {
        let reference = words(&text_of(expected))?;
        let heard = words(&text_of(answer))?;
        Ok(of_words(&reference, &heard))
    })
}

/// Nothing expected and nothing heard is right; something heard where nothing was said is wrong.
fn of_words(reference: &[String], heard: &[String]) -> f64 {
    if reference.is_empty() {
        return if heard.is_empty() { 1.0 } else { 0.0 };
    }
    let rate = number(changes(reference, heard)) / number(reference.len());
    1.0 - rate.min(1.0)
}

/// Levenshtein's distance over words, one row at a time.
fn changes(reference: &[String], heard: &[String]) -> usize {
    let mut row: Vec<usize> = (0..=heard.len()).collect();
    for (at, said) in reference.iter().enumerate() {
        let mut diagonal = at;
        let mut left = at + 1;
        let mut cells = row.iter_mut();
        if let Some(first) = cells.next() {
            *first = left;
        }
        for (cell, word) in cells.zip(heard) {
            let above = *cell;
            let changed = diagonal + usize::from(said != word);
            *cell = changed.min(above + 1).min(left + 1);
            diagonal = above;
            left = *cell;
        }
    }
    row.last().copied().unwrap_or(0)
}
