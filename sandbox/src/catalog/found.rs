//! What a description was matched with.
//!
//! Promise: a score lies in [0, 1]; a candidate is a task of the catalog.

use super::{
    keyword::{self, Scored},
    lanes::Capability,
};
use serde::{Deserialize, Serialize};

/// The task match result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskMatch {
    pub query: String,
    #[serde(rename = "type")]
    pub kind: MatchKind,
    pub matched: bool,
    pub chosen: Option<MatchCandidate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    pub candidates: Vec<MatchCandidate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    pub ambiguous: bool,
    pub matcher: Matcher,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatchKind {
    Task,
    Capability,
    Unsupported,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Matcher {
    Reason,
    Keyword,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    High,
    Medium,
    Low,
}

/// Interface: "Candidate: task_id (string), score (number in [0,1]), confidence (high, medium, low)".
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatchCandidate {
    pub task_id: String,
    pub score: f64,
    pub confidence: Confidence,
}

/// Assumed (match-keyword): from here on a keyword score is high; from the bar on, medium.
const HIGH: f64 = 0.4;
// === impl MatchCandidate ===

impl MatchCandidate {
    pub fn of(scored: &Scored) -> Self {
        let confidence = if scored.score >= HIGH {
            Confidence::High
        } else if scored.score >= keyword::BAR {
            Confidence::Medium
        } else {
            Confidence::Low
        };
        Self {
            task_id: scored.task.id.clone(),
            // Four digits are exact enough, and print the same in every client.
            score: (scored.score * 10_000.0).round() / 10_000.0,
            confidence,
        }
    }

    pub fn is_sure(&self) -> bool {
        self.confidence == Confidence::High
    }
}
