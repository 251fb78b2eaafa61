//! One row's grade: the scorer's rule, or the judge model where the task is open text and one is configured.
//!
//! Promise: a judge that is not there or gave no usable number never costs a row its score: the overlap of words
//! takes its place, and [`Graded::by`] says so. Nothing long runs on a thread that serves.

use super::{score::Unscored, scorer::Scorer};
use crate::fleet::Fleet;
use serde_json::Value;

/// A score, and what gave it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Graded {
    pub score: f64,
    pub by: Grader,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grader {
    /// The scorer's own rule.
    Rule,
    /// The configured judge model.
    Model,
    /// Assumed (judge-overlap): open text without a judge model.
    Overlap,
}

// === impl Grader ===

impl Grader {
    pub const fn id(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Model => "model",
            Self::Overlap => "overlap",
        }
    }
}

/// Scores an answer, as [`super::read_answer`] made it, against a row's expected output; `prompt` is what the
/// model was asked.
pub async fn grade(
    fleet: &Fleet,
    scorer: Scorer,
    prompt: &str,
    expected: &Value,
    answer: &Value,
) -> Result<Graded, Unscored> {
    let by = if scorer == Scorer::Judge {
        let judged = fleet
            .judge(prompt, Some(&text(expected)), &text(answer))
            .await;
        if let Some(score) = judged {
            let by = Grader::Model;
            return Ok(Graded { score, by });
        }
        Grader::Overlap
    } else {
        Grader::Rule
    };
    let (expected, answer) = (expected.clone(), answer.clone());
    let score = tokio::task::spawn_blocking(move || scorer.score(&expected, &answer))
        .await
        .map_err(|_| Unscored::because("the scorer broke off"))??;
    Ok(Graded { score, by })
}

/// The text of a single field as it is, everything else as JSON.
fn text(value: &Value) -> String {
    let only = value
        .as_object()
        .filter(|fields| fields.len() == 1)
        .and_then(|fields| fields.values().next())
        .unwrap_or(value);
    only.as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
